"""Page 20's code round: the broken loss, its log, and how a mended one is judged."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
import torch

from rlnb.classroom import check, progress
from rlnb.classroom.exercises.batch_loss import SYMPTOMS, broken
from rlnb.classroom.interview import whiteboard
from rlnb.classroom.interview.code_round import symptoms

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


class Clock:
    """Time that a test moves."""

    now = 0.0

    def __call__(self):
        return self.now


def written_on_the_page():
    """The learner's cell of page 20, as it is before anybody has mended it."""
    page = (NOTEBOOKS / "text/20_interview.py").read_text(encoding="utf-8")
    source = page[page.index("def batch_loss") : page.index("symptoms(batch_loss)")]
    room = {"torch": torch}
    exec(source, room)
    return source, room["batch_loss"]


MENDED = {
    "baseline": ("groups.mean()", "groups.mean(1, keepdim=True)"),
    "old": ("logprobs.detach()", "sampled"),
    "ratio": ("(old - logprobs)", "(logprobs - old)"),
    "mean": ("objective.mean()", "objective.sum() / mask.sum()"),
}


def test_the_page_s_loss_has_the_four_faults_and_each_mend_takes_one():
    source, loss = written_on_the_page()
    assert check.batch_loss(loss).message == "all four are still in it"
    left = dict(SYMPTOMS)
    for fault, (line, mend) in MENDED.items():
        assert source.count(line) == 1
        source = source.replace(line, mend)
        del left[fault]
        room = {"torch": torch}
        exec(source, room)
        verdict = check.batch_loss(room["batch_loss"])
        if left:
            assert verdict.kind == "known mistake"
            assert all((said in verdict.message) == (key in left) for key, said in SYMPTOMS.items())
    assert verdict.kind == "right"


def numbers_of(faults, capsys):
    symptoms(partial(broken, faults=faults))
    rows = [re.split(r"\s{2,}", row) for row in capsys.readouterr().out.splitlines()]
    return {row[0].split(",")[0].split(";")[0]: row[1] for row in rows if "hard" not in row[0]}


@pytest.mark.parametrize("faults", [(), *((key,) for key in SYMPTOMS), tuple(SYMPTOMS)])
def test_each_number_of_the_log_belongs_to_one_fault(faults, capsys):
    easy, clipped, push, norms = numbers_of(faults, capsys).values()
    first, last = map(float, easy.split(", "))
    assert (last < first) == ("ratio" in faults)
    assert clipped.startswith("0 of") == ("old" in faults)
    assert (float(push) > 0) == ("baseline" in faults)
    alone, padded = map(float, norms.split(", "))
    assert (padded < 0.6 * alone) == ("mean" in faults)
    assert "mean" in faults or padded == alone


def test_the_round_has_a_clock_of_its_own_and_is_handed_in_like_the_ten(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("RLNB_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setattr(whiteboard, "_BEGAN", {})
    wall = whiteboard.whiteboard("batch_loss")
    assert wall.name.options == ("batch_loss",)
    assert "batch_loss" not in whiteboard.Wall().name.options
    wall.clock = clock = Clock()
    wall.begin.click()
    clock.now = 600.0
    assert not whiteboard.hand_in(written_on_the_page()[1], clock).passed
    assert "10.0 of 20 minutes" in capsys.readouterr().out

    def batch_loss(*arguments):
        return check.batch_loss.exercise.reference(*arguments)

    clock.now = 900.0
    assert whiteboard.hand_in(batch_loss, clock).passed
    assert progress.recall("whiteboard", "batch_loss") == {"minutes": 15.0}
