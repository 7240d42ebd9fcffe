"""A silent bug of an environment: what one trajectory leaves behind for the next."""

from __future__ import annotations

from rlnb.classroom.checking.silent_bug import SilentBug

__all__ = ["SILENT_BUG_AGENTS", "replies"]


def _right(trajectories: list[list[str]]) -> list[list[str]]:
    return [replies([calls])[0] for calls in trajectories]


def replies(trajectories):
    """What the desk answers to each trajectory's calls, in order."""
    memory, out = 0, []
    for calls in trajectories:
        said = []
        for call in calls:  # "4+3=" or "x="
            if call != "x=":
                a, b = int(call[0]), int(call[2])
                sign = {"+": a + b, "-": a - b, "*": a * b}
                memory = sign[call[1]] % 10
            said.append(str(memory))
        out.append(said)
    return out


SILENT_BUG_AGENTS = SilentBug(
    "silent_bug_agents",
    _right,
    replies,
    "The memory is emptied once, before the loop: every trajectory inherits what the one before it "
    "left. One trajectory alone shows nothing. In a container it is the file that was not deleted.",
    hint="One trajectory cannot show it. Which call reveals what was there before?",
)
