"""TRL 1.16.0: values that a GRPOConfig refuses when it is made, and old names that still act."""

from __future__ import annotations

from rlnb.interop.traps import Trap, is_number, number

__all__ = ["REFUSALS"]


def _next_multiple(size: int, group: int) -> int:
    return group * -(-size // group)


REFUSALS: tuple[Trap, ...] = (
    Trap(
        "refused_group",
        lambda c: is_number(c.num_generations) and c.num_generations < 2,
        lambda c: (
            f"TRL refuses num_generations={c.num_generations}: a group needs 2 answers for a "
            "baseline. Write num_generations=8."
        ),
    ),
    Trap(
        "refused_batches",
        lambda c: {"generation_batch_size", "steps_per_generation"} <= c.given,
        lambda c: (
            "TRL refuses generation_batch_size and steps_per_generation together: 1 of them says "
            "it all, and steps_per_generation follows from the other. Take it out."
        ),
    ),
    Trap(
        "refused_generation",
        lambda c: (
            isinstance(c.generation_batch_size, int)
            and isinstance(c.num_generations, int)
            and c.num_generations > 1
            and c.generation_batch_size % c.num_generations != 0
        ),
        lambda c: (
            f"TRL refuses generation_batch_size={c.generation_batch_size} with num_generations="
            f"{c.num_generations}: the groups do not come out even. Write a multiple, "
            f"generation_batch_size={_next_multiple(c.generation_batch_size, c.num_generations)}."
        ),
    ),
    Trap(
        "deprecated_cap",
        lambda c: is_number(c.vllm_importance_sampling_cap),
        lambda c: (
            "vllm_importance_sampling_cap is the old name of vllm_importance_sampling_clip_max and "
            "still acts, whatever that says; TRL 2.0 will refuse it. Take it out and put "
            f"vllm_importance_sampling_clip_max={number(c.vllm_importance_sampling_cap)} there."
        ),
    ),
)
