"""One ratio per answer: the sequence ratio, GSPO's loss, a gradient paid twice, and a table."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Mistake, Probe, mistake
from rlnb.classroom.checking.name_this import NameThis
from rlnb.classroom.checking.silent_bug import SilentBug
from rlnb.classroom.exercises.reinforce import PADDING

__all__ = [
    "GSPO_LOSS",
    "NAME_THIS_GSPO",
    "SEQUENCE_RATIO",
    "SILENT_BUG_GSPO",
    "gspo_loss",
    "gspo_token_ratio",
    "sequence_ratio",
]


def _gap(logprobs, old_logprobs, mask):
    """(B, T) log rho, 0 under the mask whatever stands there, no gradient to the old policy."""
    zero = torch.zeros_like(logprobs)
    return torch.where(mask, logprobs, zero) - torch.where(mask, old_logprobs, zero)


def _length(mask):
    return mask.sum(1).clamp(min=1)


def sequence_ratio(
    logprobs: torch.Tensor,
    old_logprobs: torch.Tensor,
    mask: torch.Tensor,
    *,
    cap: float | None = None,
) -> torch.Tensor:
    """s_i = exp of the mean log rho over the answer's tokens: (B, T) three times -> (B,).

    GSPO, arXiv 2507.18071, eq. 7. With `cap`, log s is cut there from above.
    """
    log_s = _gap(logprobs, old_logprobs, mask).sum(1) / _length(mask)
    return (log_s if cap is None else log_s.clamp(max=cap)).exp()


def gspo_loss(
    logprobs: torch.Tensor,
    old_logprobs: torch.Tensor,
    mask: torch.Tensor,
    advantages: torch.Tensor,
    epsilon: float,
    epsilon_high: float,
    *,
    cap: float | None = None,
) -> torch.Tensor:
    """-mean over answers of min(s A, clip(s, 1 - epsilon, 1 + epsilon_high) A) -> ()."""
    s = sequence_ratio(logprobs, old_logprobs, mask, cap=cap)
    return -_clipped(s, advantages, epsilon, epsilon_high).mean()


def _clipped(s, A, low, high):
    return torch.min(s * A, s.clamp(1 - low, 1 + high) * A)


# the ratio
@mistake(
    "this is the product of the token ratios, the whole answer's importance weight: "
    "the T-th root is missing"
)
def _product(lp, old, mask):
    return _gap(lp, old, mask).sum(1).exp()


@mistake("divided by the padded width: the mean runs over the answer's own tokens")
def _padded_width(lp, old, mask):
    return _gap(lp, old, mask).mean(1).exp()


@mistake("an arithmetic mean of the token ratios: the mean is taken over their logarithms")
def _arithmetic(lp, old, mask):
    rho = _gap(lp, old, mask).exp()
    return torch.where(mask, rho, 0).sum(1) / _length(mask)


@mistake("this is log s: one exp is missing, after the mean")
def _still_a_log(lp, old, mask, *, cap=None):
    return sequence_ratio(lp, old, mask, cap=cap).log()


@mistake("upside down: the new policy over the old one")
def _upside_down(lp, old, mask):
    return sequence_ratio(old, lp, mask)


@mistake("the mask is missing: padding is no token, neither above nor below")
def _no_mask(lp, old, mask):
    return (lp - old).mean(1).exp()


@mistake("padding is added up: the mask counts the tokens but does not choose them")
def _no_mask_above(lp, old, mask):
    return ((lp - old).sum(1) / _length(mask)).exp()


@mistake("one ratio per token: an answer has one, the exp of the mean of their logs")
def _per_token(lp, old, mask):
    return _gap(lp, old, mask).exp()


@mistake("the right number, on every token: one per answer is asked for, shape (B,)")
def _repeated(lp, old, mask, *, cap=None):
    return sequence_ratio(lp, old, mask, cap=cap)[:, None] * torch.ones_like(lp)


@mistake("one mean over all answers: each answer has its own ratio")
def _one_for_all(lp, old, mask):
    return (_gap(lp, old, mask).sum() / mask.sum()).exp() * torch.ones_like(lp[:, 0])


@mistake(
    "mean probability now over mean probability then: likely tokens would count more; "
    "average the log-ratios"
)
def _mean_probability(lp, old, mask):
    def mean(x):
        return torch.where(mask, torch.where(mask, x, 0).exp(), 0).sum(1) / _length(mask)

    return torch.where(mask.any(1), mean(lp) / mean(old).clamp(min=1e-300), 1)


@mistake("one mean log-prob divided by the other: a ratio of probabilities is a difference of logs")
def _ratio_of_logs(lp, old, mask):
    zero = torch.zeros_like(lp)
    above, below = (torch.where(mask, x, zero).sum(1) for x in (lp, old))
    return torch.where(mask.any(1), above / torch.where(mask.any(1), below, 1), 1)


@mistake("the value is right and the gradient is zero: the new log-probs were detached")
def _detached(lp, old, mask, *, cap=None):
    return sequence_ratio(lp.detach(), old, mask, cap=cap) + 0 * lp.nan_to_num().sum()


@mistake(PADDING)
def _times_mask(lp, old, mask):
    return (((lp - old) * mask).sum(1) / _length(mask)).exp()


def _nothing_to_divide_by(lp, old, mask):
    return (_gap(lp, old, mask).sum(1) / mask.sum(1)).exp()


# the loss
def _loss_of(ratio):
    def loss(lp, old, mask, A, low, high):
        return -_clipped(ratio(lp, old, mask), A, low, high).mean()

    return loss


@mistake("token ratios, clipped one by one: this is GRPO's loss; GSPO clips one ratio per answer")
def _token_ratios(lp, old, mask, A, low, high):
    value = _clipped(_gap(lp, old, mask).exp(), A[:, None], low, high)
    return -(torch.where(mask, value, 0).sum(1) / _length(mask)).mean()


@mistake(
    "a mean over tokens: long answers weigh more; verl 0.9.1 does this until "
    "loss_agg_mode is seq-mean-token-mean"
)
def _by_length(lp, old, mask, A, low, high, *, cap=None):
    value = _clipped(sequence_ratio(lp, old, mask, cap=cap), A, low, high)
    return -(value * mask.sum(1)).sum() / mask.sum()


@mistake("each answer times its length: this is LUSPO")
def _summed_over_tokens(lp, old, mask, A, low, high, *, cap=None):
    value = _clipped(sequence_ratio(lp, old, mask, cap=cap), A, low, high)
    return -(value * mask.sum(1)).mean()


@mistake("divided by the length once more: 1/T is already in the ratio's gradient")
def _divided_again(lp, old, mask, A, low, high, *, cap=None):
    value = _clipped(sequence_ratio(lp, old, mask, cap=cap), A, low, high)
    return -(value / _length(mask)).mean()


@mistake("summed over the answers: take the mean")
def _summed(lp, old, mask, A, low, high, *, cap=None):
    return gspo_loss(lp, old, mask, A, low, high, cap=cap) * len(lp)


@mistake("the outer min is missing: clip(s) A alone never corrects a wrong move")
def _clip_only(lp, old, mask, A, low, high, *, cap=None):
    return -(sequence_ratio(lp, old, mask, cap=cap).clamp(1 - low, 1 + high) * A).mean()


@mistake("nothing is clipped: the loss is the mean of -s A")
def _no_clip(lp, old, mask, A, low, high, *, cap=None):
    return -(sequence_ratio(lp, old, mask, cap=cap) * A).mean()


@mistake("you took max: the surrogate is the smaller of the two, and then comes the minus")
def _max(lp, old, mask, A, low, high, *, cap=None):
    s = sequence_ratio(lp, old, mask, cap=cap)
    return -torch.max(s * A, s.clamp(1 - low, 1 + high) * A).mean()


@mistake("epsilon on both sides: the upper edge is 1 + epsilon_high")
def _one_epsilon(lp, old, mask, A, low, high, *, cap=None):
    return gspo_loss(lp, old, mask, A, low, low, cap=cap)


@mistake("the two edges are swapped: 1 - epsilon below, 1 + epsilon_high above")
def _swapped(lp, old, mask, A, low, high, *, cap=None):
    return gspo_loss(lp, old, mask, A, high, low, cap=cap)


@mistake(
    "the band lies in log space, which is GMPO's unit: GSPO's runs from 1 - epsilon to "
    "1 + epsilon_high"
)
def _band_in_logs(lp, old, mask, A, low, high):
    log_s = _gap(lp, old, mask).sum(1) / _length(mask)
    return -torch.min(log_s.exp() * A, log_s.clamp(-low, high).exp() * A).mean()


@mistake("clipped token by token before the mean: this is GMPO's order, with GSPO's band")
def _clip_before_the_mean(lp, old, mask, A, low, high):
    log_rho, sign = _gap(lp, old, mask), A[:, None] > 0
    band = log_rho.exp().clamp(1 - low, 1 + high).log()
    kept = torch.where(sign, torch.min(log_rho, band), torch.max(log_rho, band))
    return -((kept.sum(1) / _length(mask)).exp() * A).mean()


@mistake("the value is right and the gradient is zero: the ratio was detached")
def _constant(lp, old, mask, A, low, high, *, cap=None):
    return gspo_loss(lp.detach(), old, mask, A, low, high, cap=cap) + 0 * lp.nan_to_num().sum()


@mistake("the value is right and the gradient doubled: in s * pi / sg[pi] the s is detached")
def _paid_twice(lp, old, mask, A, low, high):
    value = _clipped(_twice(lp, old, mask), A[:, None], low, high)
    return -(torch.where(mask, value, 0).sum(1) / _length(mask)).mean()


@mistake("the value is right and the gradient T times too large: each token's share of s is s/T")
def _each_token_whole(lp, old, mask, A, low, high):
    s = sequence_ratio(lp, old, mask).detach() * _gap(lp, lp.detach(), mask).sum(1).exp()
    return -_clipped(s, A, low, high).mean()


def _twice(lp, old, mask):
    """The value of s on every token; the gradient of s and that of the token."""
    own = torch.where(mask, lp, 0)
    return sequence_ratio(lp, old, mask)[:, None] * (own - own.detach()).exp()


def _batch(lengths: tuple[int, ...], old, gap) -> dict[str, torch.Tensor]:
    """Rows of `old` log-probs and of log-ratios, padded with numbers that mean nothing."""
    width = max(len(row) for row in gap)
    steps = torch.arange(width)
    mask = steps < torch.tensor(lengths)[:, None]
    old, gap = (torch.tensor(rows, dtype=torch.float64) for rows in (old, gap))
    return {"logprobs": old + gap, "old_logprobs": old, "mask": mask}


_ONE = _batch((3,), [[-0.5, -1.2, -0.9]], [[0.3, -0.1, 0.25]])
_TWO = _batch(
    (4, 2),
    [[-0.5, -1.2, -0.9, -2.0], [-0.7, -0.3, -0.4, -0.6]],
    [[0.2, -0.35, -0.1, -0.05], [0.31, 0.05, 0.4, -0.9]],
)
_FOUR = _batch(
    (5, 1, 3, 2),
    [
        [-0.5, -1.2, -0.9, -2.0, -0.1],
        [-0.7, -0.3, -0.4, -0.6, -1.0],
        [-1.5, -0.2, -0.8, -0.6, -1.1],
        [-0.4, -0.9, -0.3, -0.2, -1.3],
    ],
    [
        [0.9, 0.1, 0.7, -0.2, 0.35],
        [-0.6, 0.2, 0.1, 0.4, -0.3],
        [-0.15, 0.07, 0.05, 0.6, -0.4],
        [0.6, -0.05, 0.3, -0.2, 0.8],
    ],
)
_SMALL = {
    **_TWO,
    "logprobs": _TWO["old_logprobs"]
    + torch.tensor([[1e-3, 2e-3, -1e-3, 3e-4], [-4e-4, -9e-4, 5e-3, 1e-3]], dtype=torch.float64),
}
_HUGE = _batch(
    (2, 3), [[-14.0, -13.5, -1.0], [-0.5, -0.4, -0.9]], [[12.5, 13.0, 0.3], [0.1, -0.2, 0.15]]
)
_GARBAGE = {
    **_TWO,
    "logprobs": torch.where(_TWO["mask"], _TWO["logprobs"], torch.nan),
    "old_logprobs": torch.where(_TWO["mask"], _TWO["old_logprobs"], -torch.inf),
}
_EMPTY = {**_TWO, "mask": torch.tensor([[True, True, True, True], [False] * 4])}
NO_TOKENS = (
    "an answer without tokens gives 0/0: its ratio is 1, nothing has moved; clamp the count at 1"
)
CAPPED = "log s is capped at 10, as verl 0.9.1 does against overflow; below that the same"


def _with(batch, advantages, epsilon, epsilon_high):
    return {
        **batch,
        "advantages": torch.tensor(advantages, dtype=torch.float64),
        "epsilon": epsilon,
        "epsilon_high": epsilon_high,
    }


SEQUENCE_RATIO = Exercise(
    name="sequence_ratio",
    reference=sequence_ratio,
    differentiate=("logprobs",),
    probes=(
        Probe("one answer", _ONE),
        Probe("two lengths", _TWO),
        Probe("four answers", _FOUR),
        Probe("tokens far off", _HUGE),
        Probe("nan and inf under the mask", _GARBAGE, PADDING),
        Probe("an answer without tokens", _EMPTY, NO_TOKENS),
    ),
    conventions=(Convention(CAPPED, {"cap": 10.0}),),
    mistakes=(
        _product,
        _padded_width,
        _arithmetic,
        _still_a_log,
        _upside_down,
        _no_mask,
        _no_mask_above,
        _per_token,
        _repeated,
        _one_for_all,
        _mean_probability,
        _ratio_of_logs,
        _detached,
        _times_mask,
        Mistake(NO_TOKENS, _nothing_to_divide_by),
    ),
    hint="Subtract log-probs, 0 where masked (torch.where on both, before the subtraction); sum "
    "each row, divide by the row's number of tokens, at least 1; exp last.",
)

GSPO_LOSS = Exercise(
    name="gspo_loss",
    reference=gspo_loss,
    differentiate=("logprobs",),
    direction="minimised",
    probes=(
        Probe("one answer, A > 0, too far up", _with(_ONE, [1.0], 0.1, 0.1)),
        Probe("one answer, A < 0, up", _with(_ONE, [-1.0], 0.1, 0.1)),
        Probe("two lengths", _with(_TWO, [-1.0, 0.5], 0.05, 0.3)),
        Probe("two lengths, other signs", _with(_TWO, [0.7, -1.5], 0.05, 0.08)),
        Probe("four answers", _with(_FOUR, [1.2, -0.6, 0.4, -1.0], 0.2, 0.3)),
        Probe("GSPO's own band", _with(_SMALL, [1.0, -1.0], 3e-4, 4e-4)),
        Probe("inside the band", _with(_SMALL, [1.0, -1.0], 1e-2, 2e-2)),
        Probe("tokens far off", _with(_HUGE, [-1.0, 1.0], 0.2, 0.3)),
        Probe("nan and inf under the mask", _with(_GARBAGE, [-1.0, 0.5], 0.05, 0.3), PADDING),
    ),
    conventions=(Convention(CAPPED, {"cap": 10.0}),),
    mistakes=(
        _token_ratios,
        Mistake(
            "the ratio is the product of the token ratios: its T-th root is missing",
            _loss_of(_product),
        ),
        Mistake(
            "the ratio's mean runs over the padded width: divide by the answer's own tokens",
            _loss_of(_padded_width),
        ),
        Mistake(
            "the arithmetic mean of the token ratios: average their logarithms",
            _loss_of(_arithmetic),
        ),
        Mistake(
            "the ratio is upside down: the new policy over the old one", _loss_of(_upside_down)
        ),
        Mistake("the mask is missing in the ratio: padding is no token", _loss_of(_no_mask)),
        _clip_before_the_mean,
        _by_length,
        _summed_over_tokens,
        _divided_again,
        _summed,
        _clip_only,
        _no_clip,
        _max,
        _one_epsilon,
        _swapped,
        _band_in_logs,
        _constant,
        _paid_twice,
        _each_token_whole,
        Mistake(PADDING, _loss_of(_times_mask)),
    ),
    hint="Your sequence_ratio, one number per answer, meets one advantage per answer: PPO's min "
    "of two products, the mean over answers, a minus in front.",
)


def _gspo_token_ratio(logprobs, old_logprobs, mask):
    own = torch.where(mask, logprobs, 0)
    s = sequence_ratio(logprobs, old_logprobs, mask).detach()
    return s[:, None] * (own - own.detach()).exp()


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def gspo_token_ratio(logprobs, old_logprobs, mask):
    """(B, T) three times -> (B, T): s of the answer on each token"""
    own = torch.where(mask, logprobs, 0.0)
    old = torch.where(mask, old_logprobs, 0.0)
    s = ((own - old).sum(1) / mask.sum(1).clamp(min=1)).exp()
    return s[:, None] * (own - own.detach()).exp()   # s * pi / sg[pi]
# fmt: on


SILENT_BUG_GSPO = SilentBug(
    name="silent_bug_gspo",
    right=_gspo_token_ratio,
    broken=gspo_token_ratio,
    story="s itself was not detached: with one advantage per answer the gradient is doubled, "
    "which Adam hides; with one per token, half of each token's credit is spread over all.",
    hint="Every value is right. What does one token's ratio owe to another token?",
)

NAME_THIS_GSPO = NameThis(
    name="name_this_gspo",
    answer="gmpo",
    near={
        "gspo": "there all tokens of an answer live or die together",
        "gspo_token": "with one advantage per answer its table is GSPO's: one number per answer",
        "grpo": "there each living token has its own ratio; here they share a number",
        "ppo": "there each living token has its own ratio; here they share a number",
        "dapo": "there each living token has its own ratio; here they share a number",
        "cispo": "there no token is at 0, and each has its own ratio",
        "sapo": "its gate fades and never reaches 0",
        "luspo": "it is GSPO times the length: one number per answer",
        "dppo": "its mask may silence single tokens, but the others keep their own ratios",
        "sspo": "a soft gate would leave a little of every token",
    },
    story="The living tokens of an answer share one number, so there is a mean; single tokens are "
    "at 0, so the clip came before it. The clipped ones still count in the mean.",
    also=("geometric mean policy optimization", "geometric mean policy optimisation", "geo_mean"),
)
