"""What labs say they ran: every row runs, and reads back where a library has words for it."""

from __future__ import annotations

import pytest
import torch

from rlnb.interop import from_trl, from_verl, to_trl, to_verl
from rlnb.interop.labs import LABS, engine_gap_squared, lab
from rlnb.objective import ANNEX, ZOO, difference, name_of
from rlnb.toys import running_batch

WRITTEN = [row for row in LABS if row.objective is not None]
IN_TRL = {
    "DeepSeekMath",
    "Qwen3-VL",
    "DeepSeek-R1",
    "GSPO",
    "OLMo 3 Think",
    "DeepSeek-V3.2",
    "GLM-5 reasoning",
    "80/20",
    "Polaris",
}


def name(row):
    return row.who


@pytest.mark.parametrize("row", LABS, ids=name)
def test_a_row_has_a_source_and_either_a_composition_or_the_reason_why_not(row):
    assert row.source and row.letter in ("A", "B")
    assert (row.objective is None) == bool(row.why_not)
    assert row.near in ZOO or row.near in ANNEX or lab(row.near)
    assert lab(row.who) is row


def test_no_row_twice_and_an_unknown_one_is_a_sentence():
    assert len({row.who for row in LABS}) == len(LABS)
    with pytest.raises(ValueError, match="no row 'OpenAI'; there are DeepSeekMath"):
        lab("OpenAI")


@pytest.mark.parametrize("row", WRITTEN, ids=name)
def test_a_row_runs_on_the_running_batch(row):
    batch = running_batch(complete=True)
    out = row.objective(batch)
    (slope,) = torch.autograd.grad(out.loss, batch.logprobs)
    assert torch.isfinite(slope).all() and slope.any()


@pytest.mark.parametrize("row", WRITTEN, ids=name)
def test_trl_s_words_read_back_to_the_row(row):
    try:
        words = to_trl(row.objective)
    except ValueError:
        assert row.who not in IN_TRL
        return
    assert row.who in IN_TRL
    back = from_trl(**words)
    assert back.objective.canonical() == row.objective.canonical()
    assert name_of(back.objective) == name_of(row.objective)


@pytest.mark.parametrize("row", WRITTEN, ids=name)
def test_verl_s_words_read_back_up_to_what_it_says_it_adds(row):
    try:
        words = to_verl(row.objective)
    except ValueError:
        return
    back = from_verl(**words).objective.canonical()
    changed = {change.part for change in difference(back, row.objective.canonical())}
    assert changed <= {"surrogate", "ratio"}  # a dual clip out of reach, GSPO-token
    assert not changed or words.differences
    if not changed:
        assert name_of(back) == name_of(row.objective)
    batch = running_batch(complete=True)
    mine, theirs = (
        torch.autograd.grad(o(batch).loss, batch.logprobs)[0]
        for o in (row.objective.canonical(), back)
    )
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


def test_the_numbers_that_the_reports_give():
    assert lab("DeepSeek-R1").objective.surrogate.epsilon == 10
    assert [term.coefficient for term in lab("DeepSeek-R1").objective.terms] == [0.001]
    (gate,) = lab("GLM-5 reasoning").objective.gates
    assert (gate.level, gate.kind, gate.low, gate.high) == ("token", "mask", 0.5, 2.0)
    (gate,) = lab("OLMo 3 Think").objective.gates
    assert (gate.level, gate.kind, gate.low, gate.high) == ("token", "truncate", None, 2.0)
    assert lab("Kimi k1.5").objective is None


def test_the_pull_towards_the_engine_is_the_square_of_the_log_ratio():
    batch = running_batch(complete=True)
    moved = batch.logprobs - batch.sampling_logprobs
    torch.testing.assert_close(engine_gap_squared(batch), moved**2)


def test_the_rows_that_carry_a_method_s_name():
    named = {row.who: name_of(row.objective) for row in WRITTEN if name_of(row.objective)}
    assert named == {
        "DeepSeekMath": "grpo",
        "GSPO": "gspo",
        "Qwen3-VL": "sapo",
        "VibeThinker": "mgpo",
        "ScaleRL": "scalerl",
        "DeepSeek-V3.2": "deepseek_v3_2",
    }
