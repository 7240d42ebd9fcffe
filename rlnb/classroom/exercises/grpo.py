"""The whole GRPO loss: group z-score, token ratio, clip, k3, mean inside each answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Mistake, Probe, mistake
from rlnb.classroom.exercises.clipping import (
    clip_only,
    max_where_negative,
    minimised,
    surrogate_clip,
    unclipped,
)
from rlnb.classroom.exercises.groups import (
    NO_EPS,
    NORMALISERS,
    baseline_leave_one_out,
    group_advantages,
    interleaved_advantages,
)
from rlnb.classroom.exercises.kl import k3
from rlnb.classroom.exercises.reinforce import NO_TOKENS, PADDING

__all__ = ["GRPO_LOSS", "grpo_loss"]

Part = Callable[..., torch.Tensor]


def grpo_loss(
    logprobs: torch.Tensor,
    old_logprobs: torch.Tensor,
    ref_logprobs: torch.Tensor,
    mask: torch.Tensor,
    rewards: torch.Tensor,
    num_generations: int,
    epsilon: float,
    beta: float,
    *,
    std: str = "population",
    eps: float = 1e-6,
    count_empty: bool = True,
) -> torch.Tensor:
    """-(1/B) sum_i (1/T_i) sum_t [min(rho A, clip(rho) A) - beta k3], a number to minimise.

    `std` and `eps` are group_advantages'. `count_empty`: a row without tokens counts in B.
    """
    logprobs, old_logprobs, ref_logprobs = (
        torch.where(mask, x, 0) for x in (logprobs, old_logprobs, ref_logprobs)
    )
    advantage = group_advantages(rewards, num_generations, std=std, eps=eps)[:, None]
    ratio = (logprobs - old_logprobs).exp()
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
    policy = torch.min(ratio * advantage, clipped * advantage)
    log_ratio = ref_logprobs - logprobs
    kl = torch.expm1(log_ratio) - log_ratio
    per_token = -(policy - beta * kl) * mask
    per_answer = per_token.sum(1) / mask.sum(1).clamp(min=1)
    return per_answer.sum() / (len(rewards) if count_empty else mask.any(1).sum())


def _token_ratio(logprobs, old, ref, mask):
    return (logprobs - old).exp()


def _plain_k3(logprobs, ref, ratio):
    return k3(logprobs, ref)


def _answer_mean(per_token, mask, rows):
    return (per_token.sum(1) / mask.sum(1).clamp(min=1)).sum() / rows


def _built(
    *,
    advantages: Part = group_advantages,
    ratio: Part = _token_ratio,
    surrogate: Part = surrogate_clip,
    kl: Part = _plain_k3,
    kl_weight: float = 1.0,
    aggregate: Part = _answer_mean,
    kl_aggregate: Part | None = None,
    use_mask: bool = True,
) -> Part:
    """The loss with one part exchanged: what the mistakes are made of."""

    def loss(
        logprobs,
        old_logprobs,
        ref_logprobs,
        mask,
        rewards,
        num_generations,
        epsilon,
        beta,
        *,
        std="population",
        eps=1e-6,
        count_empty=True,
    ):
        if not use_mask:
            mask = torch.ones_like(mask)
        lp, old, ref = (torch.where(mask, x, 0) for x in (logprobs, old_logprobs, ref_logprobs))
        rows = len(rewards) if count_empty else mask.any(1).sum()
        advantage = advantages(rewards, num_generations, std=std, eps=eps)[:, None].expand_as(lp)
        rho = ratio(lp, old, ref, mask).expand_as(lp)
        policy = torch.where(mask, -surrogate(rho, advantage, epsilon), 0)
        penalty = torch.where(mask, beta * kl_weight * kl(lp, ref, rho), 0)
        if kl_aggregate is None:
            return aggregate(policy + penalty, mask, rows)
        return aggregate(policy, mask, rows) + kl_aggregate(penalty, mask, rows)

    return loss


# advantages
def _not_scaled(rewards, num_generations, *, std, eps):
    groups = rewards.view(-1, num_generations)
    return (groups - groups.mean(1, keepdim=True)).view(-1)


def _leave_one_out(rewards, num_generations, *, std, eps):
    return rewards - baseline_leave_one_out(rewards, num_generations)


def _over_the_batch(rewards, num_generations, *, std, eps):
    return group_advantages(rewards, len(rewards), std=std, eps=eps)


def _raw_rewards(rewards, num_generations, *, std, eps):
    return rewards


def _no_eps(correction: int) -> Part:
    def advantages(rewards, num_generations, *, std, eps):
        groups = rewards.view(-1, num_generations)
        spread = groups.std(1, keepdim=True, correction=correction)
        return ((groups - groups.mean(1, keepdim=True)) / spread).view(-1)

    return advantages


# ratios
def _against_reference(logprobs, old, ref, mask):
    return (logprobs - ref).exp()


def _against_itself(logprobs, old, ref, mask):
    return (logprobs - logprobs.detach()).exp()


def _upside_down(logprobs, old, ref, mask):
    return (old - logprobs).exp()


def _product(logprobs, old, ref, mask):
    return (logprobs - old).sum(1, keepdim=True).exp()


def _geometric_mean(logprobs, old, ref, mask):
    lengths = mask.sum(1, keepdim=True).clamp(min=1)
    return ((logprobs - old).sum(1, keepdim=True) / lengths).exp()


def _no_exp(logprobs, old, ref, mask):
    return logprobs - old


def _detached(logprobs, old, ref, mask):
    return (logprobs - old).exp().detach() + 0 * logprobs


def _likelihood(logprobs, old, ref, mask):
    return logprobs


def _probability(logprobs, old, ref, mask):
    return logprobs.exp()


# penalties
def _times_ratio(logprobs, ref, ratio):
    return k3(logprobs, ref) * ratio


def _inverted(logprobs, ref, ratio):
    return k3(ref, logprobs)


def _against_old(logprobs, ref, ratio):
    return torch.expm1(-ratio.log()) + ratio.log()


def _k1(logprobs, ref, ratio):
    return logprobs - ref


def _k2(logprobs, ref, ratio):
    return 0.5 * (logprobs - ref) ** 2


# aggregations
def _token_mean(per_token, mask, rows):
    return per_token.sum() / mask.sum()


def _padded_width(per_token, mask, rows):
    return per_token.sum() / (rows * mask.shape[1])


def _answer_sum(per_token, mask, rows):
    return per_token.sum() / rows


def _sum_over_rows(per_token, mask, rows):
    return (per_token.sum(1) / mask.sum(1).clamp(min=1)).sum()


@mistake("the KL is not multiplied by beta")
@wraps(grpo_loss)
def _beta_left_out(*arguments, **keywords):
    *others, _ = arguments
    return grpo_loss(*others, 1.0, **keywords)


@mistake("the sign is flipped: this is the objective J; the loss is -J")
@wraps(grpo_loss)
def _maximised(*arguments, **keywords):
    return -grpo_loss(*arguments, **keywords)


@mistake(PADDING)
def _padding_times_zero(
    logprobs,
    old_logprobs,
    ref_logprobs,
    mask,
    rewards,
    num_generations,
    epsilon,
    beta,
    *,
    std="population",
    eps=1e-6,
):
    advantage = group_advantages(rewards, num_generations, std=std, eps=eps)[:, None]
    ratio = (logprobs - old_logprobs).exp()
    per_token = beta * k3(logprobs, ref_logprobs) - surrogate_clip(ratio, advantage, epsilon)
    return ((per_token * mask).sum(1) / mask.sum(1).clamp(min=1)).mean()


@mistake(NO_TOKENS)
def _empty_row_nan(*arguments, std="population", eps=1e-6):
    def aggregate(per_token, mask, rows):
        return (per_token.sum(1) / mask.sum(1)).mean()

    return _built(aggregate=aggregate)(*arguments, std=std, eps=eps)


def _table(rows: int, width: int, start: float, low: float, high: float) -> torch.Tensor:
    """(rows, width) numbers scattered over low ... high: multiples of the golden ratio mod 1."""
    steps = torch.arange(rows * width, dtype=torch.float64).view(rows, width)
    return low + (high - low) * ((start + 0.6180339887498949 * steps) % 1)


def _probe(
    label: str,
    lengths: list[int],
    rewards: list[float],
    num_generations: int,
    epsilon: float = 0.2,
    beta: float = 0.1,
    *,
    drift: float = 0.45,
    width: int = 0,
    catches: str = "",
) -> Probe:
    """`drift`: how far, in nats, old and reference lie from the policy at most."""
    rows, width = len(lengths), width or max(lengths)
    logprobs = _table(rows, width, 0.1, -2.5, -0.6)
    return Probe(
        label,
        {
            "logprobs": logprobs,
            "old_logprobs": logprobs + _table(rows, width, 0.35, -drift, drift),
            "ref_logprobs": logprobs + _table(rows, width, 0.8, -drift, drift),
            "mask": torch.arange(width) < torch.tensor(lengths)[:, None],
            "rewards": rewards,
            "num_generations": num_generations,
            "epsilon": epsilon,
            "beta": beta,
        },
        catches,
    )


def _corners() -> Probe:
    ratio = torch.tensor([[1.5], [0.5], [1.5], [0.5]], dtype=torch.float64)
    logprobs = torch.full((4, 1), -1.5, dtype=torch.float64)
    return Probe(
        "four corners, no KL",
        {
            "logprobs": logprobs,
            "old_logprobs": logprobs - ratio.log(),
            "ref_logprobs": logprobs + 0.3,
            "mask": torch.ones(4, 1, dtype=torch.bool),
            "rewards": [1.0, 1.0, 0.0, 0.0],
            "num_generations": 4,
            "epsilon": 0.2,
            "beta": 0.0,
        },
    )


def _garbage_under_the_mask() -> Probe:
    probe = _probe("-inf and nan under the mask", [1, 3], [1, 0], 2)
    arguments = dict(probe.arguments)
    for name, junk in (
        ("logprobs", float("-inf")),
        ("old_logprobs", float("nan")),
        ("ref_logprobs", float("inf")),
    ):
        arguments[name] = torch.where(arguments["mask"], arguments[name], junk)
    return Probe(probe.label, arguments, PADDING)


GRPO_LOSS = Exercise(
    name="grpo_loss",
    reference=grpo_loss,
    probes=(
        _probe("two answers of one token", [1, 1], [1, 0], 2),
        _corners(),
        _probe("on-policy, reference equal", [1, 3], [1, 0], 2, drift=0.0),
        _probe("unequal lengths", [3, 5], [1, 0], 2, beta=0.04),
        _probe("one right of four, padded", [2, 4, 1, 3], [1, 0, 0, 0], 4, epsilon=0.3, width=6),
        _probe("two prompts", [3, 5, 2, 6, 4, 1, 7, 2], [1, 1, 0, 0, 1, 0, 0, 0], 4, beta=0.5),
        _probe("nearly equal rewards", [1, 2, 2, 1], [0.5 + 2**-10, 0.5, 0.5, 0.5], 4),
        _probe("equal rewards", [1, 2], [1, 1], 2, catches=NO_EPS),
        _probe("a row without tokens", [2, 0, 3, 1], [1, 1, 0, 0.5], 4, catches=NO_TOKENS),
        _garbage_under_the_mask(),
    ),
    conventions=(
        *(
            Convention(
                f"{whose}; this page uses the population std with eps 1e-6",
                {"std": std, "eps": eps},
            )
            for std, eps, whose in NORMALISERS
        ),
        Convention(
            "a row without tokens is left out of the mean: verl's way when it is given no "
            "global batch size; this page counts it",
            {"count_empty": False},
        ),
        *(
            Convention(
                f"{whose}; rows without tokens are left out of the mean",
                {"std": std, "eps": eps, "count_empty": False},
            )
            for std, eps, whose in NORMALISERS
        ),
    ),
    mistakes=(
        Mistake(
            "you averaged over all tokens: that is DAPO's token mean; GRPO's paper averages "
            "inside each answer first",
            _built(aggregate=_token_mean),
        ),
        Mistake(
            "you divided by the padded width: divide by the answer's own length, mask.sum(1)",
            _built(aggregate=_padded_width),
        ),
        Mistake(
            "you summed over the tokens of an answer: GRPO divides by its length",
            _built(aggregate=_answer_sum),
        ),
        Mistake(
            "you summed over the answers: take the mean over the rows",
            _built(aggregate=_sum_over_rows),
        ),
        Mistake(
            "the mask is not applied: padding is trained on as if the policy had written it",
            _built(use_mask=False),
        ),
        Mistake(
            "the outer min is missing: clip(ratio) * A alone is flat in all four corners, so "
            "wrong moves are never corrected",
            _built(surrogate=clip_only),
        ),
        Mistake(
            "you took max where A < 0: the corrective gradient dies; it is min for both signs",
            _built(surrogate=max_where_negative),
        ),
        Mistake(
            "nothing is clipped: take the min of ratio * A and clip(ratio) * A",
            _built(surrogate=unclipped),
        ),
        Mistake(
            "advantages over the whole batch: each prompt is its own group",
            _built(advantages=_over_the_batch),
        ),
        Mistake(
            "wrong neighbours: rows kG ... kG+G-1 answer one prompt, so view(-1, G), not "
            "view(G, -1)",
            _built(advantages=interleaved_advantages),
        ),
        Mistake(
            "the advantage is not divided by the group's std: that is Dr. GRPO's",
            _built(advantages=_not_scaled),
        ),
        Mistake(
            "leave-one-out baseline, no std: that is RLOO's advantage",
            _built(advantages=_leave_one_out),
        ),
        Mistake(
            "raw rewards stand where the advantages belong: without the group's mean nothing "
            "is pushed down",
            _built(advantages=_raw_rewards),
        ),
        Mistake(
            "the ratio is taken against the reference: its denominator is the old policy, "
            "which sampled the answers",
            _built(ratio=_against_reference),
        ),
        Mistake(
            "old_logprobs are not used: the ratio is 1 everywhere and nothing is ever clipped",
            _built(ratio=_against_itself),
        ),
        Mistake(
            "the ratio is upside down: it is pi / pi_old, exp(logprobs - old_logprobs)",
            _built(ratio=_upside_down),
        ),
        Mistake(
            "log-probs were summed before the ratio: that is one ratio per answer, the "
            "product; GRPO has one per token",
            _built(ratio=_product),
        ),
        Mistake(
            "one ratio per answer, the geometric mean: that is GSPO's; GRPO has one per token",
            _built(ratio=_geometric_mean),
        ),
        Mistake(
            "the log-ratio stands where the ratio belongs: take exp(logprobs - old_logprobs)",
            _built(ratio=_no_exp),
        ),
        Mistake(
            "log pi stands where the ratio belongs: take exp(logprobs - old_logprobs)",
            _built(ratio=_likelihood),
        ),
        Mistake(
            "pi stands where the ratio belongs: divide by the old probability, exp(logprobs - "
            "old_logprobs)",
            _built(ratio=_probability),
        ),
        Mistake(
            "the ratio is detached: the value is right, the policy term has no gradient",
            _built(ratio=_detached),
        ),
        Mistake(
            "k3 is upside down: with samples of pi it is pi_ref / pi, so d = ref_logprobs - "
            "logprobs",
            _built(kl=_inverted),
        ),
        Mistake(
            "the KL is taken to the old policy: it anchors to the frozen reference, ref_logprobs",
            _built(kl=_against_old),
        ),
        Mistake(
            "k1 in the loss: on-policy its expected gradient is 0, it anchors nothing; the "
            "paper's penalty is k3",
            _built(kl=_k1),
        ),
        Mistake("k2 in the loss: the paper's penalty is k3, exp(d) - 1 - d", _built(kl=_k2)),
        Mistake(
            "k3 times the ratio: that is the later bias-corrected KL (TRL's default); the "
            "paper's k3 stands alone",
            _built(kl=_times_ratio),
        ),
        _beta_left_out,
        Mistake(
            "the KL has the wrong sign: the loss is -(surrogate - beta * k3), so the penalty "
            "is added to it",
            _built(kl_weight=-1.0),
        ),
        Mistake("the KL term is missing: add beta * k3 per token", _built(kl_weight=0.0)),
        Mistake(
            "the KL is averaged over all tokens, apart from the policy term: both share the "
            "mean inside each answer",
            _built(kl_aggregate=_token_mean),
        ),
        Mistake(
            "the policy term lost its minus: the penalty is minimised, the surrogate must be "
            "maximised",
            _built(surrogate=minimised),
        ),
        _maximised,
        _padding_times_zero,
        _empty_row_nan,
        Mistake(NO_EPS, _built(advantages=_no_eps(0))),
        Mistake("Bessel std and " + NO_EPS, _built(advantages=_no_eps(1))),
    ),
    differentiate=("logprobs",),
    direction="minimised",
    hint="Five steps: clean the padding with torch.where, advantages per group, exp(logprobs - "
    "old_logprobs), the smaller of two products minus beta * k3, then mean inside each "
    "answer, mean over answers, minus.",
)
