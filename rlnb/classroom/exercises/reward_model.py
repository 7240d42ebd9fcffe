"""The reward model's loss on pairs, and a silent bug in how pairs are made."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake
from rlnb.classroom.checking.silent_bug import SilentBug
from rlnb.classroom.exercises.preferences import UNDERFLOW

__all__ = ["BRADLEY_TERRY", "SILENT_BUG_PREFERENCES", "bradley_terry"]


def bradley_terry(chosen: Tensor, rejected: Tensor, margin: Tensor) -> Tensor:
    """-mean log sigma(r_w - r_l - m): three (P,) -> 0-d."""
    return -logsigmoid(chosen - rejected - margin).mean()


@mistake("the margin is added: that makes the task easier; the chosen one has to lead by it")
def _easier(chosen, rejected, margin):
    return -logsigmoid(chosen - rejected + margin).mean()


@mistake("the margin is missing")
def _no_margin(chosen, rejected, margin):
    return -logsigmoid(chosen - rejected).mean()


@mistake("rejected minus chosen: the score of the chosen answer should be the larger one")
def _swapped(chosen, rejected, margin):
    return -logsigmoid(rejected - chosen - margin).mean()


@mistake("the sigmoid is there, its log is not")
def _no_log(chosen, rejected, margin):
    return -torch.sigmoid(chosen - rejected - margin).mean()


@mistake("a hinge: it stops at the margin. Bradley-Terry is the log of a chance, and never stops")
def _hinge(chosen, rejected, margin):
    return (margin - (chosen - rejected)).clamp(min=0).mean()


@mistake("each score judged alone: people said which is better, not that one of them is good")
def _each_alone(chosen, rejected, margin):
    return (softplus(-(chosen - margin)) + softplus(rejected)).mean()


@mistake("every chosen against every rejected, a table P x P: a pair belongs to one prompt")
def _table(chosen, rejected, margin):
    return -logsigmoid(chosen[:, None] - rejected[None, :] - margin[:, None]).mean()


@mistake("averaged before the sigmoid: one loss per pair, then the mean")
def _mean_first(chosen, rejected, margin):
    return -logsigmoid((chosen - rejected - margin).mean())


@mistake("a sum over pairs: take the mean")
def _summed(chosen, rejected, margin):
    return -logsigmoid(chosen - rejected - margin).sum()


@mistake("the margin stands outside the log: a constant there has no gradient")
def _outside(chosen, rejected, margin):
    return (margin - logsigmoid(chosen - rejected)).mean()


@mistake(UNDERFLOW)
def _log_of_sigmoid(chosen, rejected, margin):
    return -torch.sigmoid(chosen - rejected - margin).log().mean()


BRADLEY_TERRY = Exercise(
    name="bradley_terry",
    reference=bradley_terry,
    differentiate=("chosen", "rejected"),
    direction="minimised",
    probes=(
        Probe("one pair", {"chosen": [1.2], "rejected": [0.3], "margin": [0.5]}),
        Probe("three pairs", {"chosen": [1.2, -0.4, 2.0], "rejected": [0.3, 0.5, -1.0],
                              "margin": [0.5, 1.0, 0.2]}),
        Probe("a pair that is badly wrong",
              {"chosen": [-900.0], "rejected": [0.0], "margin": [1.0]}, UNDERFLOW),
    ),
    mistakes=(
        _easier, _no_margin, _swapped, _no_log, _hinge, _each_alone, _table, _mean_first, _summed,
        _outside, _log_of_sigmoid,
    ),
    hint="The chance that the chosen answer wins is a sigmoid of how far it leads. You want the "
    "negative log of that chance.",
)  # fmt: skip


def _right_pairs(rewards, num_generations):
    rows = rewards.view(-1, num_generations)
    first = torch.arange(len(rows)) * num_generations
    best, worst = rows.argmax(1), rows.argmin(1)
    differ = rows.max(1).values > rows.min(1).values
    return (first + best)[differ], (first + worst)[differ]


def make_pairs(rewards, num_generations):
    """Rows of the chosen and of the rejected answers, one pair a prompt."""
    rows = rewards.view(-1, num_generations)  # (prompts, G)
    first = torch.arange(len(rows)) * num_generations
    best = first + rows.argmax(1)  # one a prompt
    worst = rewards.argsort()[: len(rows)]  # the lowest rewards
    differ = rows.max(1).values > rows.min(1).values
    return best[differ], worst[differ]  # no pair of equals


SILENT_BUG_PREFERENCES = SilentBug(
    name="silent_bug_preferences",
    right=_right_pairs,
    broken=make_pairs,
    story="The lowest rewards of the whole batch may all belong to one prompt. A pair of two "
    "prompts keeps beta log Z of both: the loss falls and learns which prompt is easy.",
    hint="With one prompt it is right. Give it two prompts, one much harder than the other. What "
    "must be true of the two rows of a pair?",
)
