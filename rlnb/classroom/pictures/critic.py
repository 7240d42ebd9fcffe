"""The pictures of the page on the critic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from rlnb.classroom.figures import (
    BLACK,
    GREEN,
    GREY,
    NEGATIVE,
    ORANGE,
    PALE,
    POSITIVE,
    PURPLE,
    SKY,
    Picture,
    signed,
    static_figure,
)

__all__ = ["best_of", "credit", "fade", "memory", "pushes", "rates_sweep", "two_answers"]

TEXT = 10.5  # points: the size of the page's own text
RULES = {
    "no critic": (GREY, "-", "s"),
    "λ = 0": (SKY, ":", "v"),
    "λ = 0.95": (BLACK, "--", "o"),
    "λ = 1": (GREEN, "-.", "^"),
}
TRAINED, FROZEN = ORANGE, PALE


def pushes(
    panels: Mapping[str, Tensor], *, caption: str, named: Mapping[str, int] | None = None
) -> Picture:
    """Mean gradient on the logit of each token, a panel per rule; `named` tokens get an arrow."""
    data = {name: push.detach().numpy() for name, push in panels.items()}
    named = named or {}

    def build(figure, _):
        width = 0.92 / len(data)
        for k, (name, push) in enumerate(data.items()):
            axes = figure.add_axes((0.08 + width * k, 0.19, width - 0.03, 0.66))
            colors = [POSITIVE if x > 0 else NEGATIVE for x in push]
            axes.bar(np.arange(len(push)), push, 1.0, color=colors)
            axes.axhline(0, color=BLACK, lw=0.6)
            axes.set(xlim=(-2, len(push) + 1), ylim=(-0.32, 0.32), yticks=(-0.2, 0, 0.2))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("token of the answer", fontsize=TEXT)
            axes.set_ylabel("mean gradient" if k == 0 else "", fontsize=TEXT)
            axes.tick_params(labelleft=k == 0)
            axes.set_title(name, fontsize=11, weight="bold")
            for label, t in named.items():
                axes.annotate(
                    f"{label} {signed(float(push[t]), 2)}",
                    (t, max(push[t], 0) + 0.005),
                    (t, 0.285),
                    ha="center",
                    fontsize=TEXT,
                    arrowprops={"arrowstyle": "-|>", "color": GREY},
                )

    said = "; ".join(
        ", ".join(
            [f"{name}: largest {np.abs(push).max():.2f}"]
            + [f"{label} {signed(float(push[t]), 2)}" for label, t in named.items()]
        )
        for name, push in data.items()
    )
    alt = f"Bars, the mean gradient on each of {len(push_of(data))} tokens. {said}."
    return static_figure(build, size=(900, 235), alt=alt, caption=caption)


def push_of(data: Mapping[str, np.ndarray]) -> np.ndarray:
    """Any of the rows: they have one length."""
    return next(iter(data.values()))


def two_answers(
    answers: Mapping[str, tuple[Sequence[float], float]], decisive: Sequence[int], *, caption: str
) -> Picture:
    """The value before each token and the reward behind the last: (V, R) per answer, with jumps."""

    def build(figure, _):
        for k, (name, (values, reward)) in enumerate(answers.items()):
            axes = figure.add_axes((0.07 + 0.5 * k, 0.19, 0.41, 0.67))
            path = np.append(values, reward)
            color = POSITIVE if reward else NEGATIVE
            axes.step(np.arange(len(path)), path, where="post", color=color, lw=2.8)
            axes.plot(len(path) - 1, reward, "o", color=color, ms=9, clip_on=False)
            for t in decisive:
                jump = path[t + 1] - path[t]
                low = abs(jump) < 0.25  # too low a step to write beside it
                y = path[t + 1] - 0.05 if low else (path[t + 1] + path[t]) / 2
                axes.text(t + 4, y, f"token {t}\n{signed(jump, 2)}", fontsize=11,
                          va="top" if low else "center", weight="bold")  # fmt: skip
            axes.set(xlim=(0, len(path) - 1), ylim=(-0.03, 1.05), yticks=(0, 0.5, 1))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("token of the answer", fontsize=TEXT)
            axes.set_ylabel("chance to be right" if k == 0 else "", fontsize=TEXT)
            axes.set_title(name, fontsize=11, weight="bold")

    said = "; ".join(
        f"{name}: " + ", ".join(f"{v:.2f}" for v in dict.fromkeys(map(float, values)))
        for name, (values, _) in answers.items()
    )
    alt = f"Value along an answer, a staircase per panel with two steps. {said}."
    return static_figure(build, size=(900, 225), alt=alt, caption=caption)


def credit(means: Mapping[str, Sequence[float]], tokens: Sequence[str], *, caption: str) -> Picture:
    """Mean gradient over all answers on a few tokens: a bar per critic."""
    colors = (BLACK, PURPLE)

    def build(figure, _):
        axes = figure.add_axes((0.09, 0.13, 0.6, 0.82))
        for k, (name, values) in enumerate(means.items()):
            x = np.arange(len(values)) + 0.36 * (k - 0.5)
            axes.bar(x, values, 0.34, color=colors[k], hatch="//" if k else "", ec="white",
                     label=name)  # fmt: skip
            for at, value in zip(x, values, strict=True):
                above = value >= 0
                axes.text(
                    at,
                    value + (0.008 if above else -0.008),
                    signed(value, 3),
                    ha="center",
                    va="bottom" if above else "top",
                    fontsize=11,
                )
        axes.axhline(0, color=BLACK, lw=0.8)
        axes.set(ylim=(-0.1, 0.22), xticks=range(len(tokens)), yticks=(-0.1, 0, 0.1, 0.2))
        axes.set_xticklabels(tokens)
        axes.tick_params(labelsize=11)
        axes.set_ylabel("mean gradient", fontsize=TEXT)
        axes.legend(fontsize=11, loc="upper left", bbox_to_anchor=(1.02, 1))

    said = "; ".join(
        f"{name}: " + ", ".join(f"{t} {signed(v, 3)}" for t, v in zip(tokens, values, strict=True))
        for name, values in means.items()
    )
    return static_figure(
        build, size=(900, 210), alt=f"Mean gradient on the token's logit. {said}.", caption=caption
    )


def fade(curves: Mapping[str, Sequence[float]], token: int, *, caption: str) -> Picture:
    """The advantage of each token of one right answer, for several lambdas or critics."""
    styles = dict(
        zip(curves, ((BLACK, "--"), (GREY, ":"), (GREEN, "-."), (POSITIVE, "-")), strict=False)
    )

    def build(figure, _):
        axes = figure.add_axes((0.07, 0.17, 0.62, 0.78))
        for name, values in curves.items():
            color, line = styles[name]
            axes.plot(values, color=color, ls=line, lw=2.6, label=f"{name}: {values[token]:.2g}")
        axes.axvline(token, color=GREY, lw=1, ls=":")
        axes.text(token + 1, 1.06, "the plan", fontsize=TEXT, color=GREY)
        axes.set(xlim=(0, len(next(iter(curves.values()))) - 1), ylim=(-0.03, 1.14),
                 yticks=(0, 0.5, 1))  # fmt: skip
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("token of the answer", fontsize=TEXT)
        axes.set_ylabel("advantage", fontsize=TEXT)
        axes.legend(fontsize=11, loc="upper left", bbox_to_anchor=(1.01, 1),
                    title="the plan token gets", title_fontsize=11)  # fmt: skip

    said = "; ".join(f"{name}: {values[token]:.2g}" for name, values in curves.items())
    alt = f"Advantage along one right answer. Token {token} gets {said}."
    return static_figure(build, size=(900, 235), alt=alt, caption=caption)


def rates_sweep(rates: Sequence[float], arms: Mapping[str, Tensor], *, caption: str) -> Picture:
    """Chance to be right at the end against the learning rate: (rates, seeds) per arm."""
    tables = {
        name: (runs.mean(1).numpy(), (runs.std(1) / runs.shape[1] ** 0.5).numpy())
        for name, runs in arms.items()
    }

    def build(figure, _):
        axes = figure.add_axes((0.07, 0.17, 0.55, 0.79))
        for name, (mean, error) in tables.items():
            color, line, marker = RULES[name]
            axes.errorbar(
                np.log2(rates),
                mean,
                2 * error,
                color=color,
                ls=line,
                marker=marker,
                lw=2.2,
                ms=7,
                capsize=3,
                label=f"{name}: best {mean.max():.3f}",
            )
        axes.set(ylim=(0.45, 1.01), xticks=np.log2(rates))
        axes.set_xticklabels([f"{rate:g}" for rate in rates])
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("learning rate of the policy", fontsize=TEXT)
        axes.set_ylabel("right, at the end", fontsize=TEXT)
        axes.legend(fontsize=11, loc="upper left", bbox_to_anchor=(1.02, 1))

    said = "; ".join(
        f"{name} " + ", ".join(f"{x:.2f}" for x in mean) + f", best {mean.max():.3f}"
        for name, (mean, _) in tables.items()
    )
    listed = ", ".join(f"{rate:g}" for rate in rates)
    alt = f"Mean chance to be right at the end, learning rates {listed}. {said}."
    return static_figure(build, size=(900, 245), alt=alt, caption=caption)


def best_of(arms: Mapping[str, Tensor], *, caption: str) -> Picture:
    """Chance to be right at the best learning rate: (rates, seeds) per arm, a bar each.

    The first bar is what was tried to be changed, the last what it is compared with.
    """
    bars = {}
    for name, runs in arms.items():
        best = runs[runs.mean(1).argmax()]
        bars[name] = (best.mean().item(), (best.std() / len(best) ** 0.5).item())

    def build(figure, _):
        axes = figure.add_axes((0.25, 0.2, 0.66, 0.78))
        last = list(bars.values())[-1][0]
        for row, (mean, error) in enumerate(bars.values()):
            compared = row == len(bars) - 1
            axes.barh(row, mean, 0.64, xerr=2 * error, capsize=3, ec=BLACK,
                      color=GREY if compared else PALE if row == 0 else SKY,
                      hatch="//" if compared else "")  # fmt: skip
            axes.text(mean + 2 * error + 0.004, row, f"{mean:.3f}", va="center", fontsize=11)
        axes.axvline(last, color=BLACK, lw=1.2, ls=":")
        axes.set(xlim=(0.8, 1.03), ylim=(len(bars) - 0.5, -0.5), yticks=range(len(bars)),
                 xticks=(0.8, 0.85, 0.9, 0.95, 1.0))  # fmt: skip
        axes.set_yticklabels(bars)
        axes.tick_params(labelsize=11)
        axes.set_xlabel("right, at the end, at the best rate (the axis begins at 0.8)",
                        fontsize=TEXT)  # fmt: skip

    said = "; ".join(f"{name} {mean:.3f}" for name, (mean, _) in bars.items())
    alt = f"Bars, mean chance to be right at the end at the best learning rate. {said}."
    return static_figure(build, size=(900, 240), alt=alt, caption=caption)


def memory(setups: Mapping[str, Mapping[str, float]], trained: Sequence[str], *,
           caption: str) -> Picture:  # fmt: skip
    """Bytes per parameter, model by model: a bar per set-up. `trained` models are orange."""

    def build(figure, _):
        axes = figure.add_axes((0.19, 0.23, 0.78, 0.75))
        for row, models in enumerate(setups.values()):
            left = 0.0
            for model, size in models.items():
                on = model in trained
                axes.barh(row, size, 0.62, left=left, color=TRAINED if on else FROZEN, ec=BLACK)
                label = f"{model} {size:g}" if size > 4 else f"{model[:3]}."
                axes.text(left + size / 2, row, label, ha="center", va="center", fontsize=11)
                left += size
            axes.text(left + 0.5, row, f"= {left:g}", va="center", fontsize=11, weight="bold")
        axes.set(ylim=(len(setups) - 0.5, -0.5), xlim=(0, 41), yticks=range(len(setups)))
        axes.set_yticklabels(setups)
        axes.tick_params(labelsize=11)
        key = "bytes per parameter      orange: trained, 16 each      grey: frozen, 2 each"
        axes.set_xlabel(key, fontsize=TEXT)

    said = "; ".join(f"{name}: {sum(models.values()):g}" for name, models in setups.items())
    alt = f"Bytes per parameter, without activations. {said}."
    return static_figure(build, size=(900, 230), alt=alt, caption=caption)
