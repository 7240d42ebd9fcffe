"""The answer-ratio explorer: from the router toy, by hand, and against the package's ratio."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rlnb.classroom.explorers import answer_ratio, answer_ratio_explorer
from rlnb.classroom.explorers.answer_ratio import BANDS, LENGTHS, alt, compute, pool, samples
from rlnb.objective import Batch, clip
from rlnb.objective import sequence as sequence_ratio


def test_the_pool_comes_from_the_old_policy():
    """The mean log-ratio is a negative KL, small without flips; flipped tokens leap."""
    calm, flipped = pool()
    assert calm.shape == flipped.shape == (64, 512)
    assert 0.005 < calm.std() < 0.03 and 0.4 < flipped.std() < 1.2
    assert -0.4 < flipped.mean() < -0.1 and abs(calm.mean()) < 1e-3
    # both are samples of one policy under another, so a ratio has mean 1
    assert abs(np.exp(calm).mean() - 1) < 1e-3 and abs(np.exp(flipped).mean() - 1) < 0.02


def test_the_samples_are_tokens_of_the_pool_drawn_again():
    calm, flipped, draw = samples()
    assert calm.shape == flipped.shape == draw.shape == (64, LENGTHS[-1])
    assert 0 <= draw.min() and draw.max() < 1
    known = set(zip(pool()[0].ravel(), pool()[1].ravel(), strict=True))
    assert set(zip(calm[:, 0], flipped[:, 0], strict=True)) <= known
    assert abs(calm.mean() - pool()[0].mean()) < 5e-5
    assert abs(flipped.mean() - pool()[1].mean()) < 5e-3


def test_an_answer_s_ratio_is_the_package_s():
    calm, flipped, draw = (torch.tensor(x[:, :16]) for x in samples())
    gap = torch.where(draw < 0.1, flipped, calm)
    batch = Batch(
        gap - 5,
        torch.ones(64, 16),
        torch.zeros(64),
        64,
        old_logprobs=torch.full((64, 16), -5.0, dtype=torch.float64),
    )
    s = sequence_ratio()(batch).exp()[:, 0]
    np.testing.assert_allclose(compute(flips=10.0, length=16)["answers"], s, atol=1e-12)


def test_shares_are_counted_as_the_clip_cuts():
    d = compute(flips=3.0, length=128, band="2e-3, 2.5e-3")
    low, high = BANDS["2e-3, 2.5e-3"]
    for sign, name in ((1.0, "cut_up"), (-1.0, "cut_down")):
        log_s = torch.tensor(d["answers"]).log().requires_grad_()
        clip(low, high=high)(None, torch.full((64,), sign), log_s).sum().backward()
        assert (log_s.grad == 0).double().mean() == d[name] > 0
    assert d["outside"] == d["cut_up"] + d["cut_down"]


def test_flips_stay_a_drop_at_any_length_and_a_push_comes_through_whole():
    means = [compute(flips=6.0, length=T)["mean"] for T in (64, 256, 512)]
    assert all(-0.02 < m < -0.008 for m in means)
    spread = [np.log(compute(flips=6.0, length=T)["answers"]).std() for T in (32, 128, 512)]
    assert spread[0] > 1.5 * spread[1] > 1.5**2 * spread[2]
    a, b = (compute(flips=4.0, push=p)["mean"] for p in (0.0, 0.003))
    assert b - a == pytest.approx(0.003, abs=1e-12)


def test_a_band_of_a_fifth_touches_no_answer_and_gspo_s_touches_most():
    wide, tiny = compute(band="0.2"), compute()
    assert wide["outside"] == 0 < wide["wide"] == wide["tiny"] < 0.1
    assert tiny["outside"] > 0.9 and tiny["cut_down"] > 0.8
    assert compute(flips=0.0)["wide"] == 0


def test_no_flips_and_all_flips_are_the_two_arrays():
    calm, flipped, _ = samples()
    assert np.allclose(np.log(compute(flips=0.0, length=8)["tokens"]), calm[:, :8].ravel())
    assert np.allclose(np.log(compute(flips=100.0, length=8)["tokens"]), flipped[:, :8].ravel())


@pytest.mark.parametrize(
    "wrong", [{"flips": -1.0}, {"flips": 101.0}, {"length": 0}, {"length": 32769}, {"band": "0.3"}]
)
def test_a_setting_outside_its_range_is_refused_with_a_sentence(wrong):
    with pytest.raises(ValueError, match="must be from .* (per cent|tokens)|must be one of"):
        compute(**wrong)


def test_the_columns_are_the_answers_at_each_length():
    for T in LENGTHS:
        d = compute(flips=3.0, length=T)
        column = d["columns"][LENGTHS.index(T)]
        np.testing.assert_allclose(np.exp(column), d["answers"], rtol=1e-12)
    assert 0 < compute(flips=0.0)["kl"] < 1e-4 < compute(flips=2.0)["kl"] < compute(4.0)["kl"]
    d = compute(flips=8.0, push=0.002)
    assert d["columns"][-1].mean() == pytest.approx(-d["kl"], abs=5e-4)


def test_artists_hold_what_compute_says_and_the_words_the_numbers():
    explorer = answer_ratio_explorer()
    for params in ({"flips": 0.0}, {"length": 32, "band": "0.01"}, {"flips": 2.0}):
        artists, data = explorer.set(**params).artists, explorer.data
        inside, below, above = (artists[name].get_ydata() for name in ("in", "down", "up"))
        s = data["answers"]
        assert len(below) == (s < data["edges"][0]).sum()
        assert len(above) == (s > data["edges"][1]).sum()
        assert len(inside) + len(below) + len(above) == 64
        low, high = (np.log(edge) for edge in data["edges"])
        assert all(low / high <= y <= 1 for y in inside)  # in upper half-widths
        assert all(y < low / high for y in below) and all(y > 1 for y in above)
        assert artists["band"].get_y() == pytest.approx(low / high)
        assert artists["band"].get_y() + artists["band"].get_height() == pytest.approx(1)
        assert artists["kl"].get_ydata()[0] == pytest.approx(
            max(-data["kl"] / high, answer_ratio.FLOOR)
        )
        ticks = [text.get_text() for text in artists["ticks"]]
        assert ticks == (["−0.01", "0", "+0.01"] if "band" in params or data["band"] == "0.01"
                         else ["−0.0003", "0", "+0.0004"])  # fmt: skip
        assert explorer.alt_text() == alt(data)
    assert f"{data['outside']:.0%} outside the band" in alt(data)
    assert f"{data['shares'][0, 1]:.0f} % below" in answer_ratio.readout(data)  # T = 32
    assert len(answer_ratio.readout(data)) < 120


def test_the_shares_above_the_columns_count_every_token_once_at_every_length():
    d = compute(flips=3.0, length=LENGTHS[-1], band="0.01")
    assert d["shares"].shape == (6, 3)
    np.testing.assert_allclose(d["shares"].sum(1), 100)
    # at the longest the answers are the 64 dots; at the others they are cut from the same tokens
    low, high = d["edges"]
    below, above = (d["answers"] < low).mean(), (d["answers"] > high).mean()
    np.testing.assert_allclose(d["shares"][-1, 1:], (100 * below, 100 * above))
    tokens = np.log(d["tokens"]).reshape(-1, 128).mean(1)  # 16,384 answers
    np.testing.assert_allclose(d["shares"][1, 1], 100 * (tokens < np.log(low)).mean(), atol=0.01)
    assert answer_ratio.inside(d) == pytest.approx(list(d["shares"][:, 0]))
    explorer = answer_ratio_explorer()
    for i, T in enumerate(LENGTHS):
        text = explorer.set(flips=1.5, band="0.01", length=T).artists["inside"]
        assert text.get_text() == f"{answer_ratio.inside(explorer.data)[i]:.0f} % inside"
        assert text.get_position()[0] == i


def test_the_shares_at_the_other_lengths_stay_hidden():
    """They are what the first task asks to predict."""
    explorer = answer_ratio_explorer()
    shares = [f"{x:.0f} %" for x in answer_ratio.inside(explorer.data)]
    at = LENGTHS.index(explorer.data["length"])
    drawn = " ".join(text.get_text() for text in explorer.figure.axes[0].texts)
    said = drawn + explorer.alt_text() + answer_ratio.readout(explorer.data)
    assert f"{shares[at]} inside" in drawn
    assert not any(f"{share} inside" in said for share in set(shares) - {shares[at]})
    assert sum(len(line.get_xdata()) for line in explorer.figure.axes[0].lines) == 64 + 2 * 2
