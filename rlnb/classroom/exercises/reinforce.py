"""REINFORCE: the surrogate loss whose gradient is the policy gradient."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, habit, mistake

__all__ = ["PADDING", "NO_TOKENS", "REINFORCE_LOSS", "reinforce_loss"]

PADDING = (
    "right while the padding is finite; under the mask a -inf times 0 is nan: use "
    "torch.where(mask, x, 0) on the inputs"
)
NO_TOKENS = (
    "a row without tokens gives 0/0 = nan: it contributes 0, so keep its length at 1 or "
    "more, .clamp(min=1)"
)


def reinforce_loss(
    logprobs: torch.Tensor, mask: torch.Tensor, rewards: torch.Tensor, *, count_empty: bool = True
) -> torch.Tensor:
    """-(1/B) sum_i r_i sum_t log pi_it. `count_empty`: a row without tokens counts in B."""
    per_answer = torch.where(mask, logprobs, 0).sum(1)  # log pi of the whole answer, (B,)
    rows = len(rewards) if count_empty else mask.any(1).sum()
    return -(rewards * per_answer).sum() / rows


def _clean(logprobs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.where(mask, logprobs, 0)


@mistake(
    "you divided each answer by its length: log pi(answer) is a sum, and 1/length "
    "is another estimator with a length bias"
)
def _answer_mean(logprobs, mask, rewards, *, count_empty=True):
    lengths = mask.sum(1).clamp(min=1)
    return reinforce_loss(logprobs / lengths[:, None], mask, rewards, count_empty=count_empty)


@mistake(
    "you averaged over all tokens: sum over the tokens of an answer, then average over the rows"
)
def _token_mean(logprobs, mask, rewards):
    return -(rewards[:, None] * _clean(logprobs, mask)).sum() / mask.sum()


@mistake(
    "you averaged over every entry, padding included: sum over the unmasked tokens, "
    "then average over the rows"
)
def _mean_of_everything(logprobs, mask, rewards):
    return -(rewards[:, None] * _clean(logprobs, mask)).mean()


@mistake(
    "the minus is missing: the optimizer minimises, so this step would make rewarded answers rarer"
)
def _no_minus(logprobs, mask, rewards, *, count_empty=True):
    return -reinforce_loss(logprobs, mask, rewards, count_empty=count_empty)


@mistake("the mask is not applied: padding is scored as if the policy had written it")
def _no_mask(logprobs, mask, rewards):
    return -(rewards * logprobs.sum(1)).mean()


@mistake(
    "you subtracted the mean reward: a good idea, and the next page; here the raw "
    "reward is asked for"
)
def _with_baseline(logprobs, mask, rewards, *, count_empty=True):
    return reinforce_loss(logprobs, mask, rewards - rewards.mean(), count_empty=count_empty)


@mistake(
    "you multiplied the mean log-prob by the mean reward: each answer needs its own "
    "reward before the mean"
)
def _product_of_means(logprobs, mask, rewards):
    return -_clean(logprobs, mask).sum(1).mean() * rewards.mean()


@mistake("the rewards are not used: this is the likelihood of every sample, good or bad")
def _no_rewards(logprobs, mask, rewards, *, count_empty=True):
    return reinforce_loss(logprobs, mask, torch.ones_like(rewards), count_empty=count_empty)


@mistake("you summed over the rows: take the mean, or the step grows with the batch")
def _no_mean(logprobs, mask, rewards):
    return -(rewards * _clean(logprobs, mask).sum(1)).sum()


@mistake("you used pi where log pi belongs: on a sample of pi the gradient wanted is r grad log pi")
def _probabilities(logprobs, mask, rewards, *, count_empty=True):
    per_answer = _clean(logprobs, mask).sum(1).exp()
    rows = len(rewards) if count_empty else mask.any(1).sum()
    return -(rewards * per_answer * mask.any(1)).sum() / rows


@mistake(
    "you standardised the rewards over the batch: page 03 asks whether that helps; here the raw "
    "reward is asked for"
)
def _standardised(logprobs, mask, rewards, *, count_empty=True):
    z = (rewards - rewards.mean()) / (rewards.std(correction=0) + 1e-8)
    return reinforce_loss(logprobs, mask, z, count_empty=count_empty)


@mistake(
    "you standardised the rewards over the batch, with Bessel's std: here the raw reward is asked "
    "for"
)
def _standardised_by_bessel(logprobs, mask, rewards, *, count_empty=True):
    z = (rewards - rewards.mean()) / (rewards.std() + 1e-8)
    return reinforce_loss(logprobs, mask, z, count_empty=count_empty)


@habit(PADDING)
def _padding_times_zero(logprobs, mask, rewards):
    return -(rewards * (logprobs * mask).sum(1)).mean()


@mistake(
    "you averaged over the rewarded answers only: the unrewarded ones count in the "
    "mean, with weight 0"
)
def _successes_only(logprobs, mask, rewards):
    good = rewards > 0
    return -(rewards * good * _clean(logprobs, mask).sum(1)).sum() / good.sum().clamp(min=1)


REINFORCE_LOSS = Exercise(
    name="reinforce_loss",
    reference=reinforce_loss,
    probes=(
        Probe(
            "two answers of one token",
            {
                "logprobs": [[-1.0], [-2.0]],
                "mask": torch.ones(2, 1, dtype=torch.bool),
                "rewards": [1.0, 0.0],
            },
        ),
        Probe(
            "unequal lengths",
            {
                "logprobs": [[-1.0, -0.5, -3.0], [-2.0, -0.25, -0.75]],
                "mask": torch.tensor([[1, 0, 0], [1, 1, 1]], dtype=torch.bool),
                "rewards": [1.0, 0.5],
            },
        ),
        Probe(
            "a negative reward, as wide as tall",
            {
                "logprobs": [[-0.2, -1.1, -0.7], [-0.9, -0.4, -5.0], [-0.3, -4.0, -6.0]],
                "mask": torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0]], dtype=torch.bool),
                "rewards": [2.0, -1.0, 0.5],
            },
        ),
        Probe(
            "a row without tokens",
            {
                "logprobs": [[-1.0, -0.5], [-2.0, -0.25], [-0.1, -0.6]],
                "mask": torch.tensor([[1, 1], [0, 0], [1, 0]], dtype=torch.bool),
                "rewards": [1.0, 3.0, -1.0],
            },
            catches=NO_TOKENS,
            warns=True,
        ),
        Probe(
            "-inf and nan under the mask",
            {
                "logprobs": [[-1.0, float("-inf")], [-2.0, float("nan")]],
                "mask": torch.tensor([[1, 0], [1, 0]], dtype=torch.bool),
                "rewards": [1.0, -1.0],
            },
            catches=PADDING,
            warns=True,
        ),
    ),
    conventions=(
        Convention(
            "a row without tokens is left out of the mean: verl's way when it is given no "
            "global batch size; this page counts it",
            {"count_empty": False},
        ),
    ),
    mistakes=(
        _answer_mean,
        _token_mean,
        _mean_of_everything,
        _no_minus,
        _no_mask,
        _with_baseline,
        _product_of_means,
        _no_rewards,
        _no_mean,
        _probabilities,
        _successes_only,
        _standardised,
        _standardised_by_bessel,
        _padding_times_zero,
    ),
    differentiate=("logprobs",),
    direction="minimised",
    hint="Sum the log-probs of each answer's own tokens, multiply by its reward, average over the "
    "rows, put a minus in front. torch.where(mask, logprobs, 0) drops the padding safely.",
)
