"""Two real processes: which extra all-reduce changes a gradient."""

from __future__ import annotations

import pytest

from rlnb.toys import two_workers


def test_a_mean_too_many_is_harmless_and_a_sum_is_not():
    pytest.importorskip("torch.distributed")
    found = two_workers.measure()
    assert found == {
        "once, mean": 1.5,
        "a second mean": 1.5,
        "a sum too many": 3.0,
        "two sums too many": 6.0,
        "loss summed inside the graph": 3.0,
        "a detached loss summed for the log": 1.5,
        "that log": 3.0,
    }
