"""`rlnb.training` loads a name when it is asked for, and says which there are."""

from __future__ import annotations

import inspect

import pytest

import rlnb.training


def test_tasks_and_recorded_runs_load_no_torch(elsewhere):
    assert elsewhere["with the names"] == elsewhere["with tasks and files"] == []


def test_recipes_and_studies_load_no_transformers(elsewhere):
    assert elsewhere["with recipes and studies"] == ["torch"]
    assert elsewhere["with the command line"] == ["torch"]  # what is wrong is said in two seconds


@pytest.mark.parametrize("name", rlnb.training.__all__)
def test_every_public_name_is_there_and_documented(name):
    found = getattr(rlnb.training, name)
    assert name in dir(rlnb.training)
    if inspect.isclass(found) or inspect.isfunction(found):
        assert inspect.getdoc(found) and found.__module__.startswith("rlnb.")


def test_an_unknown_name_is_refused_with_the_module_s_name():
    with pytest.raises(AttributeError, match="rlnb.training has no attribute 'trian'"):
        _ = rlnb.training.trian
