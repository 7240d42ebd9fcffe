"""Many turns, exactly: whose tokens a push can silence, and what a horizon does to credit.

*Two authors.* One place of a text where `error` or `ok` may stand. Success depends on which of the
two it was. The policy has a logit for `error`, whoever writes the token.

*Additive turns.* T turns, each a fair coin of the policy: right earns 1, wrong 0. One trajectory's
push on the logit of turn k is c (a_k - 1/2), where a_k says whether the turn was right, and the
credit c is what the rule gives that turn, minus its mean.
"""

from __future__ import annotations

import math

__all__ = ["RULES", "additive_push", "author_path", "enough_trajectories", "expected_push"]

RULES = ("trajectory", "to go", "turn")


def expected_push(share: float, policy: float, gap: float = 1.0) -> float:
    """E[A (1[error] - pi)], the mean push on the logit of `error`, per trajectory.

    share: how often `error` really stands there: pi itself where the policy writes the token, q
    where the world does. gap: reward after ok minus reward after error. A is the reward minus its
    mean, and E[A] = 0 takes pi out of it: the push is -gap share (1 - share), a covariance.

    >>> expected_push(0.3, 0.3), expected_push(0.3, 1e-9)
    (-0.21, -0.21)
    """
    after_error, after_ok = -gap * (1 - share), gap * share
    return round(share * after_error * (1 - policy) - (1 - share) * after_ok * policy, 12)


def author_path(
    author: str, share: float, *, rate: float = 1.0, steps: int = 1000, gap: float = 1.0
) -> list[float]:
    """log pi(error) along `steps` expected updates of its logit, `steps` + 1 numbers, in nats.

    author: "policy" or "world". Both start at pi = share; where the policy writes the token, the
    share moves with pi, where the world does it stays. Raises ValueError for another author.
    """
    if author not in ("policy", "world"):
        raise ValueError(f"author must be 'policy' or 'world', got {author!r}.")
    z, path = math.log(share / (1 - share)), []
    for _ in range(steps + 1):
        path.append(-math.log1p(math.exp(-z)) if z > -500 else z)
        now = 1 / (1 + math.exp(-z)) if z > -500 else math.exp(z)
        z += rate * expected_push(now if author == "policy" else share, now, gap)
    return path


def additive_push(
    turns: int, rule: str = "trajectory", turn: int = 0, error: float = 0.0
) -> tuple[float, float]:
    """Mean and variance of one trajectory's push on the logit of one turn.

    rule "trajectory": the credit is the sum over all turns. "to go": the sum from this turn on.
    "turn": the turn's own reward, from a grader that turns a share `error` of its verdicts round.
    turn: 0 for the first. The other turns are fair coins: each adds 1/16 to the variance.

    >>> additive_push(2), additive_push(32), additive_push(32, "turn")
    ((0.25, 0.0625), (0.25, 1.9375), (0.25, 0.0))
    """
    if rule not in RULES:
        raise ValueError(f"rule must be one of {RULES}, got {rule!r}.")
    if not 0 <= turn < turns:
        raise ValueError(f"turn must be from 0 to {turns - 1}, got {turn}.")
    if rule == "turn":
        signal = 1 - 2 * error
        return signal / 4, (1 - signal**2) / 16
    others = turns - 1 if rule == "trajectory" else turns - 1 - turn
    return 0.25, others / 16


def enough_trajectories(mean: float, variance: float) -> float:
    """The n at which the mean push over n trajectories is twice its own spread: 4 Var / mean^2.

    At two standard deviations the sign is wrong one time in 44. At least 1; inf without a signal.

    >>> enough_trajectories(*additive_push(32)), enough_trajectories(*additive_push(32, "turn"))
    (124.0, 1.0)
    """
    if mean == 0:
        return math.inf
    return max(1.0, 4 * variance / mean**2)
