"""What a GPU should train, by the bytes it has free and the minutes it would take.

    plans_for(80e9, CARDS["A100 80 GB"])     best first; the next one is taken when bytes run out

Memory is counted (`gpu_budget`): on an H100 the four plans took 8 to 40 % more, the smallest
0.4 GB more, within the fifth that is left free. Time is estimated (`gpu_time.estimate`), and
doubled: there steps of the four took 1.1 to 2.7 times the estimate (tests/benchmarks/README.md).
The large plan was run whole there; its layers were compiled then, which took longer than it saved,
so they no longer are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rlnb.training.recipe import Recipe
from rlnb.training.studies.gpu_budget import SHAPES, Load, Precision, memory, of_recipe, peak
from rlnb.training.studies.gpu_time import CARDS, SLOWER, Card, estimate

__all__ = ["GPU", "LONGEST", "PROMPT", "SHARE", "Plan", "need", "plans_for", "seconds_of"]

PROMPT = 20  # tokens of the longest prompt of the chain task, <bos> included
SHARE = 0.8  # of the free bytes; the rest is for what is not counted
LONGEST = 900.0  # seconds a live page may take; a plan above it is not offered
MICRO_BATCHES = (512, 256, 128, 64)


@dataclass(frozen=True)
class Plan:
    """What a live page trains: a preset, its base (0 steps: the shipped model), and the run."""

    preset: str
    base_steps: int
    recipe: Recipe


# Largest first; number formats and micro-batches are the card's (`plans_for`).
GPU = (
    Plan("large", 1000, Recipe(steps=60, prompts=128, num_generations=16, eval_every=20)),
    Plan("medium", 1000, Recipe(steps=60, prompts=64, num_generations=16, eval_every=20)),
    Plan("small", 1000, Recipe(steps=60, prompts=32, num_generations=16, eval_every=20)),
    Plan("tiny", 0, Recipe(steps=40, eval_every=20)),
)


def need(plan: Plan, kept: bool = False) -> float:
    """Bytes that the plan's run takes at its fullest moment (`gpu_budget.peak`).

    kept: with the decoder's room beside the backward pass.
    """
    load, precision = of_recipe(plan.recipe, PROMPT)
    return peak(memory(SHAPES[plan.preset], load, precision), kept)


def seconds_of(plan: Plan, card: Card) -> float:
    """SLOWER times an estimate of the whole page on this card: base, steps, evaluations.

    The base trains in float32, 128 texts a step; held-out answers (five per prompt at each
    evaluation, and some seventy per prompt at the page's beginning and end) are drawn in float32.
    """
    shape, recipe = SHAPES[plan.preset], plan.recipe
    load, precision = of_recipe(recipe, PROMPT)
    steps = recipe.steps * sum(
        estimate(shape, load, precision, card, recipe.torch_compile).values()
    )
    full = Precision(mixed=False)
    text = Load(128, 1, PROMPT, 40, in_flight=128, micro_batch=32)
    base = plan.base_steps * _part(estimate(shape, text, full, card), "train", "optimizer")
    thousand = Load(250, 4, PROMPT, recipe.max_completion_length, in_flight=1000)
    looks = 1 + (recipe.steps // recipe.eval_every if recipe.eval_every else 0)
    answers = recipe.eval_prompts * (looks * (recipe.eval_generations + 1) + 2 * 36)
    held_out = answers / 1000 * _part(estimate(shape, thousand, full, card), "decode", "host")
    return SLOWER * (base + steps + held_out)


def _part(seconds: dict[str, float], *kinds: str) -> float:
    return sum(value for name, value in seconds.items() if name.startswith(kinds))


def plans_for(free: float, card: Card = CARDS["H200 SXM"]) -> list[Plan]:  # noqa: B008  (frozen)
    """The plans for a card with `free` bytes, best first; the last one is the shipped model.

    A plan may take four fifths of the bytes and a quarter of an hour. It samples in bfloat16 and
    trains under bfloat16 autocast and TF32; where the card only emulates bfloat16 (a T4), in
    float16 both, the loss scaled. Its micro-batch is the largest beside which the
    decoder's room can stay, or else the largest for which it makes way.

    >>> [plan.preset for plan in plans_for(80e9)]
    ['large', 'medium', 'small', 'tiny']
    >>> plans_for(15e9, CARDS["T4"])[0].preset
    'medium'
    """
    found = []
    for plan in GPU:
        types = {
            "sampler_dtype": "bfloat16" if card.bfloat16 else "float16",
            "autocast": "bfloat16" if card.bfloat16 else "float16",
            "tf32": card.bfloat16,
        }
        if not plan.base_steps:  # the shipped model stays in float32, as on a CPU
            types = {}
        rows = plan.recipe.prompts * plan.recipe.num_generations
        choices = [
            replace(plan, recipe=replace(plan.recipe, micro_batch=size, **types))
            for size in MICRO_BATCHES
            if size <= rows
        ]
        fits = [c for kept in (True, False) for c in choices if need(c, kept) <= SHARE * free]
        if fits and seconds_of(fits[0], card) <= LONGEST:
            found.append(fits[0])
    return found if found and found[-1].preset == GPU[-1].preset else [*found, GPU[-1]]
