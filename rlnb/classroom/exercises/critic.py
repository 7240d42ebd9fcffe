"""What a critic does to a gradient, and the target that it is trained on."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake
from rlnb.classroom.checking.silent_bug import SilentBug
from rlnb.classroom.exercises.credit import gae

__all__ = ["SILENT_BUG_CRITIC", "TIPPING_LAMBDA", "advantages_and_targets", "tipping_lambda"]


def tipping_lambda(claimed: torch.Tensor, true: torch.Tensor, lasts: int) -> torch.Tensor:
    """The lambda at which (1 - lambda^lasts) claimed + lambda^lasts true is 0: (n,) -> (n,).

    claimed < 0 < true: the critic's and the true lead of the better token over the other.
    """
    return (claimed / (claimed - true)) ** (1 / lasts)


@mistake("this is lambda^lasts, the share that has been waited for; take its root")
def _no_root(claimed, true, lasts):
    return tipping_lambda(claimed, true, 1)


@mistake("the two leads are exchanged: 1 - lambda^lasts goes with the critic's, lambda^lasts with "
         "the true one")  # fmt: skip
def _exchanged(claimed, true, lasts):
    return (true / (true - claimed)) ** (1 / lasts)


@mistake("you forgot that waiting takes weight from the critic: its lead counts 1 - lambda^lasts")
def _critic_in_full(claimed, true, lasts):
    return (-claimed / true) ** (1 / lasts)


@mistake("the error weighs 1 - lambda^lasts, not lasts times (1 - lambda)")
def _first_order(claimed, true, lasts):
    return 1 - true / (true - claimed) / lasts


@mistake("one factor too many: after `lasts` tokens the correction has faded by lambda^lasts")
def _one_more_token(claimed, true, lasts):
    return tipping_lambda(claimed, true, lasts + 1)


def _probe(label: str, claimed: list[float], true: list[float], lasts: int) -> Probe:
    return Probe(label, {"claimed": claimed, "true": true, "lasts": lasts})


TIPPING_LAMBDA = Exercise(
    name="tipping_lambda",
    reference=tipping_lambda,
    probes=(
        _probe("claimed -0.2, true 0.7, one token", [-0.2], [0.7], 1),
        _probe("the same, 80 tokens", [-0.2], [0.7], 80),
        _probe("three pairs, two tokens", [-0.5, -0.1, -0.9], [0.5, 0.8, 0.1], 2),
    ),
    mistakes=(_no_root, _exchanged, _critic_in_full, _first_order, _one_more_token),
    hint="The surprise at the plan is claimed by the critic. The correction comes `lasts` tokens "
    "later and has faded by lambda^lasts. The mean gradient goes with claimed plus lambda^lasts "
    "times (true minus claimed): set that to 0.",
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
