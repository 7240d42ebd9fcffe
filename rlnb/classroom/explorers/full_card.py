"""A 7B model on several 80 GB cards that write and train in turn: what fills one of them, when."""

from __future__ import annotations

from typing import Any

from rlnb.classroom.explorer import Explorer, choice_slider, slider, switch
from rlnb.classroom.explorers.arguments import between, checked
from rlnb.classroom.figures import BLACK, GREY, PURPLE, SKY, VERMILLION, YELLOW
from rlnb.training.studies.cluster_memory import QWEN_7B, Cluster, on_one_gpu, peak_on_one_gpu

CARD = 80.0
GPUS = (1, 2, 4, 8, 16, 32)
ANSWERS = (64, 128, 256, 512, 1024)
CAPTION = (
    "One card. Above: the answers are being written. Below: the gradient is computed. Activations "
    "are 4.6 GB for one answer: layers are computed anew in the backward pass (activation "
    "checkpointing), the logits made in pieces."
)
PARTS = {
    "trainer": (SKY, ""),  # what is also in page 19's first picture has its colour there
    "frozen models": (GREY, ""),
    "engine": (PURPLE, "xx"),
    "cache": (VERMILLION, ""),
    "activations": (YELLOW, ""),
}
WORDS = {"trainer": "trainer: weights, gradients, AdamW", "frozen models": "reference",
         "engine": "the engine's copy", "cache": "KV cache",
         "activations": "activations"}  # fmt: skip
WRITING = ("trainer", "frozen models", "engine", "cache")
TRAINING = ("trainer", "frozen models", "engine", "activations")


@checked(gpus=between(1, 64), stage=between(0, 3), answers=between(1, 4096))
def compute(
    gpus: int = 4, stage: int = 0, parked: bool = False, answers: int = 512
) -> dict[str, Any]:
    """GB on each of `gpus` cards: 7.6e9 parameters, a reference, `answers` of 8,192 tokens at once.

    Returns parts (GB by name), the two moments as {name: GB}, peak, fits (peak below 80 GB), and
    the arguments.

    >>> found = compute(8, 3)
    >>> round(found["peak"], 1), found["fits"]
    (62.4, True)
    """
    cluster = Cluster(gpus=gpus, stage=stage, parked=parked, answers=answers)
    parts = on_one_gpu(QWEN_7B, cluster)
    left_out = {"writing": ("trainer", "frozen models"), "training": ("engine",)}
    moments = {
        name: {k: 0.0 if parked and k in left_out[name] else parts[k] for k in held}
        for name, held in (("writing", WRITING), ("training", TRAINING))
    }
    peak = peak_on_one_gpu(parts, parked)
    return {"gpus": gpus, "stage": stage, "parked": parked, "answers": answers, "parts": parts,
            "moments": moments, "peak": peak, "fits": peak <= CARD}  # fmt: skip


TOP = 240.0


def build(figure, data):
    axes = figure.add_axes((0.1, 0.2, 0.87, 0.6))
    axes.set(xlim=(0, TOP), ylim=(-0.6, 1.6), yticks=(0, 1), xlabel="GB on one card")
    axes.set_yticklabels(("training", "writing"), fontsize=11)
    axes.tick_params(labelsize=10.5)
    axes.xaxis.label.set_size(10.5)
    axes.axvline(CARD, color=BLACK, lw=1.6, ls="--")
    axes.text(CARD + 1.5, 1.45, "80 GB", fontsize=10.5, va="center")
    artists: dict[Any, Any] = {}
    for y, moment, names in ((1, "writing", WRITING), (0, "training", TRAINING)):
        for name in names:
            color, hatch = PARTS[name]
            artists[moment, name] = axes.barh(y, 0.0, height=0.6, color=color, hatch=hatch,
                                              ec="white", lw=0.8)  # fmt: skip
        artists[moment, "total"] = axes.text(
            0,
            y,
            "",
            fontsize=11,
            weight="bold",
            va="center",
            bbox={"fc": "white", "ec": "none", "pad": 1},
        )
    marks = [
        axes.barh(-5, 1, color=color, hatch=hatch, ec="white") for color, hatch in PARTS.values()
    ]
    axes.set_ylim(-0.6, 1.6)
    axes.legend(marks, [WORDS[name] for name in PARTS], loc="lower center", ncols=5,
                bbox_to_anchor=(0.47, 1.01), fontsize=10.5, columnspacing=0.9,
                handlelength=1.1, handletextpad=0.4)  # fmt: skip
    return artists


def update(artists, data):
    for moment, parts in data["moments"].items():
        at = 0.0
        for name, size in parts.items():
            bar = artists[moment, name][0]
            bar.set(x=min(at, TOP), width=max(0.0, min(size, TOP - at)))
            at += size
        text = artists[moment, "total"]
        text.set_text(f" {at:.0f} GB")
        inside = at > TOP - 24
        over = at <= CARD < at + 24  # the number would cover the line
        text.set_x(TOP - 26 if inside else CARD + 1 if over else at)


def readout(data) -> str:
    said = (
        f"{data['gpus']} cards, ZeRO stage {data['stage']}, {data['answers']} answers at once: "
        f"{data['peak']:.1f} GB"
    )
    if data["fits"]:
        return f"{said}, fits."
    moment, parts = max(data["moments"].items(), key=lambda held: sum(held[1].values()))
    most = max(parts, key=lambda name: parts[name])
    return f"{said}: too much ({moment}: {most} {parts[most]:.1f})."


def alt(data) -> str:
    sums = "; ".join(
        f"{moment} {sum(parts.values()):.1f} GB ("
        + ", ".join(f"{name} {size:.1f}" for name, size in parts.items()) + ")"
        for moment, parts in data["moments"].items()
    )  # fmt: skip
    return f"Memory of one card as two stacked bars. {readout(data)} {sums}."


def smallest_stage(data) -> bool:
    """512 answers at once on four cards, with the smallest stage of ZeRO that fits."""
    return (data["gpus"], data["answers"], data["stage"]) == (4, 512, 1) and data["fits"]


def full_card_explorer() -> Explorer:
    """Cards, ZeRO's stage, and whether the trainer's state is offloaded while it writes."""
    return Explorer(
        compute,
        build,
        update,
        {
            "gpus": choice_slider(4, [(str(g), g) for g in GPUS], "cards of 80 GB",
                                  "they share the answers, and by ZeRO the trainer's state"),
            "stage": slider(0, 0, 3, 1, "ZeRO stage", "1 splits AdamW, 2 gradients, 3 weights"),
            "answers": choice_slider(512, [(str(n), n) for n in ANSWERS], "answers at once",
                                     "written at the same time by all cards together"),
            "parked": switch(False, "offload what the other half of the step does not need",
                             "the trainer's state in the host's memory while it writes"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 240),
    )  # fmt: skip
