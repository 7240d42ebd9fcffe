"""The pictures of the page on evaluation that show answers: pass@k, votes, problem by problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb

import numpy as np

from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, ORANGE, POSITIVE, Picture, static_figure
from rlnb.training.evaluation import pass_at_k

__all__ = [
    "crossing", "estimates", "heated", "learnability", "over_temperature",
    "problem_by_problem", "spread", "two_kinds", "votes", "ways",
]  # fmt: skip

TEXT = 10.5
LINES = ("-", "--", ":")
Counts = Mapping[str, Sequence[int]]


def _plain(axes) -> None:
    axes.tick_params(labelsize=TEXT)


def crossing(counts: Counts, answers: int, largest: int) -> Picture:
    """pass@k of base and seeds, k = 1, 2, 4 ... largest."""
    ks = [2**i for i in range(largest.bit_length())]
    each = {
        name: np.array([[pass_at_k(answers, c, k) for k in ks] for c in row])
        for name, row in counts.items()
    }
    curves = {name: rows.mean(0).tolist() for name, rows in each.items()}
    first, *others = each.values()
    gap = np.mean(others, axis=0) - first  # (problems, ks), the mean of the seeds
    error = gap.std(0, ddof=1) / len(gap) ** 0.5

    def build(figure, _):
        axes = figure.add_axes((0.07, 0.18, 0.47, 0.72))
        for i, (name, curve) in enumerate(curves.items()):
            look = {"color": BLACK, "lw": 3, "marker": "o"} if i == 0 else {
                "color": ORANGE, "lw": 2, "ls": LINES[i - 1], "marker": "s"}  # fmt: skip
            axes.plot(range(len(ks)), curve, ms=5, label="before" if i == 0 else f"after, {name}",
                      **look)  # fmt: skip
        axes.set(ylim=(0.25, 1.02), yticks=(0.25, 0.5, 0.75, 1))
        axes.set_title("pass@k", fontsize=TEXT, weight="bold")
        axes.legend(fontsize=TEXT, loc="lower right")
        right = figure.add_axes((0.63, 0.18, 0.35, 0.72))
        right.axhline(0, color=BLACK, lw=1)
        right.errorbar(range(len(ks)), gap.mean(0), 2 * error, fmt="s", color=ORANGE, ecolor=GREY,
                       capsize=3, ms=6, lw=1.6)  # fmt: skip
        right.set_title("after minus before", fontsize=TEXT, weight="bold")
        right.set(ylim=(-0.15, 0.3))
        right.set_yticks((-0.1, 0, 0.1, 0.2), ("−0.1", "0", "0.1", "0.2"))
        for one in (axes, right):
            one.set_xticks(range(len(ks)), ks)
            one.set_xlabel("k, answers to each problem", fontsize=TEXT)
            _plain(one)

    said = "; ".join(
        f"{name}: " + ", ".join(f"{v:.2f} at {k}" for k, v in zip(ks, curve, strict=True))
        for name, curve in curves.items()
    )
    caption = (
        "Left: the chance that at least one of k answers is right. Right: mean of the three seeds. "
        "Bars: two standard errors over the 64 problems. They cover neither other bases nor new "
        "training seeds."
    )
    return static_figure(build, size=(900, 300), alt=f"pass@k. {said}.", caption=caption)


def two_kinds(counts: Counts, product: Sequence[bool], answers: int, largest: int) -> Picture:
    """pass@k of the base and of the trained models' mean, where sums are enough and where not."""
    ks = [2**i for i in range(largest.bit_length())]
    rows = {
        name: np.array([[pass_at_k(answers, c, k) for k in ks] for c in row])
        for name, row in counts.items()
    }
    base, *others = rows.values()
    after = np.mean(others, axis=0)
    kinds = {"sums are enough": ~np.array(product), "a product is needed": np.array(product)}

    def build(figure, _):
        for i, (name, kind) in enumerate(kinds.items()):
            axes = figure.add_axes((0.07 + 0.49 * i, 0.18, 0.42, 0.7))
            gap = (after - base)[kind]
            error = 2 * gap.std(0, ddof=1) / len(gap) ** 0.5
            axes.plot(range(len(ks)), base[kind].mean(0), "o-", color=BLACK, lw=2.4, ms=5,
                      label="before")  # fmt: skip
            axes.errorbar(range(len(ks)), after[kind].mean(0), error, fmt="s--", color=ORANGE,
                          ecolor=GREY, capsize=3, lw=2, ms=5, label="after")  # fmt: skip
            axes.set(ylim=(0, 1.05), yticks=(0, 0.25, 0.5, 0.75, 1))
            axes.set_xticks(range(len(ks)), ks)
            axes.set_xlabel("k, answers to each problem", fontsize=TEXT)
            axes.set_title(f"{name}: {kind.sum()} problems", fontsize=TEXT, weight="bold")
            if i == 0:
                axes.legend(fontsize=TEXT, loc="lower right")
            _plain(axes)

    said = "; ".join(
        f"{name}: before " + ", ".join(f"{v:.2f}" for v in base[kind].mean(0))
        + ", after " + ", ".join(f"{v:.2f}" for v in after[kind].mean(0))
        for name, kind in kinds.items()
    )  # fmt: skip
    caption = (
        "pass@k by kind of problem; after: the mean of three seeds. Bars: two standard errors of "
        "after minus before, over the problems."
    )
    return static_figure(build, size=(900, 280), alt=f"pass@k. {said}.", caption=caption)


def spread(chances: Mapping[str, Sequence[float]], k: int) -> Picture:
    """{"before": each pair's p, ...}: a panel each, the dots on the curve p -> pass@k."""
    line = np.linspace(0, 0.62, 200)
    means = {
        name: (np.mean(row), np.mean(1 - (1 - np.array(row)) ** k)) for name, row in chances.items()
    }

    def build(figure, _):
        for i, (name, row) in enumerate(chances.items()):
            p, (x, y) = np.array(row), means[name]
            axes = figure.add_axes((0.07 + 0.49 * i, 0.18, 0.42, 0.71))
            axes.plot(line, 1 - (1 - line) ** k, color=GREY, lw=1.2, zorder=0)
            axes.plot(p, 1 - (1 - p) ** k, "o", color=ORANGE if i else BLACK, ms=6, alpha=0.6)
            axes.plot([x, x], [y, 1 - (1 - x) ** k], color=BLACK, ls=":", lw=1.6)
            axes.plot(x, y, "X", color=BLACK, mfc="white", ms=11, mew=1.6)
            axes.text(x + 0.025, y - 0.03, f"mean: p {x:.2f}, pass@{k} {y:.2f}", fontsize=TEXT,
                      va="top")  # fmt: skip
            axes.set(xlim=(-0.015, 0.62), ylim=(0, 1.05), yticks=(0, 0.25, 0.5, 0.75, 1))
            axes.set_xlabel("p, chance that one answer is right", fontsize=TEXT)
            axes.set_title(f"pass@{k}, {name}", fontsize=TEXT, weight="bold")
            _plain(axes)

    said = "; ".join(
        f"{name}: p from {min(row):.3f} to {max(row):.2f}, "
        f"{sum(p < 0.02 for p in row)} below 0.02, mean p {means[name][0]:.2f}, "
        f"mean pass@{k} {means[name][1]:.2f}"
        for name, row in chances.items()
    )
    caption = (
        f"A dot is one of the {len(next(iter(chances.values())))} pairs in the table's last row. "
        "Cross: the mean of the dots. Dotted: from it up to the curve, where the mean would lie if "
        "all pairs had the mean p."
    )
    return static_figure(build, size=(900, 290), alt=f"{said}.", caption=caption)


def estimates(p: float, k: int, largest: int = 64) -> Picture:
    """What either estimate of pass@k says on average, for n answers; the truth as a line."""
    ns = np.arange(k, largest + 1)
    truth, rows = 1 - (1 - p) ** k, {"plug-in": [], "counting subsets": []}
    for n in ns.tolist():
        weights = [comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
        plug = sum(w * (1 - (1 - c / n) ** k) for c, w in enumerate(weights))
        rows["plug-in"].append(plug)
        rows["counting subsets"].append(sum(w * pass_at_k(n, c, k) for c, w in enumerate(weights)))

    def build(figure, _):
        axes = figure.add_axes((0.1, 0.2, 0.86, 0.74))
        axes.plot(ns, rows["counting subsets"], color=BLACK, lw=2.6)
        axes.plot(ns, rows["plug-in"], color=ORANGE, ls="--", lw=2.6)
        axes.set(xlim=(k, largest), ylim=(0.36, 0.62))
        axes.text(30, truth + 0.012, "counting subsets, and the truth", fontsize=TEXT)
        axes.text(24, rows["plug-in"][24 - k] - 0.04, "plug-in", fontsize=TEXT, color="#8A5F00")
        axes.set_xlabel("n, answers that you have", fontsize=TEXT)
        axes.set_ylabel(f"pass@{k}, mean estimate", fontsize=TEXT)
        _plain(axes)

    alt = (
        f"Truth {truth:.3f}. Plug-in {rows['plug-in'][0]:.3f} at n = {k}, "
        f"{rows['plug-in'][-1]:.3f} at n = {largest}. Counting subsets is exact at every n."
    )
    caption = f"A problem that is solved once in {1 / p:.0f} times; mean over all outcomes, exact."
    return static_figure(build, size=(760, 240), alt=alt, caption=caption)


def learnability(p: np.ndarray, rows: Mapping[str, np.ndarray]) -> Picture:
    """Curves over the pass rate."""

    def build(figure, _):
        axes = figure.add_axes((0.09, 0.2, 0.87, 0.74))
        for (name, row), line, color in zip(
            rows.items(), LINES, (BLACK, ORANGE, GREY), strict=False
        ):
            axes.plot(p, row, color=color, ls=line, lw=2.4, label=name)
        axes.set(xlim=(0, 1), ylim=(0, 1.05))
        axes.set_xlabel("p, the prompt's pass rate", fontsize=TEXT)
        axes.legend(fontsize=TEXT, loc="lower center")
        _plain(axes)

    alt = "; ".join(f"{name} peaks at {p[row.argmax()]:.2f}" for name, row in rows.items())
    caption = "How much a prompt can teach, each curve relative to its highest point."
    return static_figure(build, size=(760, 240), alt=alt, caption=caption)


def ways(rates: Mapping[str, Mapping[str, float]]) -> Picture:
    """{"sampled": {model: share}, "likeliest token": {...}}: a panel each, a bar a model."""
    caption = (
        "Arithmetic chains, 250 new problems; share of answers that are right. Orange: trained, "
        "mean of three seeds."
    )

    def build(figure, _):
        for i, (how, row) in enumerate(rates.items()):
            axes = figure.add_axes((0.22 + 0.4 * i, 0.13, 0.34, 0.72))
            place = np.arange(len(row))[::-1]
            colors = [ORANGE if "trained" in name else BLACK for name in row]
            axes.barh(place, list(row.values()), 0.62, color=colors)
            for y, rate in zip(place, row.values(), strict=True):
                axes.text(rate + 0.02, y, f"{rate:.2f}", fontsize=TEXT, va="center")
            axes.set_yticks(place, list(row) if i == 0 else [""] * len(row))
            axes.set(xlim=(0, 1.18), xticks=(0, 0.5, 1))
            axes.set_title(how, fontsize=TEXT, weight="bold")
            _plain(axes)

    said = "; ".join(
        f"{how}: " + ", ".join(f"{name} {rate:.2f}" for name, rate in row.items())
        for how, row in rates.items()
    )
    return static_figure(build, size=(900, 200), alt=f"{said}.", caption=caption)


def heated(curves: Mapping[tuple[str, float], np.ndarray]) -> Picture:
    """pass@k, (problems, k = 1, 2, 4 ...), of the base and the trained model, with two errors."""
    looks = {("before", 1.0): ("-", "o"), ("before", 0.5): (":", "v"),
             ("after", 1.0): ("-", "s"), ("after", 1.5): ("--", "^")}  # fmt: skip

    def build(figure, _):
        axes = figure.add_axes((0.07, 0.16, 0.62, 0.8))
        for i, (key, (line, mark)) in enumerate(looks.items()):
            if key not in curves:
                continue
            rows = curves[key]
            error = 2 * rows.std(0, ddof=1) / len(rows) ** 0.5
            x = np.arange(rows.shape[1]) + 0.08 * (i - 1.5)
            axes.errorbar(x, rows.mean(0), error, color=BLACK if key[0] == "before" else ORANGE,
                          ls=line, marker=mark, ms=6, lw=2, elinewidth=1, capsize=2,
                          label=f"{key[0]}, T = {key[1]:g}")  # fmt: skip
        axes.set_xticks(range(rows.shape[1]), [2**i for i in range(rows.shape[1])])
        axes.set(ylim=(0.18, 1.03), yticks=(0.25, 0.5, 0.75, 1))
        axes.set_xlabel("k, answers to each problem", fontsize=TEXT)
        axes.set_ylabel("pass@k", fontsize=TEXT)
        axes.legend(fontsize=TEXT, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
        _plain(axes)

    said = "; ".join(
        f"{who}, T = {T:g}: " + ", ".join(f"{v:.2f}" for v in rows.mean(0))
        for (who, T), rows in curves.items()
    )
    caption = (
        "Countdown, before and after training (mean of three seeds). T divides the logits of a "
        "token. Bars: two standard errors over 64 problems."
    )
    return static_figure(build, size=(900, 300), alt=f"pass@k. {said}.", caption=caption)


def over_temperature(rates: Mapping[tuple[str, float], np.ndarray]) -> Picture:
    """{("before" or "after", T): (problems, 2)}: pass@1 and pass@16, a panel each, over T."""
    heats = sorted({T for _, T in rates})

    def mean(who, k):
        return [rates[who, T][:, k].mean() for T in heats]

    def build(figure, _):
        for k, title in enumerate(("pass@1", "pass@16")):
            axes = figure.add_axes((0.06 + 0.5 * k, 0.18, 0.43, 0.71))
            gaps = [(rates["after", T] - rates["before", T])[:, k] for T in heats]
            error = [2 * gap.std(ddof=1) / len(gap) ** 0.5 for gap in gaps]
            axes.plot(heats, mean("before", k), "o-", color=BLACK, lw=2.4, ms=6, label="before")
            axes.errorbar(heats, mean("after", k), error, fmt="s--", color=ORANGE, ecolor=GREY,
                          capsize=3, lw=2, ms=6, label="after")  # fmt: skip
            axes.set(ylim=(0, 1.05), yticks=(0, 0.25, 0.5, 0.75, 1), xlim=(-0.07, 1.57))
            axes.set_xticks((0, 0.5, 1, 1.5), ("greedy", "0.5", "1", "1.5"))
            axes.set_xlabel("temperature T", fontsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            if k == 0:
                axes.legend(fontsize=TEXT, loc="lower left")
            _plain(axes)

    said = "; ".join(
        f"{title}, {who}: "
        + ", ".join(f"{v:.2f} at {T:g}" for T, v in zip(heats, mean(who, k), strict=True))
        for k, title in enumerate(("pass@1", "pass@16"))
        for who in ("before", "after")
    )
    caption = (
        "64 answers to each problem; after: the mean of three seeds. Greedy takes the likeliest "
        "token, so its answers are all the same. Bars: two standard errors of after minus before, "
        "over the problems."
    )
    return static_figure(build, size=(900, 290), alt=f"{said}.", caption=caption)


def problem_by_problem(
    before: Sequence[int], after: Sequence[int], sure: Sequence[bool], answers: int
) -> Picture:
    """Each problem's right answers before and after; full where the two differ for sure."""
    b, a, known = np.array(before), np.array(after), np.array(sure)
    pad = answers / 32

    def build(figure, _):
        axes = figure.add_axes((0.09, 0.15, 0.5, 0.82))
        axes.plot([0, answers], [0, answers], color=GREY, ls="--", lw=1)
        for mask, color, mark, name in (
            (known & (a > b), POSITIVE, "o", "rose, beyond chance"),
            (known & (a < b), NEGATIVE, "v", "fell, beyond chance"),
            (~known, GREY, "o", "could be chance"),
        ):
            face = "white" if name.startswith("could") else color
            axes.plot(b[mask], a[mask], mark, color=color, mfc=face, ms=6.5, alpha=0.85,
                      label=f"{name}: {mask.sum()}")  # fmt: skip
        axes.set(xlim=(-pad, answers + pad), ylim=(-pad, answers + pad),
                 xticks=range(0, answers + 1, 16), yticks=range(0, answers + 1, 16))  # fmt: skip
        axes.set_xlabel(f"right answers of {answers}, before", fontsize=TEXT)
        axes.set_ylabel("after", fontsize=TEXT)
        axes.legend(fontsize=TEXT, loc="center left", bbox_to_anchor=(1.03, 0.5), frameon=False)
        _plain(axes)

    zero, up, down = (
        int((known & m).sum()) for m in (a == 0, a > b, a < b)
    )  # fmt: skip
    alt = (
        f"{len(b)} problems: {up} rose and {down} "
        f"fell by more than chance allows; {zero} of these are not solved any more."
    )
    caption = (
        "A mark is a problem, seed 0. Above the broken line: right more often after training. "
        "Beyond chance: Fisher's exact test says that the two counts do not come from one chance "
        f"(at 0.05/{len(b)}, since there are {len(b)} tests)."
    )
    return static_figure(build, size=(820, 320), alt=alt, caption=caption)


def votes(rows: Mapping[str, Sequence[float]], ks: Sequence[int]) -> Picture:
    """The vote over k, a line a model; a shorter row ends earlier."""

    def build(figure, _):
        axes = figure.add_axes((0.09, 0.2, 0.72, 0.75))
        looks = ((BLACK, "-", "o"), (ORANGE, "--", "s"))
        for (name, row), (color, line, mark) in zip(rows.items(), looks, strict=False):
            axes.plot(range(len(row)), row, color=color, ls=line, lw=2.6, marker=mark, ms=5,
                      label=name)  # fmt: skip
        axes.set_xticks(range(len(ks)), ks)
        axes.set(ylim=(0.3, 1.03), yticks=(0.4, 0.6, 0.8, 1))
        axes.set_xlabel("k, answers that vote", fontsize=TEXT)
        axes.set_ylabel("share of problems", fontsize=TEXT)
        axes.legend(fontsize=TEXT, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
        _plain(axes)

    said = "; ".join(
        f"{name}: " + ", ".join(f"{v:.2f} at {k}" for k, v in zip(ks, row, strict=False))
        for name, row in rows.items()
    )
    caption = (
        "Chains, 250 new problems; the orange line is the mean of three seeds. Of two answers that "
        "differ the first one wins, so k = 2 gains nothing."
    )
    return static_figure(build, size=(820, 230), alt=f"Vote. {said}.", caption=caption)
