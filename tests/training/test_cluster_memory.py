"""Bytes on one of several GPUs, by hand; agreement with the count for one GPU."""

from __future__ import annotations

import pytest

from rlnb.training import BadInput
from rlnb.training.studies.cluster_memory import (
    LLAMA2_7B,
    QWEN_7B,
    Cluster,
    kv_bytes_per_token,
    memory_bytes,
    on_one_gpu,
    peak_on_one_gpu,
)
from rlnb.training.studies.gpu_budget import MODELS, Precision, bytes_per_parameter


def test_one_gpu_agrees_with_the_other_count():
    for name, (trained, frozen) in MODELS.items():
        assert memory_bytes(1, trained, frozen) == bytes_per_parameter(Precision(), name)


def test_stages_by_hand():
    assert [memory_bytes(1, 2, 2, 4, stage) for stage in range(4)] == pytest.approx(
        [36, 2 * (4 + 3) + 4, 2 * (2 + 0.5 + 3) + 4, 36 / 4]
    )


def test_grouped_queries_keep_a_ninth_of_the_cache():
    assert kv_bytes_per_token(LLAMA2_7B.layout) == 2 * 32 * 32 * 128 * 2
    assert kv_bytes_per_token(LLAMA2_7B.layout) / kv_bytes_per_token(QWEN_7B.layout) > 9


def test_the_shape_has_the_parameters_that_are_said():
    for model in (QWEN_7B, LLAMA2_7B):
        counted = model.layout.parameters(model.vocabulary)
        counted += model.vocabulary * model.layout.hidden  # the head is not tied
        assert counted == pytest.approx(model.parameters, rel=0.005)


def test_parking_takes_the_larger_half_and_the_cache_falls_with_the_gpus():
    parts = on_one_gpu(QWEN_7B, Cluster(gpus=8, stage=3))
    assert parts["cache"] == pytest.approx(512 * 8192 * 57_344 / 8 / 1e9)
    assert peak_on_one_gpu(parts, True) == pytest.approx(
        max(parts["engine"] + parts["cache"],
            parts["trainer"] + parts["frozen models"] + parts["activations"])
    )  # fmt: skip
    assert peak_on_one_gpu(parts, True) < peak_on_one_gpu(parts, False)
    assert on_one_gpu(QWEN_7B, Cluster(gpus=16))["cache"] == pytest.approx(parts["cache"] / 2)


@pytest.mark.parametrize("bad", [{"stage": 4}, {"gpus": 0}, {"answers": 0}, {"frozen": -1}])
def test_impossible_clusters_are_refused(bad):
    with pytest.raises(BadInput, match="expected"):
        Cluster(**bad)
