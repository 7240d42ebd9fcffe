"""Estimators of KL(pi || ref) from samples of pi, per token."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, Remark, mistake

__all__ = ["K3", "k3"]


def k3(
    logprobs: torch.Tensor,
    ref_logprobs: torch.Tensor,
    *,
    limit: float = float("inf"),
    log_limit: float = float("inf"),
) -> torch.Tensor:
    """pi_ref/pi - 1 - log(pi_ref/pi), per element; `limit` clamps it from above.

    log_limit clamps the log-ratio to both sides before anything else.
    """
    log_ratio = (ref_logprobs - logprobs).clamp(-log_limit, log_limit)
    return (torch.expm1(log_ratio) - log_ratio).clamp(max=limit)


@mistake(
    "the ratio is upside down: samples come from pi, so it is pi_ref / pi; yours does "
    "not estimate KL(pi || ref)"
)
def _inverted(logprobs, ref_logprobs, *, limit=float("inf"), log_limit=float("inf")):
    return k3(ref_logprobs, logprobs, limit=limit, log_limit=log_limit)


@mistake(
    "this is k1, log pi - log ref: its mean is right, it can be negative, and as a "
    "loss its expected gradient is 0"
)
def _k1(logprobs, ref_logprobs):
    return logprobs - ref_logprobs


@mistake("this is k2, half the squared log-ratio; k3 is exp(d) - 1 - d with d = log ref - log pi")
def _k2(logprobs, ref_logprobs):
    return 0.5 * (logprobs - ref_logprobs) ** 2


@mistake("this is the squared log-ratio; k3 is exp(d) - 1 - d with d = log ref - log pi")
def _k2_without_half(logprobs, ref_logprobs):
    return (logprobs - ref_logprobs) ** 2


@mistake("the -1 is missing: where pi = ref the estimate must be 0, yours is 1")
def _no_minus_one(logprobs, ref_logprobs):
    return k3(logprobs, ref_logprobs) + 1


@mistake("the sign is flipped: k3 is never negative")
def _flipped(logprobs, ref_logprobs, *, limit=float("inf"), log_limit=float("inf")):
    return -k3(logprobs, ref_logprobs, limit=limit, log_limit=log_limit)


@mistake("the log is added: it is exp(d) - 1 - d, whose slope at d = 0 is 0")
def _log_added(logprobs, ref_logprobs):
    log_ratio = ref_logprobs - logprobs
    return torch.expm1(log_ratio) + log_ratio


@mistake(
    "the two logs point in opposite directions: use the same d = log ref - log pi in "
    "exp(d) and in -d"
)
def _half_inverted(logprobs, ref_logprobs):
    log_ratio = ref_logprobs - logprobs
    return torch.expm1(-log_ratio) - log_ratio


@mistake("the value is right, the gradient is not: exp(d) was detached, which leaves k1's gradient")
def _detached_ratio(logprobs, ref_logprobs):
    log_ratio = ref_logprobs - logprobs
    return torch.expm1(log_ratio).detach() - log_ratio


@mistake(
    "this is F.kl_div, ref * (log ref - log pi): it is meant for whole distributions, "
    "not for sampled tokens"
)
def _library_kl_div(logprobs, ref_logprobs):
    return torch.nn.functional.kl_div(logprobs, ref_logprobs, reduction="none", log_target=True)


@mistake("you weighted by pi: the sampling does that already, so the samples would count twice")
def _weighted(logprobs, ref_logprobs):
    return logprobs.exp() * (logprobs - ref_logprobs)


@mistake("-log(pi_ref / pi) is missing: ratio - 1 alone has mean 0")
def _ratio_only(logprobs, ref_logprobs):
    return torch.expm1(ref_logprobs - logprobs)


ROUNDS_AWAY = (
    "exp(d) - 1 - d rounds to nothing where pi is near ref: in float32 it is 0 at d = 0.0002; "
    "torch.expm1(d) - d keeps its digits"
)


def _rounds_away(function) -> bool:
    """Whether k3 at d = 2^-12 is lost in float32."""
    d = torch.tensor([2.0**-12], dtype=torch.float32)
    came = function(torch.zeros_like(d) - 1, d - 1)
    return bool(((came.double() / (d.double() ** 2 / 2) - 1).abs() > 0.05).any())


def _probe(label: str, logprobs: list, ref_logprobs: list) -> Probe:
    return Probe(label, {"logprobs": logprobs, "ref_logprobs": ref_logprobs})


K3 = Exercise(
    name="k3",
    reference=k3,
    probes=(
        _probe("policy below the reference", [-1.0], [-0.5]),
        _probe("policy above the reference", [-0.5], [-1.5]),
        _probe("equal", [-0.7, -2.0], [-0.7, -2.0]),
        _probe(
            "two rows",
            [[-0.6, -2.0, -0.2], [-0.8, -2.8, -1.9]],
            [[-0.7, -2.1, -0.25], [-0.55, -3.0, -1.4]],
        ),
        _probe("far below the reference", [-6.0, -5.0, -12.0], [-0.1, -2.0, -0.25]),
    ),
    conventions=(
        Convention("clamped at 10: verl's way; this page does not clamp", {"limit": 10.0}),
        *(
            Convention(
                f"k3 with its log-ratio clamped to ±{edge:g}: no gradient beyond; this page does "
                "not clamp",
                {"log_limit": edge},
            )
            for edge in (5.0, 10.0)
        ),
    ),
    mistakes=(
        _inverted,
        _k1,
        _k2,
        _k2_without_half,
        _no_minus_one,
        _flipped,
        _log_added,
        _half_inverted,
        _detached_ratio,
        _library_kl_div,
        _weighted,
        _ratio_only,
    ),
    remarks=(Remark(ROUNDS_AWAY, _rounds_away),),
    differentiate=("logprobs",),
    direction="minimised",
    hint="Let d = log ref - log pi: k3 = exp(d) - 1 - d. It is 0 where the two agree and never "
    "negative. torch.expm1(d) is exp(d) - 1 without rounding.",
)
