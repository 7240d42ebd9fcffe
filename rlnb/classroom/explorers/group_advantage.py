"""GRPO's advantage inside one group: size, divisor and the rewards themselves."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice, slider, text_field
from rlnb.classroom.explorers.arguments import checked, echoing, one_of
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, POSITIVE, signed
from rlnb.objective import Batch, group_center, group_zscore

__all__ = [
    "RUNNING_GROUP",
    "alt",
    "build",
    "compute",
    "fill_group",
    "group_advantage_explorer",
    "parse_rewards",
    "update",
]

MAX_SIZE, MAX_REWARD, EDGE = 16, 4.0, 4.4
RUNNING_GROUP = (1.0, 1.0, 0.0, 0.0)
DIVISORS = {"population": "population std", "bessel": "Bessel std", "none": "no division"}
DIAMOND = {"ms": 6.5, "mfc": "white", "mec": BLACK, "mew": 1.4, "ls": ""}
CAPTION = (
    "Centring moves the rewards to mean zero; dividing by the std sets their size to one, however "
    "small the differences were."
)


def parse_rewards(text: str) -> tuple[float, ...]:
    """Numbers separated by commas or blanks. Raises ValueError with a sentence to show.

    >>> parse_rewards("1, 1 0; 0.5,")
    (1.0, 1.0, 0.0, 0.5)
    """
    words = [word for word in re.split(r"[,;\s]+", text.strip()) if word]
    rewards = []
    for word in words:
        try:
            value = float(word.replace("−", "-"))
        except ValueError:
            raise ValueError(
                f"rewards: “{word[:20]}” is not a number. Write numbers with commas between, "
                "like 1, 1, 0, 0."
            ) from None
        if not math.isfinite(value) or abs(value) > MAX_REWARD:
            raise ValueError(
                f"rewards: {word[:20]} is outside −{MAX_REWARD:.0f} to {MAX_REWARD:.0f}, the "
                "range of the figure."
            )
        rewards.append(value)
    if not rewards:
        raise ValueError("rewards: the list is empty. Write at least one number, like 1, 0.")
    return tuple(rewards)


def fill_group(rewards: Sequence[float], size: int, fill: str) -> tuple[float, ...]:
    """The first `size` rewards; a shorter list is repeated, or its last reward is.

    >>> fill_group((1, 0), 5, "list"), fill_group((1, 0), 5, "last")
    ((1, 0, 1, 0, 1), (1, 0, 0, 0, 0))
    """
    missing = max(0, size - len(rewards))
    if fill == "last":
        return (*rewards, *[rewards[-1]] * missing)[:size]
    return tuple((list(rewards) * (missing // len(rewards) + 2))[:size])


def _advantage(rewards: Sequence[float], std: str, eps: float) -> np.ndarray:
    """(G,) by the package's own part."""
    part = group_center() if std == "none" else group_zscore(std=std, eps=eps)
    row = torch.tensor(rewards, dtype=torch.float64)
    one_token = torch.zeros(len(row), 1, dtype=torch.float64)
    batch = Batch(one_token, torch.ones_like(one_token), row, len(row))
    part.check(batch)
    return part(batch, row[:, None])[:, 0].numpy()


@echoing
@checked(std=one_of(DIVISORS), fill=one_of(("list", "last")))
def compute(
    rewards: str | Sequence[float] = RUNNING_GROUP,
    size: int | None = None,
    std: str = "population",
    fill: str = "list",
    eps: float = 1e-6,
) -> dict[str, Any]:
    """Advantages of one group of answers to one prompt.

    `rewards` is a sequence of numbers, or the text of one; `size` is G (default: as many as there
    are rewards): a longer list is cut, a shorter one repeated (`fill="list"`) or continued with its
    last reward (`fill="last"`). `std` is "population", "bessel" or "none"; `eps` is added to the
    std. Returns rewards (G,), advantages (G,), mean, std_of_rewards, the divisor that was used,
    the largest |A|, its bound (sqrt(G-1), or (G-1)/sqrt(G) with Bessel, or None without division),
    equal (all rewards the same), by_std (the advantages under all three divisors), and the
    arguments. Raises ValueError, in a sentence, for rewards it cannot read.

    >>> [compute(std=std)["advantages"][0].round(4).item() for std in DIVISORS]
    [1.0, 0.866, 0.5]
    """
    given = parse_rewards(rewards) if isinstance(rewards, str) else tuple(rewards)
    group = fill_group(given, len(given) if size is None else size, fill)
    table = np.array(group, dtype=float)
    by_std = {name: _advantage(group, name, eps) for name in DIVISORS}
    deviation = {"population": table.std(), "bessel": table.std(ddof=1), "none": 0.0}[std]
    count = len(group)
    bound = {
        "population": math.sqrt(count - 1),
        "bessel": (count - 1) / math.sqrt(count),
        "none": None,
    }[std]
    return {
        "rewards": table,
        "advantages": by_std[std],
        "by_std": by_std,
        "mean": float(table.mean()),
        "std_of_rewards": float(table.std() if std == "none" else deviation),
        "divisor": 1.0 if std == "none" else float(deviation + eps),
        "largest": float(np.abs(by_std[std]).max()),
        "bound": bound,
        "equal": bool(table.max() == table.min()),
        "given": given,
        "size": count,
    }


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    axes = figure.add_axes((0.075, 0.3, 0.91, 0.55))
    axes.set(xlim=(0, 1), ylim=(-EDGE, EDGE), xticks=[], yticks=range(-4, 5, 2))
    axes.set_ylabel("reward, advantage")
    axes.axhline(0, color=BLACK, linewidth=0.8)
    figure.text(0.068, 0.868, r"$A_i$", ha="right")
    axes.set_xlabel("the answers of the group, in the order of their rewards in the list")
    nothing = np.full(MAX_SIZE, np.nan)
    artists = {
        "bars": axes.bar(np.zeros(MAX_SIZE), np.zeros(MAX_SIZE), ec="white", lw=0),
        "mean": axes.plot([0, 1], [0, 0], "--", color=GREY, lw=1.4)[0],
        "bounds": [axes.plot([0, 1], [0, 0], ":", color=BLACK, lw=1.4)[0] for _ in range(2)],
        "rewards": axes.plot(nothing, nothing, "D", **DIAMOND)[0],
        "numbers": [axes.text(0, EDGE * 1.05, "", ha="center", size=9) for _ in range(MAX_SIZE)],
        "text": [figure.text(0.075, 0.165 - 0.066 * line, "", fontsize=9.5) for line in range(2)],
    }
    figure.text(0.075, 0.033, f"A = (reward − mean) / divisor.  {RUNNING_LINE}", fontsize=9.5)
    handles = [
        axes.plot([], [], "D", **DIAMOND, label="reward")[0],
        axes.plot([], [], "--", color=GREY, lw=1.4, label="mean reward")[0],
        axes.fill_between([], [], color=POSITIVE, label="A > 0"),
        axes.fill_between([], [], color=NEGATIVE, hatch="//", ec="white", lw=0, label="A < 0"),
        axes.plot([], [], ":", color=BLACK, lw=1.4, label="largest |A| possible at this G")[0],
    ]
    figure.legend(handles=handles, loc="upper center", ncols=5, bbox_to_anchor=(0.53, 1.005))
    return artists


def update(artists, data):
    """The figure moved to new data."""
    count = data["size"]
    place = (np.arange(count) + 0.5) / count
    width = min(0.62 / count, 0.07)
    artists["mean"].set_ydata([data["mean"]] * 2)
    for side, line in zip((1, -1), artists["bounds"], strict=True):
        line.set_visible(data["bound"] is not None)
        line.set_ydata([side * (data["bound"] or 0)] * 2)
    artists["rewards"].set_data(place, data["rewards"])
    for i in range(MAX_SIZE):
        bar, number = artists["bars"][i], artists["numbers"][i]
        bar.set_visible(i < count)
        number.set_visible(i < count)
        if i < count:
            a = float(data["advantages"][i])
            bar.set(x=place[i] - width / 2, width=width, height=a)
            bar.set(facecolor=POSITIVE if a > 0 else NEGATIVE, hatch="//" if a < 0 else "")
            number.set(x=place[i], text=signed(a, 2))
    for text, line in zip(artists["text"], _lines(data), strict=True):
        text.set_text(line)


def _rule(data) -> str:
    given, count = len(data["given"]), data["size"]
    if given > count:
        return f"the first {count} of {given} given"
    if given < count:
        return f"{given} given, the {'last' if data['fill'] == 'last' else 'list'} repeated"
    return "all given"


def _size_of_advantages(data) -> str:
    if data["equal"]:
        return "All rewards are equal: every advantage is exactly 0, the group pulls nowhere."
    largest = f"Largest |A| {data['largest']:.4f}"
    if data["bound"] is None:
        return f"{largest}; twice the rewards, twice the advantages."
    name = "(G−1)/√G" if data["std"] == "bessel" else "√(G−1)"
    return f"{largest}, at most {name} = {data['bound']:.4f} whatever the rewards."


def _running_group() -> str:
    words = {"population": "population", "bessel": "Bessel", "none": "undivided"}
    by_std = compute()["by_std"]
    parts = [f"±{abs(by_std[name][0]):.4f} {word}" for name, word in words.items()]
    return f"Running group 1, 1, 0, 0: {', '.join(parts)}."


RUNNING_LINE = _running_group()


def _lines(data) -> tuple[str, str]:
    eps = f"{data['eps']:.0e}".replace("e-0", "e-")
    name = "Bessel" if data["std"] == "bessel" else "population"
    divisor = f"divisor: {name} std + {eps} = {data['divisor']:.4f}"
    if data["std"] == "none":
        divisor = f"no divisor ({name} std {data['std_of_rewards']:.4f})"
    return (
        f"G = {data['size']} ({_rule(data)})  ·  mean {data['mean']:.4f}  ·  {divisor}",
        _size_of_advantages(data),
    )


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    rewards = ", ".join(f"{r:g}" for r in data["rewards"])
    advantages = ", ".join(signed(a) for a in data["advantages"])
    return (
        f"Bars: advantages of a group of {data['size']} ({DIVISORS[data['std']]}). Rewards "
        f"{rewards}; mean {data['mean']:.4f}; advantages {advantages}. "
        f"{_size_of_advantages(data)} {RUNNING_LINE}"
    )


def group_advantage_explorer() -> Explorer:
    """Rewards, group size, how a short list is filled up, which std."""
    return Explorer(
        compute,
        build,
        update,
        {
            "rewards": text_field(
                "1, 1, 0, 0", "rewards", "one per answer, commas between, from −4 to 4"
            ),
            "size": slider(4, 2, MAX_SIZE, 1, "group size G", "answers to the one prompt"),
            "fill": choice(
                "list",
                [("the list", "list"), ("the last reward", "last")],
                "if short, repeat",
                "what to repeat when G is larger than the number of rewards",
            ),
            "std": choice(
                "population",
                [("population std", "population"), ("Bessel std", "bessel"), ("nothing", "none")],
                "divide by",
                "population: over G. Bessel: over G − 1.",
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 370),
    )
