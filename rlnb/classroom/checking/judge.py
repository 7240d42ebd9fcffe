"""The verdict on a learner's function: which known answer gives the same results?

`judge` runs the function on every probe in float64, with gradients where a loss is asked for, and
looks for the candidate that gives the same results: the reference, a convention, a known mistake
(alone, then under each convention). What matches a right candidate is run once more in float32.
What matches nothing is shown on the smallest probe that shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from rlnb.classroom.checking.exercise import Candidate, Exercise, Family, Probe
from rlnb.classroom.checking.hidden_output import hidden_output
from rlnb.classroom.checking.name_this import NameThis
from rlnb.classroom.checking.one_by_one import one_by_one, wants_one_number, with_one_number
from rlnb.classroom.checking.outcome import Outcome, agree, is_finite, run
from rlnb.classroom.checking.silent_bug import SilentBug
from rlnb.classroom.checking.verdict import WIDTH, Verdict, remembered, shorten
from rlnb.classroom.checking.wording import CUT, ROUNDED, SIGN, SMALL, describe, raised, shape_text

__all__ = ["Check", "as_check", "judge"]


@dataclass(frozen=True)
class Check:
    """An exercise as a callable: function -> Verdict. `.hint` helps, `.exercise` is its data."""

    exercise: Exercise

    def __call__(self, function: Callable[..., Any]) -> Verdict:
        return remembered(self.exercise.name, judge(self.exercise, function))

    @property
    def hint(self) -> str:
        return self.exercise.hint

    def __repr__(self) -> str:
        return f"check.{self.exercise.name}: give it your {self.exercise.signature}"


def as_check(content: Exercise | SilentBug | NameThis) -> Check | SilentBug | NameThis:
    """What a page calls: an exercise becomes a `Check`; a bug or a riddle is called as it is."""
    return Check(content) if isinstance(content, Exercise) else content


def judge(exercise: Exercise, function: Callable[..., Any]) -> Verdict:
    """The verdict on `function`. Never raises for what the function does."""
    with hidden_output() as hidden:
        verdict = _judge(exercise, function)
    return replace(verdict, hidden_lines=hidden.lines)


def _judge(exercise: Exercise, function: Callable[..., Any]) -> Verdict:
    if function is None or function is Ellipsis:
        return _not_attempted(exercise, "there is no function yet")
    if not callable(function):
        return Verdict(
            "wrong",
            f"give the function itself: check.{exercise.name}(your_function), "
            f"not its result; a {type(function).__name__} came",
        )
    if exercise.one_by_one and wants_one_number(function, exercise):
        verdict = _judge(replace(exercise, one_by_one=""), one_by_one(function, exercise))
        return replace(verdict, probe=with_one_number(function, exercise, verdict.probe))
    came = {}
    for probe in exercise.ordered_probes:
        came[probe] = run(function, exercise, probe, torch.float64)
        if (verdict := _no_value(exercise, probe, came[probe])) is not None:
            return verdict
    expected = _Expected(exercise)
    candidates = (*exercise.accepted, *exercise.wrong)

    for candidate in candidates:
        if _matches(came, expected, candidate, exercise.ordered_probes):
            if candidate.kind == "known mistake":
                return _mistake(candidate.sentence)
            return _accepted(exercise, function, candidate, came, expected)

    ordinary = tuple(p for p in exercise.ordered_probes if not p.catches)
    for candidate in candidates:
        if _matches(came, expected, candidate, ordinary):
            if candidate.kind == "known mistake":
                return _mistake(candidate.sentence)
            if (verdict := _on_the_edge(exercise, candidate, came, expected)) is not None:
                return verdict

    if (verdict := _fitted(exercise, came, ordinary)) is not None:
        return verdict
    verdict = _seen_through_a_lens(exercise, came, expected, ordinary)
    if verdict is not None:
        return verdict
    if (edited := _edited(came)) is not None:
        return edited
    return _unknown(exercise, came, expected)


def _on_the_edge(
    exercise: Exercise, candidate: Candidate, came: dict[Probe, Outcome], expected: _Expected
) -> Verdict | None:
    """Right on the ordinary probes: the sentence of the edge where it is not finite, if any is.

    Where every edge that fails is one that only warns, the function passes and is warned.
    """
    edges = [p for p in exercise.ordered_probes if p.catches]
    failing = [p for p in edges if not agree(came[p], expected(candidate, p))]
    broken = [p for p in failing if not is_finite(came[p])]
    if not broken:
        return None
    hard = [p for p in broken if not p.warns]
    if hard or len(broken) < len(failing):
        worst = (hard or broken)[0]
        return _mistake(worst.catches, worst)
    warning = f"with a warning: {broken[0].catches}"
    return Verdict("right", shorten(warning, WIDTH), broken[0].cast(torch.float64))


def _fitted(
    exercise: Exercise, came: dict[Probe, Outcome], ordinary: tuple[Probe, ...]
) -> Verdict | None:
    """A right answer with another number in it: the number, found by halving."""
    for family in exercise.families:
        for probe in ordinary:
            value = _halved(exercise, family, probe, came[probe])
            if value is None:
                continue
            function = partial(exercise.reference, **family.keywords, **{family.keyword: value})
            known = {p: run(function, exercise, p, torch.float64) for p in ordinary}
            if all(_near(came[p], known[p]) for p in ordinary):
                edge = next((p for p in exercise.ordered_probes if not is_finite(came[p])), None)
                if edge is not None:
                    return _mistake(edge.catches, edge)
                return Verdict("convention", family.sentence.format(value=f"{value:.1g}"))
    return None


def _halved(exercise: Exercise, family: Family, probe: Probe, came: Outcome) -> float | None:
    """The number at which the reference is as large as what came; None when none is.

    Halving on a logarithmic scale: the size of the result must move one way with the number.
    """

    def excess(value: float) -> float:
        function = partial(exercise.reference, **family.keywords, **{family.keyword: value})
        known = run(function, exercise, probe, torch.float64).value
        if known is None or known.shape != came.value.shape:
            return float("nan")
        return float(known.double().abs().sum() - came.value.double().abs().sum())

    low, high = math.log(family.low), math.log(family.high)
    at_low, at_high = excess(math.exp(low)), excess(math.exp(high))
    if not at_low * at_high < 0:
        return None
    for _ in range(60):
        middle = (low + high) / 2
        if (excess(math.exp(middle)) > 0) == (at_low > 0):
            low = middle
        else:
            high = middle
    return math.exp((low + high) / 2)


def _near(came: Outcome, known: Outcome) -> bool:
    """Equal to what a fitted number allows."""
    if came.value is None or known.value is None or came.value.shape != known.value.shape:
        return False
    return torch.allclose(came.value.double(), known.value.double(), rtol=1e-6, atol=1e-8)


class _Expected:
    """Outcomes of the candidates, computed when first asked for and kept with the exercise."""

    def __init__(self, exercise: Exercise, dtype: torch.dtype = torch.float64) -> None:
        self.exercise, self.dtype = exercise, dtype
        self.known = exercise.known_outcomes

    def __call__(self, candidate: Candidate, probe: Probe) -> Outcome:
        key = (candidate, probe, self.dtype)
        if key not in self.known:
            self.known[key] = run(candidate.function, self.exercise, probe, self.dtype)
        return self.known[key]


def _matches(
    came: dict[Probe, Outcome],
    expected: _Expected,
    candidate: Candidate,
    probes: tuple[Probe, ...],
    lens: str = "",
) -> bool:
    return all(agree(came[probe], expected(candidate, probe), lens) for probe in probes)


def _not_attempted(exercise: Exercise, why: str) -> Verdict:
    return Verdict("not attempted", f"{exercise.signature}: {why}")


def _mistake(sentence: str, probe: Probe | None = None) -> Verdict:
    return Verdict("known mistake", sentence, None if probe is None else probe.cast(torch.float64))


def _no_value(exercise: Exercise, probe: Probe, outcome: Outcome) -> Verdict | None:
    """not attempted, raised, or something that is no tensor; None when there is a value."""
    error = outcome.error
    if isinstance(error, NotImplementedError):
        return _not_attempted(exercise, "it still raises NotImplementedError")
    if error is not None and "ellipsis" in str(error):
        return _not_attempted(exercise, "a `...` is still to be filled in")
    if error is not None:
        return raised(exercise, probe, error)
    if outcome.returned is None:
        return _not_attempted(exercise, "nothing came back (None): is there a return?")
    if outcome.returned is Ellipsis:
        return _not_attempted(exercise, "it still returns `...`")
    if outcome.value is None:
        return Verdict(
            "wrong",
            f"a tensor was expected, a {type(outcome.returned).__name__} came",
            probe.cast(torch.float64),
        )
    return None


def _accepted(
    exercise: Exercise,
    function: Callable[..., Any],
    candidate: Candidate,
    came: dict[Probe, Outcome],
    expected: _Expected,
) -> Verdict:
    """The values are right: what may still be wrong are edits, dtypes and float32."""
    if (edited := _edited(came)) is not None:
        return edited
    for probe, outcome in came.items():
        if _dtype(outcome) not in (None, torch.bool, torch.float64):
            came_as = str(outcome.returned.dtype).removeprefix("torch.")
            if came_as == "float32":
                return Verdict("right", f"with a warning: {ROUNDED}")
            return _mistake(
                f"right, but float64 went in and {came_as} came out: new tensors take "
                "their dtype from the input, torch.zeros_like(x)",
                probe,
            )
    expected_32 = _Expected(exercise, torch.float32)
    for probe in exercise.ordered_probes:
        outcome = run(function, exercise, probe, torch.float32)
        if (verdict := _no_value(exercise, probe, outcome)) is not None:
            return Verdict(
                verdict.kind,
                shorten(f"in float32, {verdict.message}", WIDTH),
                probe.cast(torch.float32),
            )
        if _dtype(outcome) not in (None, torch.bool, torch.float32):
            came_as = str(outcome.returned.dtype).removeprefix("torch.")
            return _mistake(
                f"right in float64, but float32 went in and {came_as} came out: "
                "compute in the dtype of the input",
                probe,
            )
        if not agree(outcome, wanted := expected_32(candidate, probe)):
            text = describe(exercise, probe, outcome, wanted)
            return Verdict(
                "wrong",
                shorten(f"right in float64, not in float32: {text}", WIDTH),
                probe.cast(torch.float32),
            )
    if not torch.is_tensor(first := next(iter(came.values())).returned):
        kind = type(first).__name__
        note = f"the numbers are right; they came as {kind}, this page returns a tensor"
        if candidate.kind == "convention":
            note = shorten(f"{candidate.sentence}; came as {kind}, not as a tensor", WIDTH)
        return Verdict("convention", note)
    if candidate.kind == "right":
        for remark in exercise.remarks:
            if remark.applies(function):
                return Verdict("right", f"with a warning: {remark.sentence}")
    return Verdict(candidate.kind, candidate.sentence)


def _edited(came: dict[Probe, Outcome]) -> Verdict | None:
    for probe, outcome in came.items():
        if outcome.edited:
            names = " and ".join(outcome.edited)
            return _mistake(
                f"your function changes its input {names} in place: the caller still "
                "needs it; build a new tensor (no x[...] = y, no x += y)",
                probe,
            )
    return None


def _seen_through_a_lens(
    exercise: Exercise, came: dict[Probe, Outcome], expected: _Expected, ordinary: tuple[Probe, ...]
) -> Verdict | None:
    """Right or a known mistake but for the gradient, the shape, the sign or the reduction."""
    for p in ordinary:
        if (short := _dtype(came[p])) in (torch.float16, torch.bfloat16):
            name = str(short).removeprefix("torch.")
            return _mistake(
                f"{name} came out: it has three digits and ends at 65504 (float16); compute a "
                "loss in the dtype of the input",
                p,
            )
    probe = ordinary[0]
    right = exercise.accepted[0]
    cut = any(outcome.gradients is None for outcome in came.values())
    odd = next((p for p in ordinary if came[p].value.shape != expected(right, p).value.shape), None)
    for candidate in (*exercise.accepted, *exercise.wrong) if cut or odd else ():
        known = candidate.kind == "known mistake"
        if cut and _matches(came, expected, candidate, ordinary, "value"):
            names = " and ".join(exercise.differentiate)
            return _mistake(candidate.sentence if known else CUT.format(names=names), probe)
        if odd and _matches(came, expected, candidate, ordinary, "shape"):
            was = shape_text(came[odd].value)
            want = shape_text(expected(candidate, odd).value)
            flat = ", flat" if want.endswith(",)") else ""
            return _mistake(
                candidate.sentence
                if known
                else f"the numbers are right, the shape is not: {was} came, {want} "
                f"expected{flat} (probe '{odd.label}')",
                odd,
            )
    for candidate in exercise.accepted:
        if _matches(came, expected, candidate, ordinary, "sign"):
            return _mistake(SIGN[exercise.direction], probe)
        if _matches(came, expected, candidate, ordinary, "digits"):
            return _seven_digits(exercise, candidate, came, expected, ordinary)
        scalar = expected(candidate, probe).value.ndim == 0
        if scalar and any(outcome.value.ndim for outcome in came.values()):
            for lens in ("mean", "sum"):
                if _matches(came, expected, candidate, ordinary, lens):
                    return _mistake(
                        f"right but for the last step: a loss is one number, take the "
                        f"{lens} of what you return",
                        probe,
                    )
    return None


def _seven_digits(
    exercise: Exercise,
    candidate: Candidate,
    came: dict[Probe, Outcome],
    expected: _Expected,
    ordinary: tuple[Probe, ...],
) -> Verdict:
    """Right to about 1e-7 and no further: float32 in the middle, or a small number left in.

    What was computed in float32 is, apart from the last step, a float32 number. What has an eps in
    it is off by about as much in every dtype. Neither is wrong; an edge that fails is.
    """
    for probe in exercise.ordered_probes:
        if probe.catches and not is_finite(came[probe]) and is_finite(expected(candidate, probe)):
            return _mistake(probe.catches, probe)
    rounded = all(
        torch.equal(came[p].value.double(), came[p].value.float().double()) for p in ordinary
    )
    return Verdict("right", f"with a warning: {ROUNDED if rounded else SMALL}")


def _unknown(exercise: Exercise, came: dict[Probe, Outcome], expected: _Expected) -> Verdict:
    """Compare with the accepted answer nearest to it, on the smallest probe that tells them apart.

    A convention is taken for nearest only when it fails on fewer probes or lies ten times nearer.
    """

    def failing(candidate: Candidate) -> list[Probe]:
        return [p for p in exercise.ordered_probes if not agree(came[p], expected(candidate, p))]

    def distance(candidate: Candidate) -> float:
        return sum(
            _distance(came[p].value, expected(candidate, p).value) for p in exercise.ordered_probes
        )

    nearest = min(exercise.accepted, key=distance)
    if not distance(nearest) < 0.1 * distance(exercise.accepted[0]):
        nearest = min(exercise.accepted, key=lambda candidate: len(failing(candidate)))
    probe = failing(nearest)[0]
    text = describe(exercise, probe, came[probe], expected(nearest, probe))
    if nearest.kind == "convention":
        text = f"{text} with {nearest.sentence.split(';')[0]}"
    return Verdict("wrong", shorten(text, WIDTH), probe.cast(torch.float64))


def _distance(came: torch.Tensor, expected: torch.Tensor) -> float:
    if came.shape != expected.shape:
        return float("inf")
    return float((came - expected).abs().nan_to_num(nan=float("inf")).sum())


def _dtype(outcome: Outcome) -> torch.dtype | None:
    """Of what came back; None when it was no tensor. A yes or no may stay a bool."""
    return outcome.returned.dtype if torch.is_tensor(outcome.returned) else None
