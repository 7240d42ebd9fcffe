"""The pictures of the page on CISPO, SAPO and DPPO: what a token gets beyond the edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.patches import Polygon
from torch import Tensor

from rlnb.classroom.figures import (
    BLACK,
    GREY,
    METHOD_COLORS,
    METHOD_LINES,
    NEGATIVE,
    POSITIVE,
    Picture,
    static_figure,
)
from rlnb.objective import Batch

__all__ = ["LOOKS", "climbs", "edge_map", "masks", "race", "tightness", "weight_curves", "weights"]

TEXT = 10.5  # points: the size of the page's own text
EPSILON, CAP, TAU_POS, TAU_NEG, DELTA = 0.2, 5.0, 1.0, 1.05, 0.15
LOOKS = {
    "no clip": (GREY, "-"),
    "PPO": (METHOD_COLORS["ppo"], METHOD_LINES["ppo"]),
    "CISPO": (METHOD_COLORS["cispo"], METHOD_LINES["cispo"]),
    "SAPO": (METHOD_COLORS["sapo"], METHOD_LINES["sapo"]),
    "DPPO": (METHOD_COLORS["dppo"], METHOD_LINES["dppo"]),
}
RATIOS = np.linspace(0.02, 7.0, 700)


def weights(ratio: np.ndarray, sign: int, old: float) -> dict[str, np.ndarray]:
    """Method -> the number in front of A grad log pi, at each ratio.

    `sign` of the advantage, 1 or -1; `old` is the token's probability when it was sampled. PPO's
    epsilon is 0.2, CISPO's cap 5, SAPO's temperatures 1 and 1.05, DPPO's delta 0.15.
    """
    ratio = np.asarray(ratio, dtype=float)
    gone = sign * (ratio - 1)  # > 0 where the token has moved as its advantage wants
    tau = TAU_POS if sign > 0 else TAU_NEG
    with np.errstate(over="ignore"):
        fading = ratio / np.cosh(tau / 2 * (ratio - 1)) ** 2
    return {
        "no clip": ratio,
        "PPO": np.where(gone <= EPSILON + 1e-12, ratio, 0.0),
        "CISPO": np.minimum(ratio, CAP),
        "SAPO": fading,
        "DPPO": np.where(old * gone <= DELTA + 1e-12, ratio, 0.0),
    }


def climbs(paths: Mapping[str, Sequence[Sequence[float]]], caption: str) -> Picture:
    """Rule -> two paths: the probability of a rare and of a common token, update by update."""

    def build(figure, _):
        for k in range(2):
            axes = figure.add_axes((0.08 + 0.49 * k, 0.19, 0.27, 0.68))
            ends = []
            for name, both in paths.items():
                color, line = LOOKS[name]
                path = both[k]
                axes.plot(path, color=color, ls=line, lw=2.8, marker="o", ms=4.5)
                ends.append((path[-1], name, color))
            _labels_at_the_end(axes, ends, len(path) - 0.8)
            start = path[0]
            axes.set(xlim=(-0.2, len(path) - 0.9), ylim=(-0.02, 1.03))
            axes.set_xlabel("updates with the one batch", fontsize=TEXT)
            axes.set_ylabel("probability of the token" if k == 0 else "", fontsize=TEXT)
            axes.tick_params(labelsize=TEXT)
            axes.set_title(f"started at {start:g}", fontsize=TEXT, weight="bold")

    said = "; ".join(
        f"{name}: " + " and ".join(f"{path[0]:g} to {path[-1]:.3f}" for path in both)
        for name, both in paths.items()
    )
    return static_figure(
        build,
        size=(900, 300),
        caption=caption,
        alt=f"Probability of two right tokens over the updates. {said}.",
    )


def _labels_at_the_end(axes, ends, x: float) -> None:
    """A name right of each line, pushed apart where two would touch."""
    low = -1.0
    for y, name, color in sorted(ends):
        low = max(y, low + 0.105)
        axes.text(x, low, f"{name} {y:.3f}", color=color, fontsize=TEXT, va="center", weight="bold")


def weight_curves(*names: str, old: float = 0.1, caption: str) -> Picture:
    """The weight of each named rule against the ratio, for a good and for a bad token."""

    def build(figure, _):
        for k, sign in enumerate((1, -1)):
            axes = figure.add_axes((0.07 + 0.49 * k, 0.19, 0.43, 0.6))
            values = weights(RATIOS, sign, old)
            for name in names:
                color, line = LOOKS[name]
                y = values[name].copy()
                y[1:][np.abs(np.diff(y)) > 0.4] = np.nan  # a cliff is a gap, not a steep line
                axes.plot(
                    RATIOS,
                    y,
                    color=color,
                    ls=line,
                    lw=6 if name == "PPO" and len(names) > 1 else 2.6,
                    label=name,
                    solid_capstyle="butt",
                    dash_capstyle="butt",
                )
            axes.axvspan(0.8, 1.2, color=BLACK, alpha=0.08, lw=0)
            axes.set(xlim=(0, 7), ylim=(-0.15, 6.2), xticks=range(8), yticks=range(0, 7, 2))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("ratio ρ of the token", fontsize=TEXT)
            axes.set_ylabel("weight w" if k == 0 else "", fontsize=TEXT)
            kind, color = (("good token, A > 0", POSITIVE), ("bad token, A < 0", NEGATIVE))[k]
            axes.set_title(kind, fontsize=TEXT + 0.5, weight="bold", color=color)
        if len(names) > 1:
            figure.legend(
                *axes.get_legend_handles_labels(),
                loc="upper center",
                fontsize=11,
                ncols=len(names),
                handlelength=3.4,
                bbox_to_anchor=(0.52, 1.02),
            )

    places = np.array([0.5, 1.0, 2.0, 6.0])
    said = " ".join(
        f"{kind}: "
        + "; ".join(
            f"{n} " + ", ".join(f"{x:.2f}" for x in weights(places, s, old)[n]) for n in names
        )
        + "."
        for kind, s in (("Good token", 1), ("Bad token", -1))
    )
    return static_figure(
        build, size=(900, 320), caption=caption, alt=f"Weights at ratios 0.5, 1, 2 and 6. {said}"
    )


def edge_map(batch: Batch | None = None) -> Picture:
    """Old probability against new: where PPO and where DPPO silence a token, for either sign."""

    def build(figure, _):
        for k, sign in enumerate((1, -1)):
            axes = figure.add_axes((0.08 + 0.33 * k, 0.17, 0.28, 0.72))
            if sign > 0:
                ppo = [(0, 0), (1 / 1.2, 1), (0, 1)]
                dppo = [(0, DELTA), (1 - DELTA, 1), (0, 1)]
            else:
                ppo = [(0, 0), (1, 0.8), (1, 0)]
                dppo = [(DELTA, 0), (1, 1 - DELTA), (1, 0)]
            axes.add_patch(Polygon(ppo, fc="#BDBDBD", ec=BLACK, lw=1.6, label="PPO silences"))
            axes.add_patch(
                Polygon(
                    dppo,
                    fc="none",
                    ec=METHOD_COLORS["dppo"],
                    hatch="//",
                    lw=1.6,
                    label="DPPO silences",
                )
            )
            axes.plot([0, 1], [0, 1], color=GREY, lw=1, ls=":")
            if batch is not None:
                _tokens(axes, batch, sign)
            where, said, at = (
                ((0.0001, 0.0002), "0.0001 →\n0.0002", (0.03, 0.62)),
                ((0.99, 0.80), "0.99 →\n0.80", (0.55, 0.2)),
            )[k]
            axes.annotate(
                said, where, at, fontsize=TEXT,
                arrowprops={"arrowstyle": "->", "color": BLACK, "relpos": ((0.05, 0), (1, 1))[k]},
            )  # fmt: skip
            axes.plot(*where, "D", ms=8, mfc="white", mec=BLACK, clip_on=False, zorder=6)
            axes.set(xlim=(0, 1), ylim=(0, 1), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("probability when sampled", fontsize=TEXT)
            axes.set_ylabel("probability now" if k == 0 else "", fontsize=TEXT)
            kind, color = (("good, A > 0", POSITIVE), ("bad, A < 0", NEGATIVE))[k]
            axes.set_title(kind, fontsize=TEXT + 0.5, weight="bold", color=color)
        figure.legend(
            *axes.get_legend_handles_labels(),
            loc="upper left",
            fontsize=11,
            bbox_to_anchor=(0.72, 0.86),
            labelspacing=1.1,
        )
        figure.text(
            0.73,
            0.34,
            "dots: the running group\ndiamonds: the two examples\ndotted line: not moved",
            fontsize=TEXT,
        )

    return static_figure(
        build,
        size=(900, 340),
        alt="Old against new probability. PPO silences a wedge that starts at 0: ratios above 1.2 "
        "for good tokens, below 0.8 for bad ones. DPPO silences what lies more than 0.15 from the "
        "diagonal. Near 0 only PPO silences; near 1, for bad tokens, only DPPO.",
        caption="PPO's edge is a ray from the corner: a rare token may hardly move, a likely one "
        "far. DPPO's edge is a parallel: silent after a move of 0.15, for everybody.",
    )


def _tokens(axes, batch: Batch, sign: int) -> None:
    mask = batch.mask & ((batch.rewards > 0.5) == (sign > 0))[:, None]
    old, now = batch.old_logprobs[mask].exp(), batch.logprobs.detach()[mask].exp()
    axes.plot(
        old,
        now,
        "o",
        ms=8,
        mec="white",
        mfc=POSITIVE if sign > 0 else NEGATIVE,
        ls="",
        clip_on=False,
        zorder=5,
    )


def race(
    rates: Sequence[float], worlds: Mapping[str, Mapping[str, Tensor]], caption: str
) -> Picture:
    """Where training ends against the learning rate; worlds: title -> rule -> (rates, seeds)."""
    tables = {
        title: {
            name: (runs.mean(1).numpy(), (runs.std(1) / runs.shape[1] ** 0.5).numpy())
            for name, runs in rules.items()
        }
        for title, rules in worlds.items()
    }

    def build(figure, _):
        for k, (title, rules) in enumerate(tables.items()):
            axes = figure.add_axes((0.07 + 0.39 * k, 0.19, 0.34, 0.7))
            for name, (mean, error) in rules.items():
                color, line = LOOKS[name]
                axes.errorbar(
                    rates,
                    mean,
                    2 * error,
                    color=color,
                    ls=line,
                    lw=2.6,
                    marker="o",
                    ms=5,
                    capsize=3,
                    label=name,
                )
            axes.set(xscale="log", ylim=(0.68, 1.01))
            axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
            axes.minorticks_off()
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("learning rate (log scale)", fontsize=TEXT)
            axes.set_ylabel("chance to be right, at the end" if k == 0 else "", fontsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
        figure.legend(
            *axes.get_legend_handles_labels(),
            loc="upper left",
            fontsize=11,
            bbox_to_anchor=(0.81, 0.85),
            handlelength=3.2,
        )

    said = ". ".join(
        f"{title}: "
        + "; ".join(
            f"{name} " + ", ".join(f"{x:.2f}" for x in mean) for name, (mean, _) in rules.items()
        )
        for title, rules in tables.items()
    )
    listed = ", ".join(f"{rate:g}" for rate in rates)
    return static_figure(
        build,
        size=(900, 320),
        caption=caption,
        alt=f"Chance at the end, learning rates {listed}. {said}.",
    )


def masks(worlds: Mapping[str, Mapping[str, Tensor]], caption: str) -> Picture:
    """Dots: each of up to four masks at its best rate. worlds: title -> mask -> (rates, seeds)."""
    looks = ((METHOD_COLORS["dppo"], "o"), (BLACK, "s"), (METHOD_COLORS["cispo"], "^"), (GREY, "D"))
    tops = {}
    for title, rules in worlds.items():
        tops[title] = {}
        for name, runs in rules.items():
            best = runs[runs.mean(1).argmax()]
            tops[title][name] = (best.mean().item(), (best.std() / len(best) ** 0.5).item())

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.12, 0.56, 0.82))
        for k, bars in enumerate(tops.values()):
            for j, (name, (mean, error)) in enumerate(bars.items()):
                color, mark = looks[j]
                x = k + 0.21 * (j - 1.5)
                axes.errorbar(
                    x,
                    mean,
                    2 * error,
                    color=color,
                    marker=mark,
                    ms=11,
                    lw=2.4,
                    ls="",
                    capsize=6,
                    label=name if k == 0 else None,
                )
                axes.text(x, mean + 2 * error + 0.005, f"{mean:.3f}", ha="center", fontsize=TEXT)
        axes.axvline(0.5, color=GREY, lw=0.8)
        axes.set(xlim=(-0.5, 1.5), ylim=(0.84, 0.96), yticks=(0.85, 0.9, 0.95))
        axes.set_xticks(range(len(tops)), list(tops), fontsize=11)
        axes.tick_params(axis="y", labelsize=TEXT)
        axes.set_ylabel("chance to be right, at the end", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    said = ". ".join(
        f"{title}: "
        + "; ".join(f"{name} {mean:.3f} ± {error:.3f}" for name, (mean, error) in bars.items())
        for title, bars in tops.items()
    ).replace("\n", " ")
    return static_figure(
        build,
        size=(900, 290),
        caption=caption,
        alt=f"Chance at the end, each at its best rate (± one standard error). {said}.",
    )


def tightness(ends: Mapping[str, Tensor], caption: str) -> Picture:
    """A dot per arm at its own best rate. ends: name -> (rates, seeds).

    The colour is that of the rule before the comma; hollow dots are its variants.
    """
    dots = {}
    for name, runs in ends.items():
        top = runs[runs.mean(1).argmax()]
        dots[name] = (top.mean().item(), (top.std() / len(top) ** 0.5).item())

    def build(figure, _):
        axes = figure.add_axes((0.28, 0.17, 0.56, 0.8))
        for k, (name, (mean, error)) in enumerate(dots.items()):
            color, _line = LOOKS.get(name.split(",")[0], (GREY, "-"))
            axes.errorbar(
                mean,
                -k,
                xerr=2 * error,
                color=color,
                marker="o",
                ms=10,
                mfc="white" if "," in name else color,
                mew=2.4,
                lw=2.4,
                capsize=5,
            )
            axes.text(
                1.02,
                -k,
                f"{mean:.3f}",
                transform=axes.get_yaxis_transform(),
                va="center",
                fontsize=TEXT,
            )
        axes.set_yticks([-k for k in range(len(dots))], list(dots), fontsize=TEXT)
        axes.set(xlim=(0.88, 0.97), ylim=(-len(dots) + 0.4, 0.6))
        axes.tick_params(axis="x", labelsize=TEXT)
        axes.set_xlabel("chance to be right, at the end", fontsize=TEXT)

    said = "; ".join(f"{name} {mean:.3f} ± {error:.3f}" for name, (mean, error) in dots.items())
    return static_figure(
        build,
        size=(900, 330),
        caption=caption,
        alt=f"Chance at the end, each at its best rate (± one standard error). {said}.",
    )
