"""How large can a z-scored advantage be? A formula, checked at several group sizes."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, mistake

__all__ = ["LARGEST_ADVANTAGE", "largest_advantage"]


def largest_advantage(size: torch.Tensor, *, std: str = "population") -> torch.Tensor:
    """sqrt(G - 1), or (G - 1) / sqrt(G) with Bessel's std: (n,) -> (n,)."""
    return (size - 1).sqrt() if std == "population" else (size - 1) / size.sqrt()


@mistake("this is sqrt(G): the sum of the squares is G, but the others must balance you to zero")
def _root(size):
    return size.sqrt()


@mistake("this is G - 1, the square of it: take the root")
def _square(size):
    return size - 1


@mistake("that is the even split, where every advantage is +1 or -1: look for the uneven one")
def _even(size):
    return torch.ones_like(size)


@mistake("this is the largest reward minus mean, (G - 1) / G; divide by the std of that group")
def _undivided(size):
    return (size - 1) / size


@mistake("that is how far down an advantage can go; the size of it was asked for, above zero")
def _negative(size):
    return -(size - 1).sqrt()


LARGEST_ADVANTAGE = Exercise(
    name="largest_advantage",
    reference=largest_advantage,
    probes=(Probe("two answers", {"size": [2]}), Probe("four sizes", {"size": [4, 8, 16, 64]})),
    conventions=(
        Convention(
            "right with Bessel's std; with the population std of this page it is sqrt(G - 1)",
            {"std": "bessel"},
        ),
    ),
    mistakes=(_root, _square, _even, _undivided, _negative),
    hint="Put A_1 = x. The other G - 1 advantages sum to -x, and all squares together are G. What "
    "is the smallest sum of squares that G - 1 numbers with a given sum can have?",
)
