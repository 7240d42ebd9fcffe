"""What the gate zoo draws: the closed forms against autograd through the package's parts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rlnb.classroom.explorers import gate_zoo_explorer
from rlnb.classroom.explorers.gate_zoo import DUAL, NAMES, RATIOS, TAU_NEG, alt, compute
from rlnb.objective import cispo, clip, divergence_mask, ratio, sapo

SETTINGS = [
    {},
    {"epsilon": 0.05, "tau": 10.0, "old": 0.01},
    {"epsilon": 0.6, "tau": 0.5, "old": 0.8},
    {"epsilon": 1.0, "tau": 3.0, "old": 0.0001},
]


def parts(name, epsilon, tau):
    """(surrogate, gate) of the package for one line of the picture."""
    return {
        "none": (ratio(), None),
        "ppo": (clip(epsilon), None),
        "dual": (clip(epsilon, dual=DUAL), None),
        "cispo": (cispo(1 + epsilon), None),
        "sapo": (sapo(tau_pos=tau, tau_neg=TAU_NEG * tau), None),
        "dppo": (ratio(), divergence_mask(epsilon)),
    }[name]


def by_autograd(name, sign, epsilon, tau, old, ratios):
    """(value, d value / d log pi / sign) at the ratios, a token of probability `old` each."""
    surrogate, gate = parts(name, epsilon, tau)
    old_logprobs = torch.full((1, len(ratios)), old, dtype=torch.float64).log()
    logprobs = (old_logprobs + torch.tensor(ratios).log()).requires_grad_()
    batch = SimpleNamespace(logprobs=logprobs, anchor_logprobs=old_logprobs)
    advantages = torch.full_like(old_logprobs, sign)
    value = surrogate(batch, advantages, logprobs - old_logprobs)
    if gate is not None:
        value = value * gate(batch, advantages, logprobs - old_logprobs)
    (slope,) = torch.autograd.grad(value.sum(), logprobs)
    return value.detach()[0].numpy(), sign * slope[0].numpy()


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("sign", ["positive", "negative"])
@pytest.mark.parametrize("name", NAMES)
def test_the_weight_is_autograd_s(name, sign, setting):
    data = compute(sign=sign, **setting)
    # a mask needs p <= 1 only in the picture: past it the parts go on, and so does the formula
    # 1e-3 away from every edge, where a slope is not defined
    edges = [
        1 + data["epsilon"],
        1 - data["epsilon"],
        DUAL,
        1 + data["epsilon"] / data["old"],
        1 - data["epsilon"] / data["old"],
    ]
    clear = np.all([abs(RATIOS - edge) > 1e-3 for edge in edges], axis=0)
    if name == "dppo":
        clear &= RATIOS * data["old"] <= 1  # beyond it there is no probability to compare
    _, slope = by_autograd(
        name, data["sign"], data["epsilon"], data["tau"], data["old"], RATIOS[clear]
    )
    np.testing.assert_allclose(data["weight"][name][clear], slope, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sign", ["positive", "negative"])
@pytest.mark.parametrize("name", ["none", "ppo", "dual", "sapo"])
def test_where_the_value_means_something_the_objective_is_it(name, sign):
    data = compute(sign=sign)
    value, _ = by_autograd(name, data["sign"], 0.2, 1.0, 0.3, RATIOS)
    shift = 0.0
    if name == "sapo":
        t = 1.0 if sign == "positive" else TAU_NEG
        shift = data["sign"] * (1 - 2 / t)
    np.testing.assert_allclose(data["objective"][name], value + shift, rtol=0, atol=1e-12)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("sign", ["positive", "negative"])
@pytest.mark.parametrize("name", NAMES)
def test_the_objective_has_the_weight_for_its_slope_and_is_a_at_one(name, sign, setting):
    data = compute(sign=sign, **setting)
    middle = len(RATIOS) // 2
    assert RATIOS[middle] == pytest.approx(1)
    assert data["objective"][name][middle] == pytest.approx(data["sign"])
    rise = np.diff(data["objective"][name])
    w = data["weight"][name]
    step = np.log(RATIOS[1] / RATIOS[0])
    same = (w[1:] > 0) == (w[:-1] > 0)  # not across a jump
    trapezoid = data["sign"] * step * (w[1:] + w[:-1]) / 2
    np.testing.assert_allclose(rise[same], trapezoid[same], rtol=1e-3, atol=2e-5)


def test_the_numbers_of_the_page():
    at = compute(ratio=1.5)["at"]
    assert at["sapo"] == pytest.approx(1.410, abs=5e-4)
    assert (at["ppo"], at["cispo"], at["none"], at["dppo"]) == (0, 1.2, 1.5, 1.5)
    assert compute(ratio=1.5)["moved"] == pytest.approx(0.15)
    rare = compute(old=0.0001, ratio=2.0)
    assert rare["at"]["ppo"] == 0 and rare["at"]["dppo"] == 2
    assert rare["moved"] == pytest.approx(0.0001)
    likely = compute(old=0.99, ratio=0.8, sign="negative", epsilon=0.19)
    assert likely["at"]["dppo"] == 0 and likely["moved"] == pytest.approx(-0.198)


def test_at_ratio_one_all_weights_are_one():
    for setting in SETTINGS:
        for sign in ("positive", "negative"):
            assert set(compute(ratio=1.0, sign=sign, **setting)["at"].values()) == {1.0}


def test_only_the_worsening_side_stays_alive_in_ppo_and_dual_clip_ends_it():
    worse = compute(ratio=3.5, sign="negative")["at"]
    assert worse["ppo"] == 3.5 and worse["dual"] == 0
    assert compute(ratio=0.5, sign="positive")["at"]["ppo"] == 0.5
    assert compute(ratio=0.5, sign="negative")["at"]["ppo"] == 0


def test_dual_clip_is_drawn_where_it_is_not_ppo():
    assert "dual" in compute(sign="negative")["shown"]
    up = compute(sign="positive", show="dual")
    assert up["shown"] == ("none", "ppo") and up["at"]["dual"] == up["at"]["ppo"]


def test_a_probability_above_one_is_said():
    data = compute(old=0.9, ratio=1.5)
    assert not data["possible"] and "it would need p > 1" in alt(data)
    assert compute(old=0.5, ratio=2.0)["possible"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"sign": "both"},
        {"show": "ppo"},
        {"old": 1.0},
        {"old": 0.0},
        {"epsilon": -0.1},
        {"tau": 0.0},
        {"ratio": 11.0},
    ],
)
def test_a_setting_outside_its_range_is_refused_with_a_sentence(wrong):
    with pytest.raises(ValueError, match=r"must be .*\."):
        compute(**wrong)


def test_artists_hold_what_compute_says():
    explorer = gate_zoo_explorer()
    for params in (
        {"show": "sapo", "tau": 4.0},
        {"show": "all", "sign": "negative"},
        {"show": "dppo", "old": 0.05, "ratio": 6.0},
    ):
        artists, data = explorer.set(**params).artists, explorer.data
        for name in NAMES:
            seen = name in data["shown"]
            for kind, turned in (("objective", data["sign"]), ("weight", 1)):
                assert np.array_equal(artists[kind, name].get_ydata(), turned * data[kind][name])
                assert artists[kind, name].get_visible() == seen
            assert list(artists["mark", name].get_ydata()) == [data["at"][name]]
            assert artists["text", name].get_text().endswith(f"{data['at'][name]:.3f}")
        for span in artists["impossible"]:
            assert span.get_x() == pytest.approx(min(1 / data["old"], 10))
        assert explorer.alt_text() == alt(data)
    assert "CISPO 1.200, SAPO 1.410, DPPO 1.500" in alt(compute())
