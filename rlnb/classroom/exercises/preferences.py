"""Preference losses: DPO from tokens, IPO, SimPO.

The mistakes are those of public course code: the reference forgotten, a mean over tokens, padding
counted, log of a sigmoid, 1/beta for 1/(2 beta), beta times gamma, a (P, 1) against a (P,).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake
from rlnb.classroom.exercises.reinforce import PADDING

__all__ = ["DPO_LOSS", "IPO_LOSS", "SIMPO_LOSS", "dpo_loss", "ipo_loss", "simpo_loss"]

UNDERFLOW = "log(sigmoid(x)) is -inf where the pair is badly wrong: use logsigmoid(x)"


# ---- DPO, from tokens


def dpo_loss(logprobs: Tensor, ref_logprobs: Tensor, mask: Tensor, beta: float) -> Tensor:
    """-mean log sigma(beta (h_w - h_l)): (2 P, T), (2 P, T), (2 P, T) bool, float -> 0-d."""
    h = torch.where(mask, logprobs - ref_logprobs, 0).sum(1)
    chosen, rejected = h.chunk(2)
    return -logsigmoid(beta * (chosen - rejected)).mean()


def _sums(values, mask):
    return torch.where(mask, values, 0).sum(1).chunk(2)


@mistake("no reference: this raises log pi_w - log pi_l itself; subtract the reference's")
def _no_reference(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = _sums(logprobs, mask)
    return -logsigmoid(beta * (chosen - rejected)).mean()


@mistake("a mean over each answer's tokens: log pi of an answer is the sum over its tokens")
def _mean_over_tokens(logprobs, ref_logprobs, mask, beta):
    h = torch.where(mask, logprobs - ref_logprobs, 0).sum(1) / mask.sum(1)
    chosen, rejected = h.chunk(2)
    return -logsigmoid(beta * (chosen - rejected)).mean()


@mistake("padding is counted: sum only where the mask is 1")
def _no_mask(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = (logprobs - ref_logprobs).sum(1).chunk(2)
    return -logsigmoid(beta * (chosen - rejected)).mean()


@mistake("beta is missing")
def _no_beta(logprobs, ref_logprobs, mask, beta):
    return dpo_loss(logprobs, ref_logprobs, mask, 1.0)


@mistake("beta multiplies the policy only: it belongs on the whole difference of log-ratios")
def _beta_on_policy(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = _sums(beta * logprobs - ref_logprobs, mask)
    return -logsigmoid(chosen - rejected).mean()


@mistake("chosen and rejected are swapped: the first half of the rows is the chosen one")
def _swapped(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = _sums(logprobs - ref_logprobs, mask)
    return -logsigmoid(beta * (rejected - chosen)).mean()


@mistake("rows taken in turn: here all chosen rows come first, then all rejected ones")
def _in_turn(logprobs, ref_logprobs, mask, beta):
    h = torch.where(mask, logprobs - ref_logprobs, 0).sum(1)
    return -logsigmoid(beta * (h[::2] - h[1::2])).mean()


@mistake("the pairs are averaged before the sigmoid: one loss per pair, then the mean")
def _mean_first(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = _sums(logprobs - ref_logprobs, mask)
    return -logsigmoid(beta * (chosen - rejected).mean())


@mistake("the sigmoid is there, its log is not")
def _no_log(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = _sums(logprobs - ref_logprobs, mask)
    return -torch.sigmoid(beta * (chosen - rejected)).mean()


@mistake("a sum over pairs: take the mean")
def _summed(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = _sums(logprobs - ref_logprobs, mask)
    return -logsigmoid(beta * (chosen - rejected)).sum()


@mistake("beta stands in front of the loss: it belongs inside the sigmoid, on the gap")
def _beta_outside(logprobs, ref_logprobs, mask, beta):
    return beta * dpo_loss(logprobs, ref_logprobs, mask, 1.0)


@mistake("the reference is added: subtract its log-probabilities from the policy's")
def _reference_added(logprobs, ref_logprobs, mask, beta):
    return dpo_loss(logprobs, -ref_logprobs, mask, beta)


@mistake("this is the hinge, max(0, 1 - beta gap), as in SLiC: DPO has -log sigma there")
def _hinge(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = _sums(logprobs - ref_logprobs, mask)
    return torch.relu(1 - beta * (chosen - rejected)).mean()


@mistake("this is IPO, (gap - 1 / (2 beta))^2: DPO has -log sigma(beta gap)")
def _ipo(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = _sums(logprobs - ref_logprobs, mask)
    return ((chosen - rejected - 1 / (2 * beta)) ** 2).mean()


@mistake("this is conservative DPO, a tenth of the labels wrong: here labels are taken as right")
def _smoothed(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = _sums(logprobs - ref_logprobs, mask)
    gap = beta * (chosen - rejected)
    return -(0.9 * logsigmoid(gap) + 0.1 * logsigmoid(-gap)).mean()


@mistake("each token's own log sigma, then a sum: sum the tokens of an answer first")
def _per_token(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = torch.where(mask, logprobs - ref_logprobs, 0).chunk(2)
    return -logsigmoid(beta * (chosen - rejected)).sum(1).mean()


@mistake(PADDING)
def _times_mask(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = ((logprobs - ref_logprobs) * mask).sum(1).chunk(2)
    return -logsigmoid(beta * (chosen - rejected)).mean()


@mistake(UNDERFLOW)
def _log_of_sigmoid(logprobs, ref_logprobs, mask, beta):
    chosen, rejected = _sums(logprobs - ref_logprobs, mask)
    return -torch.sigmoid(beta * (chosen - rejected)).log().mean()


_LOGP = [[-1.0, -0.5, -2.0], [-0.3, -1.2, -0.9], [-0.7, -1.1, -3.0], [-2.0, -0.4, -0.6]]
_REF = [[-1.4, -0.8, -1.0], [-0.6, -1.0, -1.5], [-0.5, -0.6, -1.1], [-1.2, -0.9, -0.2]]
_MASK = [[True, True, False], [True, True, True], [True, True, True], [True, False, False]]
_FAR = [[-900.0, -1.0], [-1.0, -1.0]]
_NAN = [[-1.0, float("nan")], [-0.5, float("inf")]]

DPO_LOSS = Exercise(
    name="dpo_loss",
    reference=dpo_loss,
    differentiate=("logprobs",),
    direction="minimised",
    probes=(
        Probe("two pairs", {"logprobs": _LOGP, "ref_logprobs": _REF, "mask": _MASK, "beta": 0.5}),
        Probe("two pairs, small beta",
              {"logprobs": _LOGP, "ref_logprobs": _REF, "mask": _MASK, "beta": 0.1}),
        Probe("a pair that is badly wrong",
              {"logprobs": _FAR, "ref_logprobs": [[-1.0, -1.0], [-1.0, -1.0]],
               "mask": [[True, True], [True, True]], "beta": 1.0}, UNDERFLOW),
        Probe("nan and inf under the mask",
              {"logprobs": _NAN, "ref_logprobs": [[-2.0, -1.0], [-0.7, -1.0]],
               "mask": [[True, False], [True, False]], "beta": 0.5}, PADDING),
    ),
    mistakes=(
        _no_reference, _mean_over_tokens, _no_mask, _no_beta, _beta_on_policy, _swapped, _in_turn,
        _mean_first, _no_log, _summed, _beta_outside, _reference_added, _hinge, _ipo, _smoothed,
        _per_token, _times_mask, _log_of_sigmoid,
    ),
    hint="Log-ratio per token, zero where the mask is 0, sum over an answer. Then split the rows "
    "in two halves: chosen, rejected.",
)  # fmt: skip


# ---- IPO


def ipo_loss(
    chosen: Tensor, rejected: Tensor, ref_chosen: Tensor, ref_rejected: Tensor, beta: float
) -> Tensor:
    """mean (h_w - h_l - 1 / (2 beta))^2: four (P,), float -> 0-d."""
    gap = (chosen - ref_chosen) - (rejected - ref_rejected)
    return (gap - 1 / (2 * beta)).square().mean()


def _gap(chosen, rejected, ref_chosen, ref_rejected):
    return (chosen - ref_chosen) - (rejected - ref_rejected)


@mistake("the target is 1/(2 beta), not 1/beta: it comes from completing the square")
def _whole_target(chosen, rejected, ref_chosen, ref_rejected, beta):
    return (_gap(chosen, rejected, ref_chosen, ref_rejected) - 1 / beta).square().mean()


@mistake("beta multiplies the gap as in DPO: here it stands in the target only")
def _beta_gap(chosen, rejected, ref_chosen, ref_rejected, beta):
    gap = _gap(chosen, rejected, ref_chosen, ref_rejected)
    return (beta * gap - 1 / (2 * beta)).square().mean()


@mistake("this is beta^2 times the loss: the same minimum, but beta now scales the step too")
def _scaled(chosen, rejected, ref_chosen, ref_rejected, beta):
    return (beta * _gap(chosen, rejected, ref_chosen, ref_rejected) - 0.5).square().mean()


@mistake("no reference: the gap is that of log-ratios, log pi minus log pi_ref")
def _ipo_no_reference(chosen, rejected, ref_chosen, ref_rejected, beta):
    return (chosen - rejected - 1 / (2 * beta)).square().mean()


@mistake("the target has the wrong sign: the chosen answer is to lead by 1/(2 beta)")
def _behind(chosen, rejected, ref_chosen, ref_rejected, beta):
    gap = _gap(chosen, rejected, ref_chosen, ref_rejected)
    return (gap + 1 / (2 * beta)).square().mean()


@mistake("beta/2 for 1/(2 beta): the smaller beta, the larger the target")
def _upside_down(chosen, rejected, ref_chosen, ref_rejected, beta):
    return (_gap(chosen, rejected, ref_chosen, ref_rejected) - beta / 2).square().mean()


@mistake("averaged before the square: pairs above and below the target would cancel")
def _ipo_mean_first(chosen, rejected, ref_chosen, ref_rejected, beta):
    return (_gap(chosen, rejected, ref_chosen, ref_rejected).mean() - 1 / (2 * beta)).square()


@mistake("one-sided: IPO also pulls back a pair that has gone past its target")
def _one_sided(chosen, rejected, ref_chosen, ref_rejected, beta):
    gap = _gap(chosen, rejected, ref_chosen, ref_rejected)
    return (1 / (2 * beta) - gap).clamp(min=0).square().mean()


@mistake("the square is missing")
def _absolute(chosen, rejected, ref_chosen, ref_rejected, beta):
    return (_gap(chosen, rejected, ref_chosen, ref_rejected) - 1 / (2 * beta)).abs().mean()


@mistake("a target for each answer alone is SPPO's loss: IPO looks at their difference")
def _each_alone(chosen, rejected, ref_chosen, ref_rejected, beta):
    up = (chosen - ref_chosen - 1 / (2 * beta)).square()
    return (up + (rejected - ref_rejected + 1 / (2 * beta)).square()).mean()


_PAIRS = {
    "chosen": [-4.0, -9.5, -2.0],
    "rejected": [-5.5, -7.0, -6.0],
    "ref_chosen": [-6.0, -9.0, -10.5],
    "ref_rejected": [-5.0, -8.5, -4.0],
}

IPO_LOSS = Exercise(
    name="ipo_loss",
    reference=ipo_loss,
    differentiate=("chosen", "rejected"),
    direction="minimised",
    probes=(
        Probe("three pairs", {**_PAIRS, "beta": 0.1}),
        Probe("a larger beta", {**_PAIRS, "beta": 0.8}),
    ),
    mistakes=(
        _whole_target, _beta_gap, _scaled, _ipo_no_reference, _behind, _upside_down,
        _ipo_mean_first, _one_sided, _absolute, _each_alone,
    ),
    hint="The gap of the log-ratios, minus its target, squared, averaged.",
)  # fmt: skip


# ---- SimPO


def simpo_loss(
    chosen: Tensor, rejected: Tensor, chosen_length: Tensor, rejected_length: Tensor,
    beta: float, gamma: float,
) -> Tensor:  # fmt: skip
    """-mean log sigma(beta (log pi_w / T_w - log pi_l / T_l) - gamma): four (P,) -> 0-d."""
    gap = chosen / chosen_length - rejected / rejected_length
    return -logsigmoid(beta * gap - gamma).mean()


@mistake("sums over tokens: SimPO's reward is the mean log-probability per token")
def _simpo_sums(chosen, rejected, chosen_length, rejected_length, beta, gamma):
    return -logsigmoid(beta * (chosen - rejected) - gamma).mean()


@mistake("beta multiplies gamma: the margin is subtracted after beta")
def _beta_gamma(chosen, rejected, chosen_length, rejected_length, beta, gamma):
    gap = chosen / chosen_length - rejected / rejected_length
    return -logsigmoid(beta * (gap - gamma)).mean()


@mistake("gamma/beta belongs inside the bracket that beta multiplies; outside it is gamma")
def _gamma_over_beta(chosen, rejected, chosen_length, rejected_length, beta, gamma):
    gap = chosen / chosen_length - rejected / rejected_length
    return -logsigmoid(beta * gap - gamma / beta).mean()


@mistake("the margin is added: that makes the task easier; the chosen one has to lead by gamma")
def _easier(chosen, rejected, chosen_length, rejected_length, beta, gamma):
    gap = chosen / chosen_length - rejected / rejected_length
    return -logsigmoid(beta * gap + gamma).mean()


@mistake("the margin is missing")
def _no_margin(chosen, rejected, chosen_length, rejected_length, beta, gamma):
    gap = chosen / chosen_length - rejected / rejected_length
    return -logsigmoid(beta * gap).mean()


@mistake("one length for both: each answer is divided by its own number of tokens")
def _one_length(chosen, rejected, chosen_length, rejected_length, beta, gamma):
    gap = (chosen - rejected) / ((chosen_length + rejected_length) / 2)
    return -logsigmoid(beta * gap - gamma).mean()


@mistake("the lengths are swapped")
def _lengths_swapped(chosen, rejected, chosen_length, rejected_length, beta, gamma):
    gap = chosen / rejected_length - rejected / chosen_length
    return -logsigmoid(beta * gap - gamma).mean()


@mistake("beta is missing")
def _simpo_no_beta(chosen, rejected, chosen_length, rejected_length, beta, gamma):
    gap = chosen / chosen_length - rejected / rejected_length
    return -logsigmoid(gap - gamma).mean()


@mistake("averaged before the sigmoid: one loss per pair, then the mean")
def _simpo_mean_first(chosen, rejected, chosen_length, rejected_length, beta, gamma):
    gap = chosen / chosen_length - rejected / rejected_length
    return -logsigmoid((beta * gap - gamma).mean())


@mistake(UNDERFLOW)
def _simpo_log_of_sigmoid(chosen, rejected, chosen_length, rejected_length, beta, gamma):
    gap = chosen / chosen_length - rejected / rejected_length
    return -torch.sigmoid(beta * gap - gamma).log().mean()


def _simpo_probe(label, chosen, rejected, beta, gamma, catches=""):
    lengths = {"chosen_length": [4.0, 9.0, 2.0], "rejected_length": [5.0, 3.0, 7.0]}
    return Probe(
        label, {"chosen": chosen, "rejected": rejected, **lengths, "beta": beta, "gamma": gamma},
        catches,
    )  # fmt: skip


SIMPO_LOSS = Exercise(
    name="simpo_loss",
    reference=simpo_loss,
    differentiate=("chosen", "rejected"),
    direction="minimised",
    probes=(
        _simpo_probe("three pairs", [-4.0, -9.5, -2.0], [-5.5, -7.0, -6.0], 2.0, 0.7),
        _simpo_probe("another beta", [-4.0, -9.5, -2.0], [-5.5, -7.0, -6.0], 2.5, 1.375),
        _simpo_probe("a pair that is badly wrong", [-8000.0, -9.0, -2.0], [-5.0, -7.0, -6.0], 2.0,
                     0.5, UNDERFLOW),
    ),
    mistakes=(
        _simpo_sums, _beta_gamma, _gamma_over_beta, _easier, _no_margin, _one_length,
        _lengths_swapped, _simpo_no_beta, _simpo_mean_first, _simpo_log_of_sigmoid,
    ),
    hint="Two rewards, each beta times log pi per token; their difference must exceed gamma.",
)  # fmt: skip
