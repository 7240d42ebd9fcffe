"""What was there before training and what came with it: reports, their split, the command."""

import json

import pytest

from rlnb.training import BadInput, Recipe, data_folder
from rlnb.training.controls import measure, reports, split

BASE = {"pass@1": 0.4, "forced/steps": 0.7, "forced/direct": 0.25}
NOW = {"pass@1": 0.9, "forced/steps": 0.95, "forced/direct": 0.2}


def test_the_two_parts_add_up_to_the_gain():
    part = split(BASE, NOW)
    assert part.elicited == pytest.approx(0.3)
    assert part.sharpened == pytest.approx(0.2)
    assert part.elicited + part.sharpened == pytest.approx(NOW["pass@1"] - BASE["pass@1"])
    assert part.other == pytest.approx(-0.05)
    with pytest.raises(BadInput, match="no 'forced/slow'"):
        split(BASE, NOW, style="slow")


def test_the_shipped_reports_show_no_gain_in_the_other_style():
    base, *seeds = reports(data_folder() / "runs" / "chain_controls.json").values()
    assert len(seeds) == 3
    for trained in seeds:
        assert abs(split(base, trained).other) < 0.03 < split(base, trained).sharpened
        assert base["forced/steps/greedy"] == 1.0 > trained["forced/steps/greedy"]


def test_a_file_that_lacks_a_report_is_completed(tmp_path, capsys):
    path = tmp_path / "controls.json"
    recipe = Recipe(steps=1, prompts=2, num_generations=2, eval_every=0)
    small = {"prompts": 2, "num_generations": 2}
    measure(path, recipe, seeds=(), **small)
    kept = json.loads(path.read_text(encoding="utf-8"))
    kept["base"]["pass@1"] = -1.0  # would be measured again if it were not left alone
    path.write_text(json.dumps(kept), encoding="utf-8")
    measure(path, recipe, seeds=(4,), **small)
    found = reports(path)
    assert list(found) == ["base", "seed 4"] and found["base"]["pass@1"] == -1.0
    assert 0.0 <= found["seed 4"]["pass@1"] <= 1.0
