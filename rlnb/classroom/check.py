"""Checks that name the mistake: `from rlnb import check; check.group_advantages(my_function)`.

An exercise is data (rlnb/classroom/exercises/): a reference, probe inputs, accepted conventions
and known mistakes, each with a sentence. `judge` runs the learner's function on every probe in
float64, with gradients where a loss is asked for, and looks for the candidate that gives the same
results: the reference, a convention, a known mistake (alone, then under each convention). What
matches a right candidate is run once more in float32. What matches nothing is shown on the
smallest probe that shows it.

A new exercise needs a module-level `Exercise` and one line at the end of this file. A silent bug
is the other way round, the learner writes the test: exercises/silent_bug.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from rlnb.classroom.exercises import (
    aggregation,
    baselines,
    clipping,
    credit,
    dapo,
    divergence,
    groups,
    grpo,
    kl,
    kl_reward,
    likelihood,
    mass_moved,
    recent,
    reinforce,
    scaling,
    sequence_level,
    signal,
    soft_trust,
    weighting,
)
from rlnb.classroom.exercises.exercise import Candidate, Exercise, Probe
from rlnb.classroom.exercises.outcome import Outcome, agree, difference_at, run
from rlnb.classroom.exercises.verdict import WIDTH, Verdict, shorten

__all__ = [
    "Check",
    "Verdict",
    "baseline_leave_one_out",
    "cispo_loss",
    "constant_length",
    "cross_entropy",
    "dppo_mask",
    "dual_clip",
    "effective_sample_size",
    "gae",
    "group_advantages",
    "grpo_loss",
    "gspo_loss",
    "importance_estimate",
    "judge",
    "k3",
    "keep_informative",
    "kl_divergence",
    "kl_in_reward",
    "max_rl_advantages",
    "name_this_07",
    "name_this_08",
    "name_this_09",
    "name_this_10",
    "name_this_11",
    "name_this_12",
    "optimal_baseline",
    "overlong_penalty",
    "prompt_mean",
    "reinforce_loss",
    "sapo_gate",
    "sequence_ratio",
    "sigmoid_fit",
    "silent_bug_01",
    "silent_bug_03",
    "silent_bug_04",
    "silent_bug_07",
    "silent_bug_08",
    "silent_bug_09",
    "silent_bug_10",
    "silent_bug_11",
    "silent_bug_12",
    "surrogate_clip",
    "token_logprobs",
    "token_mean",
]

CUT = (
    "the value is right and no gradient reaches {names}: it was cut by .item(), .detach(), "
    "no_grad or a new torch.tensor(...)"
)
DIGITS = (
    "right to seven digits only: a float32 constant meets float64; write "
    "torch.tensor(0.2, dtype=x.dtype), or just 0.2"
)
SIGN = {
    "minimised": "the sign is flipped: the optimizer minimises, so what should grow needs a minus",
    "maximised": "the sign is flipped: this one is maximised, the minus comes with the loss",
    "": "the sign is flipped",
}

# (type or None, part of its message, likely reason); the first that fits is said
REASONS = (
    ("TypeError", "positional argument", "it is called as {signature}"),
    ("TypeError", "unexpected keyword", "it is called as {signature}"),
    ("NameError", "", "a typo, or a cell above that has not run"),
    ("", "requires grad. Use tensor.detach()", "stay in torch: numpy cuts the gradient"),
    ("", "in-place operation", "an input or a saved tensor is edited in place: build a new one"),
    ("", "with a bool tensor", "the mask is boolean: its opposite is ~mask"),
    ("", "inplace operation", "a saved tensor is edited in place: build a new one"),
    ("", "expected condition to be a boolean", "torch.where wants a boolean mask"),
    ("", "Boolean value of Tensor", "`if` wants one number: torch.where chooses per entry"),
    ("", "must match the size", "shapes do not broadcast: (B,) meets (B, T) as x[:, None]"),
    ("", "is invalid for input of size", "count the axes: B rows are B // G groups of G"),
    (
        "",
        "same number of dimensions",
        "gather wants an index with as many axes as its input: i.unsqueeze(-1)",
    ),
    ("", "same dtype", "new tensors take their dtype from the input: torch.zeros_like(x)"),
    ("", "expected scalar type", "new tensors take their dtype from the input: zeros_like(x)"),
    ("IndexError", "out of bounds", "an index runs past the end: what stands after the last?"),
    ("IndexError", "Dimension out of range", "count the axes: see the shapes in the task"),
    ("ZeroDivisionError", "", "a denominator can be 0: equal rewards, or a row without tokens"),
    ("AttributeError", "", "check the type: is it a tensor or a Python number?"),
)


@dataclass(frozen=True)
class Check:
    """An exercise as a callable: function -> Verdict. `.hint` helps, `.exercise` is its data."""

    exercise: Exercise

    def __call__(self, function: Callable[..., Any]) -> Verdict:
        return judge(self.exercise, function)

    @property
    def hint(self) -> str:
        return self.exercise.hint

    def __repr__(self) -> str:
        return f"check.{self.exercise.name}: give it your {self.exercise.signature}"


def judge(exercise: Exercise, function: Callable[..., Any]) -> Verdict:
    """The verdict on `function`. Never raises for what the function does."""
    if function is None or function is Ellipsis:
        return _not_attempted(exercise, "there is no function yet")
    if not callable(function):
        return Verdict(
            "wrong",
            f"give the function itself: check.{exercise.name}(your_function), "
            f"not its result; a {type(function).__name__} came",
        )
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
            for probe in exercise.ordered_probes:
                if probe.catches and not _finite(came[probe]):
                    return _mistake(probe.catches, probe)

    verdict = _seen_through_a_lens(exercise, came, expected, ordinary)
    if verdict is not None:
        return verdict
    if (edited := _edited(came)) is not None:
        return edited
    return _unknown(exercise, came, expected)


class _Expected:
    """Outcomes of the candidates, computed when first asked for and kept with the exercise."""

    def __init__(self, exercise: Exercise, dtype: torch.dtype = torch.float64) -> None:
        self.exercise, self.dtype = exercise, dtype
        self.known = exercise.__dict__.setdefault("_outcomes", {})

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
        return _raised(exercise, probe, error)
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


def _raised(exercise: Exercise, probe: Probe, error: Exception) -> Verdict:
    name, text = type(error).__name__, (str(error).strip().splitlines() or [""])[0]
    reason = next(
        (why for kind, part, why in REASONS if kind in ("", name) and part.lower() in text.lower()),
        f"see it with your_function(*verdict.probe.values()), probe '{probe.label}'",
    )
    reason = reason.format(signature=exercise.signature)
    room = max(24, WIDTH - len(name) - len(reason) - 4)
    return Verdict("raised", f"{name}: {shorten(text, room)}; {reason}", probe.cast(torch.float64))


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
            text = _describe(exercise, probe, outcome, wanted)
            return Verdict(
                "wrong",
                shorten(f"right in float64, not in float32: {text}", WIDTH),
                probe.cast(torch.float32),
            )
    first = next(iter(came.values())).returned
    if not torch.is_tensor(first):
        kind = type(first).__name__
        note = f"the numbers are right; they came as {kind}, this page returns a tensor"
        if candidate.kind == "convention":
            note = shorten(f"{candidate.sentence}; came as {kind}, not as a tensor", WIDTH)
        return Verdict("convention", note)
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
            was = _shape(came[odd].value)
            want = _shape(expected(candidate, odd).value)
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
            return _mistake(DIGITS, probe)
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
    text = _describe(exercise, probe, came[probe], expected(nearest, probe))
    if nearest.kind == "convention":
        text = f"{text} with {nearest.sentence.split(';')[0]}"
    return Verdict("wrong", shorten(text, WIDTH), probe.cast(torch.float64))


def _describe(exercise: Exercise, probe: Probe, came: Outcome, expected: Outcome) -> str:
    """`two answers (rewards [1, 0], num_generations 2): 0.5000 came, 1.0000 expected`."""
    where = f"probe '{probe.label}'"
    listed = ", ".join(f"{n} {_show_argument(v)}" for n, v in probe.arguments.items())
    if len(listed) <= 64:
        where = f"{where} ({listed})"
    if not agree(came, expected, "value"):
        text = f"{where}: {_contrast(came.value, expected.value)}"
        return text if _finite(came) else f"{text}; look for 0/0, inf - inf, 0 * inf"
    if came.gradients is None or expected.gradients is None:
        return f"{where}: value right; no gradient reaches {' and '.join(exercise.differentiate)}"
    name = next(
        n
        for n, g in expected.gradients.items()
        if not agree(Outcome(g, came.gradients[n]), Outcome(g, g), "value")
    )
    return (
        f"{where}: value right; gradient of {name}: "
        f"{_contrast(came.gradients[name], expected.gradients[name])}"
    )


def _contrast(came: torch.Tensor, expected: torch.Tensor) -> str:
    if came.shape != expected.shape:
        return f"shape {_shape(came)} came, {_shape(expected)} expected"
    place = ""
    if came.numel() > 4:
        index = difference_at(came, expected)
        place, came, expected = f"at {list(index)}, ", came[index], expected[index]
    for digits in (4, 7, 12):
        left, right = _show(came, digits), _show(expected, digits)
        if left != right:
            break
    return f"{place}{left} came, {right} expected"


def _distance(came: torch.Tensor, expected: torch.Tensor) -> float:
    if came.shape != expected.shape:
        return float("inf")
    return float((came - expected).abs().nan_to_num(nan=float("inf")).sum())


def _show(tensor: torch.Tensor, digits: int) -> str:
    if tensor.ndim == 0:
        return f"{float(tensor) + 0.0:.{digits}f}"
    return "[" + ", ".join(_show(entry, digits) for entry in tensor) + "]"


def _show_argument(value: Any) -> str:
    if not torch.is_tensor(value):
        return f"{value:g}"
    if value.ndim == 0:
        return f"{value.item():.4g}"
    return "[" + ", ".join(_show_argument(entry) for entry in value) + "]"


def _shape(tensor: torch.Tensor) -> str:
    return str(tuple(tensor.shape))


def _dtype(outcome: Outcome) -> torch.dtype | None:
    """Of what came back; None when it was no tensor. A yes or no may stay a bool."""
    return outcome.returned.dtype if torch.is_tensor(outcome.returned) else None


def _finite(outcome: Outcome) -> bool:
    tensors = (outcome.value, *(outcome.gradients or {}).values())
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


token_logprobs = Check(likelihood.TOKEN_LOGPROBS)
reinforce_loss = Check(reinforce.REINFORCE_LOSS)
baseline_leave_one_out = Check(groups.BASELINE_LEAVE_ONE_OUT)
group_advantages = Check(groups.GROUP_ADVANTAGES)
surrogate_clip = Check(clipping.SURROGATE_CLIP)
dual_clip = Check(clipping.DUAL_CLIP)
gae = Check(credit.GAE)
k3 = Check(kl.K3)
grpo_loss = Check(grpo.GRPO_LOSS)
optimal_baseline = Check(baselines.OPTIMAL_BASELINE)
silent_bug_03 = baselines.SILENT_BUG_03
importance_estimate = Check(weighting.IMPORTANCE_ESTIMATE)
effective_sample_size = Check(weighting.EFFECTIVE_SAMPLE_SIZE)
kl_in_reward = Check(kl_reward.KL_IN_REWARD)
silent_bug_04 = kl_reward.SILENT_BUG_04
kl_divergence = Check(divergence.KL_DIVERGENCE)
cross_entropy = Check(divergence.CROSS_ENTROPY)
silent_bug_01 = divergence.SILENT_BUG_01
overlong_penalty = Check(dapo.OVERLONG_PENALTY)
silent_bug_09 = dapo.SILENT_BUG_09
name_this_09 = dapo.NAME_THIS_09
keep_informative = Check(signal.KEEP_INFORMATIVE)
silent_bug_07 = signal.SILENT_BUG_07
name_this_07 = signal.NAME_THIS_07
token_mean = Check(aggregation.TOKEN_MEAN)
constant_length = Check(aggregation.CONSTANT_LENGTH)
prompt_mean = Check(aggregation.PROMPT_MEAN)
silent_bug_08 = aggregation.SILENT_BUG_08
name_this_08 = aggregation.NAME_THIS_08
cispo_loss = Check(soft_trust.CISPO_LOSS)
sapo_gate = Check(soft_trust.SAPO_GATE)
dppo_mask = Check(mass_moved.DPPO_MASK)
silent_bug_10 = mass_moved.SILENT_BUG_10
name_this_10 = mass_moved.NAME_THIS_10
sequence_ratio = Check(sequence_level.SEQUENCE_RATIO)
gspo_loss = Check(sequence_level.GSPO_LOSS)
silent_bug_11 = sequence_level.SILENT_BUG_11
name_this_11 = sequence_level.NAME_THIS_11
max_rl_advantages = Check(recent.MAX_RL_ADVANTAGES)
sigmoid_fit = Check(scaling.SIGMOID_FIT)
silent_bug_12 = recent.SILENT_BUG_12
name_this_12 = recent.NAME_THIS_12
