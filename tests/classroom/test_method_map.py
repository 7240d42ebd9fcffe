"""The map of methods stands where the zoo's compositions say."""

from __future__ import annotations

from rlnb.classroom.pictures.method_map import BASELINES, PLACES, RATIOS, method_map
from rlnb.objective import ZOO

ROW = {
    "max_rl": "mean of the group",
    "batch_zscore": "mean of the group,\nstd of the batch",
    "raw_reward": "none",
    "batch_mean": "mean of the batch",
    "return_to_go": "mean of the batch",
    "greedy_baseline": "greedy answer",
    "leave_one_out": "mean of the group",
    "group_center": "mean of the group",
    "group_zscore": "mean and std\nof the group",
    "gae": "critic, per token",
}


def test_every_method_of_the_zoo_is_on_the_map():
    assert sorted(ZOO) == sorted(name for place in PLACES for name in place.zoo)


def test_row_is_the_baseline_and_column_the_ratio_of_the_composition():
    for place, name in [(p, name) for p in PLACES for name in p.zoo]:
        method = ZOO[name]
        assert BASELINES[place.baseline] == ROW[type(method.advantage).__name__], name
        surrogate = type(method.surrogate).__name__
        column = RATIOS[place.ratio].replace("\n", " ")
        assert (column == "no ratio") == (surrogate == "logprob"), name
        if surrogate == "clip" and type(method.ratio).__name__ == "token":
            assert column == "one per token, hard clip", name


def test_only_written_pages_are_named_as_written():
    some = repr(method_map({"02", "21"}))
    assert "Written: REINFORCE (02). To follow:" in some
    assert "GRPO (08)" in some.split("To follow:")[1]
