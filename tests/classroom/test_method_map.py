"""The map of methods stands where the zoo's compositions say."""

from rlnb.classroom.method_map import BASELINES, PLACES, RATIOS, method_map
from rlnb.objective import ZOO

ROW = {"raw_reward": "none", "batch_mean": "mean of the batch", "return_to_go": "mean of the batch",
       "greedy_baseline": "greedy answer", "leave_one_out": "mean of the group",
       "group_center": "mean of the group", "group_zscore": "mean and std\nof the group",
       "gae": "critic, per token"}


def test_every_method_of_the_zoo_is_on_the_map():
    assert set(ZOO) <= {place.zoo for place in PLACES}


def test_row_is_the_baseline_and_column_the_ratio_of_the_composition():
    for place in PLACES:
        if place.zoo not in ZOO:
            continue
        method = ZOO[place.zoo]
        assert BASELINES[place.baseline] == ROW[type(method.advantage).__name__], place
        surrogate = type(method.surrogate).__name__
        column = RATIOS[place.ratio].replace("\n", " ")
        assert (column == "no ratio") == (surrogate == "logprob"), place
        if surrogate == "clip" and type(method.ratio).__name__ == "token":
            assert column == "one per token, hard clip", place


def test_only_written_pages_are_named_as_written():
    some = repr(method_map({"02", "19"}))
    assert "Written: REINFORCE (02). To follow:" in some
    assert "GRPO (06)" in some.split("To follow:")[1]
