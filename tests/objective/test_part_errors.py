"""Values that make no sense get a sentence."""

from __future__ import annotations

import pytest
from worked import worked_batch

from rlnb.objective import (
    Objective,
    cispo,
    clip,
    divergence_mask,
    engine_ratio,
    gmpo,
    group_center,
    ratio,
    reward_clip,
    sapo,
    sequence_mask,
    token_mean,
)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: cispo(0.0), "cap must be above 0"),
        (lambda: cispo(1.2, floor=-0.1), "floor must be above 0"),
        (lambda: sapo(0.0), "tau_pos must be above 0"),
        (lambda: gmpo(-0.1), "epsilon must be at least 0"),
        (lambda: clip(delta=0.0), "delta must be above 0"),
        (lambda: reward_clip(1.0, 0.0), "low must be below high"),
        (
            lambda: Objective(
                group_center(), ratio(), token_mean, gates=divergence_mask(kind="js")
            )(worked_batch()),
            "kind must be 'tv' or 'kl'",
        ),
        (
            lambda: Objective(group_center(), ratio(), token_mean, gates=sequence_mask(anchor="x"))(
                worked_batch()
            ),
            "anchor must be 'old' or 'sampling'",
        ),
        (
            lambda: Objective(group_center(), ratio(), token_mean, gates=engine_ratio("row"))(
                worked_batch()
            ),
            "level must be 'token' or 'sequence'",
        ),
        (
            lambda: Objective(group_center(), ratio(), token_mean, gates=engine_ratio(kind="x"))(
                worked_batch()
            ),
            "kind must be 'truncate' or 'mask'",
        ),
    ],
)
def test_bad_values_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
