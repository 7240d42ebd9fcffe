"""The pictures of the page on a whole run: answers, styles, curves, five logs; all recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rlnb.classroom.cached_text import LARGE, MONO, points
from rlnb.classroom.explorers.rollouts import compute as answers_of
from rlnb.classroom.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    NEGATIVE,
    ORANGE,
    POSITIVE,
    PURPLE,
    SKY,
    Picture,
    static_figure,
)
from rlnb.classroom.pictures.recorded_runs import curve, evaluations, seeds
from rlnb.shipped import data_folder
from rlnb.training.studies import controls, style_curves
from rlnb.training.studies.many_answers import ANSWERS, pass_at, rate, shares, solved

__all__ = [
    "FIVE",
    "coin",
    "ends",
    "filtering",
    "five_logs",
    "loss_and_reward",
    "six_answers",
    "style_and_steps",
    "three_parts",
    "two_logs",
    "unsolved",
]

TEXT = 10.5  # points: the size of the page's own text
SHOWN = ((1, 2), (1, 6), (1, 5), (2, 1), (2, 5), (2, 2))  # (prompt, answer) of step 1
RUN, COIN = "chain_dr_grpo", "chain_coin_flip"
MANY = {"dr_grpo": "chain_many_answers.json", "right only": "chain_many_right_only.json"}


def _axes(figure, box, **settings):
    axes = figure.add_axes(box)
    axes.set(**settings)
    axes.tick_params(labelsize=TEXT)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_fontsize(TEXT)
    axes.title.set_fontsize(TEXT)
    axes.title.set_fontweight("bold")
    return axes


def six_answers() -> Picture:
    """Three answers to each of two problems, by the model before training."""
    rows = []
    for prompt, answer in SHOWN:
        data = answers_of(1, prompt, answer)
        rows.append((data["prompt"], data["texts"][answer - 1], data["reward"]))

    def build(figure, _):
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 900), ylim=(215, 0))
        axes.axis("off")
        look = {"va": "center", "fontsize": points(LARGE), "family": MONO}
        for i, (prompt, text, reward) in enumerate(rows):
            y = 22 + 34 * i + (8 if i > 2 else 0)
            color = POSITIVE if reward else NEGATIVE
            if i % 3 == 0:
                axes.text(14, y, prompt, weight="bold", **look)
            axes.text(240, y, text, color=color, **look)
            axes.text(760, y, "right, 1" if reward else "wrong, 0", color=color, weight="bold",
                      va="center", fontsize=11.5)  # fmt: skip
        axes.plot((14, 880), (111, 111), color=GREY, lw=0.8)

    said = "; ".join(f"{p} {t} earns {r:.0f}" for p, t, r in rows)
    return static_figure(
        build, size=(900, 215), alt=f"Six answers. {said}.",
        caption="Two problems and three answers to each, from the model before any reward. Blue "
        "earns 1, orange 0.",
    )  # fmt: skip


def _seed_curves(run: str, name: str) -> np.ndarray:
    return np.stack([curve(run, seed, name) for seed in seeds(run)])


def _running(values: np.ndarray, width: int = 5) -> np.ndarray:
    """(steps,) -> the running mean over `width` steps, nan left out."""
    return np.array(
        [np.nanmean(values[max(0, i - width + 1) : i + 1]) for i in range(len(values))]
    )  # fmt: skip


def _three(axes, x, table, color=BLACK, line="-", marker=""):
    axes.plot(x, np.asarray(table).T, color=color, lw=0.9, alpha=0.55)
    axes.plot(x, np.mean(table, 0), color=color, ls=line, lw=2.6, marker=marker, ms=5)


def style_and_steps() -> Picture:
    """Choice of style and skill within it during the run, three seeds each."""
    runs = _style_rows("dr_grpo")
    at = [row["step"] for row in runs[0]]
    panels = (
        ("d, direct answers", "direct", (0, 0.7)),
        ("right, given steps", "right/steps", (0, 1)),
        ("right, all answers: pass@1", "pass@1", (0, 1)),
    )
    table = {key: np.array([[row[key] for row in rows] for rows in runs]) for _, key, _ in panels}

    def build(figure, _):
        for k, (title, key, limits) in enumerate(panels):
            axes = _axes(figure, (0.05 + 0.335 * k, 0.2, 0.26, 0.66), title=title, ylim=limits,
                         xlim=(0, 40), xticks=(0, 10, 20, 30, 40), xlabel="step")  # fmt: skip
            _three(axes, at, table[key])
            axes.axvline(10, color=GREY, lw=1, ls=":")

    ten, last = at.index(10), len(at) - 1
    said = "; ".join(
        f"{title} {', '.join(f'{table[key].mean(0)[i]:.2f}' for i in (0, ten, last))}"
        for title, key, _ in panels
    )
    return static_figure(
        build, size=(900, 250),
        alt=f"Means of three seeds at steps 0, 10 and 40: {said}.",
        caption="The three runs (thin) and their mean (thick). Dotted: step 10. Between the "
        "two ends: 8 answers a problem.",
    )  # fmt: skip


def ends(arm: str) -> list[tuple[dict[str, float], dict[str, float]]]:
    """For each seed of "dr_grpo" or "right only" what the base and the trained model score in the
    page's one evaluation, 32 answers to each of 250 problems: pass@1, direct, right/steps.
    """
    path = data_folder() / "runs" / MANY[arm]
    rows = {}
    for name, counts in solved(path).items():
        share = shares(path, name)
        rows[name] = {
            "pass@1": rate(counts)[0],
            "direct": share["d"],
            "right/steps": share["steps"],
        }
    base = rows.pop("base")
    return [(base, row) for row in rows.values()]


def _style_rows(arm: str) -> list[list[dict[str, float]]]:
    """The curves of an arm; their two ends are those of `ends`."""
    curves = style_curves.curves(data_folder() / "runs" / "chain_style_curves.json", arm)
    for rows, (first, last) in zip(curves, ends(arm), strict=True):
        rows[0] |= first
        rows[-1] |= last
    return curves


def filtering(
    once: Sequence[Mapping[str, float]], parts_of_four: Sequence[Sequence[Mapping[str, float]]]
) -> Picture:
    """pass@1 against answers drawn: GRPO, fresh right answers alone, filtering once and in parts.

    once: each seed's report after one round; parts_of_four: each seed's reports, a part each.
    """
    size = 128
    curves = {
        name: np.array([[row["pass@1"] for row in rows] for rows in _style_rows(arm)])
        for name, arm in (("GRPO", "dr_grpo"), ("right answers only", "right only"))
    }
    at = size * np.array([row["step"] for row in _style_rows("dr_grpo")[0]])
    start = np.full((len(once), 1), curves["GRPO"][0, 0])
    one = np.array([[row["pass@1"]] for row in once])
    four = np.array([[part["pass@1"] for part in seed] for seed in parts_of_four])
    four = np.concatenate([start, four], 1)
    drawn = 40 * size * np.linspace(0, 1, four.shape[1])

    def build(figure, _):
        axes = _axes(figure, (0.075, 0.2, 0.6, 0.76), xlim=(-100, 5220), ylim=(0.3, 1),
                     xlabel="answers drawn", ylabel="right, unseen problems")  # fmt: skip
        axes.set_xticks(drawn, [f"{n:,.0f}" for n in drawn])
        _three(axes, at, curves["GRPO"], BLACK)
        _three(axes, at, curves["right answers only"], BLUE, "--")
        _three(axes, drawn, four, GREEN, "-.", "s")
        axes.plot([drawn[-1]] * len(one), one[:, -1], "D", color=ORANGE, ms=8, clip_on=False)
        for y, color, text in (
            (0.9, GREEN, "filtered in four parts"),
            (0.77, BLUE, "right answers only,\ndrawn anew each step"),
            (0.62, BLACK, "GRPO, drawn anew each step"),
            (0.45, "#A66F00", "filtered once, all drawn\nfrom the base: three seeds"),
        ):
            figure.text(0.69, y, text, fontsize=11.5, color=color, weight="bold")

    def three(values):
        return ", ".join(f"{x:.2f}" for x in values)

    return static_figure(
        build, size=(900, 270),
        alt=f"pass@1, three seeds. After 5,120 answers GRPO {three(curves['GRPO'][:, -1])}, right "
        f"answers only {three(curves['right answers only'][:, -1])}, filtering once "
        f"{three(one[:, -1])}; filtering after one to four parts "
        f"{'; '.join(three(column) for column in four.T[1:])}.",
        caption="Thin: every seed. Each arm makes forty updates of 128 answers and draws 5,120. "
        "A filter uses each right answer one to three times. Lines join measured points.",
    )  # fmt: skip


def coin() -> Picture:
    """Held-out pass@1 under the verifier and under a coin."""
    steps, right = evaluations(RUN)
    tossed_at, tossed = evaluations(COIN)
    first, last = zip(*ends("dr_grpo"), strict=True)
    after = controls.reports(data_folder() / "runs" / "chain_controls.json", "coin")
    right[:, 0] = tossed[:, 0] = [row["pass@1"] for row in first]
    right[:, -1] = [row["pass@1"] for row in last]
    tossed[:, -1] = [row["pass@1"] for name, row in after.items() if name != "base"]

    def build(figure, _):
        axes = _axes(figure, (0.075, 0.19, 0.55, 0.77), xlim=(-0.5, 40.5), ylim=(0, 1),
                     xlabel="step", ylabel="right, 250 unseen problems")  # fmt: skip
        _three(axes, steps, right, BLACK, "-", "o")
        _three(axes, tossed_at, tossed, ORANGE, "--", "s")
        axes.axhline(right[0, 0], color=GREY, lw=1, ls=":")
        for y, color, text in (
            (0.8, BLACK, "the verifier, three seeds"),
            (0.3, ORANGE, "a coin, three seeds,\nstopped after 20 steps"),
        ):
            figure.text(0.66, y, text, fontsize=12, color=color, weight="bold")

    fell, tops = (", ".join(f"{x:.2f}" for x in t[:, -1]) for t in (tossed, right))
    return static_figure(
        build, size=(900, 260),
        alt=f"Verifier: from {right[0, 0]:.2f} to {tops} in 40 steps. Coin: to {fell} in 20.",
        caption="Same base, same recipe, seeds 0, 1, 2. Only the reward differs. Between the "
        "two ends: 4 answers a problem.",
    )  # fmt: skip


def two_logs() -> Picture:
    """Mixed groups, entropy and gradient norm, under the verifier and under a coin."""
    panels = (("groups/mixed", "share of mixed groups", (0, 1.05)),
              ("entropy", "entropy, nats a token", (0, 0.25)),
              ("grad_norm", "gradient norm", (0, 0.12)))  # fmt: skip
    tables = {key: [_seed_curves(run, key) for run in (RUN, COIN)] for key, _, _ in panels}

    def build(figure, _):
        for k, (key, title, limits) in enumerate(panels):
            axes = _axes(figure, (0.06 + 0.33 * k, 0.2, 0.26, 0.66), title=title, ylim=limits,
                         xlabel="step", xlim=(0, 40))  # fmt: skip
            for table, color, line in zip(tables[key], (BLACK, ORANGE), ("-", "--"), strict=True):
                _three(axes, range(1, table.shape[1] + 1), table, color, line)

    def told(table):
        return f"{table[:, :5].mean():.2f} to {table[:, -5:].mean():.2f}"

    said = "; ".join(
        f"{title}: verifier {told(tables[key][0])}, coin {told(tables[key][1])}"
        for key, title, _ in panels
    )
    return static_figure(
        build, size=(900, 230), alt=f"First and last five steps. {said}.",
        caption="Black: the verifier, 40 steps. Orange, dashed: the coin, 20 steps. Three seeds "
        "each, thin; their mean, thick.",
    )  # fmt: skip


def loss_and_reward() -> Picture:
    """The loss of the three runs beside their reward."""
    loss, reward = _seed_curves(RUN, "loss"), _seed_curves(RUN, "reward")

    def build(figure, _):
        for k, (title, table, limits) in enumerate(
            (("reward of the step's answers", reward, (0, 1)), ("loss", loss, (-0.06, 0.02)))
        ):
            axes = _axes(figure, (0.075 + 0.5 * k, 0.2, 0.41, 0.68), title=title, ylim=limits,
                         xlabel="step", xlim=(0, 40))  # fmt: skip
            _three(axes, range(1, 41), table)
            if k:
                axes.axhline(0, color=GREY, lw=1, ls=":")

    return static_figure(
        build, size=(900, 240),
        alt=f"Reward from {reward[:, :10].mean():.2f} in steps 1-10 to {reward[:, -10:].mean():.2f}"
        f" in 31-40. Loss from {loss[:, :10].mean():.3f} to {abs(loss[:, -10:].mean()):.3f}.",
        caption="The same runs. As the reward rises, the loss rises too, to 0, and stays there.",
    )  # fmt: skip


def three_parts(start: float, parts: Mapping[str, float]) -> Picture:
    """A gain in three parts, one beside the other. parts: what each adds, by its name."""

    def build(figure, _):
        axes = _axes(figure, (0.03, 0.3, 0.94, 0.42), xlim=(0, 1), ylim=(-0.5, 0.5), yticks=(),
                     xlabel="right, 250 unseen problems")  # fmt: skip
        axes.barh(0, start, 0.8, color="#C8C8C8")
        axes.text(start / 2, 0, f"base {start:.2f}", ha="center", va="center", fontsize=11.5)
        left = start
        for (name, width), color in zip(parts.items(), (SKY, GREEN, ORANGE), strict=True):
            axes.barh(0, width, 0.8, left=left, color=color)
            axes.text(left + width / 2, 0, f"+{width:.2f}", ha="center", va="center",
                      fontsize=11.5, weight="bold")  # fmt: skip
            axes.text(left + width / 2, 0.56, name, ha="center", fontsize=11)
            left += width
        axes.text(left + 0.008, 0, f"= {left:.2f}", va="center", fontsize=11.5)

    said = ", ".join(f"{name} +{width:.2f}" for name, width in parts.items())
    return static_figure(
        build, size=(900, 150),
        alt=f"Base {start:.2f}, {said}, after training {start + sum(parts.values()):.2f}.",
        caption="Seed 0, from the base to the trained model.",
    )  # fmt: skip


def unsolved(clean: Mapping[str, Sequence[int]]) -> Picture:
    """How many problems k answers leave without one that is right in every step; before, after."""
    ks = (1, 2, 4, 8, 16, 32)
    table = {n: [len(row) * (1 - pass_at(k, row)) for k in ks] for n, row in clean.items()}

    def build(figure, _):
        axes = _axes(figure, (0.085, 0.2, 0.57, 0.76), xscale="log", yscale="log", ylim=(0.8, 260),
                     xlabel="answers to each problem (log scale)",
                     ylabel="unsolved of 250 (log scale)")  # fmt: skip
        axes.set_xticks(ks, ks)
        axes.set_yticks((1, 6, 20, 50, 200), (1, 6, 20, 50, 200))
        axes.minorticks_off()
        for name, row in table.items():
            base = name == "base"
            axes.plot(ks, row, color=ORANGE if base else BLACK, ls="--" if base else "-",
                      lw=2.8 if base else 1.6, marker="s" if base else "o", ms=5)  # fmt: skip
        for y, color, text in (
            (0.85, "#A66F00", "the base (dashed)"), (0.43, BLACK, "after training, seed 0"),
            (0.26, BLACK, "after training, seeds 1 and 2"),
        ):  # fmt: skip
            figure.text(0.68, y, text, fontsize=11.5, color=color, weight="bold")

    said = "; ".join(f"{n} " + ", ".join(f"{x:.0f}" for x in row) for n, row in table.items())
    return static_figure(
        build, size=(900, 270),
        alt=f"Problems left unsolved by 1, 2, 4, 8, 16, 32 answers. {said}.",
        caption=f"{ANSWERS} answers to each of 250 problems; solved: one of k is right in every "
        "step.",
    )  # fmt: skip


# letter -> run, a line for each metric: (name, what it says, colour, dashes)
FIVE = {
    "A": ("sort_is_sorted", (("reward", "paid", BLACK, "-"),
                             ("rewards/verify/mean", "right", ORANGE, "--"))),
    "B": ("chain_plain_lr_4x", (("reward", "right", ORANGE, "--"),
                                ("groups/mixed", "mixed", PURPLE, "-."))),
    "C": (COIN, (("groups/mixed", "mixed", PURPLE, "-."),
                 ("rewards/verify/mean", "right", ORANGE, "--"))),
    "D": ("chain_stale_8_no_clip", (("reward", "right", ORANGE, "--"),
                                    ("ratio/max", "max ratio", BLUE, "-"))),
    "E": ("pick_grpo", (("reward", "right", ORANGE, "--"),
                        ("completions/mean_length", "length", GREEN, "-"))),
}  # fmt: skip
DARKER = {ORANGE: "#A66F00", PURPLE: "#9C4A77"}  # for words
OTHER_AXIS = {"ratio/max": (0, 20), "completions/mean_length": (0, 80)}


def _mean_line(run: str, name: str) -> np.ndarray:
    return _running(np.nanmean(_seed_curves(run, name), 0))


def five_logs() -> Picture:
    """Five recorded runs that went wrong; the letter says which, the page says why."""
    lines = {
        letter: [(_mean_line(run, name), name, *look) for name, *look in metrics]
        for letter, (run, metrics) in FIVE.items()
    }

    def build(figure, _):
        for k, (letter, rows) in enumerate(lines.items()):
            axes = _axes(figure, (0.025 + 0.2 * k, 0.2, 0.135, 0.5), ylim=(-0.03, 1.06),
                         yticks=(0, 1), xlabel="step")  # fmt: skip
            figure.text(0.025 + 0.2 * k, 0.93, letter, fontsize=13, weight="bold")
            for j, (values, name, label, color, dashes) in enumerate(rows):
                place = axes
                if name in OTHER_AXIS:
                    place = axes.twinx()
                    place.set(ylim=OTHER_AXIS[name])
                    place.tick_params(labelsize=TEXT)
                    place.spines["right"].set_visible(True)
                place.plot(range(1, len(values) + 1), values, color=color, ls=dashes, lw=2.4)
                said = f"{label}, right axis" if name in OTHER_AXIS else label
                figure.text(0.048 + 0.2 * k, 0.935 - 0.105 * j, said, fontsize=TEXT,
                            weight="bold", color=DARKER.get(color, color))  # fmt: skip

    said = "; ".join(
        f"{letter}: " + ", ".join(f"{label} {v[0]:.2f} to {v[-1]:.2f}" for v, _, label, *_ in rows)
        for letter, rows in lines.items()
    )
    return static_figure(
        build, size=(900, 250), alt=f"Five logs, means of the seeds. {said}.",
        caption="Running means over five steps, all seeds. *Right*: what an exact verifier says "
        "of the step's answers; *paid*: the reward, where it is another.",
    )  # fmt: skip
