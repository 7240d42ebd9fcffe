"""The numbers of the named methods are those of their papers, and of the authors' scripts."""

from __future__ import annotations

import pytest

from rlnb.objective import ANNEX, ZOO

BANDS = {
    "ppo": (0.8, 1.2),
    "grpo": (0.8, 1.2),
    "dapo": (0.8, 1.28),
    "gspo": (1 - 3e-4, 1 + 4e-4),
    "gspo_token": (1 - 3e-4, 1 + 4e-4),
    "luspo": (1 - 2e-3, 1 + 2.5e-3),
}


@pytest.mark.parametrize("name", BANDS)
def test_the_band_is_the_published_one(name):
    assert (ZOO | ANNEX)[name].surrogate.edges == pytest.approx(BANDS[name], abs=1e-12)


@pytest.mark.parametrize(("name", "cap"), [("cispo", 5.0), ("scalerl", 5.0), ("dppo", 20.0)])
def test_the_cap_of_the_detached_ratio_is_the_published_one(name, cap):
    assert ZOO[name].surrogate.cap == cap


def test_the_divergence_thresholds_are_the_published_ones():
    assert [ZOO[name].gates[0].low for name in ("dppo", "dppo_kl", "dppo_topk")] == [
        0.15,
        0.05,
        0.15,
    ]
