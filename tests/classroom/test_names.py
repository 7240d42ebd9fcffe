"""Spelling of a method's name does not matter; what makes it another method does."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def riddle():
    try:
        from rlnb.classroom.checking.name_this import NameThis
    except ModuleNotFoundError:
        from rlnb.classroom.exercises.name_this import NameThis
    return NameThis("riddle", "reinforce_plus_plus", {"reinforce": "it has a clip"}, "Whitened.")


@pytest.mark.parametrize("name", ["REINFORCE++", "reinforce plus plus", "ReinforcePlusPlus"])
def test_spelling_does_not_matter(riddle, name):
    assert riddle(name).passed


def test_reinforce_is_not_reinforce_plus_plus(riddle):
    assert riddle("REINFORCE").message == "not reinforce: it has a clip"
