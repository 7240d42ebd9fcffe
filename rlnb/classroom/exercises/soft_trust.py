"""Soft trust regions: CISPO's capped weight and SAPO's gate."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Mistake, Probe, mistake

__all__ = ["CISPO_LOSS", "SAPO_GATE", "cispo_loss", "sapo_gate"]

GARBAGE = (
    "right where the mask is 1; what stands under a mask of 0 reaches the loss: use "
    "torch.where on the log-probs, before any exp (0 * nan is nan)"
)


def _token_mean(worth: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return -torch.where(mask, worth, 0.0).sum() / mask.sum()


def _clean(mask: torch.Tensor, *logs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(torch.where(mask, log, 0.0) for log in logs)


def cispo_loss(
    logprobs: torch.Tensor,
    old_logprobs: torch.Tensor,
    mask: torch.Tensor,
    advantages: torch.Tensor,
    cap: float,
    *,
    value: str = "log pi",
) -> torch.Tensor:
    """-(1/n) sum over n unmasked tokens of sg[min(rho, cap)] A log pi: (B, T) x 3, (B,) -> ().

    `value` exchanges log pi for something with the same gradient: the log-ratio, or rho/sg[rho].
    """
    lp, old = _clean(mask, logprobs, old_logprobs)
    weight = (lp - old).exp().clamp(max=cap).detach()
    carrier = {"log pi": lp, "log-ratio": lp - old, "one": (lp - lp.detach()).exp()}[value]
    return _token_mean(weight * advantages[:, None] * carrier, mask)


@mistake(
    "the weight is differentiated too: detach it, or its own slope times log pi joins "
    "in and can turn the sign"
)
def _undetached(logprobs, old_logprobs, mask, advantages, cap):
    lp, old = _clean(mask, logprobs, old_logprobs)
    return _token_mean((lp - old).exp().clamp(max=cap) * advantages[:, None] * lp, mask)


@mistake(
    "there is no log pi: min(rho, cap) alone is a clipped surrogate, and above the cap "
    "it has no gradient, the very thing CISPO mends"
)
def _clipped_ratio(logprobs, old_logprobs, mask, advantages, cap):
    lp, old = _clean(mask, logprobs, old_logprobs)
    return _token_mean((lp - old).exp().clamp(max=cap) * advantages[:, None], mask)


@mistake(
    "this is PPO's min with an upper edge: above the cap a token with A > 0 is dead; "
    "CISPO keeps log pi and caps its weight"
)
def _min_of_two(logprobs, old_logprobs, mask, advantages, cap):
    lp, old = _clean(mask, logprobs, old_logprobs)
    rho, a = (lp - old).exp(), advantages[:, None]
    return _token_mean(torch.min(rho * a, rho.clamp(max=cap) * a), mask)


def _weighted(weigh):
    """CISPO's loss with another detached weight: weigh(rho, A, cap)."""

    def loss(logprobs, old_logprobs, mask, advantages, cap):
        lp, old = _clean(mask, logprobs, old_logprobs)
        a = advantages[:, None].expand_as(lp)
        weight = weigh((lp - old).exp().detach(), a, cap)
        return _token_mean(weight * a * lp, mask)

    return loss


@mistake("the cap is on rho times A: it belongs on the ratio, so that A keeps its size")
def _cap_on_the_product(logprobs, old_logprobs, mask, advantages, cap):
    lp, old = _clean(mask, logprobs, old_logprobs)
    a = advantages[:, None]
    return _token_mean(((lp - old).exp() * a).clamp(max=cap).detach() * lp, mask)


@mistake("the ratio is upside down: exp(logprobs - old_logprobs)")
def _upside_down(logprobs, old_logprobs, mask, advantages, cap):
    lp, old = _clean(mask, logprobs, old_logprobs)
    weight = (old - lp).exp().clamp(max=cap).detach()
    return _token_mean(weight * advantages[:, None] * lp, mask)


def _per_token(logprobs, old_logprobs, mask, advantages, cap):
    lp, old = _clean(mask, logprobs, old_logprobs)
    weight = (lp - old).exp().clamp(max=cap).detach()
    return torch.where(mask, -weight * advantages[:, None] * lp, 0.0)


@mistake("each answer is averaged by its own length: CISPO takes one mean over all unmasked tokens")
def _sequence_mean(*arguments):
    per_token, mask = _per_token(*arguments), arguments[2]
    return (per_token.sum(1) / mask.sum(1).clamp(min=1)).mean()


@mistake("divided by B x T, padding included: count the unmasked tokens, mask.sum()")
def _padding_counted(*arguments):
    return _per_token(*arguments).mean()


@mistake("summed, not averaged: divide by mask.sum()")
def _summed(*arguments):
    return _per_token(*arguments).sum()


@mistake("summed over tokens, averaged over answers: divide by mask.sum() instead of B")
def _row_sums(*arguments):
    return _per_token(*arguments).sum(1).mean()


@mistake(GARBAGE)
def _raw(logprobs, old_logprobs, mask, advantages, cap):
    weight = (logprobs - old_logprobs).exp().clamp(max=cap).detach()
    return -(weight * advantages[:, None] * logprobs * mask).sum() / mask.sum()


def _tokens(
    label: str, p: list, q: list, mask: list, advantages: list, cap: float, catches: str = ""
) -> Probe:
    double = {"dtype": torch.float64}
    return Probe(
        label,
        {
            "logprobs": torch.tensor(p, **double).log(),
            "old_logprobs": torch.tensor(q, **double).log(),
            "mask": torch.tensor(mask, dtype=torch.bool),
            "advantages": advantages,
            "cap": cap,
        },
        catches,
    )


CISPO_LOSS = Exercise(
    name="cispo_loss",
    reference=cispo_loss,
    probes=(
        _tokens("one answer", [[0.6, 0.2]], [[0.2, 0.25]], [[1, 1]], [1.0], 1.28),
        _tokens(
            "two answers, padded",
            [[0.5, 0.12, 0.3], [0.35, 0.9, 0.7]],
            [[0.6, 0.02, 0.5], [0.1, 0.8, 0.7]],
            [[1, 1, 1], [1, 1, 0]],
            [1.0, -1.5],
            1.28,
        ),
        _tokens(
            "a high cap",
            [[0.45, 0.24, 0.88, 0.15], [0.6, 0.3, 0.4, 0.5]],
            [[0.6, 0.04, 0.9, 0.3], [0.1, 0.9, 0.25, 0.5]],
            [[1, 1, 1, 1], [1, 1, 0, 0]],
            [0.7, -0.4],
            5.0,
        ),
        _tokens(
            "nan under the mask",
            [[0.5, float("nan")], [0.3, 0.2]],
            [[0.4, 0.2], [0.3, 0.1]],
            [[1, 0], [1, 1]],
            [1.0, -1.0],
            1.28,
            GARBAGE,
        ),
    ),
    conventions=(
        Convention(
            "the log-ratio in the place of log pi: the same gradient; the value of either "
            "means nothing",
            {"value": "log-ratio"},
        ),
        Convention(
            "pi / sg[pi] in the place of log pi: the same gradient; the value of either "
            "means nothing",
            {"value": "one"},
        ),
    ),
    mistakes=(
        _undetached,
        _clipped_ratio,
        _min_of_two,
        Mistake(
            "the cap stands at 1 + cap: here, as in TRL's epsilon_high for CISPO, the cap is "
            "the bound on the ratio itself",
            _weighted(lambda rho, a, c: rho.clamp(max=1 + c)),
        ),
        Mistake(
            "a floor at 0.8 as well: verl's default; the authors report that they left the "
            "lower side open",
            _weighted(lambda rho, a, c: rho.clamp(0.8, max(c, 0.8))),
        ),
        Mistake(
            "the band is symmetric, [1/cap, cap]: a token that fell keeps its own small ratio "
            "as weight",
            _weighted(lambda rho, a, c: rho.clamp(1 / c, c)),
        ),
        Mistake(
            "tokens above the cap get weight 0: that is a mask; CISPO gives them the cap",
            _weighted(lambda rho, a, c: torch.where(rho > c, 0.0, rho)),
        ),
        Mistake(
            "nothing is capped: that is plain importance weighting; it is min(rho, cap)",
            _weighted(lambda rho, a, c: rho),
        ),
        Mistake(
            "only tokens with A > 0 are capped: TRL's metric counts those only; the loss caps "
            "both signs",
            _weighted(lambda rho, a, c: torch.where(a > 0, rho.clamp(max=c), rho)),
        ),
        _cap_on_the_product,
        Mistake(
            "no ratio at all: weight 1 is REINFORCE on stale answers; CISPO's is min(rho, cap)",
            _weighted(lambda rho, a, c: torch.ones_like(rho)),
        ),
        _upside_down,
        _sequence_mean,
        _padding_counted,
        _summed,
        _row_sums,
        _raw,
    ),
    differentiate=("logprobs",),
    direction="minimised",
    hint="Clean the log-probs with torch.where, then exp, clamp(max=cap) and detach: that is the "
    "weight. What carries the gradient is log pi. One sum, one count.",
)


def sapo_gate(
    ratio: torch.Tensor,
    advantage: torch.Tensor,
    tau_pos: float,
    tau_neg: float,
    *,
    centred: bool = False,
    zero_is_positive: bool = False,
) -> torch.Tensor:
    """(4/tau) sigmoid(tau (rho - 1)), tau = tau_pos where A > 0, else tau_neg. Per element.

    `centred` shifts it to 1 at rho = 1; `zero_is_positive` gives A = 0 the temperature tau_pos.
    """
    tau = _temperature(advantage, tau_pos, tau_neg, zero_is_positive)
    return 4 / tau * torch.sigmoid(tau * (ratio - 1)) + ((1 - 2 / tau) if centred else 0.0)


def _temperature(advantage, tau_pos, tau_neg, zero_is_positive=False):
    positive = advantage >= 0 if zero_is_positive else advantage > 0
    return torch.where(
        positive, torch.full_like(advantage, tau_pos), torch.full_like(advantage, tau_neg)
    )


def _gate(formula):
    """A wrong gate: formula(rho, tau, A)."""

    def gate(ratio, advantage, tau_pos, tau_neg):
        return formula(ratio, _temperature(advantage, tau_pos, tau_neg), advantage)

    return gate


def _slope(ratio, tau):
    return 1 / torch.cosh(tau / 2 * (ratio - 1)).square()


@mistake("the temperatures are swapped: tau_pos where A > 0, tau_neg elsewhere")
def _swapped(ratio, advantage, tau_pos, tau_neg):
    return sapo_gate(ratio, advantage, tau_neg, tau_pos)


@mistake("tau_pos everywhere: where A is not positive it is tau_neg")
def _one_temperature(ratio, advantage, tau_pos, tau_neg):
    return sapo_gate(ratio, advantage, tau_pos, tau_pos)


@mistake("tau_neg everywhere: where A > 0 it is tau_pos")
def _other_temperature(ratio, advantage, tau_pos, tau_neg):
    return sapo_gate(ratio, advantage, tau_neg, tau_neg)


@mistake(
    "the temperature is picked by the side of the ratio: it is the advantage's sign that picks"
)
def _by_the_ratio(ratio, advantage, tau_pos, tau_neg):
    return sapo_gate(ratio, ratio - 1, tau_pos, tau_neg)


def _ratios(label: str, ratio: list, advantage: list, tau_pos: float, tau_neg: float) -> Probe:
    return Probe(
        label, {"ratio": ratio, "advantage": advantage, "tau_pos": tau_pos, "tau_neg": tau_neg}
    )


SAPO_GATE = Exercise(
    name="sapo_gate",
    reference=sapo_gate,
    probes=(
        _ratios("two tokens, as published", [1.5, 1.5], [1.0, -1.0], 1.0, 1.05),
        _ratios(
            "both sides of 1", [0.25, 0.9, 1.0, 2.0, 6.0], [0.5, -2.0, 1.5, -1.0, 1.0], 1.0, 1.05
        ),
        _ratios(
            "far and narrow, one A of 0",
            [0.5, 0.7, 1.3, 1.1, 2.5, 0.0],
            [1.0, -1.0, 2.0, 0.0, -0.5, 1.0],
            10.0,
            12.0,
        ),
    ),
    conventions=(
        Convention(
            "shifted to 1 at ratio 1: the same slope, so the same gradient; the published "
            "gate is 2/tau there",
            {"centred": True},
        ),
        Convention(
            "at A = 0 this takes tau_pos, SAPO tau_neg: the gate is multiplied by 0 there",
            {"zero_is_positive": True},
        ),
    ),
    mistakes=(
        Mistake(
            "without 4/tau: the slope at ratio 1 is then tau/4, not 1, and on fresh data the "
            "gradient is a quarter",
            _gate(lambda r, t, a: torch.sigmoid(t * (r - 1))),
        ),
        Mistake(
            "4 without 1/tau: the slope at ratio 1 is then tau, not 1; invisible at tau = 1",
            _gate(lambda r, t, a: 4 * torch.sigmoid(t * (r - 1))),
        ),
        Mistake(
            "times tau instead of divided: 4/tau makes the slope at ratio 1 equal to 1 for "
            "every tau",
            _gate(lambda r, t, a: 4 * t * torch.sigmoid(t * (r - 1))),
        ),
        Mistake(
            "2/tau: that makes the gate 1/tau at ratio 1 and its slope one half; 4/tau makes "
            "the slope 1",
            _gate(lambda r, t, a: 2 / t * torch.sigmoid(t * (r - 1))),
        ),
        Mistake(
            "this is the slope sech^2: autograd takes it from the gate itself, "
            "(4/tau) sigmoid(tau (r - 1))",
            _gate(lambda r, t, a: _slope(r, t)),
        ),
        Mistake(
            "this is the weight on grad log pi, r sech^2: autograd makes it from the gate, "
            "(4/tau) sigmoid(tau (r - 1))",
            _gate(lambda r, t, a: r * _slope(r, t)),
        ),
        Mistake(
            "sigmoid(-tau |log r|) is not SAPO's gate: it has (r - 1) inside, 4/tau before it",
            _gate(lambda r, t, a: torch.sigmoid(-t * r.clamp(min=1e-9).log().abs())),
        ),
        Mistake(
            "log r inside: SAPO's gate looks at r - 1",
            _gate(lambda r, t, a: 4 / t * torch.sigmoid(t * r.clamp(min=1e-9).log())),
        ),
        Mistake(
            "r inside, not r - 1: the gate is centred at ratio 1",
            _gate(lambda r, t, a: 4 / t * torch.sigmoid(t * r)),
        ),
        Mistake(
            "the sign inside is turned: the gate rises with the ratio",
            _gate(lambda r, t, a: 4 / t * torch.sigmoid(-t * (r - 1))),
        ),
        Mistake(
            "multiplied by the advantage already: return the gate alone, its caller multiplies",
            _gate(lambda r, t, a: 4 / t * torch.sigmoid(t * (r - 1)) * a),
        ),
        _swapped,
        _one_temperature,
        _other_temperature,
        _by_the_ratio,
    ),
    differentiate=("ratio",),
    hint="torch.where on the advantage gives one tau per element. Then "
    "(4/tau) sigmoid(tau (r - 1)): at r = 1 it is 2/tau and its slope is 1.",
)
