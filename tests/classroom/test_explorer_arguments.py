"""Rules for arguments, and the echo of them, that all explorers share."""

from __future__ import annotations

import inspect
import math
from importlib import import_module

import pytest

from rlnb.classroom import explorers
from rlnb.classroom.explorers.arguments import (
    above,
    at_least,
    between,
    checked,
    echoing,
    inside,
    one_of,
)

MODULES = sorted({getattr(explorers, name).__module__ for name in explorers.__all__})
ECHO_NOTHING = {"composer", "gpu_budget"}  # they show what was made of their arguments


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (between(0, 1), (0, 0.5, 1), (-0.1, 1.1, math.nan)),
        (inside(0, 1), (0.5,), (0, 1, math.nan)),
        (at_least(2), (2, math.inf), (1.9, math.nan)),
        (above(0), (1e-9,), (0, math.nan)),
        (one_of(("a", "b")), ("a", "b"), ("c", "")),
    ],
)
def test_a_rule_says_nothing_of_a_good_value_and_what_it_wanted_of_a_bad_one(rule, good, bad):
    assert [rule(value) for value in good] == [""] * len(good)
    assert all(rule(value) for value in bad)


def test_the_sentence_names_the_argument_what_came_and_what_was_expected():
    @checked(size=between(2, 16, "answers"), rule=one_of({"mean": 1}))
    def compute(size=8, rule="mean"):
        return {}

    with pytest.raises(ValueError, match=r"^size must be from 2 to 16 answers, got 1\.$"):
        compute(1)
    with pytest.raises(ValueError, match=r"^rule must be one of \['mean'\], got 'std'\.$"):
        compute(rule="std")
    with pytest.raises(ValueError, match="^size "):  # in the order of the rules
        compute(rule="std", size=99)


def test_a_rule_for_no_argument_is_refused_when_the_module_is_imported():
    with pytest.raises(TypeError, match="takes no 'sise'"):

        @checked(sise=at_least(1))
        def compute(size=8):
            return {}


def test_an_echo_has_defaults_and_leaves_the_own_entries_alone():
    @echoing
    def compute(size=8, *, ratio=2.0):
        return {"ratio": [ratio] * size}

    assert compute(2) == {"size": 2, "ratio": [2.0, 2.0]}


@pytest.mark.parametrize("module", MODULES, ids=lambda name: name.rpartition(".")[2])
def test_every_explorer_echoes_its_arguments(module):
    compute = import_module(module).compute
    if module.rpartition(".")[2] not in ECHO_NOTHING:
        assert set(inspect.signature(compute).parameters) <= set(compute())
