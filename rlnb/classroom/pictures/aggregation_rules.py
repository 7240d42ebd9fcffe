"""What an aggregation shares out beside what it does to length: one exact number, one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from rlnb.classroom.figures import BLACK, GREY, ORANGE, POSITIVE, Picture, signed, static_figure

__all__ = ["share_and_pressure", "stop_drift"]


def _total_of(k: int, q: float, up_to: int) -> torch.Tensor:
    """(up_to,): P(k >= 1 answers have S tokens in all), S < up_to, negative binomial."""
    S = torch.arange(up_to, dtype=torch.float64)
    choose = (
        S.lgamma()
        - torch.tensor(float(k), dtype=torch.float64).lgamma()
        - (S - k + 1).clamp(min=1).lgamma()
    )
    log_p = (
        choose
        + k * torch.tensor(q, dtype=torch.float64).log()
        + (S - k) * torch.tensor(1 - q, dtype=torch.float64).log()
    )
    return torch.where(k <= S, log_p.exp(), 0.0)


def stop_drift(n: int, q: float = 0.1, divisor: str = "total", up_to: int = 2000) -> float:
    """E[c (1 - q T)]: the expected push on the logit of "stop" at A = +1, by summation.

    n answers share a divisor; each stops after every token with probability q, so that T is
    geometric and 1 - q T is the slope of log P(T) in the logit. With divisor "total" a token
    weighs c = (n/q) / sum_j T_j (n = 1: the sequence mean), with "longest" c = k / max_j T_j, the
    padded width of n rows. Both are scaled so that an average token has weight 1: E[sum_j c T_j]
    is E[sum_j T_j]. Lengths beyond `up_to` tokens are left out. Raises ValueError for n < 1, q
    outside (0, 1), another divisor, or an `up_to` below twice the expected total.

    >>> [round(stop_drift(n), 4) for n in (1, 8, 64)]
    [1.5584, 0.1245, 0.0142]
    """
    if n < 1 or not 0 < q < 1:
        raise ValueError(f"n must be at least 1 answer and q in (0, 1); got n={n}, q={q}.")
    if divisor not in ("total", "longest"):
        raise ValueError(f"divisor must be 'total' or 'longest', got {divisor!r}.")
    if up_to < 2 * n / q:
        raise ValueError(
            f"up_to={up_to} tokens cut off too much: {n} answers have {n / q:.0f} "
            "tokens on average, give at least twice that."
        )
    T = torch.arange(1, up_to, dtype=torch.float64)
    own = q * (1 - q) ** (T - 1)
    seen = own > 1e-20  # the rest of the tail adds nothing to a float64
    T, own = T[seen], own[seen]
    if n == 1:
        c = 1 / (q * T)
    elif divisor == "total":
        others = _total_of(n - 1, q, up_to)
        c = (n / q / (T[:, None] + torch.arange(up_to))) @ others
    else:
        below = (1 - (1 - q) ** T) ** (n - 1)  # P(all others have at most T tokens)
        exactly = torch.diff(below, prepend=torch.zeros(1, dtype=torch.float64))
        inverse = (1 / torch.maximum(T[:, None], T)) @ exactly
        c = inverse / (q * (own @ (T * inverse)))
    return float((own * (1 - q * T)) @ c)


def share_and_pressure(
    rules: Sequence[str],
    shares: Mapping[str, float],
    pressure: Mapping[str, float],
    *,
    lengths: tuple[int, int],
    caption: str | None = None,
    size: tuple[int, int] = (900, 360),
) -> Picture:
    """Rows are rules; left the share of the longer of two answers, right the push on length.

    `shares[rule]` in [0, 1] is what the answer of `lengths[1]` tokens gets of the weight that it
    and the one of `lengths[0]` tokens get together. `pressure[rule]`, not negative, is the
    expected push on the logit of "stop" at A = +1, on a log axis; at A = -1 it is the opposite.
    Raises ValueError for a missing rule or a negative push.
    """
    for name, table in (("shares", shares), ("pressure", pressure)):
        for rule in rules:
            if rule not in table:
                raise ValueError(f"{name} has no entry for {rule!r}; it has {list(table)}.")
    for rule in rules:
        if pressure[rule] < 0:
            raise ValueError(
                f"pressure[{rule!r}] is {pressure[rule]}: the axis is logarithmic, "
                "give the push at A = +1, which is not negative for these rules."
            )
    short, long = lengths
    low = 0.5 * min([pressure[rule] for rule in rules if pressure[rule]], default=0.01)

    def build(figure, _):
        left = figure.add_axes((0.19, 0.15, 0.34, 0.71))
        right = figure.add_axes((0.59, 0.15, 0.38, 0.71))
        rows = range(len(rules))
        for axes in (left, right):
            axes.set(ylim=(len(rules) - 0.45, -0.55), yticks=[])
        left.set(yticks=rows, xlim=(0, 1))
        left.set_yticklabels(rules)
        left.set_xlabel("share of the weight of these two answers")
        left.axvline(0.5, color=BLACK, lw=1, ls=":")
        right.set(xscale="log", xlim=(low, 6 * max(pressure[rule] for rule in rules) or 1.0))
        right.minorticks_off()
        right.set_xlabel('push on the logit of "stop", log axis')
        right.set_title("right answers, A = +1 (wrong ones: the opposite)", fontsize=10)
        for row, rule in enumerate(rules):
            left.barh(row, shares[rule], 0.6, color=ORANGE)
            left.barh(row, 1 - shares[rule], 0.6, left=shares[rule], color=GREY)
            left.text(
                shares[rule] - 0.015, row, f"{shares[rule]:.2f}", ha="right", va="center", size=9
            )
            if push := pressure[rule]:
                right.plot([low, push], [row, row], color=POSITIVE, lw=3)
                right.plot(push, row, "o", color=POSITIVE, ms=9)
                right.text(push * 1.18, row, signed(push, 3), va="center", size=10)
            else:
                right.text(low * 1.1, row, "exactly 0", va="center", size=10)
        _legend(figure, short, long)

    words = "; ".join(
        f"{' '.join(rule.split())} {shares[rule]:.2f} and {signed(pressure[rule], 3)}"
        for rule in rules
    )
    alt = (
        f"Rows are aggregation rules: the share of a {long}-token answer beside a {short}-token "
        f"one, and the push on stopping at A = +1 (at A = −1 the opposite). {words}."
    )
    return static_figure(build, alt=alt, caption=caption, size=size)


def _legend(figure, short: int, long: int) -> None:
    from matplotlib.patches import Patch

    figure.legend(
        handles=[
            Patch(color=ORANGE, label=f"the answer of {long} tokens"),
            Patch(color=GREY, label=f"of {short} tokens"),
        ],
        loc="upper center",
        ncols=2,
        bbox_to_anchor=(0.36, 0.985),
        columnspacing=1.6,
    )
