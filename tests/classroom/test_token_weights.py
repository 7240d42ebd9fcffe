"""The aggregation explorer and the figure beside it: weights, shares and the push, by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rlnb.classroom.explorers import token_weights, token_weights_explorer
from rlnb.classroom.explorers.token_weights import compute, token_weight
from rlnb.classroom.pictures.aggregation_rules import share_and_pressure, stop_drift
from rlnb.objective import ZOO, padded_length, weights
from rlnb.toys import running_batch

# lengths of two prompts with two answers each, every token of an answer with the same loss
LENGTHS, LOSSES, LIMIT = (2, 6, 3, 1), np.array([1.0, 2.0, 3.0, 5.0]), 8
BY_HAND = {
    "sequence_mean": 2.75,  # (1 + 2 + 3 + 5) / 4
    "token_mean": 28 / 12,  # (2 + 12 + 9 + 5) / 12
    "local_token_mean": 2.625,  # (14/8 + 14/4) / 2, one prompt at a time
    "prompt_mean": 2.625,
    "constant_length": 28 / 32,
    "sequence_sum": 7.0,
    "token_sum": 28.0,
}


@pytest.mark.parametrize("rule", token_weights.RULES, ids=lambda rule: rule.name)
def test_seven_rules_give_the_seven_numbers_of_one_batch(rule):
    c = token_weight(rule.part, LENGTHS, LIMIT, micro=2)
    assert (c * LENGTHS * LOSSES).sum() == pytest.approx(BY_HAND[rule.name], abs=1e-12)


def test_every_aggregation_of_the_package_is_shown():
    shown = {type(rule.part) for rule in token_weights.RULES} | {padded_length}  # a control
    assert shown == {getattr(weights, name) for name in weights.__all__}


def test_a_local_mean_is_the_sequence_mean_by_rows_and_the_token_mean_by_steps():
    for micro, name in ((1, "sequence_mean"), (4, "token_mean")):
        c = compute(3, 11, 7, micro=micro)["weights"]
        np.testing.assert_allclose(c["local_token_mean"], c[name], atol=1e-15)


def test_equal_token_weights_share_by_length_and_the_sequence_mean_shares_evenly():
    d = compute(first=4, second=12, other=3)
    for name in ("token_mean", "constant_length", "sequence_sum", "token_sum"):
        assert np.ptp(d["weights"][name]) == 0
        np.testing.assert_allclose(d["shares"][name], [4 / 22, 12 / 22, 6 / 22])
    np.testing.assert_allclose(d["shares"]["sequence_mean"], [0.25, 0.25, 0.5])
    np.testing.assert_allclose(d["shares"]["prompt_mean"], [4 / 32, 12 / 32, 0.5])


def test_only_a_divisor_that_knows_the_own_length_changes_with_it():
    longer = compute(first=4, second=12, other=3, micro=2)["longer"]
    assert longer["sequence_mean"] == pytest.approx(4 / 5 - 1)
    assert longer["token_mean"] == pytest.approx(22 / 23 - 1)
    assert longer["prompt_mean"] == longer["local_token_mean"] == pytest.approx(16 / 17 - 1)
    assert longer["constant_length"] == longer["sequence_sum"] == longer["token_sum"] == 0


def test_the_padded_width_is_no_constant():
    d = compute(first=12, second=4, other=3, divisor="width")
    assert d["constant"] == 12
    assert d["weights"]["constant_length"][0] == pytest.approx(1 / 48)
    assert d["longer"]["constant_length"] == pytest.approx(12 / 13 - 1)
    short = compute(first=3, second=12, other=3, divisor="width")
    assert short["longer"]["constant_length"] == 0  # another answer sets the width
    # as the package's padded_length does on a tensor of that width
    same = token_weight(padded_length(), tuple(d["lengths"]), 999)
    np.testing.assert_allclose(same, d["weights"]["constant_length"])


def test_weights_are_those_of_a_real_loss():
    batch = running_batch()
    lengths = batch.lengths.long().tolist()
    for rule in token_weights.RULES:
        if rule.name == "local_token_mean":
            continue
        theirs = ZOO["dr_grpo"].replace(weights=rule.part)(batch).weights[:, 0].detach()
        if rule.name == "prompt_mean":
            continue  # two answers to a prompt here, four there
        ours = token_weight(rule.part, tuple(lengths), batch.max_completion_length)
        torch.testing.assert_close(torch.tensor(ours), theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"divisor": "L"}, r"divisor must be one of \['limit', 'width'\], got 'L'"),
        ({"micro": 3}, r"micro must be one of \[1, 2, 4\], got 3"),
        ({"first": 0}, "first must be at least 1, got 0"),
    ],
)
def test_a_setting_that_makes_no_sense_is_a_sentence(wrong, said):
    with pytest.raises(ValueError, match=said):
        compute(**wrong)


def test_artists_hold_what_compute_says():
    explorer = token_weights_explorer()
    for params in ({}, {"first": 40, "second": 2, "micro": 1}, {"divisor": "width"}):
        artists, data = explorer.set(**params).artists, explorer.data
        for row, name in enumerate(token_weights.NAMES):
            for index in range(3):
                assert artists["marks", index].get_xdata()[row] == data["weights"][name][index]
                bar = artists["bars", index][row]
                assert bar.get_width() == pytest.approx(data["shares"][name][index])
                assert bar.get_x() == pytest.approx(data["shares"][name][:index].sum())


def test_names_of_libraries_do_not_run_into_each_other_or_out_of_the_picture():
    explorer = token_weights_explorer()
    explorer.pixels_from_scratch()
    renderer = explorer.figure.canvas.get_renderer()
    boxes = [
        (t.get_text(), t.get_window_extent(renderer))
        for t in explorer.figure.texts
        if t.get_text() and t not in explorer.moving
    ]
    assert len(boxes) == 2 * len(token_weights.RULES) + 3
    for i, (one, box) in enumerate(boxes):
        assert box.x0 >= 0
        for other, another in boxes[i + 1 :]:
            assert not box.overlaps(another), (one, other)


def test_the_figure_says_its_numbers_and_refuses_a_missing_rule():
    shares, push = {"a": 0.5, "b": 0.91}, {"a": 1.558, "b": 0.0}
    words = share_and_pressure(["a", "b"], shares, push, lengths=(100, 1000)).alt
    assert "a 0.50 and +1.558; b 0.91 and 0.000" in words
    with pytest.raises(ValueError, match="pressure has no entry for 'b'"):
        share_and_pressure(["a", "b"], shares, {"a": 1.0}, lengths=(100, 1000))
    with pytest.raises(ValueError, match="not negative"):
        share_and_pressure(["a", "b"], shares, push | {"a": -1.0}, lengths=(100, 1000))


def test_the_drift_of_an_own_divisor_has_its_closed_form():
    for q in (0.05, 0.1, 0.4):
        by_hand = -np.log(q) / (1 - q) - 1  # (E[1/T] - q) / q
        assert stop_drift(1, q) == pytest.approx(by_hand, rel=1e-9)
        assert stop_drift(1, q, "longest") == pytest.approx(by_hand, rel=1e-9)


def test_the_drift_of_a_shared_divisor_is_what_drawn_lengths_show():
    rng = np.random.default_rng(0)
    T = rng.geometric(0.1, (400_000, 4)).astype(float)
    slope = 1 - 0.1 * T[:, :1]
    for divisor, D in (("total", T.sum(1, keepdims=True)), ("longest", T.max(1, keepdims=True))):
        scale = T.sum(1).mean() / (T.sum(1) / D[:, 0]).mean()
        drawn = (scale / D * slope).mean()
        assert stop_drift(4, 0.1, divisor) == pytest.approx(drawn, abs=0.01)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n": 0}, "at least 1 answer"),
        ({"n": 8, "q": 1.0}, "q in"),
        ({"n": 8, "divisor": "width"}, "'total' or 'longest', got 'width'"),
        ({"n": 200}, "at least twice that"),
    ],
)
def test_a_drift_that_makes_no_sense_is_a_sentence(wrong, said):
    with pytest.raises(ValueError, match=said):
        stop_drift(**wrong)
