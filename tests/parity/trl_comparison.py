"""Every setting of TRL's loss on rollouts that reach every branch, TRL's numbers beside ours.

`comparisons()` is a list of named products; each, when run, returns a `Tally`: how many cases, and
the worst difference in value and in gradient with the case that has it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import trl_reference
from named_methods import aligned, said
from trl_reference import Rollout

from rlnb.interop import from_trl
from rlnb.objective import Batch, Objective

CLIPPED = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
LEVELS = ("token", "sequence")
KL = ({}, {"beta": 0.04}, {"beta": 0.04, "use_bias_correction_kl": False})
BANDS = ({}, {"epsilon": 0.1, "epsilon_high": 0.28})
# 4.0 only meets ratios that the band has left behind; 1.15 lies inside the default band.
DELTAS = ({}, {"delta": 4.0}, {"delta": 1.15})
THRESHOLDS = ({}, {"off_policy_mask_threshold": 0.05})
OWN = {
    "dr_grpo": ({"max_completion_length": 8},),
    "cispo": ({"epsilon_high": 5.0}, {"epsilon_high": 1.05}, {}),
    "sapo": ({}, {"sapo_temperature_pos": 2.0, "sapo_temperature_neg": 0.5}),
    "vespo": (
        {},
        {"vespo_k_pos": 1.0, "vespo_lambda_pos": 0.5, "vespo_k_neg": 0.5, "vespo_lambda_neg": 1.0},
    ),
}
LOSS_TYPES = (*CLIPPED, "cispo", "sapo", "vespo")
VLLM_MODES = ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask")
SIZE, PROMPTS, WIDTH = 4, 3, 6
Pair = tuple[torch.Tensor, torch.Tensor]  # loss 0-d, d loss / d logprobs (B, T)


def _noise(seed: int, scale: float) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (SIZE * PROMPTS, WIDTH)
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64)


def full(seed: int = 0) -> Rollout:
    """12 answers of 6 tokens, none masked; ratios from about 0.3 to above 5.

    Row 1 (A < 0) rose by e^1.6 = 4.95 on every token, row 4 (A > 0) likewise, row 2 (A < 0) fell.
    Row 3 has A = 0.
    """
    new = (-1.0 + _noise(seed, 0.5)).clamp(max=-0.05)
    old = (new + _noise(seed + 1, 0.3)).clamp(max=-0.01)
    old[1], old[4], old[2] = new[1] - 1.6, new[4] - 1.6, (new[2] + 0.4).clamp(max=-0.01)
    advantages = torch.tensor(
        [1.0, -0.7, -1.2, 0.0, 0.9, -0.4, 0.3, -0.2, 1.7, -1.1, 0.6, -0.9], dtype=torch.float64
    )
    return Rollout(
        new,
        torch.ones(new.shape, dtype=torch.long),
        SIZE,
        old,
        ref=(new + _noise(seed + 2, 0.4)).clamp(max=-0.01),
        sampling=(old + _noise(seed + 3, 0.15)).clamp(max=-0.01),
        # representable in float32, where TRL takes its quantile
        entropies=_noise(seed + 4, 1.0).abs().float().double(),
        advantages=advantages,
        rewards=torch.tensor([1, 0, 0, 0.5, 1, 1, 0.25, 0, 2, -1, 0, 0.75], dtype=torch.float64),
    )


def ragged(rollout: Rollout) -> Rollout:
    """Lengths 1 to 6: padding on the right."""
    lengths = torch.tensor([6, 2, 4, 1, 5, 3, 6, 6, 1, 4, 2, 5])
    return replace(rollout, mask=(torch.arange(WIDTH) < lengths[:, None]).long())


def holes(rollout: Rollout) -> Rollout:
    """Tool output in the middle, at the start and at the end; row 7 fully masked."""
    mask = rollout.mask.clone()
    mask[0, 2:4] = mask[1, 0] = mask[4, 5] = mask[9, 1] = mask[10, 3] = 0
    mask[7] = 0
    return replace(rollout, mask=mask)


def rollouts(kind: str = "grpo") -> dict[str, Rollout]:
    """Name -> rollout. RLOO in TRL has no on-policy shortcut."""
    whole = full()
    named = {"full": whole, "ragged": ragged(full(10)), "holes": holes(ragged(full(20)))}
    if kind != "rloo":
        named["on-policy"] = replace(whole, old=None)
    # the engine's log-probabilities reach TRL's loss only with an engine: see `engine`
    return {name: replace(rollout, sampling=None) for name, rollout in named.items()}


# ---- ours


def ours(
    objective: Objective,
    rollout: Rollout,
    *,
    from_rewards: bool = False,
    max_completion_length: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same two numbers from rlnb. Masked places hold nan here: they must not matter."""

    def hidden(x: torch.Tensor | None) -> torch.Tensor | None:
        return None if x is None else torch.where(rollout.mask.bool(), x, torch.nan)

    logprobs = hidden(rollout.logprobs).requires_grad_()
    rows = len(logprobs)
    rewards = rollout.rewards if from_rewards else logprobs.new_zeros(rows)
    batch = Batch(
        logprobs,
        rollout.mask,
        rewards,
        rollout.size,
        old_logprobs=hidden(rollout.old),
        ref_logprobs=hidden(rollout.ref),
        sampling_logprobs=hidden(rollout.sampling),
        entropies=hidden(rollout.entropies),
        advantages=None if from_rewards else rollout.advantages,
        max_completion_length=max_completion_length,
    )
    loss = objective(batch).loss
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return loss.detach(), gradient


def constant_of_empty_rows(rollout: Rollout, advantages: torch.Tensor) -> float:
    """RLOO and GMPO in TRL give a fully masked row the ratio 1: it adds -A_i/B, no gradient."""
    empty = rollout.mask.sum(1) == 0
    return float(-advantages[empty].sum() / len(advantages))


# ---- beside each other


@dataclass
class Tally:
    """What a product of settings came to."""

    name: str
    tolerance: float
    cases: int = 0
    value: float = 0.0
    gradient: float = 0.0
    failures: list[str] = field(default_factory=list)

    def add(self, case: str, theirs: Pair, mine: Pair) -> None:
        """Count one case and keep the worst differences."""
        value = float((theirs[0] - mine[0]).abs())
        gradient = float((theirs[1] - mine[1]).abs().max())
        self.cases += 1
        self.value, self.gradient = max(self.value, value), max(self.gradient, gradient)
        if not (value <= self.tolerance and gradient <= self.tolerance):  # nan fails too
            self.failures.append(
                f"{case}: TRL's loss {float(theirs[0]):.10g}, ours "
                f"{float(mine[0]):.10g}; gradients differ by {gradient:.3g}"
            )


def merged(*products: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One dictionary for each way to take an entry from every product."""
    for parts in itertools.product(*products):
        yield {word: value for part in parts for word, value in part.items()}


def settings(loss_type: str) -> Iterator[dict[str, Any]]:
    """The keywords of every case of a loss type."""
    own = [OWN.get(loss_type, ({},))]
    if loss_type in CLIPPED:
        own += [BANDS, DELTAS]
    levels = [{"importance_sampling_level": level} for level in LEVELS]
    return merged([{"loss_type": loss_type}], levels, *own, KL, THRESHOLDS)


def say(keywords: dict[str, Any], rollout: str) -> str:
    """A case as a line that can be typed: from_trl(...) on a rollout."""
    return f"from_trl({', '.join(f'{k}={v!r}' for k, v in keywords.items())}) on {rollout!r}"


def losses(loss_type: str, tolerance: float = 1e-10) -> Tally:
    """Given advantages, float64: the whole product of a loss type on every rollout."""
    tally = Tally(loss_type, tolerance)
    for keywords in settings(loss_type):
        _on_every_rollout(tally, "grpo", keywords)
    return tally


def entropy(tolerance: float = 1e-10) -> Tally:
    """Only the tokens of high entropy in the policy term; the entropy bonus (by value: here
    entropies are numbers of their own, without a path to logprobs)."""
    tally = Tally("top_entropy, bonus", tolerance)
    own = [
        {"top_entropy_quantile": q, "entropy_coef": c}
        for q, c in ((0.2, 0.0), (0.5, 0.0), (1.0, 0.01))
    ]
    for keywords in merged([{"loss_type": kind} for kind in LOSS_TYPES], own, ({}, {"beta": 0.04})):
        _on_every_rollout(tally, "grpo", keywords)
    return tally


def rloo(tolerance: float = 1e-10) -> Tally:
    """RLOOTrainer's loss on given advantages."""
    tally = Tally("rloo", tolerance)
    for keywords in merged(({}, *BANDS[1:], {"epsilon": 0.9, "epsilon_high": 9.0})):
        _on_every_rollout(tally, "rloo", {"beta": 0.0, **keywords})
    return tally


def gmpo(tolerance: float = 1e-10) -> Tally:
    """GMPOTrainer's loss on given advantages."""
    tally = Tally("gmpo", tolerance)
    for keywords in merged(({}, *BANDS[1:]), ({}, {"beta": 0.04})):
        _on_every_rollout(tally, "gmpo", keywords)
    return tally


def _on_every_rollout(tally: Tally, kind: str, keywords: dict[str, Any]) -> None:
    objective = from_trl(trainer=kind, **keywords).objective
    for name, rollout in rollouts(kind).items():
        loss, gradient = trl_reference.loss_and_gradient(rollout, kind, **keywords)
        if kind != "grpo":
            loss = loss - constant_of_empty_rows(rollout, rollout.advantages)
        tally.add(say(keywords, name), (loss, gradient), ours(objective, rollout))


# ---- from rewards

REWARDS = {
    "mixed": [1, 0, 0, 0.5, 1, 1, 0.25, 0, 2, -1, 0, 0.75],
    "equal groups": [0.7] * 4 + [0.0] * 4 + [1, 0, 0, 0],
    "nearly equal": [0.5, 0.5, 0.5, 0.5001, 1, 1, 1, 0, 0.1, 0.2, 0.3, 0.4],
}
SCALES = ({}, {"scale_rewards": "batch"}, {"scale_rewards": "none"})


def from_rewards(
    kind: str,
    dtype: torch.dtype,
    products: Iterable[dict[str, Any]],
    tally: Tally,
    rewards: Iterable[str] = tuple(REWARDS),
    with_engine: bool = False,
) -> Tally:
    """TRL's whole way from rewards over advantages to loss and gradient, computed in `dtype`.

    Rows 2 and 9 are cut off without an end token, which masks them where the keyword says so.
    Rewards are rounded to float32 first, as TRL does.
    """
    truncated = torch.zeros(SIZE * PROMPTS, dtype=torch.bool)
    truncated[[2, 9]] = True
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        for keywords, name in itertools.product(products, rewards):
            given = torch.tensor(REWARDS[name], dtype=torch.float32)
            rollout = replace(ragged(full(30)).to(dtype), rewards=given.to(dtype))
            if kind != "rloo":  # which knows no tool output
                mask = rollout.mask.clone()
                mask[0, 2:4] = mask[6, 0] = 0
                rollout = replace(rollout, mask=mask)
            if not with_engine:
                rollout = replace(rollout, sampling=None)
            words = {**keywords, "use_vllm": True} if with_engine else keywords
            inputs, loss, gradient = trl_reference.score(
                rollout, kind, truncated=truncated, **words
            )
            objective = from_trl(trainer=kind, **words).objective
            if keywords.get("mask_truncated_completions"):
                mask = torch.where(truncated[:, None], 0, rollout.mask)
                rollout = replace(rollout, mask=mask)
            if kind != "grpo":
                loss = loss - constant_of_empty_rows(rollout, inputs["advantages"])
            mine = ours(objective, rollout, from_rewards=True)
            tally.add(say(words, f"{name} rewards"), (loss, gradient), mine)
    finally:
        torch.set_default_dtype(before)
    return tally


def advantages(dtype: torch.dtype, tolerance: float) -> Tally:
    """GRPO from rewards: every scale_rewards with every loss type, truncated rows masked or not."""
    tally = Tally(f"from rewards, {str(dtype).removeprefix('torch.')}", tolerance)
    products = merged(
        [{"loss_type": kind} for kind in LOSS_TYPES],
        SCALES,
        ({}, {"mask_truncated_completions": True}),
    )
    return from_rewards("grpo", dtype, products, tally)


def engine(tolerance: float = 1e-10) -> Tally:
    """The correction for an inference engine's other log-probabilities."""
    tally = Tally("engine correction", tolerance)
    modes = [
        {"vllm_importance_sampling_mode": mode, **edges}
        for mode in VLLM_MODES
        for edges in (
            {},
            {"vllm_importance_sampling_clip_max": 1.1, "vllm_importance_sampling_clip_min": 0.9},
        )
    ]
    kinds = [{"loss_type": kind} for kind in LOSS_TYPES if kind != "vespo"]
    products = merged(
        kinds,
        [*modes, {"vllm_importance_sampling_correction": False}],
        ({}, {"beta": 0.04, "off_policy_mask_threshold": 0.05}),
    )
    return from_rewards("grpo", torch.float64, products, tally, ["mixed"], with_engine=True)


def rloo_from_rewards(dtype: torch.dtype, tolerance: float) -> Tally:
    """RLOO from rewards: KL in the reward, clipped rewards, normalised advantages."""
    tally = Tally(f"rloo from rewards, {str(dtype).removeprefix('torch.')}", tolerance)
    products = merged(
        ({}, {"beta": 0.0}, {"beta": 0.3}),
        ({}, {"normalize_advantages": True}),
        ({}, {"reward_clip_range": (-0.5, 0.8)}),
        ({}, {"mask_truncated_completions": True}),
    )
    return from_rewards("rloo", dtype, products, tally)


def gmpo_from_rewards(tolerance: float = 1e-10) -> Tally:
    """GMPO from rewards."""
    products = merged(SCALES, ({}, {"beta": 0.04}))
    return from_rewards("gmpo", torch.float64, products, Tally("gmpo from rewards", tolerance))


# ---- named methods


def scored_rollouts(kind: str) -> dict[str, Rollout]:
    """Name -> rollout with rewards: ratios far from 1, and within 0.002 of it. RLOO's are at 1,
    where the paper's log pi and the trainer's clipped product have one gradient."""
    whole = ragged(full(30))
    old, mask = whole.old.clone(), whole.mask.clone()
    old[2] = (whole.logprobs[2] + 1.2).clamp(max=-0.01)  # a bad answer that became unlikely,
    old[2, 0] = whole.logprobs[2, 0] - 0.2  # all but one token of it
    if kind == "rloo":
        return {"on-policy": replace(whole, old=None, sampling=None)}
    mask[0, 2:4] = mask[6, 0] = 0
    whole = replace(whole, mask=mask, sampling=None)
    near = (whole.logprobs + _noise(31, 1e-3)).clamp(max=-0.01)
    return {"far": replace(whole, old=old), "near": replace(whole, old=near)}


def compare_method(tally: Tally, name: str, objective: Objective) -> None:
    """TRL's trainer with the words of a named method beside an objective."""
    words = dict(said("trl")[name])
    kind = words.pop("trainer", "grpo")
    for place, rollout in scored_rollouts(kind).items():
        if words.get("use_vllm"):  # an engine that nearly agrees with the old policy
            near = (rollout.old + _noise(32, 0.05)).clamp(max=-0.01)
            rollout = replace(rollout, sampling=near)
        _, loss, gradient = trl_reference.score(rollout, kind, **words)
        mine = ours(objective, rollout, from_rewards=True)
        tally.add(f"{name} on {place!r}", (mine[0] if kind == "rloo" else loss, gradient), mine)


def methods(tolerance: float = 1e-10) -> Tally:
    """Each method of the zoo and the annex that TRL can say, from rewards to loss and gradient."""
    tally = Tally("methods by name", tolerance)
    for name in said("trl"):
        compare_method(tally, name, aligned("trl", name))
    return tally


def comparisons() -> dict[str, Callable[[], Tally]]:
    """Name -> comparison, in the order of the table."""
    narrow, wide = (torch.float32, 1e-6), (torch.float64, 1e-10)
    named: dict[str, Callable[[], Tally]] = {
        kind: (lambda kind=kind: losses(kind)) for kind in LOSS_TYPES
    }
    return named | {
        "entropy": entropy,
        "rloo": rloo,
        "gmpo": gmpo,
        "engine": engine,
        "from_rewards": lambda: advantages(*wide),
        "from_rewards_float32": lambda: advantages(*narrow),
        "rloo_from_rewards": lambda: rloo_from_rewards(*wide),
        "rloo_from_rewards_float32": lambda: rloo_from_rewards(*narrow),
        "gmpo_from_rewards": gmpo_from_rewards,
        "methods": methods,
    }


def run(comparison: Callable[[], Tally]) -> Tally:
    """A comparison under a float64 default, which is put back."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return comparison()
    finally:
        torch.set_default_dtype(before)


def table(rows: Iterable[Tally]) -> str:
    """Tallies as text, one line each."""
    rows = list(rows)
    lines = [
        f"TRL {trl_reference.VERSION}, as installed",
        f"{'':30s}{'cases':>6}{'worst value':>13}{'worst gradient':>16}",
    ]
    for row in rows:
        red = f"   {len(row.failures)} DISAGREE" if row.failures else ""
        lines.append(f"{row.name:30s}{row.cases:>6}{row.value:>13.1e}{row.gradient:>16.1e}{red}")
    return "\n".join([*lines, f"{'all':30s}{sum(row.cases for row in rows):>6}"])


def trl_table() -> str:
    """Every comparison, run now."""
    return table(run(comparison) for comparison in comparisons().values())
