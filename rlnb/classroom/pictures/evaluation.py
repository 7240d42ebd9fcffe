"""The pictures of the page on evaluation: pass@k, votes, entropy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

import numpy as np

from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, ORANGE, POSITIVE, Picture, static_figure
from rlnb.training.evaluation import pass_at_k

__all__ = [
    "arms", "crossing", "estimates", "forks", "gained", "heated", "law_on_a_run", "learnability",
    "outvoted", "problem_by_problem", "quadrants", "two_arms", "votes",
]  # fmt: skip

TEXT = 10.5
LINES = ("-", "--", ":")
Counts = Mapping[str, Sequence[int]]


def _plain(axes) -> None:
    axes.tick_params(labelsize=TEXT)


def _bars(rates: Mapping[str, float], label: str, caption: str) -> Picture:
    """A bar a model, the first one black."""

    def build(figure, _):
        axes = figure.add_axes((0.2, 0.2, 0.7, 0.74))
        place = np.arange(len(rates))[::-1]
        colors = [BLACK] + [ORANGE] * (len(rates) - 1)
        axes.barh(place, list(rates.values()), 0.62, color=colors)
        for y, rate in zip(place, rates.values(), strict=True):
            axes.text(rate + 0.01, y, f"{rate:.2f}", fontsize=TEXT, va="center")
        names = ["before", *(f"after, {name}" for name in list(rates)[1:])]
        axes.set_yticks(place, names)
        axes.set(xlim=(0, 1), xticks=np.arange(0, 1.1, 0.25))
        axes.set_xlabel(label, fontsize=TEXT)
        _plain(axes)

    said = ", ".join(f"{name} {rate:.2f}" for name, rate in rates.items())
    return static_figure(build, size=(760, 210), alt=f"{label}: {said}.", caption=caption)


def gained(counts: Counts, answers: int) -> Picture:
    """pass@1 of the base and of each seed, as bars."""
    rates = {name: sum(row) / len(row) / answers for name, row in counts.items()}
    caption = "Countdown, 64 new problems, 64 answers to each. Three seeds of GRPO from one base."
    return _bars(rates, "share of answers that are right", caption)


def outvoted(rates: Mapping[str, float], problems: int) -> Picture:
    """One answer of the base and of each seed, on the problems where the base's vote is wrong."""
    caption = f"The {problems} problems on which the base's vote of 32 answers is wrong."
    return _bars(rates, "share of single answers that are right", caption)


def crossing(counts: Counts, answers: int) -> Picture:
    """pass@k of base and seeds, k = 1, 2, 4 ... answers."""
    ks = [2**i for i in range(answers.bit_length()) if 2**i <= answers]
    curves = {
        name: [float(np.mean([pass_at_k(answers, c, k) for c in row])) for k in ks]
        for name, row in counts.items()
    }

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
        right.set(ylim=(-0.15, 0.3), yticks=(-0.1, 0, 0.1, 0.2))
        for one in (axes, right):
            one.set_xticks(range(len(ks)), ks)
            one.set_xlabel("k, answers to each problem", fontsize=TEXT)
            _plain(one)

    said = "; ".join(
        f"{name}: " + ", ".join(f"{v:.2f} at {k}" for k, v in zip(ks, curve, strict=True))
        for name, curve in curves.items()
    )
    caption = (
        "Left: the chance that at least one of k answers is right. Right: mean of the three seeds, "
        "with two standard errors over the 64 problems."
    )
    return static_figure(build, size=(900, 300), alt=f"pass@k. {said}.", caption=caption)


def heated(curves: Mapping[tuple[str, float], Sequence[float]]) -> Picture:
    """pass@k at k = 1, 2, 4 ... before and after training, at temperatures 0.5, 1 and 1.5."""
    looks = {0.5: (":", "v"), 1.0: ("-", "o"), 1.5: ("--", "^")}
    shown = {key: row for key, row in curves.items() if key[1] in looks}

    def build(figure, _):
        for k, (who, color) in enumerate((("before", BLACK), ("after", ORANGE))):
            axes = figure.add_axes((0.07 + 0.49 * k, 0.18, 0.42, 0.7))
            for T in looks:
                row, (line, mark) = shown[who, T], looks[T]
                axes.plot(range(len(row)), row, color=color, ls=line, marker=mark, ms=5, lw=2,
                          label=f"T = {T:g}")  # fmt: skip
            axes.set_xticks(range(len(row)), [2**i for i in range(len(row))])
            axes.set(ylim=(0.18, 1.03), yticks=(0.25, 0.5, 0.75, 1))
            axes.set_xlabel("k, answers to each problem", fontsize=TEXT)
            axes.set_title(f"pass@k {who} training", fontsize=TEXT, weight="bold")
            axes.legend(fontsize=TEXT, loc="lower right")
            _plain(axes)

    said = "; ".join(
        f"{who}, T = {T:g}: " + ", ".join(f"{v:.2f}" for v in row)
        for (who, T), row in shown.items()
    )
    caption = "Countdown, three temperatures; right: mean of three seeds. T divides the logits."
    return static_figure(build, size=(900, 280), alt=f"pass@k. {said}.", caption=caption)


def problem_by_problem(
    before: Sequence[int], after: Sequence[int], answers: int, rare: int = 10
) -> Picture:
    """Each problem's right answers before and after, a dot each; up to `rare` shaded."""
    b, a = np.array(before), np.array(after)

    def build(figure, _):
        axes = figure.add_axes((0.12, 0.16, 0.84, 0.8))
        axes.axvspan(0, rare + 0.5, color="#E6E6E6")
        axes.plot([0, answers], [0, answers], color=GREY, ls="--", lw=1)
        for mask, color, mark in ((a >= b, POSITIVE, "o"), (a < b, NEGATIVE, "v")):
            axes.plot(b[mask], a[mask], mark, color=color, ms=6.5, alpha=0.75, clip_on=False)
        axes.set(xlim=(0, answers), ylim=(0, answers), xticks=range(0, answers + 1, 16),
                 yticks=range(0, answers + 1, 16))  # fmt: skip
        axes.set_xlabel(f"right answers of {answers}, before", fontsize=TEXT)
        axes.set_ylabel("after", fontsize=TEXT)
        _plain(axes)

    lost = int(((a == 0) & (b > 0)).sum())
    alt = (
        f"{len(b)} problems: {int((a > b).sum())} are solved more often after training, "
        f"{int((a < b).sum())} less often, {lost} not any more."
    )
    caption = (
        "A dot is a problem, seed 0. Blue: right as often as before, or more; orange: less often. "
        f"Grey: the {int((b <= rare).sum())} that had at most {rare} right answers before."
    )
    return static_figure(build, size=(560, 330), alt=alt, caption=caption)


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


def votes(row: Sequence[float], ks: Sequence[int], trained: float) -> Picture:
    """The base's vote over k, and one answer of the trained model as a line."""

    def build(figure, _):
        axes = figure.add_axes((0.09, 0.2, 0.86, 0.75))
        axes.plot(range(len(ks)), row, color=BLACK, lw=2.6, marker="o", ms=5)
        axes.axhline(trained, color=ORANGE, lw=2.6, ls="--")
        axes.text(0.02, trained - 0.08, "trained, one answer", fontsize=TEXT, color="#8A5F00")
        axes.text(3.15, 0.53, "base, vote of k", fontsize=TEXT)
        axes.set_xticks(range(len(ks)), ks)
        axes.set(ylim=(0.3, 1.03), yticks=(0.4, 0.6, 0.8, 1))
        axes.set_xlabel("k, answers to each problem", fontsize=TEXT)
        axes.set_ylabel("share of problems", fontsize=TEXT)
        _plain(axes)

    said = ", ".join(f"{v:.2f} at {k}" for k, v in zip(ks, row, strict=True))
    caption = "Arithmetic chains, 250 new problems; the trained model is a mean of three seeds."
    return static_figure(build, size=(820, 240), alt=f"vote: {said}; trained {trained:.2f}.",
                         caption=caption)  # fmt: skip


def quadrants() -> Picture:
    """Likely or rare, good or bad: what pushing such an answer does to the entropy."""
    cells = (
        (0, 1, "rare and good", "pushed up", "entropy RISES", POSITIVE),
        (1, 1, "likely and good", "pushed up", "entropy FALLS", POSITIVE),
        (0, 0, "rare and bad", "pushed down", "entropy FALLS", NEGATIVE),
        (1, 0, "likely and bad", "pushed down", "entropy RISES", NEGATIVE),
    )

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.14, 0.9, 0.84))
        axes.set(xlim=(0, 2), ylim=(0, 2), xticks=(), yticks=())
        for x, y, kind, move, said, color in cells:
            falls = "FALLS" in said
            axes.add_patch(_rectangle((x + 0.01, y + 0.02), 0.98, 0.96, falls))
            axes.text(x + 0.5, y + 0.73, kind, fontsize=12, ha="center", weight="bold")
            axes.text(x + 0.5, y + 0.47, move, fontsize=TEXT, ha="center", color=color)
            axes.text(x + 0.5, y + 0.17, said, fontsize=12, ha="center")
        axes.set_xlabel("log π, how likely  →", fontsize=TEXT)
        axes.set_ylabel("A, how good  →", fontsize=TEXT)

    alt = (
        "Likely and good, or rare and bad: entropy falls. Rare and good, or likely and bad: rises."
    )
    caption = "Grey: log π and A on the same side of their means. These corners eat entropy."
    return static_figure(build, size=(720, 260), alt=alt, caption=caption)


def _rectangle(corner, width, height, dark):
    from matplotlib.patches import Rectangle

    return Rectangle(corner, width, height, facecolor="#D9D9D9" if dark else "white",
                     edgecolor=GREY, lw=1)  # fmt: skip


def law_on_a_run(law: Mapping[str, Any], arm: str = "plain") -> Picture:
    """-Cov against the change of entropy: steps of training, and steps on one prompt each."""
    runs = [law[name] for name in law if name.startswith(f"{arm}, seed")]
    shown = (
        ("120 steps of training, 8 prompts each", "os^", runs, (-0.044, 0.006), (-15, 5)),
        ("single steps, one prompt each", "o", [law["alone, a tenth of the rate"]],
         (-0.15, 0.05), (-8, 10)),
    )  # fmt: skip
    said = []

    def build(figure, _):
        for k, (title, marks, records, xlim, ylim) in enumerate(shown):
            axes = figure.add_axes((0.09 + 0.49 * k, 0.2, 0.4, 0.68))
            axes.axhline(0, color=BLACK, lw=0.8)
            axes.axvline(0, color=BLACK, lw=0.8)
            for i, (r, mark) in enumerate(zip(records, marks, strict=True)):
                change = 1000 * np.subtract(r["after"], r["before"])
                axes.plot(-np.array(r["per_token"]), np.clip(change, *ylim), mark, ms=5, alpha=0.6,
                          color=(BLACK, ORANGE, GREY)[i])  # fmt: skip
            axes.set(xlim=xlim, ylim=ylim)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            axes.set_xlabel("− Cov(log π, A)", fontsize=TEXT)
            if k == 0:
                axes.set_ylabel("change of entropy,\nnats / 1000", fontsize=TEXT)
            _plain(axes)

    for title, _, records, *_ in shown:
        cov = np.concatenate([r["per_token"] for r in records])
        fell = np.concatenate([np.less(r["after"], r["before"]) for r in records])
        said.append(f"{title}: covariance above 0 in {(cov > 0).sum()} of {len(cov)}, entropy "
                    f"fell in {fell[cov > 0].sum()} of these and in {fell[cov < 0].sum()} of the "
                    "others")  # fmt: skip
    caption = (
        "A mark is one step; a kind of mark is a seed. Lower left and upper right: sign as derived."
    )
    return static_figure(build, size=(900, 290), alt=f"{'; '.join(said)}.", caption=caption)


def forks(rows: Sequence[Mapping[str, Any]], width: int = 38) -> Picture:
    """Answers as tiles, a token each; the darker, the more undecided the model was there."""

    def build(figure, _):
        axes = figure.add_axes((0.01, 0.06, 0.98, 0.9))
        axes.set(xlim=(0, width), ylim=(-len(rows) * 2 + 0.6, 0.8))
        axes.axis("off")
        for i, row in enumerate(rows):
            y = -2 * i
            graded = "right" if row["advantage"] > 0 else "wrong"
            axes.text(0, y + 0.15, f"{row['prompt']}   {graded}", fontsize=TEXT)
            for j, (token, H) in enumerate(zip(row["tokens"], row["entropy"], strict=True)):
                if token == "<eos>":
                    continue
                shade = min(H / 1.6, 1.0)
                axes.add_patch(_tile((j, y - 1), shade))
                axes.text(j + 0.47, y - 0.55, token, fontsize=TEXT,
                          ha="center", va="center", family="DejaVu Sans Mono",
                          color="white" if shade > 0.75 else BLACK)  # fmt: skip

    said = "; ".join(
        " ".join(f"{t} {H:.1f}" for t, H in zip(r["tokens"], r["entropy"], strict=True))
        for r in rows
    )
    caption = (
        "The darker, the more entropy; white is 0, the darkest tile has 1.6 nats. Dark: the first "
        "token, and each digit that has to be worked out."
    )
    return static_figure(build, size=(980, 55 * len(rows) + 40), alt=f"Entropies, {said}.",
                         caption=caption)  # fmt: skip


def _tile(corner, shade):
    from matplotlib.patches import Rectangle

    grey = 1 - 0.85 * shade
    return Rectangle(corner, 0.94, 0.9, facecolor=(grey, grey, grey), edgecolor=GREY, lw=0.6)


def arms(law: Mapping[str, Any], names: Sequence[str]) -> Picture:
    """Entropy and score at the end of each arm, a mark a seed."""

    def build(figure, _):
        for k, (key, title, limits) in enumerate((("entropy", "entropy", (0, 0.16)),
                                                  ("pass@1", "pass@1", (0.6, 1)),
                                                  ("pass@8", "pass@8", (0.88, 1.01)))):  # fmt: skip
            axes = figure.add_axes((0.215 + 0.265 * k, 0.14, 0.225, 0.74))
            for i, name in enumerate(names):
                x = [law[f"{name}, seed {s}"]["end"][key] for s in (0, 1, 2)]
                axes.plot(x, [-i] * 3, "o", color=BLACK if i == 0 else ORANGE, ms=7, alpha=0.8)
            axes.set_yticks([-i for i in range(len(names))], names if k == 0 else [])
            axes.set(ylim=(-len(names) + 0.5, 0.5), xlim=limits)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            _plain(axes)

    said = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{law[f'{name}, seed {s}']['end']['entropy']:.3f} and "
            f"{law[f'{name}, seed {s}']['end']['pass@1']:.2f} and "
            f"{law[f'{name}, seed {s}']['end']['pass@8']:.2f}"
            for s in (0, 1, 2)
        )
        for name in names
    )
    caption = "Forty steps on chains, 64 answers a step, one learning rate; a dot is a seed."
    return static_figure(build, size=(900, 240), alt=f"Entropy, pass@1, pass@8. {said}.",
                         caption=caption)  # fmt: skip


def two_arms(shares: np.ndarray) -> Picture:
    """Two equally right answers, (steps, seeds): the share of the first, a line a seed."""

    def build(figure, _):
        axes = figure.add_axes((0.09, 0.2, 0.87, 0.74))
        axes.plot(shares, color=ORANGE, lw=0.8, alpha=0.5)
        axes.axhline(0.5, color=BLACK, lw=2)
        axes.set(xlim=(0, len(shares) - 1), ylim=(0, 1))
        axes.set_xlabel("training step", fontsize=TEXT)
        axes.set_ylabel("share of the first", fontsize=TEXT)
        _plain(axes)

    end = np.maximum(shares[-1], 1 - shares[-1]).mean()
    alt = f"At the end the larger of the two has {end:.3f} on average."
    caption = "Two answers, both right. A line is a seed; black: what the exact gradient does."
    return static_figure(build, size=(760, 230), alt=alt, caption=caption)


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
