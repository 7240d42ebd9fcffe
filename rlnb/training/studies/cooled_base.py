"""What the base solves before any RL, by temperature and by who writes its first symbol.

    python -m rlnb.training.studies.cooled_base data/runs/chain_cooled_base.json

250 held-out problems, 8 answers each (at temperature 0 one). Each row has `pass@1`, the share
`direct` of direct answers, and the share of right ones in each style; a style that no answer has is
left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rlnb.shipped import data_folder
from rlnb.training.studies.command import to_complete

__all__ = ["OPENINGS", "TEMPERATURES", "main", "measure", "rows"]

TEMPERATURES = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2)
OPENINGS = ("its own", "steps", "direct")  # who writes the first symbol: the model, or we


def rows(path: str | Path) -> dict[tuple[str, float], dict[str, float]]:
    """(opening, temperature) -> row."""
    found = json.loads(Path(path).read_text(encoding="utf-8"))["rows"]
    return {(row["opening"], row["temperature"]): row for row in found}


def measure(path: Path, prompts: int = 250, num_generations: int = 8) -> None:
    """Writes `path`, if it is not there."""
    if path.exists():
        return
    import torch  # here: the explorer reads the file, and needs neither torch nor transformers

    from rlnb.training.evaluation import pass_rate
    from rlnb.training.metrics_file import environment
    from rlnb.training.models.loading import load
    from rlnb.training.sampling.sampler import Sampling
    from rlnb.training.tasks import TASKS

    torch.set_num_threads(1)
    model, tokenizer = load(data_folder() / "model", device="cpu")
    found: list[dict[str, Any]] = []
    for opening in OPENINGS:
        for temperature in TEMPERATURES:
            answers = pass_rate(
                model,
                tokenizer,
                TASKS["chain"],
                prompts=prompts,
                num_generations=num_generations if temperature else 1,
                sampling=Sampling(temperature=temperature, max_new_tokens=72),
                style=None if opening == OPENINGS[0] else opening,
            )
            right = answers.right.double()
            direct = torch.tensor([t.startswith("so") for t in answers.texts]).view_as(right)
            row = {"opening": opening, "temperature": temperature, "pass@1": right.mean().item(),
                   "direct": direct.double().mean().item()}  # fmt: skip
            for style, chosen in (("direct", direct), ("steps", ~direct)):
                if chosen.any():
                    row[f"right/{style}"] = right[chosen].mean().item()
            found.append({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
            print(found[-1], flush=True)
    header = {"task": "chain", "prompts": prompts, "num_generations": num_generations}
    found_all = {"header": header | environment(model.device), "rows": found}
    path.write_text(json.dumps(found_all, indent=0) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    args = to_complete("cooled_base", __doc__).parse_args(arguments)
    measure(args.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
