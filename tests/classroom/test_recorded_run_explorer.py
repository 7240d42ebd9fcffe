"""The recorded-run explorer shows what the files say, and its picture equals a fresh drawing."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.classroom.explorers.recorded_run import (
    GROUPS,
    LAST,
    RUNS,
    alt,
    compute,
    recorded_run_explorer,
)
from rlnb.training import data_folder, read, series


@pytest.mark.parametrize("run", RUNS)
def test_shares_of_groups_are_the_recorded_ones_and_sum_to_one(run):
    records = read(data_folder() / "runs" / f"{RUNS[run]}.jsonl")
    data = compute(LAST, run)
    for kind in GROUPS:
        assert data["groups"][kind] == list(series(records, f"groups/{kind}").values())
    for shares in zip(*data["groups"].values(), strict=True):
        assert sum(shares) == pytest.approx(1)
    assert data["pass@1"] == series(records, "pass@1", "eval")


def test_nothing_of_a_later_step_is_shown():
    data = compute(15)
    assert [len(shares) for shares in data["groups"].values()] == [15, 15, 15]
    assert list(data["pass@1"]) == [0, 10] and data["answered"] == 10
    assert data["metrics"]["step"] == 15
    assert compute(0)["metrics"] is None and compute(0)["groups"]["mixed"] == []


def test_a_step_beyond_the_end_of_a_short_run_shows_its_end():
    long, short = compute(LAST, "coin flip"), compute(20, "coin flip")
    assert long == short and long["last"] == 20


def test_a_run_or_step_there_is_not_is_a_sentence():
    with pytest.raises(ValueError, match="coin flip"):
        compute(1, "seed 9")
    with pytest.raises(ValueError, match="from 0 to 40"):
        compute(41)


@pytest.mark.parametrize(("step", "run"), [(0, "seed 1"), (33, "seed 2"), (40, "coin flip")])
def test_picture_after_a_move_equals_a_fresh_drawing(step, run):
    explorer = recorded_run_explorer().set(step=step, run=run)
    assert np.array_equal(explorer.pixels(), explorer.pixels_from_scratch())
    assert explorer.alt_text() == alt(compute(step, run))
