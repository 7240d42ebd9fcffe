"""Whether an objective and TRL's arguments fit together; each refusal is a sentence.

Needs no TRL: `args` is anything with the words of a GRPOConfig.
"""

from __future__ import annotations

from typing import Any

import torch

from rlnb.interop.trl import TRL_DEFAULTS, from_trl
from rlnb.objective.batch import Batch
from rlnb.objective.composition import Objective
from rlnb.objective.part import spell

__all__ = [
    "LOSS_WORDS",
    "PRODUCED",
    "kl_coefficient",
    "refuse_needs",
    "refuse_shape",
    "refuse_words",
]

# the optional Batch fields that TRL's rollout can fill
PER_TOKEN = ("old_logprobs", "ref_logprobs", "sampling_logprobs", "entropies")
PRODUCED = frozenset({*PER_TOKEN, "max_completion_length"})
# words of TRL's that touch the loss and are the objective's to decide
GENERATION = {"max_completion_length", "use_vllm"}
LOSS_WORDS = tuple(word for word in TRL_DEFAULTS if word not in GENERATION)


def refuse_needs(objective: Objective) -> None:
    """Raises ValueError for the first part that looks at a field TRL's rollout cannot fill."""
    for part in objective.parts:
        for field in sorted(set(getattr(part, "needs", ())) - PRODUCED):
            raise ValueError(
                f"{spell(part)} needs {field}, and TRL's rollout has {', '.join(sorted(PRODUCED))}:"
                " take another part, or train with rlnb.training, which produces it."
            )


def refuse_words(objective: Objective, args: Any) -> None:
    """Loss words in `args` must say what the objective says, or be left at their defaults."""
    given = {
        word: value for word in LOSS_WORDS if (value := getattr(args, word)) != TRL_DEFAULTS[word]
    }
    if not given:
        return
    said = ", ".join(f"{word}={value!r}" for word, value in given.items())
    context = {"use_vllm": args.use_vllm, "max_completion_length": args.max_completion_length}
    try:
        read = from_trl(**given, **context).objective
    except ValueError as error:
        raise ValueError(
            f"args sets {said}, which no objective says ({error}): leave it at its default."
        ) from error
    if read.canonical() != objective.canonical():
        raise ValueError(
            f"args sets {said}, which TRL reads as {read!r}; the objective is {objective!r} and "
            "decides the loss: leave these words at their defaults, or pass that objective."
        )


def refuse_shape(objective: Objective, args: Any, word: str) -> None:
    """Asks the objective to prepare a batch of this shape, before anything is loaded."""
    size = getattr(args, word) or args.num_generations
    zero = torch.zeros(2 * size, 1)
    given: dict[str, Any] = {name: zero for name in objective.needs & set(PER_TOKEN)}
    batch = Batch(zero, zero + 1, zero[:, 0], size, **given)
    try:
        objective.prepare(batch.replace(max_completion_length=args.max_completion_length))
    except ValueError as error:
        raise ValueError(f"{word}={size} does not suit the objective: {error}") from error


def kl_coefficient(objective: Objective) -> float:
    """0 where no part looks at a reference, else the coefficient of the first that does."""
    for part in objective.parts:
        if "ref_logprobs" in getattr(part, "needs", ()):
            return float(getattr(part, "coefficient", getattr(part, "beta", 1.0)) or 1.0)
    return 0.0
