"""A calculator: does a training step fit on your card, and how fast can it be at best?

Counted from shapes, by the function that the trainer and its plans use as well
(`rlnb.training.studies.gpu_budget`), and from data sheets (`gpu_time`); nothing was measured on a
GPU.
"""

from __future__ import annotations

from typing import Any

from rlnb.classroom.explorer import Explorer, choice_slider, switch
from rlnb.classroom.explorers.arguments import checked, one_of
from rlnb.classroom.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PALE, PURPLE, SKY, VERMILLION
from rlnb.training.studies.gpu_budget import (
    GB,
    MODELS,
    OPTIMIZERS,
    SHAPES,
    Load,
    Precision,
    Shape,
    bytes_per_parameter,
    memory,
    peak,
)
from rlnb.training.studies.gpu_time import CARDS, bound

__all__ = [
    "alt",
    "build",
    "compute",
    "gpu_budget_explorer",
    "larger_model_fits",
    "long_answers_fit",
    "readout",
    "update",
]

CAPTION = (
    "A count of tensors, and a bound from data sheet numbers: not a measurement. No such step is "
    "faster on that card; how much slower a real one is, only a run can tell."
)
LABEL = "bound from data sheet numbers, not a measurement"
PROMPT_TOKENS = 100


@checked(card=one_of(CARDS), models=one_of(MODELS))
def compute(
    model: str | Shape = "0.5B",
    card: str = "L4",
    models: str = "verifier",
    mixed: bool = True,
    optimizer: str = "adamw",
    prompts: int = 64,
    generations: int = 8,
    answer_tokens: int = 300,
    in_flight: int = 512,
    micro_batch: int = 8,
    checkpointing: bool = False,
    chunked: bool = True,
    sampler_copy: bool = False,
) -> dict[str, Any]:
    """Bytes and least seconds of one step: `budget.memory` and `budget.bound` at these settings.

    model: a name of SHAPES, or a Shape of your own. card, models, optimizer: names of CARDS, MODELS
    and OPTIMIZERS. Prompts have 100 tokens. Returns the `memory` parts, the `peak` and the card's
    `room` in bytes, `seconds` by phase, `each` (bytes per parameter), `models`, `optimizer`,
    `answer_tokens`, and the number of `parameters` and of `rows`. Raises ValueError for a name
    there is not, and for a number below 1.

    >>> d = compute("0.5B", "L4")
    >>> d["each"], round(d["peak"] / 1e9, 1), round(sum(d["seconds"].values()), 1)
    (16, 13.9, 7.7)
    """
    if not isinstance(model, Shape) and model not in SHAPES:
        raise ValueError(f"model must be one of {list(SHAPES)} or a Shape, got {model!r}.")
    shape = model if isinstance(model, Shape) else SHAPES[model]
    load = Load(prompts, generations, PROMPT_TOKENS, answer_tokens, in_flight, micro_batch)
    precision = Precision(mixed, optimizer, sampler_copy, checkpointing, chunked)
    parts = memory(shape, load, precision, models)
    return {
        "model": model if isinstance(model, str) else "your own",
        "card": card,
        "models": models,
        "optimizer": optimizer,
        "answer_tokens": answer_tokens,
        "memory": parts,
        "peak": peak(parts),
        "room": CARDS[card].memory * GB,
        "seconds": bound(shape, load, precision, CARDS[card], models),
        "each": bytes_per_parameter(precision, models),
        "parameters": shape.parameters,
        "rows": load.rows,
    }


PARTS = {
    "weights": BLUE, "gradients": SKY, "optimizer": GREEN, "frozen models": GREY,
    "sampler copy": PURPLE, "cache": ORANGE, "draw": ORANGE,
    "activations": VERMILLION, "logits": PURPLE,
}  # fmt: skip
NOTES = {"cache": "while it decodes", "draw": "while it decodes",
         "activations": "while it trains",
         "logits": "while it trains", "optimizer": "and master copy"}  # fmt: skip
BESIDE = ("policy", "+ reference", "+ reward model", "PPO, + critic")  # as MODELS
PHASES = {"decode": ORANGE, "train": VERMILLION, "optimizer": GREEN}
END = 1.5  # shares of the card's memory that the axis shows


def _size(value: float) -> str:
    """Bytes in GB, or MB below a tenth of one.

    >>> _size(13.18e9), _size(2.5e6), _size(0)
    ('13.2 GB', '2.5 MB', '0')
    """
    if value == 0:
        return "0"
    return f"{value / 1e9:.1f} GB" if value >= 1e8 else f"{value / 1e6:.1f} MB"


def _time(value: float) -> str:
    """Seconds, in four digits or so."""
    if value >= 100:
        return f"{value:,.0f} s"
    return f"{value:.2f} s" if value >= 0.1 else f"{value:.4f} s"


TEXT = 10.5  # points


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    axes = figure.add_axes((0.245, 0.135, 0.385, 0.85))
    names = [*PARTS, "fullest moment"]
    place = list(range(len(names)))[::-1]
    axes.set(xlim=(0, END), ylim=(-0.6, len(names) - 0.4), xticks=[0, 0.5, 1, 1.5])
    axes.set_xticklabels(["0", "50 %", "100 %", "150 %"])
    axes.set_xlabel("share of the card's memory", fontsize=TEXT)
    labels = [f"{name} ({NOTES[name]})" if name in NOTES else name for name in names]
    axes.set_yticks(place, labels)
    axes.tick_params(labelsize=TEXT)
    axes.axvspan(1, END, color=PALE, zorder=0)
    axes.axvline(1, color=BLACK, linewidth=1)
    artists: dict[str, Any] = {"bars": axes.barh(place, [0.0] * len(names), 0.7, zorder=2)}
    for bar, colour in zip(artists["bars"], [*PARTS.values(), BLACK], strict=True):
        bar.set(facecolor=colour, edgecolor="white", linewidth=0)
    artists["sizes"] = [axes.text(0, y, "", va="center", fontsize=TEXT) for y in place]
    clock = figure.add_axes((0.82, 0.38, 0.085, 0.36))
    clock.set(xlim=(0, 1), ylim=(-0.6, 2.6), xticks=[])
    clock.set_yticks([2, 1, 0], PHASES)
    clock.tick_params(labelsize=TEXT)
    clock.spines["bottom"].set_visible(False)
    artists["times"] = clock.barh([2, 1, 0], [0.0] * 3, 0.6)
    for bar, colour in zip(artists["times"], PHASES.values(), strict=True):
        bar.set_facecolor(colour)
    artists["seconds"] = [clock.text(0, y, "", va="center", fontsize=TEXT) for y in (2, 1, 0)]
    figure.text(0.735, 0.90, "time of a step, at least", fontsize=11, fontweight="bold")
    figure.text(0.735, 0.83, "bytes / bandwidth, FLOPs / rate", fontsize=TEXT)
    artists["total"] = figure.text(0.735, 0.285, "", fontsize=11, fontweight="bold")
    figure.text(0.735, 0.20, "bound from data sheet", fontsize=TEXT, color=VERMILLION)
    figure.text(0.735, 0.135, "numbers, not a measurement", fontsize=TEXT, color=VERMILLION)
    return artists


def readout(data) -> str:
    """Does it fit, and how many bytes a parameter takes."""
    fits = data["peak"] <= data["room"]
    what = "fits" if fits else "does not fit"
    return (
        f"{data['model']}: {data['parameters']:,} parameters × {data['each']} bytes; "
        f"{_size(data['peak'])} {what} on {data['card']}, {data['room'] / GB:.0f} GB"
    )


def update(artists, data):
    """The figure moved to new data."""
    values = [*data["memory"].values(), data["peak"]]
    for bar, text, value in zip(artists["bars"], artists["sizes"], values, strict=True):
        share = min(value / data["room"], END)
        bar.set_width(share)
        text.set(text=_size(value), x=share + 0.02)
    over = data["peak"] > data["room"]
    list(artists["bars"])[-1].set(
        facecolor=VERMILLION if over else BLACK, hatch="//" if over else None
    )
    total = sum(data["seconds"].values())
    for bar, text, value in zip(
        artists["times"], artists["seconds"], data["seconds"].values(), strict=True
    ):
        bar.set_width(value / total)
        text.set(text=_time(value), x=value / total + 0.05)
    artists["total"].set_text(f"{_time(total)} in all")


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    parts = ", ".join(f"{name} {_size(value)}" for name, value in data["memory"].items())
    times = ", ".join(f"{name} {_time(value)}" for name, value in data["seconds"].items())
    return (
        f"{readout(data)}. Memory: {parts}. A step of {data['rows']} answers takes at least "
        f"{_time(sum(data['seconds'].values()))}: {times} ({LABEL})."
    )


def _fits(data) -> bool:
    return data["peak"] <= data["room"]


def long_answers_fit(data) -> bool:
    """Answers of 8,192 tokens from the 0.5B model on a card of 24 GB, by AdamW, nothing beside."""
    small = data["model"] == "0.5B" and data["room"] == 24 * GB
    plain = data["optimizer"] == "adamw" and data["models"] == "verifier"
    return small and plain and data["answer_tokens"] == 8192 and _fits(data)


def larger_model_fits(data) -> bool:
    """The 1.7B model on a card of 24 GB, answers of 300 tokens or more."""
    larger = data["model"] == "1.7B" and data["room"] == 24 * GB
    return larger and data["answer_tokens"] >= 300 and _fits(data)


def _powers(first: int, last: int) -> list[tuple[str, int]]:
    return [(str(2**k), 2**k) for k in range(first, last + 1)]


def gpu_budget_explorer() -> Explorer:
    """Model, card, length, what is done at once: memory by part, and the least time of a step.

    A step has 64 prompts with 8 answers each.
    """
    named = {
        name: [(key, key) for key in table]
        for name, table in (("model", SHAPES), ("card", CARDS), ("optimizer", OPTIMIZERS))
    }
    controls = {
        "model": choice_slider("0.5B", named["model"], "model", "our presets, and others"),
        "card": choice_slider("L4", named["card"], "GPU", "numbers of its data sheet"),
        "answer_tokens": choice_slider(
            300,
            sorted([*_powers(6, 13), ("300", 300)], key=lambda pair: pair[1]),
            "tokens",
            "of the longest answer; all count as that long",
        ),
        "in_flight": choice_slider(512, _powers(3, 9), "decoded at once", "each has a cache"),
        "micro_batch": choice_slider(8, _powers(0, 9), "trained at once", "micro-batch"),
        "optimizer": choice_slider("adamw", named["optimizer"], "optimizer", "its moments"),
        "models": choice_slider(
            "verifier",
            list(zip(BESIDE, MODELS, strict=True)),
            "models",
            "what is held beside the policy",
        ),
        "checkpointing": switch(False, "gradient checkpointing", "layers computed again"),
    }
    for control in controls.values():
        control.style.description_width = "10em"
        control.layout.width = "98%"
    return Explorer(
        compute, build, update, controls, alt=alt, caption=CAPTION, readout=readout,
        size=(900, 340), columns=2,
    )  # fmt: skip
