"""The recorded runs of page 09, as numbers and as figures."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.classroom.pictures import recorded_runs


def test_running_mean_leaves_missing_steps_out():
    values = np.array([1.0, np.nan, 3.0, 5.0])
    assert recorded_runs.running_mean(values, 2).tolist() == [1.0, 1.0, 3.0, 4.0]
    assert np.isnan(recorded_runs.running_mean(np.array([np.nan, 2.0]), 2)[0])


def test_every_recorded_seed_is_found_and_an_unknown_run_is_a_sentence():
    for run in recorded_runs.RUNS.values():
        assert 0 in recorded_runs.seeds(run)
    assert recorded_runs.seeds("chain_coin_flip") == [0, 1, 2]
    with pytest.raises(FileNotFoundError, match="no recorded run pick_ppo"):
        recorded_runs.seeds("pick_ppo")


@pytest.mark.parametrize("method", recorded_runs.LENGTH_RUNS)
def test_lengths_are_those_of_the_file_and_the_gap_is_wrong_minus_right(method):
    both = recorded_runs.lengths(method)
    assert both["right"].shape == both["wrong"].shape
    assert both["right"].shape[1] == 80
    steps = [
        r
        for r in recorded_runs.records(recorded_runs.LENGTH_RUNS[method], 0)
        if r["record"] == "step"
    ]
    assert both["wrong"][0, 3] == steps[3]["completions/mean_length_wrong"]
    gap = recorded_runs.length_gap(method, 71, 80)
    by_hand = np.nanmean(both["wrong"][:, 70:], 1) - np.nanmean(both["right"][:, 70:], 1)
    assert gap == by_hand.tolist()


def test_only_grpo_drives_right_and_wrong_apart_on_every_seed():
    assert min(recorded_runs.length_gap("GRPO", 71, 80)) > 40
    assert np.abs(recorded_runs.length_gap("Dr. GRPO", 71, 80)).max() < 5
    assert np.abs(recorded_runs.length_gap("GRPO, coin flip", 21, 30)).max() < 3
    for method in recorded_runs.LENGTH_RUNS:  # longer, not better
        assert recorded_runs.evaluated(method, "pass@1").max() < 0.2


def test_by_difficulty_reads_the_evaluations_hardest_type_first():
    table = recorded_runs.by_difficulty("z-score", 40)
    assert table.shape == (3, 7)
    last = [r for r in recorded_runs.records("types_zscore", 1) if r["record"] == "eval"][-1]
    assert (table[1, 0], table[1, 6]) == (last["pass@1/0.05"], last["pass@1/0.95"])
    assert np.abs(table - recorded_runs.by_difficulty("mean only", 40)).max() <= 0.06


def test_the_bonus_is_learnt_divided_and_not_undivided_on_every_seed():
    last = {rule: recorded_runs.waits(rule)[:, -10:].mean(1) for rule in recorded_runs.BONUS_RUNS}
    assert last["z-score"].min() > 1 > 0.4 > last["mean only"].max()
