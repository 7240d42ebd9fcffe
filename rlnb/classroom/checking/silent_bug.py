"""Find the silent bug: the learner writes the test, and the check tests the test.

A snippet runs, trains, and is wrong. The learner's test takes an implementation and fails for the
broken one (AssertionError, or False) and passes for the right one. Whatever the test looks at, it
is judged by that alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from rlnb.classroom.checking.hidden_output import hidden_output
from rlnb.classroom.checking.verdict import Verdict, remembered, shorten

__all__ = ["SilentBug"]


@dataclass(frozen=True, eq=False)
class SilentBug:
    """A right and a broken implementation with the same signature; called with a test of them.

    name      of the check: "silent_bug_baselines"
    right     the right implementation, never shown
    broken    the plausible one; `source` is its code, for the page to print
    story     one line for whoever has exposed it: what is wrong, and why nobody notices
    hint      for those who are stuck

    >>> bug = SilentBug("mean", lambda x: sum(x) / len(x), lambda x: sum(x) / 3, "3, not len(x)")
    >>> def test(mean):
    ...     assert mean([1, 2, 3]) == 2
    >>> bug(test)
    wrong: your test passes on the broken code as well: it has not seen the bug
    >>> bug(lambda mean: mean([1, 3]) == 2)
    right: your test tells them apart. 3, not len(x)
    """

    name: str
    right: Callable[..., Any]
    broken: Callable[..., Any]
    story: str
    hint: str = ""

    def __call__(self, test: Callable[[Callable[..., Any]], Any]) -> Verdict:
        """The verdict on `test`. Never raises for what the test does."""
        if test is None or test is Ellipsis:
            return Verdict("not attempted", f"{self.name}: there is no test yet")
        if not callable(test):
            return Verdict(
                "wrong",
                f"give the test itself: check.{self.name}(my_test), not its "
                f"result; a {type(test).__name__} came",
            )
        with hidden_output() as hidden:
            on_right, on_broken = _run(test, self.right), _run(test, self.broken)
        verdict = replace(self._judged(on_right, on_broken), hidden_lines=hidden.lines)
        return remembered(self.name, verdict)

    def _judged(self, on_right: _Run, on_broken: _Run) -> Verdict:
        for run in (on_right, on_broken):
            if run.unwritten:
                return Verdict("not attempted", f"{self.name}: {run.unwritten}")
        if on_right.error is not None:
            return Verdict("raised", shorten(f"{on_right.error} (on the right code)"))
        if not on_right.passed:
            said = f": {on_right.said}" if on_right.said else ""
            return Verdict("wrong", shorten(f"your test also fails on the right code{said}"))
        if on_broken.error is not None:
            return Verdict(
                "raised",
                shorten(
                    f"{on_broken.error} (on the broken code: an assert "
                    "has to fail there, nothing else)"
                ),
            )
        if on_broken.passed:
            return Verdict(
                "wrong", "your test passes on the broken code as well: it has not seen the bug"
            )
        return Verdict("right", f"your test tells them apart. {self.story}")

    @property
    def source(self) -> str:
        """The broken implementation, as text."""
        return inspect.getsource(self.broken).rstrip()

    def __repr__(self) -> str:
        return f"check.{self.name}: give it your test(implementation)"


@dataclass(frozen=True)
class _Run:
    passed: bool = False
    said: str = ""  # the message of the assertion that failed
    error: str | None = None  # any other exception, in one line
    unwritten: str = ""  # why this is no test yet


def _run(test: Callable[[Callable[..., Any]], Any], implementation: Callable[..., Any]) -> _Run:
    """Hand `implementation` to `test`."""
    called = False

    def counted(*args, **kwargs):
        nonlocal called
        called = True
        return implementation(*args, **kwargs)

    try:
        # seeded, so that a test which draws its inputs gets the same verdict every time
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            returned = test(counted)
            if returned is Ellipsis:
                return _Run(unwritten="it still returns `...`")
            passed = returned is None or bool(returned)
    except NotImplementedError:
        return _Run(unwritten="it still raises NotImplementedError")
    except AssertionError as failed:
        return _Run(said=_first_line(failed))
    except (Exception, SystemExit) as error:  # belongs in the verdict
        return _Run(error=f"{type(error).__name__}: {_first_line(error)}")
    if not called:
        return _Run(unwritten="your test never calls the implementation it is given")
    return _Run(passed=passed)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0]
