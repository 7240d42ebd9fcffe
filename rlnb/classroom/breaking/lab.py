"""Write tests until no bug survives.

    def signs(clipped_surrogate):              # the parameter names the function to test
        r, A = torch.tensor([1.5]), torch.tensor([-1.0])
        assert clipped_surrogate(r, A, 0.2) == -1.5

    break_it(signs)                            # the scoreboard: which bugs still live

Each function comes once right and once with each of its bugs; `code_of("k3")` prints the right one.
A test passes when it returns (anything but False), and kills a bug when it raises or returns False
on it. It must pass on the right function: one that does not is left out and named.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from rlnb.classroom import progress
from rlnb.classroom.breaking import advantages, averages, losses
from rlnb.classroom.breaking.bench import Bench, Bug
from rlnb.classroom.checking.hidden_output import hidden_output

__all__ = ["Board", "benches", "break_it", "code_of"]

Test = Callable[..., Any]
WIDTH = 84  # columns of the scoreboard


def benches() -> dict[str, Bench]:
    """Every function of the lab by its name."""
    every = (*advantages.BENCHES, *averages.BENCHES, *losses.BENCHES)
    return {bench.name: bench for bench in every}


def code_of(name: str, bug: int = 0) -> str:
    """The right function, or with its bug number 1, 2, ... as the scoreboard counts them.

    Raises ValueError for a name or a number that is not there.

    >>> print(code_of("k3", 2).splitlines()[-1].strip())
    return -d
    """
    bench = _bench(name)
    if not 0 <= bug <= len(bench.bugs):
        raise ValueError(f"code_of: {name} has bugs 1 to {len(bench.bugs)}, got {bug}.")
    return bench.source_with(bench.bugs[bug - 1]) if bug else bench.source


@dataclass(frozen=True)
class Board:
    """What a set of tests found.

    killed    function -> for each of its bugs, whether a test kills it
    tested    functions that have a test which passes on the right code
    refused   sentences on tests that were left out
    """

    killed: Mapping[str, tuple[bool, ...]]
    tested: frozenset[str]
    refused: tuple[str, ...]

    @property
    def survivors(self) -> list[tuple[str, int, Bug]]:
        """(function, number, bug) of all that live, untested functions included."""
        every = benches()
        return [
            (name, i, every[name].bugs[i - 1])
            for name, row in self.killed.items()
            for i, dead in enumerate(row, 1)
            if not dead
        ]

    def __repr__(self) -> str:
        lines = [f"left out: {sentence}" for sentence in self.refused]
        for name in filter(self.tested.__contains__, self.killed):
            row = self.killed[name]
            marks = "".join("x" if dead else "o" for dead in row)
            lines.append(f"{name:18} {marks:8} {sum(row)} of {len(row)} killed")
            for other, i, bug in self.survivors:
                if other == name:
                    lines += _wrapped(f"{i} lives: {bug.what} ({bug.seen})", 4)
        if untested := [name for name in self.killed if name not in self.tested]:
            lines += _wrapped("no test yet: " + ", ".join(untested), 0)
        dead, there = self.counts
        lines.append(f"{dead} of {there} bugs killed" + (", none lives" if dead == there else ""))
        return "\n".join(lines)

    @property
    def counts(self) -> tuple[int, int]:
        """Bugs killed, and bugs there are."""
        return sum(map(sum, self.killed.values())), sum(map(len, self.killed.values()))


def break_it(*tests: Test) -> Board:
    """Run the tests against every bug of the functions that they name. Never raises for a test."""
    killed = {name: [False] * len(bench.bugs) for name, bench in benches().items()}
    tested, refused = set(), []
    with hidden_output():
        for test in tests:
            try:
                name = _tested_by(test)
            except ValueError as error:
                refused.append(str(error))
                continue
            bench = _bench(name)
            if said := _fails(test, bench.function):
                refused.append(f"{_named(test)} fails on the right {name}: {said}")
                continue
            tested.add(name)
            for i in range(len(bench.bugs)):
                killed[name][i] = killed[name][i] or bool(_fails(test, _broken(name, i)))
    board = Board({k: tuple(v) for k, v in killed.items()}, frozenset(tested), tuple(refused))
    dead, there = board.counts
    progress.record("lab", "break_it", killed=dead, there=there)
    return board


@cache
def _broken(name: str, index: int) -> Callable[..., Any]:
    bench = benches()[name]
    return bench.broken(bench.bugs[index])


def _bench(name: str) -> Bench:
    try:
        return benches()[name]
    except KeyError:
        known = ", ".join(benches())
        raise ValueError(f"there is no function {name!r} in the lab; there are {known}") from None


def _tested_by(test: Test) -> str:
    """The function that a test's one parameter names."""
    if not callable(test):
        raise ValueError(f"a {type(test).__name__} is no test: give the function, not its result")
    names = list(inspect.signature(test).parameters)
    if len(names) != 1:
        raise ValueError(f"{_named(test)} has the parameters {names}: one, the function to test")
    return _bench(names[0]).name


def _fails(test: Test, function: Callable[..., Any]) -> str:
    """Why the test does not pass on this function; empty when it does.

    Seeded, so that a test which draws its inputs gets the same verdict every time.
    """
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            returned = test(function)
    except (Exception, SystemExit) as error:
        first = (str(error).strip().splitlines() or [""])[0]
        return f"{type(error).__name__} {first}".strip()
    if returned is False or (torch.is_tensor(returned) and not bool(returned.all())):
        return "it returned False"
    return "it still returns ..." if returned is Ellipsis else ""


def _wrapped(text: str, indent: int) -> list[str]:
    first, rest = " " * indent, " " * (indent + 3)
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest)


def _named(test: Test) -> str:
    return getattr(test, "__name__", type(test).__name__)
