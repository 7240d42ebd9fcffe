"""How long must an answer be so that one token's leap does not silence it? A formula, checked."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, mistake

__all__ = ["OUTLIER_LENGTH", "outlier_length"]


def outlier_length(
    leap: torch.Tensor, epsilon: torch.Tensor, *, edge: str = "exact"
) -> torch.Tensor:
    """leap / log(1 + epsilon): (n,), (n,) -> (n,)."""
    return leap / (torch.log1p(epsilon) if edge == "exact" else epsilon)


@mistake("the leap is a log ratio already: no exp")
def _ratio(leap, epsilon):
    return leap.exp() / torch.log1p(epsilon)


@mistake("that is the arithmetic mean of the ratios, (e^leap + T - 1) / T: average their logs")
def _arithmetic(leap, epsilon):
    return torch.expm1(leap) / epsilon


@mistake("upside down: a longer answer dilutes the leap, so the leap stands above")
def _upside_down(leap, epsilon):
    return torch.log1p(epsilon) / leap


@mistake("the edge is 1 + epsilon, and s is compared with it; in logs that is log(1 + epsilon)")
def _no_log(leap, epsilon):
    return leap / (1 + epsilon)


@mistake("this is 1/sqrt(T), the law for many tokens of mixed signs; here one token moved")
def _root(leap, epsilon):
    return (leap / torch.log1p(epsilon)).square()


@mistake("the lower edge: a good answer is silent above 1 + epsilon")
def _lower(leap, epsilon):
    return -leap / torch.log1p(-epsilon)


OUTLIER_LENGTH = Exercise(
    name="outlier_length",
    reference=outlier_length,
    probes=(
        Probe("a wide band", {"leap": [2.0], "epsilon": [0.2]}),
        Probe("GSPO's band and others", {"leap": [0.5, 2.0, 3.0], "epsilon": [4e-4, 4e-4, 0.05]}),
    ),
    conventions=(
        Convention(
            "right to first order, for log(1 + epsilon) is about epsilon; at 0.2 it is a tenth off",
            {"edge": "first order"},
        ),
    ),
    mistakes=(_ratio, _arithmetic, _upside_down, _no_log, _root, _lower),
    hint="log s is the mean of T logs, all 0 but one. The clip acts while log s > "
    "log(1 + epsilon).",
)
