"""ZeRO's stages on a ring: the same step, and what it sends."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.toys.ring import Ring, step


def test_a_ring_sums_and_hands_out():
    held = np.random.default_rng(0).normal(size=(5, 5, 3))
    ring = Ring(5)
    assert ring.reduce_scatter(held) == pytest.approx(held.sum(0))
    assert ring.sent == 4 * 3
    assert ring.gather(held[0]) == pytest.approx(held[0]) and ring.sent == 2 * 4 * 3


@pytest.mark.parametrize("cards", [2, 8, 14])
def test_stage_three_sends_half_as_much_again_and_all_stages_do_the_same_step(cards):
    found = [step(stage, cards) for stage in range(4)]
    assert [sent * cards / (cards - 1) for _, sent in found] == pytest.approx([2, 2, 2, 3])
    for weights, _ in found[1:]:
        assert weights == pytest.approx(found[0][0], abs=1e-12)


def test_micro_batches_are_sent_one_by_one_where_a_card_holds_no_whole_gradient():
    found = [step(stage, 4, micro=128) for stage in range(4)]
    assert [sent * 4 / 3 for _, sent in found] == pytest.approx([2, 2, 129, 384])
    for weights, _ in found[1:]:
        assert weights == pytest.approx(found[0][0], abs=1e-12)
    with pytest.raises(ValueError, match="micro"):
        step(0, 4, micro=0)


def test_rings_and_stages_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="2 cards"):
        Ring(1)
    with pytest.raises(ValueError, match="stage"):
        step(4, 8)
