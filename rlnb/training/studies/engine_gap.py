"""How far apart are the policy that wrote an answer and the policy that learns from it? Measured.

    python -m rlnb.training.studies.engine_gap data/runs/engine_gap.json

formats: the shipped model writes 32 x 16 answers from a copy in another number format; the float32
model scores the same tokens. lags: the model of step s writes 32 x 16 answers, those of steps
s + 1, 2, 4, 8 score them, in float32 throughout, along runs of chain_stale_0's recipe.
A gap is log pi_trainer - log pi_writer, per token or summed over an answer. Kept per arm: how many
tokens and answers, std and largest absolute gap of both, the KL of a token (k1: minus the mean
gap), share of tokens whose ratio leaves [1/2, 2], effective sample share of the answers' weights,
and for formats the gaps' histogram on `EDGES`.
"""

from __future__ import annotations

import copy
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlnb.objective import ZOO
from rlnb.shipped import data_folder
from rlnb.training.errors import BadInput
from rlnb.training.metrics_file import environment
from rlnb.training.models.loading import load
from rlnb.training.models.precision import sampler_copy
from rlnb.training.recipe import Recipe
from rlnb.training.sampling.prompts import encode_prompts
from rlnb.training.sampling.sampler import Rollout, Sampling, sample
from rlnb.training.sampling.scoring import token_logprobs
from rlnb.training.step import start, step
from rlnb.training.studies.command import to_complete
from rlnb.training.tasks import TASKS
from rlnb.training.tasks.task import held_out

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["EDGES", "FORMATS", "LAGS", "describe", "main", "measure", "recorded", "rounded_copy"]

PROMPTS, ANSWERS, SEEDS, LAGS, FROM = 32, 16, (0, 1, 2), (1, 2, 4, 8), (4, 8, 12, 16)
FORMATS = ("float32", "float16", "bfloat16", "fp8 weights")
EDGES = tuple(
    round(-0.15 + 0.005 * k, 4) for k in range(61)
)  # of the histogram; the ends catch all
RECIPE = Recipe(steps=24, prompts=8, num_generations=8, eval_every=0, checkpoint_every=0)


def rounded_copy(model: PreTrainedModel, form: str) -> PreTrainedModel:
    """A copy that writes in another format: its weights and products, or for "fp8 weights" float32
    products of matrices rounded to E4M3 with one scale a row. Raises BadInput for another name."""
    if form not in FORMATS:
        raise BadInput(f"form: there is no {form!r}; known: {', '.join(FORMATS)}")
    if form != "fp8 weights":
        return sampler_copy(model, getattr(torch, form))
    engine = sampler_copy(model, torch.float32)
    for matrix in (p for p in engine.parameters() if p.dim() == 2):
        scale = matrix.abs().amax(1, keepdim=True) / torch.finfo(torch.float8_e4m3fn).max
        matrix.data = (matrix / scale).to(torch.float8_e4m3fn).float() * scale
    return engine


def describe(trainer: Tensor, writer: Tensor, mask: Tensor) -> dict[str, float]:
    """The numbers above of log-probabilities (N, T): trainer's, writer's, where tokens are.

    >>> gap = torch.tensor([[0.5, -0.5], [1.0, 9.0]])
    >>> mask = torch.tensor([[True, True], [True, False]])
    >>> found = describe(gap, torch.zeros(2, 2), mask)
    >>> found["tokens"], found["largest answer"], found["outside [1/2, 2]"]
    (3, 1.0, 0.33333)
    """
    gap = (trainer - writer).double()
    one, whole = gap[mask], torch.where(mask, gap, 0.0).sum(1)
    weights = whole.exp()
    numbers = {
        "tokens": len(one),
        "answers": len(whole),
        "std token": one.std(),
        "largest token": one.abs().max(),
        "std answer": whole.std(),
        "largest answer": whole.abs().max(),
        "kl token": -one.mean(),
        "outside [1/2, 2]": (one.abs() > torch.tensor(2.0).log()).double().mean(),
        "effective share": weights.sum() ** 2 / weights.square().sum() / len(weights),
    }
    return {k: v if isinstance(v, int) else float(f"{v:.5g}") for k, v in numbers.items()}


def _written(model: PreTrainedModel, tokenizer: Any, seed: int) -> Rollout:
    task = TASKS["chain"]
    prompts = encode_prompts(tokenizer, [p.prompt for p in held_out(task, PROMPTS)], task=task)
    ends, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    dice = torch.Generator().manual_seed(seed)
    return sample(model, prompts, ANSWERS, Sampling(), eos_id=ends, pad_id=pad, generator=dice)


@torch.no_grad()
def _gap(model: PreTrainedModel, rollout: Rollout) -> tuple[dict[str, float], Tensor]:
    scored, _ = token_logprobs(model, rollout, temperature=1.0)
    mask = rollout.completion_mask
    return describe(scored, rollout.logprobs, mask), (scored - rollout.logprobs)[mask]


def formats() -> dict[str, Any]:
    """{format: its numbers and histogram}, the shipped model."""
    model, tokenizer = load(data_folder() / "model")
    found = {}
    for form in FORMATS:
        numbers, gaps = _gap(model, _written(rounded_copy(model, form), tokenizer, 0))
        inside = gaps.double().clamp(EDGES[0] + 1e-9, EDGES[-1] - 1e-9)
        counts, _ = torch.histogram(inside, torch.tensor(EDGES, dtype=torch.float64))
        found[form] = numbers | {"histogram": [int(n) for n in counts]}
    return found


def lags(recipe: Recipe, seed: int) -> dict[str, Any]:
    """{lag: numbers, one entry for every step of FROM that the run is long enough for}."""
    model, tokenizer = load(data_folder() / "model")
    run = start(model, tokenizer, TASKS["chain"], ZOO["dr_grpo"], replace(recipe, seed=seed))
    versions = [copy.deepcopy(run.model).eval()]
    for _ in range(recipe.steps):
        step(run)
        versions.append(copy.deepcopy(run.model).eval())
    found: dict[str, list] = {str(lag): [] for lag in LAGS}
    for first in FROM:
        if first + LAGS[0] > recipe.steps:
            continue
        rollout = _written(versions[first], tokenizer, seed)
        for lag in LAGS:
            if first + lag <= recipe.steps:
                found[str(lag)].append(_gap(versions[first + lag], rollout)[0])
    return found


def measure(path: Path, recipe: Recipe = RECIPE, seeds: tuple[int, ...] = SEEDS) -> None:
    """Writes what `path` lacks."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found.setdefault("header", {
        "task": "chain", "prompts": PROMPTS, "answers": ANSWERS, "from steps": list(FROM),
        "learning_rate": recipe.learning_rate, **environment(torch.device("cpu")),
    })  # fmt: skip
    if "formats" not in found:
        found["formats"] = formats()
    for name in (f"lags, seed {seed}" for seed in seeds):
        if name not in found:
            found[name] = lags(recipe, int(name.split()[-1]))
            print(name, {k: [x["effective share"] for x in v] for k, v in found[name].items()})
        lines = [f" {json.dumps(key)}: {json.dumps(row)}" for key, row in found.items()]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def recorded() -> dict[str, Any]:
    """The shipped measurement: {"header", "formats", "lags, seed 0", ...}."""
    path = data_folder() / "runs" / "engine_gap.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = to_complete("engine_gap", __doc__)
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    measure(args.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
