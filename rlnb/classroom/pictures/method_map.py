"""The map of methods: which baseline, and how the importance ratio is tamed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rlnb.classroom.figures import BLUE, GREY, PALE, Picture, static_figure

__all__ = ["BASELINES", "PLACES", "RATIOS", "Place", "method_map"]

RATIOS = (
    "no ratio",
    "one per token,\nhard clip",
    "one per token,\nsoft, capped, masked",
    "one per answer",
)
BASELINES = (
    "critic, per token",
    "mean and std\nof the group",
    "mean of the group",
    "mean of the group,\nstd of the batch",
    "greedy answer",
    "mean of the batch",
    "none",
)


@dataclass(frozen=True)
class Place:
    """A method on the map: label, row, column, page of the course, and its names in the zoo.

    baseline is an index of BASELINES, ratio one of RATIOS.
    """

    label: str
    baseline: int
    ratio: int
    page: str
    zoo: tuple[str, ...] = ()


PLACES = (
    Place("REINFORCE", 6, 0, "02", ("reinforce",)),
    Place("batch mean", 5, 0, "03", ("reinforce_batch_mean",)),
    Place("ReMax", 4, 0, "03", ("remax",)),
    Place("RLOO", 2, 0, "03", ("rloo",)),
    Place("MaxRL", 2, 0, "14", ("maxrl",)),
    Place("REINFORCE++", 5, 1, "03", ("reinforce_plus_plus",)),
    Place("PPO", 0, 1, "06", ("ppo",)),
    Place("GRPO", 1, 1, "08", ("grpo",)),
    Place("Dr. GRPO", 2, 1, "10", ("dr_grpo",)),
    Place("DAPO", 1, 1, "11", ("dapo",)),
    Place("MGPO", 1, 1, "14", ("mgpo",)),
    Place("CISPO", 1, 2, "12", ("cispo",)),
    Place("SAPO", 1, 2, "12", ("sapo",)),
    Place("DPPO", 2, 2, "12", ("dppo", "dppo_kl", "dppo_topk")),
    Place("ScaleRL", 3, 2, "14", ("scalerl",)),
    Place("GSPO", 1, 3, "13", ("gspo", "gspo_token")),
    Place("GMPO", 1, 3, "13", ("gmpo",)),
)


def method_map(written: Collection[str], only: Collection[str] = ()) -> Picture:
    """The map as a figure. `written` holds the numbers of the pages that exist: filled boxes.

    only: labels to show; all when empty.

    >>> "GRPO (08), PPO (06), REINFORCE (02)" in repr(method_map({"02", "06", "08"}))
    True
    """
    places = [p for p in PLACES if not only or p.label in only]
    pages = {p.page for p in places} & set(written)
    have = sorted(f"{p.label} ({p.page})" for p in places if p.page in pages)
    follow = sorted(f"{p.label} ({p.page})" for p in places if p.page not in pages)
    alt = (
        f"Methods by baseline (rows: {_plain(BASELINES)}) and treatment of the importance ratio "
        f"(columns: {_plain(RATIOS)}). Written: {', '.join(have)}. "
        f"To follow: {', '.join(follow) or 'none'}."
    )
    return static_figure(
        lambda figure, _: _draw(figure, places, pages),
        alt=alt,
        size=(900, 500 if not only else 330),
        caption="Mostly, a method is a choice of baseline and a way to tame the importance ratio. "
        "The number is its page"
        + ("; empty boxes are still to come." if follow else ".")
        + (" RLOO's mean is that of the other answers." if have else ""),
    )


def _plain(words: tuple[str, ...]) -> str:
    return "; ".join(word.replace("\n", " ") for word in words)


def _draw(figure, places: Collection[Place], pages: Collection[str]) -> None:
    axes = figure.add_axes((0.17, 0.03, 0.81, 0.77))
    used = sorted({place.baseline for place in places})  # rows without a method are left out
    rows, columns = len(used), len(RATIOS)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    axes.set_xticks(range(columns), RATIOS)
    axes.set_yticks(range(rows), [BASELINES[row] for row in used])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    for row in range(0, rows, 2):
        axes.axhspan(row - 0.5, row + 0.5, color=PALE, alpha=0.6, lw=0)
    figure.text(0.575, 0.945, "how the importance ratio is tamed", ha="center", fontsize=10)
    figure.text(0.02, 0.945, "baseline", fontsize=10)
    for place in places:
        cell = [p for p in places if (p.baseline, p.ratio) == (place.baseline, place.ratio)]
        spread = (cell.index(place) - (len(cell) - 1) / 2) * (0.48 if len(cell) < 3 else 0.33)
        done = place.page in pages
        axes.text(
            place.ratio + spread,
            used.index(place.baseline),
            f"{place.label}\n{place.page}",
            ha="center",
            va="center",
            fontsize=9,
            linespacing=1.25,
            color="white" if done else "#333333",
            weight="bold" if done else "normal",
            bbox={
                "boxstyle": "round,pad=0.35",
                "facecolor": BLUE if done else "white",
                "edgecolor": BLUE if done else GREY,
                "linestyle": "-" if done else "--",
            },
        )
