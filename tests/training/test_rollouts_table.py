"""Recorded rollouts come back from Parquet, through `datasets`, as they were."""

from __future__ import annotations

import sys

import pytest

from rlnb.shipped import data_folder
from rlnb.training import BadInput, read
from rlnb.training.rollouts_table import COLUMNS, rollout_rows, write_rollouts

RUN = data_folder() / "runs" / "chain_rollouts_seed0.jsonl"


def test_datasets_reads_every_rollout_of_a_recorded_run(tmp_path):
    datasets = pytest.importorskip("datasets")
    out = tmp_path / "rollouts.parquet"
    count = write_rollouts(RUN, out)
    table = datasets.Dataset.from_parquet(str(out), cache_dir=str(tmp_path / "cache"))
    recorded = [record for record in read(RUN) if record["record"] == "rollout"]
    assert count == len(table) == len(recorded) > 0
    assert tuple(table.column_names) == COLUMNS
    for row, record in zip(table, recorded, strict=True):
        assert {n: row[n] for n in COLUMNS if n != "completion"} == {
            n: record[n] for n in COLUMNS if n != "completion"
        }
        assert row["completion"] == "".join(record["tokens"]).removesuffix("<eos>")
        assert len(row["tokens"]) == len(row["logprobs"]) == len(row["gradient"])


def test_the_text_is_the_tokenizers_where_there_is_one(shipped):
    records = [record for record in read(RUN) if record["record"] == "rollout"][:4]
    assert rollout_rows(records) == rollout_rows(records, shipped[1])


def test_a_run_without_rollouts_and_a_machine_without_pyarrow_get_a_sentence(tmp_path, monkeypatch):
    with pytest.raises(BadInput, match="has no rollouts; record some with --record-rollouts"):
        write_rollouts(data_folder() / "runs" / "chain_dr_grpo_seed0.jsonl", tmp_path / "x")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BadInput, match="pip install pyarrow"):
        write_rollouts(RUN, tmp_path / "x")
