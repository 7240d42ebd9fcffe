"""Two ratios in one loss: PPO's band on the policy's move, a mask on the engine's error."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Mistake, Probe, mistake

__all__ = ["TWO_RATIOS", "two_ratios"]

GARBAGE = (
    "right where the mask is 1; what stands under a mask of 0 reaches the loss: use "
    "torch.where on the log-probs, before any exp (0 * nan is nan)"
)


def _clean(mask, *logs):
    return tuple(torch.where(mask, log, 0.0) for log in logs)


def _gate(omega):
    return torch.where((omega < 0.5) | (omega > 2.0), 0.0, omega)


def _worth(rho, advantages, high=0.28):
    A = advantages[:, None]
    return torch.min(rho * A, rho.clamp(0.8, 1 + high) * A)


def _mean(worth, mask):
    worth = torch.where(mask, worth, 0.0)
    return -(worth.sum(1) / mask.sum(1).clamp(min=1)).mean()


def two_ratios(
    logprobs: torch.Tensor,
    old_logprobs: torch.Tensor,
    engine_logprobs: torch.Tensor,
    mask: torch.Tensor,
    advantages: torch.Tensor,
) -> torch.Tensor:
    """-(mean over answers of the mean over tokens of) gate(omega) min(rho A, clip(rho) A) -> ().

    rho = pi / pi_old with the band [0.8, 1.28]; omega = pi_old / engine, as a weight inside
    [0.5, 2] and 0 outside. (B, T) four times, (B,).
    """
    lp, old, engine = _clean(mask, logprobs, old_logprobs, engine_logprobs)
    return _mean(_gate((old - engine).exp()) * _worth((lp - old).exp(), advantages), mask)


def _variant(gate, high=0.28):
    """The loss with another gate: gate(lp, old, engine)."""

    def loss(logprobs, old_logprobs, engine_logprobs, mask, advantages):
        lp, old, engine = _clean(mask, logprobs, old_logprobs, engine_logprobs)
        factor = gate(lp.detach(), old, engine)
        return _mean(factor * _worth((lp - old).exp(), advantages, high), mask)

    return loss


def _usual(lp, old, engine):
    return _gate((old - engine).exp())


@mistake(
    "one mean over all tokens: here each answer is averaged over its own tokens, then the answers"
)
def _token_mean(logprobs, old_logprobs, engine_logprobs, mask, advantages):
    lp, old, engine = _clean(mask, logprobs, old_logprobs, engine_logprobs)
    worth = _usual(lp, old, engine) * _worth((lp - old).exp(), advantages)
    return -torch.where(mask, worth, 0.0).sum() / mask.sum()


@mistake("divided by the kept tokens: a dropped token still counts in its answer's length")
def _kept_only(logprobs, old_logprobs, engine_logprobs, mask, advantages):
    lp, old, engine = _clean(mask, logprobs, old_logprobs, engine_logprobs)
    gate = _usual(lp, old, engine)
    worth = torch.where(mask, gate * _worth((lp - old).exp(), advantages), 0.0)
    return -(worth.sum(1) / (mask & (gate > 0)).sum(1).clamp(min=1)).mean()


@mistake(
    "one ratio, to the engine: the band then cuts tokens that never learned anything; clip "
    "pi / pi_old, and weigh by pi_old / engine"
)
def _one_ratio(logprobs, old_logprobs, engine_logprobs, mask, advantages):
    lp, engine = _clean(mask, logprobs, engine_logprobs)
    return _mean(_worth((lp - engine).exp(), advantages), mask)


@mistake(
    "the gate is inside the min: it multiplies the ratio, and the band is then asked about the "
    "product; multiply after the min"
)
def _inside_the_min(logprobs, old_logprobs, engine_logprobs, mask, advantages):
    lp, old, engine = _clean(mask, logprobs, old_logprobs, engine_logprobs)
    return _mean(_worth(_usual(lp, old, engine) * (lp - old).exp(), advantages), mask)


@mistake(GARBAGE)
def _raw(logprobs, old_logprobs, engine_logprobs, mask, advantages):
    rho, omega = (logprobs - old_logprobs).exp(), (old_logprobs - engine_logprobs).exp()
    worth = _gate(omega) * _worth(rho, advantages) * mask
    return -(worth.sum(1) / mask.sum(1).clamp(min=1)).mean()


def _tokens(label, now, old, engine, mask, advantages, catches="") -> Probe:
    double = {"dtype": torch.float64}
    return Probe(
        label,
        {
            "logprobs": torch.tensor(now, **double).log(),
            "old_logprobs": torch.tensor(old, **double).log(),
            "engine_logprobs": torch.tensor(engine, **double).log(),
            "mask": torch.tensor(mask, dtype=torch.bool),
            "advantages": advantages,
        },
        catches,
    )


TWO_RATIOS = Exercise(
    name="two_ratios",
    reference=two_ratios,
    probes=(
        _tokens(
            "one answer, one far token",
            [[0.55, 0.30, 0.40]],
            [[0.50, 0.30, 0.42]],
            [[0.40, 0.10, 0.45]],
            [[1, 1, 1]],
            [1.0],
        ),
        _tokens(
            "two answers, padded",
            [[0.60, 0.25, 0.50, 0.21], [0.30, 0.70, 0.90, 0.40]],
            [[0.50, 0.20, 0.60, 0.20], [0.40, 0.60, 0.50, 0.50]],
            [[0.45, 0.50, 0.55, 0.12], [0.50, 0.65, 0.15, 0.30]],
            [[1, 1, 1, 1], [1, 1, 1, 0]],
            [1.0, -1.5],
        ),
        _tokens(
            "bad tokens that rose and fell",
            [[0.63, 0.2, 0.9], [0.12, 0.55, 0.3]],
            [[0.50, 0.4, 0.8], [0.20, 0.50, 0.2]],
            [[0.30, 0.3, 0.7], [0.30, 0.20, 0.25]],
            [[1, 1, 1], [1, 1, 0]],
            [-0.7, 0.9],
        ),
        _tokens(
            "nan under the mask",
            [[0.5, float("nan")], [0.3, 0.2]],
            [[0.4, 0.2], [0.3, 0.1]],
            [[0.4, 0.2], [0.2, 0.1]],
            [[1, 0], [1, 1]],
            [1.0, -1.0],
            GARBAGE,
        ),
    ),
    conventions=(),
    mistakes=(
        Mistake(
            "omega is upside down: trainer over engine, exp(old - engine)",
            _variant(lambda lp, old, engine: _gate((engine - old).exp())),
        ),
        Mistake(
            "omega has the present policy in it: it compares two programs at the same weights, "
            "pi_old of the trainer over the engine's",
            _variant(lambda lp, old, engine: _gate((lp - engine).exp())),
        ),
        Mistake(
            "the mask looks at rho: the band on rho is the clip's; [0.5, 2] belongs to omega",
            _variant(lambda lp, old, engine: _gate((lp - old).exp())),
        ),
        Mistake(
            "a token inside [0.5, 2] weighs 1: it weighs omega, the mask only drops the rest",
            _variant(lambda lp, old, engine: (_usual(lp, old, engine) > 0).to(lp.dtype)),
        ),
        Mistake(
            "outside [0.5, 2] omega is cut to the edge: that is truncation; here the token is "
            "dropped",
            _variant(lambda lp, old, engine: (old - engine).exp().clamp(0.5, 2.0)),
        ),
        Mistake(
            "only large omega are dropped: below 0.5 as well",
            _variant(
                lambda lp, old, engine: torch.where(
                    (old - engine).exp() > 2.0, 0.0, (old - engine).exp()
                )
            ),
        ),
        Mistake(
            "omega without its mask: outside [0.5, 2] the weight is 0",
            _variant(lambda lp, old, engine: (old - engine).exp()),
        ),
        Mistake(
            "the engine is not in it: multiply by omega inside [0.5, 2], and by 0 outside",
            _variant(lambda lp, old, engine: torch.ones_like(lp)),
        ),
        Mistake("the band is symmetric: its upper edge is 1.28", _variant(_usual, high=0.2)),
        _token_mean,
        _kept_only,
        _one_ratio,
        _inside_the_min,
        _raw,
    ),
    differentiate=("logprobs",),
    direction="minimised",
    hint="Clean the three log-probs with torch.where. Two exps: one for the band, one for the "
    "gate. torch.where once more puts 0 where the gate is outside [0.5, 2]. Then two means.",
)
