"""The pictures of the page on evaluation that show entropy: what moves it, and where it sits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, ORANGE, POSITIVE, Picture, static_figure

__all__ = ["along_the_run", "arms", "forks", "law_on_a_run", "quadrants", "two_arms"]

TEXT = 10.5


def _plain(axes) -> None:
    axes.tick_params(labelsize=TEXT)


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


def along_the_run(base: Mapping[str, Any], seeds: Sequence[Mapping[str, Any]]) -> Picture:
    """Entropy, pass@1 and pass@16 at every tenth step, a line a seed."""
    panels = (
        ("entropy", "entropy, nats per token", (0.15, 0.2, 0.25, 0.3)),
        ("pass@1", "pass@1", (0.3, 0.4, 0.5, 0.6)),
        ("pass@16", "pass@16", (0.85, 0.9, 0.95)),
    )

    def build(figure, _):
        for i, (key, title, ticks) in enumerate(panels):
            axes = figure.add_axes((0.05 + 0.33 * i, 0.2, 0.27, 0.68))
            for seed, line in zip(seeds, ("-", "--", ":"), strict=True):
                axes.plot([0, *seed["steps"]], base[key] + seed[key], color=ORANGE, lw=2, ls=line)
            axes.axhline(base[key][0], color=BLACK, lw=1)
            axes.set(xlim=(0, max(seeds[0]["steps"])))
            axes.set_yticks(ticks, [f"{tick:.2f}" for tick in ticks])
            axes.set_title(title, fontsize=TEXT, weight="bold")
            axes.set_xlabel("training step", fontsize=TEXT)
            _plain(axes)

    said = "; ".join(
        f"{title}: {base[key][0]:.2f} at the start, at the end "
        + ", ".join(f"{seed[key][-1]:.2f}" for seed in seeds)
        for key, title, _ in panels
    )
    caption = (
        "Countdown, an evaluation of its own: 64 fresh answers to each of the 64 problems. A line "
        "is a seed; black: before."
    )
    return static_figure(build, size=(900, 230), alt=f"{said}.", caption=caption)


def law_on_a_run(steps: Mapping[str, Sequence[float]]) -> Picture:
    """-Cov against the change of entropy: single steps, one prompt each."""
    change = 1000 * np.subtract(steps["after"], steps["before"])
    said = -np.array(steps["per_token"])
    xlim, ylim = (-0.12, 0.06), (-5, 5)
    beyond = (said < xlim[0]) | (said > xlim[1]) | (abs(change) > ylim[1])

    def build(figure, _):
        axes = figure.add_axes((0.1, 0.17, 0.56, 0.8))
        axes.axhline(0, color=BLACK, lw=0.8)
        axes.axvline(0, color=BLACK, lw=0.8)
        for mask, color in ((said > 0, POSITIVE), (said <= 0, NEGATIVE)):
            x, y = np.clip(said[mask], *xlim), np.clip(change[mask], *ylim)
            axes.plot(x, y, "o", ms=5, alpha=0.6, color=color, clip_on=False)
        axes.set(xlim=xlim, ylim=ylim, xticks=(-0.1, -0.05, 0, 0.05), yticks=(-5, 0, 5))
        axes.set_xlabel("what the law says:  − Cov(log π, A)", fontsize=TEXT)
        axes.set_ylabel("change of entropy,\nnats / 1000", fontsize=TEXT)
        _plain(axes)
        for y, up, color in ((0.7, True, POSITIVE), (0.3, False, NEGATIVE)):
            mask = (said > 0) == up
            right = (change[mask] > 0) if up else (change[mask] < 0)
            figure.text(0.69, y, f"law says '{'rises' if up else 'falls'}':\n{right.sum()} of "
                        f"{mask.sum()} {'rose' if up else 'fell'}, {right.mean():.0%}",
                        fontsize=12, color=color, va="center")  # fmt: skip

    up = said > 0
    alt = (
        f"{len(up)} steps. The law says 'rises' {up.sum()} times, entropy rose in "
        f"{(change[up] > 0).sum()} of these; 'falls' {(~up).sum()} times, it fell in "
        f"{(change[~up] < 0).sum()} of these."
    )
    caption = (
        f"A dot is one step from the base on one prompt. {beyond.sum()} dots lie beyond the frame "
        "and are drawn at its edge."
    )
    return static_figure(build, size=(900, 280), alt=alt, caption=caption)


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
        "token, and each digit that must be worked out."
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
                                                  ("pass@1", "pass@1", (0.6, 1)))):  # fmt: skip
            axes = figure.add_axes((0.3 + 0.36 * k, 0.14, 0.31, 0.74))
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
            f"{law[f'{name}, seed {s}']['end']['pass@1']:.2f}"
            for s in (0, 1, 2)
        )
        for name in names
    )
    caption = "Forty steps on chains, 64 answers a step, one learning rate; a dot is a seed."
    return static_figure(build, size=(900, 240), alt=f"Entropy, pass@1. {said}.",
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
