"""The comparison of libraries: narrow, iterable, and its quoted defaults are the defaults."""

from __future__ import annotations

import pytest

from rlnb.interop import TRL_DEFAULTS, TRL_RLOO_DEFAULTS, VERL_DEFAULTS, rosetta
from rlnb.interop.rosetta_table import LIBRARIES, ROWS
from rlnb.objective import ANNEX, ZOO, clip, gae, group_center, group_zscore, kl_in_reward, sapo

QUOTED = [
    (row.question, library, word, value)
    for row in ROWS
    for library, words in row.defaults.items()
    for word, value in words.items()
]


def test_the_table_prints_narrow_and_iterates():
    table = rosetta()
    assert max(map(len, str(table).splitlines())) <= 76
    assert [row.question for row in table] == [row.question for row in ROWS] and len(table) == 25
    assert all(row[name] for row in table for name in LIBRARIES)


@pytest.mark.parametrize("library", [*LIBRARIES, "TRL", "verl 0.9.1"])
def test_one_column(library):
    text = str(rosetta(library))
    assert max(map(len, text.splitlines())) <= 76
    for row in ROWS:
        assert row.question in text
    other = "trl" if "verl" in library else "verl"
    assert f"\n  {other}  " not in text


def test_an_unknown_column_is_a_sentence():
    with pytest.raises(ValueError, match="papers, rlnb, trl, verl, openrlhf"):
        rosetta("ragen")


def test_what_was_only_read_says_when():
    assert "3c3be62" in LIBRARIES["openrlhf"] and "2026-08-13" in LIBRARIES["openrlhf"]


@pytest.mark.parametrize("question, library, word, value", QUOTED)
def test_a_quoted_default_stands_in_its_cell(question, library, word, value):
    row = next(r for r in ROWS if r.question == question)
    cell = row["trl" if library.startswith("trl") else "verl"]
    assert str(value) in cell or (value is None and "null" in cell), cell


# nine quoted words are not read by an objective (num_generations, ppo_epochs, ...): the tests of
# tests/parity hold them, with all others, against the libraries
KNOWN = {
    "trl": TRL_DEFAULTS,
    "trl_rloo": TRL_RLOO_DEFAULTS,
    "verl": VERL_DEFAULTS,
    "trl_gmpo": {"epsilon": 0.4},
}
READ = [(library, word, value) for _, library, word, value in QUOTED if word in KNOWN[library]]


@pytest.mark.parametrize("library, word, value", READ)
def test_a_quoted_default_is_the_one_that_interop_uses(library, word, value):
    assert KNOWN[library][word] == value


def test_few_quoted_words_are_not_read():
    assert len(QUOTED) - len(READ) == 9


def test_our_column_is_what_the_parts_do():
    ours = {row.question: row.rlnb for row in ROWS}
    assert group_zscore().std == "population" and group_zscore().eps == 1e-6
    assert ours["Advantage of GRPO: what is added to the std"] == "1e-6"
    assert repr(group_center()) == ours["Leaving the std out (Dr. GRPO)"]
    assert repr(clip(0.2, high=0.28)) in ours["Clip: the band"]
    assert repr(clip(0.2, dual=3.0)) in ours["Dual clip: a cap on the ratio where A < 0"]
    assert clip(0.2).dual is None
    assert ZOO["cispo"].surrogate.cap == 5.0 and ZOO["cispo"].surrogate.floor is None
    assert repr(sapo()) == ours["SAPO: the temperatures for A > 0 and A <= 0"]
    assert repr(kl_in_reward(0.05)) == ours["KL in the reward"]
    assert repr(gae(1.0, 0.95)) in ours["GAE: lambda, and whitening"]
    dppo = ZOO["dppo"]
    cell = ours["DPPO: how far a token's probability may move"]
    assert repr(dppo.surrogate) in cell and repr(dppo.gates[0]) in cell
    assert (
        repr(ZOO["maxrl"].advantage) + "; " + repr(ZOO["scalerl"].advantage)
        == ours["Dividing by something else (MaxRL, ScaleRL)"]
    )
    assert (
        repr(ANNEX["deepseek_v3_2"].gates[0])
        == ours["A bad answer that became unlikely (DeepSeek-V3.2)"]
    )
    with_kl = [name for name, method in ZOO.items() if method.terms]
    assert with_kl == ["grpo"] and repr(ZOO["grpo"].terms[0]) in ours["KL in the loss: coefficient"]
