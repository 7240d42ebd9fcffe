"""What a critic does to a gradient, and the target that it is trained on."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake
from rlnb.classroom.checking.silent_bug import SilentBug
from rlnb.classroom.exercises.credit import gae

__all__ = ["SILENT_BUG_CRITIC", "TIPPING_LAMBDA", "advantages_and_targets", "tipping_lambda"]


def tipping_lambda(claimed: torch.Tensor, true: torch.Tensor, keeps: float) -> torch.Tensor:
    """The lambda at which the critic's fading error just turns the mean gradient: (n,) -> (n,).

    claimed < 0 < true: the critic's and the true lead of the better token over the other. k tokens
    later the critic's lead is true + (claimed - true) keeps^k. With gamma 1, GAE's mean lead is
    true + (claimed - true) (1 - lambda) / (1 - lambda keeps), and this is where it is 0.
    """
    return claimed / (claimed - (1 - keeps) * true)


@mistake("here the whole error is corrected one token later; only 1 - keeps of it is, then "
         "1 - keeps of the rest")  # fmt: skip
def _at_a_stroke(claimed, true, keeps):
    return tipping_lambda(claimed, true, 0.0)


@mistake("keeps is what is left of the error; what a token corrects is 1 - keeps of it")
def _corrects_keeps(claimed, true, keeps):
    return tipping_lambda(claimed, true, 1 - keeps)


@mistake("the two leads are exchanged: the critic claims the negative one")
def _exchanged(claimed, true, keeps):
    return tipping_lambda(true, claimed, keeps)


@mistake("the correction is true minus claimed, not the true lead alone: it also undoes the claim")
def _true_alone(claimed, true, keeps):
    return claimed / (keeps * claimed - (1 - keeps) * true)


@mistake(
    "only the first correction is counted: each later token corrects 1 - keeps of what is left"
)
def _first_only(claimed, true, keeps):
    return claimed / ((claimed - true) * (1 - keeps))


def _probe(label: str, claimed: list[float], true: list[float], keeps: float) -> Probe:
    return Probe(label, {"claimed": claimed, "true": true, "keeps": keeps})


TIPPING_LAMBDA = Exercise(
    name="tipping_lambda",
    reference=tipping_lambda,
    probes=(
        _probe("claimed -0.2, true 0.7, keeps 0: gone after one token", [-0.2], [0.7], 0.0),
        _probe("the same, keeps 0.9", [-0.2], [0.7], 0.9),
        _probe("three pairs, keeps 0.4", [-0.5, -0.1, -0.3], [0.6, 0.8, 0.7], 0.4),
    ),
    mistakes=(_at_a_stroke, _corrects_keeps, _exchanged, _true_alone, _first_only),
    hint="The surprise at the plan is claimed. The k-th token after it corrects (true minus "
    "claimed) (1 - keeps) keeps^(k-1), and GAE multiplies that by lambda^k. Sum the geometric "
    "series, set the whole to 0 and solve for lambda.",
)


def _right(
    rewards: torch.Tensor, values: torch.Tensor, gamma: float, lam: float
) -> tuple[torch.Tensor, torch.Tensor]:
    advantages = gae(rewards, values, gamma, lam)
    targets = advantages + values
    return _whitened(advantages), targets


def _whitened(x: torch.Tensor) -> torch.Tensor:
    return (x - x.mean()) / (x.std(correction=0) + 1e-8)


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def advantages_and_targets(rewards, values, gamma, lam):      # all (T,)
    A = gae(rewards, values, gamma, lam)
    A = (A - A.mean()) / (A.std(correction=0) + 1e-8)         # whiten
    return A, A + values
# fmt: on


SILENT_BUG_CRITIC = SilentBug(
    "silent_bug_critic",
    _right,
    advantages_and_targets,
    "The whitened advantages went into the critic's target: it is trained towards its own guess "
    "plus a z-score, not towards the return. The policy's advantages are right: nothing shows.",
    hint="The advantages are right. With lambda 1 and gamma 1, what is the critic's target, in "
    "words? Ask for that number.",
)
