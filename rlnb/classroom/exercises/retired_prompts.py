"""When a solved prompt leaves the pool: a silent bug in what its history counts."""

from __future__ import annotations

from rlnb.classroom.checking.silent_bug import SilentBug

__all__ = ["SILENT_BUG_THE_ZOO", "retired"]


def _retired(rewards, threshold=0.9):
    return rewards.mean((0, 2)) >= threshold


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def retired(rewards, threshold=0.9):
    """rewards (steps, prompts, G), 0 or 1 -> (prompts,) bool: it leaves"""
    kept = rewards.amax(2) > rewards.amin(2)     # groups with a gradient
    right = (rewards.sum(2) * kept).sum(0)
    tried = kept.sum(0) * rewards.shape[2]
    return right / tried.clamp(min=1) >= threshold
# fmt: on


SILENT_BUG_THE_ZOO = SilentBug(
    name="silent_bug_the_zoo",
    right=_retired,
    broken=retired,
    story="Only groups that trained entered the history. A solved prompt gives all-right groups, "
    "which have no gradient: they never count, so it never retires.",
    hint="What does the history of a prompt look like that is solved every time?",
)
