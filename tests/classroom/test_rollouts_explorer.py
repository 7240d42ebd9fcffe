"""The rollout browser shows what was recorded, and the weights are those of the formula."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.classroom.cached_text import MONO, Letters, letter_width, middle
from rlnb.classroom.explorers.gpu_budget import compute as budget
from rlnb.classroom.explorers.rollouts import RUN, compute, steps
from rlnb.classroom.figures import new_figure
from rlnb.training import TASKS, data_folder, read
from rlnb.training.models.presets import Preset
from rlnb.training.studies.gpu_budget import SHAPES, Shape
from rlnb.training.studies.gpu_time import CARDS

RECORDS = [r for r in read(data_folder() / "runs" / f"{RUN}.jsonl") if r["record"] == "rollout"]


def test_it_walks_through_every_recorded_answer_in_order():
    walked = [
        compute(step, prompt, answer)
        for step in steps()
        for prompt in (1, 2)
        for answer in range(1, 9)
    ]
    assert len(walked) == len(RECORDS) == 80
    for data, record in zip(walked, RECORDS, strict=True):
        for name in ("prompt", "tokens", "reward", "advantage"):
            assert data[name] == record[name]


@pytest.mark.parametrize("step", steps())
@pytest.mark.parametrize("prompt", [1, 2])
def test_weights_are_a_over_n_lmax_and_rewards_are_the_verifiers(step, prompt):
    """Dr. GRPO on-policy: -dL/dlogp = A / (128 x 72), for every token of the answer."""
    task = TASKS["chain"]
    for answer in range(1, 9):
        data = compute(step, prompt, answer)
        mean = np.mean(data["rewards"])
        assert data["advantage"] == pytest.approx(data["reward"] - mean)
        expected = data["advantage"] / (128 * 72)
        assert data["push"] == pytest.approx(np.full(len(data["tokens"]), expected), rel=0.05)
        problem = task.parse(data["prompt"])
        text = "".join(t for t in data["tokens"] if t != "<eos>")
        assert task.verify(problem, text) == data["reward"]
        assert text == data["texts"][answer - 1]


def test_the_pull_on_a_logit_is_the_weight_times_one_minus_p():
    weight, pull = compute(40, 2, 1, "weight"), compute(40, 2, 1, "logit")
    assert pull["push"] == pytest.approx(weight["push"] * (1 - weight["p"]))
    worst = int(np.abs(pull["push"]).argmax())
    before = "".join(pull["tokens"][:worst])
    assert before.endswith("0+7=") and pull["tokens"][worst] == "8"  # the slip
    assert np.sort(np.abs(pull["push"]))[-2] < 0.1 * abs(pull["push"][worst])


def test_an_answer_there_is_not_is_a_sentence():
    with pytest.raises(ValueError, match="the recorded ones, got 7"):
        compute(7)
    with pytest.raises(ValueError, match="prompt must be from 1 to 2"):
        compute(1, 3)
    with pytest.raises(ValueError, match="answer must be from 1 to 8"):
        compute(1, 1, 9)
    with pytest.raises(ValueError, match="show must be one of"):
        compute(1, 1, 1, "size")


def test_the_calculator_takes_a_shape_of_your_own():
    own = Shape(Preset(896, 24, 14, 2, 64, 4864), 151_936)
    named, given = budget("0.5B"), budget(own)
    assert {**named, "model": ""} == {**given, "model": ""}
    assert given["each"] == 16 and given["parameters"] == SHAPES["0.5B"].parameters
    assert named["room"] == CARDS["L4"].memory * 1e9


def test_the_calculator_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="card must be one of .*got 'RTX 9999'"):
        budget(card="RTX 9999")
    with pytest.raises(ValueError, match="model must be one of"):
        budget("70B")
    with pytest.raises(ValueError, match="models must be one of"):
        budget(models="three")
    with pytest.raises(ValueError, match="prompts: got 0"):
        budget(prompts=0)


def test_letters_stand_where_matplotlib_would_put_them():
    """Same letters at the same places as a Text, but for the rounding of a letter to pixels."""

    def ink(make):
        figure = new_figure(300, 60)
        make(figure)
        figure.canvas.draw()
        dark = np.asarray(figure.canvas.buffer_rgba())[..., 0] < 128
        rows, columns = np.nonzero(dark)
        return dark.sum(), rows.min(), rows.max(), columns.min(), columns.max()

    def typed(figure):
        letters = figure.add_artist(Letters())
        letters.lines = [(30, middle(0.5, 60), "wait6+4=0,", "#000000", "left")]

    own = ink(lambda f: f.text(0.1, 0.5, "wait6+4=0,", family=MONO, size=9))
    ours = ink(typed)
    assert ours[0] == pytest.approx(own[0], rel=0.1)
    assert np.abs(np.subtract(ours[1:], own[1:])).max() <= 3  # device pixels
    assert letter_width() * 1.5 == round(0.602 * 9 * 2)
