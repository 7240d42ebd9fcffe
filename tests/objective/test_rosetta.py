"""The comparison of libraries: narrow, iterable, and its quoted defaults are the defaults."""

import json
import os
import pathlib
from dataclasses import fields
from importlib.util import find_spec

import pytest

from rlnb.objective import (
    ZOO,
    clip,
    gae,
    group_center,
    group_zscore,
    kl_in_reward,
    rosetta,
    sapo,
)
from rlnb.objective.interop import TRL_DEFAULTS, TRL_RLOO_DEFAULTS, VERL_DEFAULTS
from rlnb.objective.interop.rosetta_table import LIBRARIES, ROWS

RECORDED = json.loads((pathlib.Path(__file__).parents[1] / "parity" / "verl_defaults.json")
                      .read_text(encoding="utf-8"))
NO_TRL = ("THE COMPARISON WITH TRL DID NOT RUN: trl is not installed. "
          "Run: pip install -r requirements.txt")
QUOTED = [(row.question, library, word, value) for row in ROWS
          for library, words in row.defaults.items() for word, value in words.items()]


def test_the_table_prints_narrow_and_iterates():
    table = rosetta()
    assert max(map(len, str(table).splitlines())) <= 76
    assert [row.question for row in table] == [row.question for row in ROWS] and len(table) == 22
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


@pytest.mark.parametrize("question, library, word, value", QUOTED)
def test_a_quoted_default_is_the_one_that_interop_uses(question, library, word, value):
    known = {"trl": TRL_DEFAULTS, "trl_rloo": TRL_RLOO_DEFAULTS, "verl": VERL_DEFAULTS,
             "trl_gmpo": {"epsilon": 0.4}}[library]
    if word in known:
        assert known[word] == value


def test_trl_s_column_is_the_installed_trl(monkeypatch):
    if find_spec("trl") is None:
        if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
            pytest.fail(NO_TRL + ". With CI set it must run.", pytrace=False)
        pytest.skip(NO_TRL)
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    from trl import GRPOConfig, RLOOConfig
    from trl.experimental.gmpo import GMPOConfig

    configs = {"trl": GRPOConfig, "trl_rloo": RLOOConfig, "trl_gmpo": GMPOConfig}
    installed = {name: {f.name: f.default for f in fields(c)} for name, c in configs.items()}
    quoted = [q for q in QUOTED if q[1] in configs]
    assert len(quoted) == 23
    wrong = [q for q in quoted if installed[q[1]][q[2]] != q[3]]
    assert not wrong


@pytest.mark.parametrize("question, library, word, value", [q for q in QUOTED if q[1] == "verl"])
def test_verl_s_column_is_the_recorded_yaml(question, library, word, value):
    assert RECORDED["defaults"][word] == value


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
    with_kl = [name for name, method in ZOO.items() if method.terms]
    assert with_kl == ["grpo"] and repr(ZOO["grpo"].terms[0]) in ours["KL in the loss: coefficient"]
