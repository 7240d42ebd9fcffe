"""Where a model's files are: a local folder, or a hub id that is fetched once.

Only safetensors and JSON are fetched and read: weights that are pickled, and code that comes with
a model, could execute anything.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import huggingface_hub
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

from rlnb.training.errors import BadInput

__all__ = ["model_folder"]

_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+")
_WANTED = ["*.json", "*.safetensors", "*.jinja", "merges.txt", "vocab.txt"]
_FOLDER = "a folder with config.json, model.safetensors and tokenizer.json"


def model_folder(name: str | Path) -> Path:
    """The folder that holds the model `name`, checked for what `load` needs.

    A string owner/name that is no folder here is asked of the hub, and a line on stderr says so. A
    Path is never a hub id, nor is a string whose first part is here: that is a mistyped path.

    Raises BadInput where there is neither, with both readings where both are possible, and where
    the folder lacks its configuration, tokenizer or weights.
    """
    path = Path(name)
    if not path.is_dir():
        if isinstance(name, Path) or not _HUB_ID.fullmatch(name):
            raise BadInput(
                f"model: there is no folder {str(name)!r}; give {_FOLDER}, or a hub id, such as "
                "Qwen/Qwen2.5-0.5B-Instruct"
            )
        if (owner := Path(name).parent).exists():
            raise BadInput(
                f"model: there is no folder {name!r}, and it was not taken for a hub id, because "
                f"{str(owner)!r} is here; mend the path, or start elsewhere if you mean the hub"
            )
        path = Path(_fetch(name))
        print(f"model: no folder {name!r} here; the hub's is used, in {path}", file=sys.stderr)
    for file, what in (("config.json", "configuration"), ("tokenizer.json", "tokenizer")):
        if not (path / file).is_file():
            raise BadInput(
                f"model: the folder {str(path)!r} has no {what} ({file} is missing); "
                "save model and tokenizer to the same folder with save_pretrained"
            )
    if not any(path.glob("*.safetensors")):
        raise BadInput(f"model: the folder {str(path)!r} has no weights (no .safetensors file)")
    return path


def _fetch(name: str) -> str:
    """The folder of a hub model in the local cache, downloaded if it is not there."""
    try:
        return huggingface_hub.snapshot_download(
            name, allow_patterns=_WANTED, ignore_patterns=["*/*"]
        )
    except GatedRepoError as error:
        reason, cause = "the hub gives it only to those who accepted its licence", error
    except RepositoryNotFoundError as error:
        reason, cause = "the hub has no such model, or not for you", error
    except Exception as error:  # no connection has many exceptions: sockets, HTTP, time-outs
        offline = huggingface_hub.constants.HF_HUB_OFFLINE
        why = "HF_HUB_OFFLINE is set" if offline else "the hub could not be reached"
        reason, cause = f"{why}, and it is not in the local cache", error
    raise BadInput(
        f"model: {name!r} is no folder here, and as a hub id it cannot be had ({reason}); mend the "
        f"path if you meant a folder, or run `hf download {name} --local-dir FOLDER` where there "
        "is a network and give that folder"
    ) from cause
