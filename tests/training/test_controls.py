"""What was there before training and what came with it: reports, their split, the command."""

from __future__ import annotations

import json

import pytest

from rlnb.training import BadInput, Recipe, data_folder
from rlnb.training.studies.controls import measure, mixture, reports, right, split

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


def test_a_mixture_takes_from_the_trained_report_what_is_named():
    base, now = BASE | {"direct": 0.6}, NOW | {"direct": 0.1}
    assert mixture(base) == pytest.approx(0.6 * 0.25 + 0.4 * 0.7)
    assert mixture(base, now, ("direct",)) == pytest.approx(0.1 * 0.25 + 0.9 * 0.7)
    assert mixture(base, now, ("forced/steps",)) == pytest.approx(0.6 * 0.25 + 0.4 * 0.95)
    assert mixture(base, now, ("direct", "forced/direct", "forced/steps")) == mixture(now)
    with pytest.raises(BadInput, match="change names .*expected some of direct"):
        mixture(base, now, ("pass@1",))


def test_the_shipped_counts_are_those_of_the_reports():
    path = data_folder() / "runs" / "chain_controls.json"
    found, coins = reports(path), reports(path, "coin")
    assert list(coins) == ["base", "coin 0", "coin 1", "coin 2"]
    for name, counts in right(path).items():
        report = (found | coins)[name]
        for style, key, each in (
            ("free", "pass@1", 8),
            ("direct", "forced/direct", 8),
            ("steps/greedy", "forced/steps/greedy", 1),
        ):
            assert len(counts[style]) == 250
            mean = sum(counts[style]) / (250 * each)
            assert report[key] == pytest.approx(mean, abs=1e-4), (name, style)
    assert all(report["moved"] > 0.5 for name, report in (found | coins).items() if name != "base")


def test_a_file_that_lacks_a_report_is_completed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rlnb.training.studies.controls.COIN_STEPS", 2)
    path = tmp_path / "controls.json"
    recipe = Recipe(steps=1, prompts=2, num_generations=2, eval_every=0)
    small = {"prompts": 2, "num_generations": 2}
    measure(path, recipe, seeds=(), **small)
    kept = json.loads(path.read_text(encoding="utf-8"))
    kept["base"]["pass@1"] = -1.0  # would be measured again if it were not left alone
    path.write_text(json.dumps(kept), encoding="utf-8")
    measure(path, recipe, seeds=(4,), coins=(4,), **small)
    found = reports(path)
    assert list(found) == ["base", "seed 4"] and found["base"]["pass@1"] == -1.0
    assert 0.0 <= found["seed 4"]["pass@1"] <= 1.0
    assert found["seed 4"]["moved"] > 0.0 and list(reports(path, "coin")) == ["base", "coin 4"]
    assert set(right(path)) == {"base", "seed 4", "coin 4"}
