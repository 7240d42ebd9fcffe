"""A recorded training run, step by step: its groups, its curves, its answers.

Nothing is trained here. The records are files that ship with the course, so every picture is the
same on every machine.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rlnb.classroom.explorer import Explorer, choice, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing, one_of
from rlnb.classroom.figures import BLACK, BLUE, GREY, ORANGE, VERMILLION, WINE
from rlnb.training import data_folder, read

__all__ = ["GROUPS", "LAST", "RUNS", "alt", "build", "compute", "recorded_run_explorer", "update"]

RUNS = {
    "seed 0": "chain_dr_grpo_seed0",
    "seed 1": "chain_dr_grpo_seed1",
    "seed 2": "chain_dr_grpo_seed2",
    "coin flip": "chain_coin_flip_seed0",
}
LAST = 40
GROUPS = ("all_pass", "mixed", "all_fail")
ANSWERS = 4
CAPTION = (
    "One recorded run, on a CPU. Only mixed groups carry a gradient; as the answers get better, "
    "fewer and fewer of the sampled groups are mixed. Lines are from held-out problems."
)


@lru_cache
def _records(run: str) -> tuple[dict[str, Any], ...]:
    return tuple(read(data_folder() / "runs" / f"{RUNS[run]}.jsonl"))


@echoing
@checked(run=one_of(RUNS), step=between(0, LAST))
def compute(step: int = LAST, run: str = "seed 0") -> dict[str, Any]:
    """What a recorded run shows after `step` optimizer steps; 0 is the model before training.

    `run` is one of RUNS. Returns the `groups` of steps 1 ... step as {kind: list of shares}; the
    `metrics` of the step itself (None at step 0); `pass@1` and `direct` as {step: value} on
    held-out problems up to here; the `answers` of the newest such evaluation, each (prompt, text,
    reward), and the step it was made at, `answered`; `last`, the run's number of steps. A step
    beyond the last one shows the last one. Raises ValueError for a run or a step there is not.

    >>> [round(value, 3) for value in compute(40)["pass@1"].values()]
    [0.389, 0.722, 0.865, 0.916, 0.923]
    >>> compute(40, "coin flip")["step"]
    20
    """
    records = _records(run)
    steps = [r for r in records if r["record"] == "step"]
    step = min(step, len(steps))
    evals = [r for r in records if r["record"] == "eval" and r["step"] <= step]
    answered = evals[-1]["step"]
    return {
        "step": step,
        "last": len(steps),
        "groups": {kind: [r[f"groups/{kind}"] for r in steps[:step]] for kind in GROUPS},
        "metrics": steps[step - 1] if step else None,
        "pass@1": {r["step"]: r["pass@1"] for r in evals},
        "direct": {r["step"]: r["direct"] for r in evals},
        "answered": answered,
        "answers": [
            (r["prompt"], r["completion"], r["reward"])
            for r in records
            if r["record"] == "sample" and r["step"] == answered
        ],
    }


LOOK = {
    "all_pass": {"color": BLUE, "label": "all right"},
    "mixed": {"color": ORANGE, "hatch": "//", "label": "mixed: the only ones with a gradient"},
    "all_fail": {"color": VERMILLION, "hatch": "xx", "label": "all wrong"},
}
MONO = {"family": "DejaVu Sans Mono", "size": 9}


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    axes = figure.add_axes((0.07, 0.475, 0.915, 0.44))
    axes.set(xlim=(-0.7, LAST + 0.7), ylim=(0, 1), xticks=range(0, LAST + 1, 5))
    axes.set_yticks([0, 0.5, 1])
    axes.set_xlabel("optimizer step", labelpad=1)
    axes.set_ylabel("share")
    look = {"edgecolor": "white", "linewidth": 0}
    place, nothing = range(1, LAST + 1), [0.0] * LAST
    artists = {
        kind: axes.bar(place, nothing, 0.86, **look, **style) for kind, style in LOOK.items()
    }
    line = {"color": BLACK, "marker": "D", "mfc": "white", "mew": 1.6, "clip_on": False}
    artists["pass@1"] = axes.plot([], [], **line, label="pass@1, held-out problems")[0]
    dots = {"color": WINE, "marker": "o", "linestyle": ":", "clip_on": False}
    artists["direct"] = axes.plot([], [], **dots, label="share of direct answers")[0]
    artists["here"] = axes.plot([0], [1.05], "v", color=GREY, ms=8, clip_on=False)[0]
    artists["lines"] = [figure.text(0.07, y, "", fontsize=9.5) for y in (0.33, 0.27)]
    artists["answers"] = [figure.text(0.07, 0.205 - 0.055 * i, "", **MONO) for i in range(ANSWERS)]
    handles = [artists[kind] for kind in GROUPS] + [artists["pass@1"], artists["direct"]]
    figure.legend(
        handles=handles,
        loc="upper center",
        ncols=5,
        bbox_to_anchor=(0.52, 1.01),
        columnspacing=1.2,
        handletextpad=0.5,
    )
    return artists


def update(artists, data):
    """The figure moved to new data."""
    step = data["step"]
    below = [0.0] * LAST
    for kind in GROUPS:
        shares = data["groups"][kind] + [0.0] * (LAST - step)
        for i, bar in enumerate(artists[kind]):
            bar.set(y=below[i], height=shares[i], visible=i < step)
        below = [b + s for b, s in zip(below, shares, strict=True)]
    for name in ("pass@1", "direct"):
        artists[name].set_data(list(data[name]), list(data[name].values()))
    artists["here"].set_xdata([step])
    for text, line in zip(artists["lines"], _lines(data), strict=True):
        text.set_text(line)
    for text, (prompt, completion, reward) in zip(artists["answers"], data["answers"], strict=True):
        text.set_text(f"{'right' if reward else 'wrong'}  {prompt} {completion}")


def _lines(data) -> tuple[str, str]:
    step, metrics, answered = data["step"], data["metrics"], data["answered"]
    of = f"step {step} of {data['last']}"
    if metrics is None:
        first = f"{of}: the base model, before any training"
    else:
        first = (
            f"{of}: mean reward {metrics['reward']:.3f}, {metrics['completions/mean_length']:.1f} "
            f"tokens per answer, entropy {metrics['entropy']:.3f} nats per token, gradient norm "
            f"{metrics['grad_norm']:.3f}"
        )
    when = "before training" if answered == 0 else f"after step {answered}"
    second = (
        f"held-out problems {when}: pass@1 {data['pass@1'][answered]:.3f}, "
        f"direct answers {data['direct'][answered]:.3f}. Four of its answers:"
    )
    return first, second


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    first, second = _lines(data)
    what = "the coin-flip control" if data["run"] == "coin flip" else f"Dr. GRPO, {data['run']}"
    text = f"Recorded run ({what}), {first}."
    if data["metrics"] is not None:
        shares = ", ".join(
            f"{data['groups'][kind][-1]:.4f} {LOOK[kind]['label'].split(':')[0]}" for kind in GROUPS
        )
        text += f" Groups of this step: {shares}."
    answers = "; ".join(
        f"{prompt} {completion} ({'right' if reward else 'wrong'})"
        for prompt, completion, reward in data["answers"]
    )
    return f"{text} {second[0].upper()}{second[1:]} {answers}."


def recorded_run_explorer() -> Explorer:
    """The step, and which recorded run."""
    return Explorer(
        compute,
        build,
        update,
        {
            "step": slider(LAST, 0, LAST, 1, "optimizer step", "0 is the base model"),
            "run": choice(
                "seed 0",
                [(name, name) for name in RUNS],
                "recorded run",
                "three seeds with the true verifier, one with a coin in its place",
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 430),
    )
