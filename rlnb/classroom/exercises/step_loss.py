"""From a model's logits to REINFORCE's loss, prompt and shift included."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake
from rlnb.classroom.checking.silent_bug import SilentBug
from rlnb.classroom.exercises.reinforce import reinforce_loss

__all__ = ["SILENT_BUG_REINFORCE", "STEP_LOSS", "loss", "step_loss"]


def _written(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Log-probability of tokens 1 ... L-1, each from the logits one place before: (B, L-1)."""
    every = logits[:, :-1].log_softmax(-1)
    return every.gather(-1, tokens[:, 1:, None]).squeeze(-1)


def step_loss(
    logits: torch.Tensor, tokens: torch.Tensor, written: torch.Tensor, rewards: torch.Tensor
) -> torch.Tensor:
    """-(1/B) sum_i R_i sum_t log pi of the written tokens: (B, L, V), (B, L), (B, L), (B,)."""
    per_token = torch.where(written[:, 1:], _written(logits, tokens), 0.0)
    return -(rewards * per_token.sum(1)).mean()


@mistake(
    "the shift is missing: the logits at place t are about the token at t + 1, so cut "
    "logits[:, :-1] and tokens[:, 1:]"
)
def _no_shift(logits, tokens, written, rewards):
    own = logits.log_softmax(-1).gather(-1, tokens[..., None]).squeeze(-1)
    return -(rewards * torch.where(written, own, 0.0).sum(1)).mean()


@mistake("the mask is cut at the wrong end: it goes with the tokens, written[:, 1:]")
def _mask_cut_wrong(logits, tokens, written, rewards):
    kept = torch.where(written[:, :-1], _written(logits, tokens), 0.0)
    return -(rewards * kept.sum(1)).mean()


@mistake("the prompt and the padding are scored too: only tokens that the policy wrote have a push")
def _no_mask(logits, tokens, written, rewards):
    return -(rewards * _written(logits, tokens).sum(1)).mean()


@mistake("these are logits, not log-probabilities: log_softmax over the vocabulary is missing")
def _no_softmax(logits, tokens, written, rewards):
    own = logits[:, :-1].gather(-1, tokens[:, 1:, None]).squeeze(-1)
    return -(rewards * torch.where(written[:, 1:], own, 0.0).sum(1)).mean()


@mistake("softmax without the log: the score is the gradient of log pi")
def _no_log(logits, tokens, written, rewards):
    own = _written(logits, tokens).exp()
    return -(rewards * torch.where(written[:, 1:], own, 0.0).sum(1)).mean()


@mistake("you divided each answer by its length: log pi of an answer is a sum over its tokens")
def _answer_mean(logits, tokens, written, rewards):
    kept = torch.where(written[:, 1:], _written(logits, tokens), 0.0)
    return -(rewards * kept.sum(1) / written[:, 1:].sum(1)).mean()


@mistake("you averaged over all written tokens: sum inside an answer, mean over the answers")
def _token_mean(logits, tokens, written, rewards):
    kept = torch.where(written[:, 1:], _written(logits, tokens), 0.0)
    return -(rewards[:, None] * kept).sum() / written[:, 1:].sum()


@mistake("the minus is missing: the optimizer minimises, so right answers would become rarer")
def _no_minus(logits, tokens, written, rewards):
    return -step_loss(logits, tokens, written, rewards)


@mistake("the rewards are not used: this imitates every answer, right or wrong")
def _no_rewards(logits, tokens, written, rewards):
    return step_loss(logits, tokens, written, torch.ones_like(rewards))


@mistake("log_softmax over the wrong axis: it normalises over the vocabulary, the last one")
def _wrong_axis(logits, tokens, written, rewards):
    every = logits[:, :-1].log_softmax(1)
    own = every.gather(-1, tokens[:, 1:, None]).squeeze(-1)
    return -(rewards * torch.where(written[:, 1:], own, 0.0).sum(1)).mean()


def _logits(rows: int, length: int, words: int) -> list:
    n = rows * length * words
    return (torch.sin(1.7 * torch.arange(n) + 0.3) * 2).view(rows, length, words).tolist()


STEP_LOSS = Exercise(
    name="step_loss",
    reference=step_loss,
    probes=(
        Probe(
            "one answer, a prompt of one token",
            {
                "logits": _logits(1, 3, 3),
                "tokens": torch.tensor([[0, 2, 1]]),
                "written": torch.tensor([[0, 1, 1]], dtype=torch.bool),
                "rewards": [1.0],
            },
        ),
        Probe(
            "two answers of unequal length",
            {
                "logits": _logits(2, 5, 4),
                "tokens": torch.tensor([[3, 1, 2, 0, 0], [3, 1, 0, 2, 1]]),
                "written": torch.tensor([[0, 0, 1, 0, 0], [0, 0, 1, 1, 1]], dtype=torch.bool),
                "rewards": [1.0, 0.5],
            },
        ),
        Probe(
            "three answers, a negative reward",
            {
                "logits": _logits(3, 4, 5),
                "tokens": torch.tensor([[4, 0, 3, 1], [4, 2, 2, 0], [4, 1, 0, 3]]),
                "written": torch.tensor(
                    [[0, 1, 1, 0], [0, 1, 0, 0], [0, 1, 1, 1]], dtype=torch.bool
                ),
                "rewards": [2.0, -1.0, 0.5],
            },
        ),
    ),
    mistakes=(
        _no_shift,
        _mask_cut_wrong,
        _no_mask,
        _no_softmax,
        _no_log,
        _answer_mean,
        _token_mean,
        _no_minus,
        _no_rewards,
        _wrong_axis,
    ),
    differentiate=("logits",),
    direction="minimised",
    hint="Cut logits[:, :-1] and tokens[:, 1:], log_softmax, gather, torch.where with the mask "
    "(cut like the tokens), sum over the row, times R, minus the mean.",
)


def _right(logprobs: torch.Tensor, mask: torch.Tensor, rewards: torch.Tensor) -> torch.Tensor:
    return reinforce_loss(logprobs, mask, rewards)


def loss(logprobs, mask, rewards):
    kept = torch.where(mask, logprobs, 0.0)
    return -(rewards[:, None] * kept).mean()


SILENT_BUG_REINFORCE = SilentBug(
    "silent_bug_reinforce",
    _right,
    loss,
    "`.mean()` over the padded matrix divides by rows times width, so the longest answer of the "
    "batch, right or wrong, shrinks everybody's push. The direction inside a batch is right: it "
    "trains.",
    hint="Append a column of padding to a batch, nothing else. What may not change?",
)
