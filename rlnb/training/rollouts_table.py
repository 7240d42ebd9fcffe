"""Recorded rollouts as a Parquet file, with the columns that `datasets` and TRL use.

    from rlnb.training.rollouts_table import write_rollouts
    write_rollouts("run", "rollouts.parquet")
    datasets.Dataset.from_parquet("rollouts.parquet")     # prompt, completion, reward, ...

A run records them where its recipe has `record_rollouts`. pyarrow is asked for when one is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.training.errors import BadInput
from rlnb.training.metrics_file import read

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["COLUMNS", "rollout_rows", "write_rollouts"]

COLUMNS = ("step", "prompt", "completion", "reward", "verified", "advantage", "tokens", "logprobs",
           "gradient")  # fmt: skip
SPECIAL = ("<eos>", "<pad>", "<bos>")  # of the small model; a tokenizer knows its own


def rollout_rows(
    records: Iterable[dict[str, Any]], tokenizer: PreTrainedTokenizerBase | None = None
) -> list[dict[str, Any]]:
    """One row per recorded answer. completion: the tokens as text, by `tokenizer`, or joined as
    they are where there is none, which is right for the small model. advantage is a number, tokens,
    logprobs (nats) and gradient (dL/dlogprob) are lists of one length.

    >>> record = {"record": "rollout", "step": 1, "prompt": "1+1=?", "tokens": ["so", "2", "<eos>"],
    ...           "reward": 1.0, "verified": 1.0, "advantage": 0.5, "gradient": [-0.1] * 3,
    ...           "logprobs": [-0.1, -0.2, 0.0]}
    >>> rollout_rows([record])[0]["completion"]
    'so2'
    """
    rows = []
    for record in records:
        if record["record"] != "rollout":
            continue
        special = SPECIAL if tokenizer is None else tokenizer.all_special_tokens
        kept = [token for token in record["tokens"] if token not in special]
        text = "".join(kept) if tokenizer is None else tokenizer.convert_tokens_to_string(kept)
        rows.append({name: text if name == "completion" else record[name] for name in COLUMNS})
    return rows


def write_rollouts(
    run: str | Path, out: str | Path, tokenizer: PreTrainedTokenizerBase | None = None
) -> int:
    """Writes the rollouts of a run (its folder or .jsonl file) to `out`; how many there are.

    Raises BadInput where the run has none, or pyarrow is not installed.
    """
    rows = rollout_rows(read(Path(run)), tokenizer)
    if not rows:
        raise BadInput(
            f"run: {str(run)!r} has no rollouts; record some with --record-rollouts PROMPTS"
        )
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise BadInput("out: Parquet is written by pyarrow; pip install pyarrow") from error
    parquet.write_table(pyarrow.Table.from_pylist(rows), out)
    return len(rows)
