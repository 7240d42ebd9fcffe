"""One static figure: what an aggregation shares out, beside what it does to length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlnb.classroom.figures import (
    BLACK,
    GREY,
    NEGATIVE,
    ORANGE,
    POSITIVE,
    Picture,
    signed,
    static_figure,
)

__all__ = ["share_and_pressure"]


def share_and_pressure(
    rules: Sequence[str],
    shares: Mapping[str, float],
    pressure: Mapping[str, float],
    *,
    lengths: tuple[int, int],
    caption: str | None = None,
    size: tuple[int, int] = (900, 330),
) -> Picture:
    """Rows are rules; left the share of the longer of two answers, right the push on length.

    `shares[rule]` in [0, 1] is what the answer of `lengths[1]` tokens gets of the weight that it
    and the one of `lengths[0]` tokens get together. `pressure[rule]` is the expected push on the
    logit of "stop" at A = +1; at A = -1 it is the opposite. Raises ValueError for a missing rule.
    """
    for name, table in (("shares", shares), ("pressure", pressure)):
        for rule in rules:
            if rule not in table:
                raise ValueError(f"{name} has no entry for {rule!r}; it has {list(table)}.")
    short, long = lengths

    def build(figure, _):
        left = figure.add_axes((0.19, 0.17, 0.34, 0.66))
        right = figure.add_axes((0.6, 0.17, 0.38, 0.66))
        rows = range(len(rules))
        for axes in (left, right):
            axes.set(ylim=(len(rules) - 0.45, -0.55), yticks=[])
        left.set(yticks=rows, xlim=(0, 1))
        left.set_yticklabels(rules)
        left.set_xlabel(f"share of the {long}-token answer")
        left.axvline(0.5, color=BLACK, lw=1, ls=":")
        wide = 1.3 * max(abs(pressure[rule]) for rule in rules) or 1.0
        right.set(xlim=(-wide, wide), xlabel='push on the logit of "stop"')
        right.axvline(0, color=BLACK, lw=0.8)
        for row, rule in enumerate(rules):
            left.barh(row, shares[rule], 0.6, color=ORANGE)
            left.barh(row, 1 - shares[rule], 0.6, left=shares[rule], color=GREY)
            left.text(shares[rule] - 0.015, row, f"{shares[rule]:.2f}", ha="right", va="center",
                      size=9)
            push = pressure[rule]
            for sign, color, hatch, step in ((1, POSITIVE, "", -0.16), (-1, NEGATIVE, "//", 0.16)):
                right.barh(row + step, sign * push, 0.3, color=color, hatch=hatch, ec="white",
                           lw=0.4)
            right.text(abs(push) + 0.02 * wide, row - 0.04, signed(push, 3) if push else "0",
                       va="center", size=9)
        _legend(figure, short, long)

    words = "; ".join(f"{' '.join(rule.split())} {shares[rule]:.2f} and "
                      f"{signed(pressure[rule], 3)}" for rule in rules)
    alt = (f"Bars per aggregation rule: the share of a {long}-token answer beside a {short}-token "
           f"one, and the push on stopping at A = +1 (at A = −1 the opposite). {words}.")
    return static_figure(build, alt=alt, caption=caption, size=size)


def _legend(figure, short: int, long: int) -> None:
    from matplotlib.patches import Patch

    figure.legend(
        handles=[
            Patch(color=ORANGE, label=f"{long} tokens"),
            Patch(color=GREY, label=f"{short} tokens"),
            Patch(color=POSITIVE, label="right answers (A > 0): stop earlier"),
            Patch(facecolor=NEGATIVE, hatch="//", ec="white", lw=0,
                  label="wrong answers (A < 0): stop later"),
        ],
        loc="upper center", ncols=4, bbox_to_anchor=(0.53, 1.01), columnspacing=1.6,
    )
