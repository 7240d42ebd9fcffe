"""The page on systems: bytes on a card, the age of answers, a loss that corrects the engine."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, mistake
from rlnb.classroom.checking.silent_bug import SilentBug

__all__ = [
    "CORRECTED_LOSS", "MEMORY_BYTES", "QUEUE_AGE", "SILENT_BUG_SYSTEMS", "cache_bytes",
    "corrected_loss", "memory_bytes", "queue_age",
]  # fmt: skip


def memory_bytes(
    parameters: torch.Tensor, trained: int, frozen: int, gpus: int, stage: int,
    *, gradients: float = 2.0,
) -> torch.Tensor:  # fmt: skip
    """Bytes on each GPU, ZeRO stage 0 to 3: (n,) -> (n,)."""
    return _count(parameters, trained, frozen, gpus, stage, gradients=gradients)


def _count(parameters, trained, frozen, gpus, stage, *, weights=2.0, gradients=2.0, optimizer=12.0,
           least=(3, 2, 1), frozen_bytes=2.0, frozen_least=3):  # fmt: skip
    parts = [gpus if stage >= first else 1 for first in least]
    each = sum(
        size / part for size, part in zip((weights, gradients, optimizer), parts, strict=True)
    )
    still = frozen_bytes / (gpus if stage >= frozen_least else 1)
    return parameters * (trained * each + frozen * still)


@mistake("the float32 master copy is missing: AdamW's state is 4 + 4 + 4 bytes, not 8")
def _no_master(parameters, trained, frozen, gpus, stage):
    return _count(parameters, trained, frozen, gpus, stage, optimizer=8.0)


@mistake("everything is divided by the GPUs from stage 1 on: stage 1 splits AdamW's state alone")
def _all_at_once(parameters, trained, frozen, gpus, stage):
    return _count(parameters, trained, frozen, gpus, stage, least=(1, 1, 1), frozen_least=1)


@mistake("stage 2 is to split the gradients as well as AdamW's state")
def _gradients_whole(parameters, trained, frozen, gpus, stage):
    return _count(parameters, trained, frozen, gpus, stage, least=(3, 3, 1))


@mistake("a frozen model has no gradients and no optimizer: 2 bytes a parameter, not 16")
def _frozen_trained(parameters, trained, frozen, gpus, stage):
    return _count(parameters, trained + frozen, 0, gpus, stage)


@mistake("the frozen models stay whole here at stage 3: their weights are split like the others")
def _frozen_whole(parameters, trained, frozen, gpus, stage):
    return _count(parameters, trained, frozen, gpus, stage, frozen_least=4)


@mistake("no gradients: they take as much as the bfloat16 weights, 2 bytes")
def _no_gradients(parameters, trained, frozen, gpus, stage):
    return _count(parameters, trained, frozen, gpus, stage, gradients=0.0)


@mistake(
    "the stages are off by one: 1 splits AdamW's state, 2 the gradients too, 3 the weights too"
)
def _shifted(parameters, trained, frozen, gpus, stage):
    return _count(parameters, trained, frozen, gpus, stage, least=(2, 1, 0), frozen_least=2)


@mistake("the stages are upside down: AdamW's state, the largest part, is split first")
def _upside_down(parameters, trained, frozen, gpus, stage):
    return _count(parameters, trained, frozen, gpus, stage, least=(1, 2, 3), frozen_least=1)


@mistake("only one trained model is counted: a critic has gradients and AdamW too")
def _one_trained(parameters, trained, frozen, gpus, stage):
    return _count(parameters, 1, frozen, gpus, stage)


MEMORY_BYTES = Exercise(
    name="memory_bytes",
    reference=memory_bytes,
    probes=(
        Probe("one GPU", {"parameters": [7.0], "trained": 1, "frozen": 1, "gpus": 1, "stage": 0}),
        *(
            Probe(
                f"stage {stage} on 8 GPUs",
                {"parameters": [1.0, 7.0], "trained": 2, "frozen": 2, "gpus": 8, "stage": stage},
            )  # fmt: skip
            for stage in (0, 1, 2, 3)
        ),
        Probe(
            "stage 1 on 4, no reference",
            {"parameters": [3.0], "trained": 1, "frozen": 0, "gpus": 4, "stage": 1},
        ),
    ),  # fmt: skip
    conventions=(
        Convention(
            "right with float32 gradients, 18 bytes a trained parameter, as some trainers "
            "keep them; the page counts bfloat16 ones",
            {"gradients": 4.0},
        ),
    ),  # fmt: skip
    mistakes=(
        _no_master,
        _all_at_once,
        _gradients_whole,
        _frozen_trained,
        _frozen_whole,
        _no_gradients,
        _shifted,
        _upside_down,
        _one_trained,
    ),  # fmt: skip
    hint="Three numbers for a trained parameter: weights 2, gradients 2, AdamW's state 12. Each is "
    "divided by the GPUs from its own stage on: 3, 2, 1. A frozen one has only the first.",
)


def queue_age(begun: torch.Tensor, taken: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    """Mean over the answers of the updates inside (begun, taken]: (n,), (n,), (m,) -> ()."""
    inside = (updates > begun[:, None]) & (updates <= taken[:, None])
    return inside.to(begun.dtype).sum(1).mean()


@mistake("every update before the answer is taken counts here: those before it was begun made the "
         "version that wrote it")  # fmt: skip
def _since_start(begun, taken, updates):
    return (updates <= taken[:, None]).to(begun.dtype).sum(1).mean()


@mistake("this is the age of the oldest answer: the mean was asked for")
def _oldest(begun, taken, updates):
    inside = (updates > begun[:, None]) & (updates <= taken[:, None])
    return inside.to(begun.dtype).sum(1).max()


@mistake("divided by the number of updates: the mean is over the answers")
def _per_update(begun, taken, updates):
    inside = (updates > begun[:, None]) & (updates <= taken[:, None])
    return inside.to(begun.dtype).sum() / len(updates)


@mistake("that is how long an answer waits, in time: count the versions that appear meanwhile")
def _time(begun, taken, updates):
    return (taken - begun).mean()


@mistake("that is the time in units of a mean step: updates do not come evenly, count them")
def _mean_steps(begun, taken, updates):
    return (taken - begun).mean() * len(updates) / (updates.max() - updates.min())


@mistake("an update at the moment an answer is begun already wrote it: `>` begun, not `>=`")
def _closed(begun, taken, updates):
    inside = (updates >= begun[:, None]) & (updates <= taken[:, None])
    return inside.to(begun.dtype).sum(1).mean()


@mistake("an update at the moment a batch is taken is already the trainer's: `<=` taken, not `<`")
def _open(begun, taken, updates):
    inside = (updates > begun[:, None]) & (updates < taken[:, None])
    return inside.to(begun.dtype).sum(1).mean()


QUEUE_AGE = Exercise(
    name="queue_age",
    reference=queue_age,
    probes=(
        Probe(
            "two answers", {"begun": [0.0, 1.5], "taken": [2.0, 2.5], "updates": [1.0, 2.2, 3.0]}
        ),
        Probe(
            "updates on the border",
            {
                "begun": [1.0, 0.5, 3.0],
                "taken": [3.0, 6.0, 6.0],
                "updates": [1.0, 3.0, 4.0, 6.0, 9.0],
            },
        ),
        Probe(
            "before the first update",
            {"begun": [0.0, 0.1], "taken": [0.9, 7.0], "updates": [2.0, 3.5, 4.0, 8.0]},
        ),
    ),  # fmt: skip
    mistakes=(_since_start, _oldest, _per_update, _time, _mean_steps, _closed, _open),
    hint="A table (n, m): is update j after answer i was begun, and not after it was taken? Sum "
    "over the updates, mean over the answers.",
)


def corrected_loss(
    logprobs: torch.Tensor, engine_logprobs: torch.Tensor, mask: torch.Tensor,
    advantages: torch.Tensor, cap: float,
) -> torch.Tensor:  # fmt: skip
    """-(1/tokens) sum sg(min(pi / mu, cap)) A log pi: (B, T) x3, (B,), float -> ()."""
    return _loss(logprobs, engine_logprobs, mask, advantages, lambda gap: _capped(gap, cap))


def _capped(gap: torch.Tensor, cap: float) -> torch.Tensor:
    return gap.exp().clamp(max=cap)


def _loss(logprobs, engine_logprobs, mask, advantages, weight, detach=True):
    here = torch.where(mask, logprobs, 0.0)
    gap = here - torch.where(mask, engine_logprobs, 0.0)
    factor = weight(gap.detach() if detach else gap)
    per_token = torch.where(mask, factor * advantages[:, None] * here, 0.0)
    return -per_token.sum() / mask.sum()


@mistake("the weight is not detached: its own gradient is added, and the push is w (1 + log pi)")
def _not_detached(logprobs, engine_logprobs, mask, advantages, cap):
    return _loss(logprobs, engine_logprobs, mask, advantages, lambda g: _capped(g, cap), False)


@mistake("the ratio is upside down: trainer over engine, the policy that learns over the one that "
         "wrote")  # fmt: skip
def _upside(logprobs, engine_logprobs, mask, advantages, cap):
    return _loss(logprobs, engine_logprobs, mask, advantages, lambda g: _capped(-g, cap))


@mistake("tokens above the cap are dropped here: truncation keeps them, at the cap")
def _masked(logprobs, engine_logprobs, mask, advantages, cap):
    return _loss(logprobs, engine_logprobs, mask, advantages,
                 lambda g: torch.where(g.exp() > cap, 0.0, g.exp()))  # fmt: skip


@mistake("the weight of the whole answer, a product over its tokens: each token has its own")
def _product(logprobs, engine_logprobs, mask, advantages, cap):
    return _loss(logprobs, engine_logprobs, mask, advantages,
                 lambda g: _capped(g.sum(1, keepdim=True), cap).expand_as(g))  # fmt: skip


@mistake("the cap is missing: one token can weigh as much as all others together")
def _no_cap(logprobs, engine_logprobs, mask, advantages, cap):
    return _loss(logprobs, engine_logprobs, mask, advantages, lambda g: g.exp())


@mistake("cut on both sides, at 1/cap and cap: a token that the policy hardly writes must count "
         "little")  # fmt: skip
def _two_sided(logprobs, engine_logprobs, mask, advantages, cap):
    return _loss(logprobs, engine_logprobs, mask, advantages,
                 lambda g: g.exp().clamp(1 / cap, cap))  # fmt: skip


@mistake("the sign: a loss is minimised, so it starts with a minus")
def _sign(logprobs, engine_logprobs, mask, advantages, cap):
    return -corrected_loss(logprobs, engine_logprobs, mask, advantages, cap)


@mistake("no weight at all: this is REINFORCE on the engine's answers")
def _no_weight(logprobs, engine_logprobs, mask, advantages, cap):
    return _loss(logprobs, engine_logprobs, mask, advantages, torch.ones_like)


@mistake(
    "each answer is averaged over its own tokens first: here all tokens of the batch count alike"
)
def _per_answer(logprobs, engine_logprobs, mask, advantages, cap):
    here = torch.where(mask, logprobs, 0.0)
    factor = _capped((here - torch.where(mask, engine_logprobs, 0.0)).detach(), cap)
    per_token = torch.where(mask, factor * advantages[:, None] * here, 0.0)
    return -(per_token.sum(1) / mask.sum(1).clamp(min=1)).mean()


def _rows(seed: int, rows: int, width: int) -> dict[str, torch.Tensor]:
    gen = torch.Generator().manual_seed(seed)

    def normal() -> torch.Tensor:
        return torch.randn(rows, width, generator=gen, dtype=torch.float64)

    logprobs = -normal().abs() - 0.1
    lengths = torch.randint(1, width + 1, (rows,), generator=gen)
    lengths[0] = width
    advantages = torch.tensor([1.0, -1.0, 0.5, -0.5], dtype=torch.float64)[:rows]
    return {
        "logprobs": logprobs,
        "engine_logprobs": logprobs + 1.2 * normal(),
        "mask": torch.arange(width) < lengths[:, None],
        "advantages": advantages,
    }


def _nan_under_the_mask() -> dict[str, torch.Tensor]:
    found = _rows(3, 3, 4)
    return found | {
        "engine_logprobs": found["engine_logprobs"].masked_fill(~found["mask"], -torch.inf)
    }


CORRECTED_LOSS = Exercise(
    name="corrected_loss",
    reference=corrected_loss,
    probes=(
        Probe("two answers", _rows(0, 2, 3) | {"cap": 2.0}),
        Probe("four answers", _rows(1, 4, 6) | {"cap": 1.5}),
        Probe(
            "-inf under the mask",
            _nan_under_the_mask() | {"cap": 2.0},
            catches="what stands under the mask reaches the result: replace it before the exp",
        ),
    ),  # fmt: skip
    mistakes=(
        _not_detached,
        _upside,
        _masked,
        _product,
        _no_cap,
        _two_sided,
        _sign,
        _no_weight,
        _per_answer,
    ),  # fmt: skip
    differentiate=("logprobs",),
    direction="minimised",
    hint="w = exp(trainer - engine), cut at the cap, detached. Then REINFORCE: w A log pi, the sum "
    "over all tokens of the batch divided by their number. Put 0 under the mask before exp.",
)


def _right_bytes(layers, heads, kv_heads, head_dim, tokens, size=2):
    return 2 * layers * kv_heads * head_dim * tokens * size


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def cache_bytes(layers, heads, kv_heads, head_dim, tokens, size=2):
    """Keys and values of `tokens` tokens, in bytes."""
    hidden = heads * head_dim
    per_layer = 2 * hidden * size           # a key and a value
    return layers * per_layer * tokens
# fmt: on


SILENT_BUG_SYSTEMS = SilentBug(
    name="silent_bug_systems",
    right=_right_bytes,
    broken=cache_bytes,
    story="It counts a key and a value for every query head. Grouped queries share them: a Qwen of "
    "7B has 28 heads and 4 of keys. The bug asks for seven times the memory, and nothing crashes.",
    hint="Which two of its arguments may differ in a real model? Work one case by hand.",
)
