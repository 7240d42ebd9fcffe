"""The runs of 25 million weights on a GPU, and what the pages say of them."""

from __future__ import annotations

import pytest

from rlnb.classroom.live_or_replay import Mode, Page
from rlnb.classroom.pictures.larger_model import before_and_after
from rlnb.training import data_folder, read, series
from rlnb.training.studies.controls import reports

RUNS = data_folder() / "runs"
H100 = "NVIDIA H100 80GB HBM3 (x86_64)"


@pytest.mark.parametrize("name", ["chain_large", "chain_large_coin_flip"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_recording_says_where_and_from_what(name, seed):
    header = read(RUNS / f"{name}_seed{seed}.jsonl")[0]
    recipe = header["recipe"]
    assert (header["device"], header["machine"]) == ("cuda", H100) and "large" in header["model"]
    assert recipe["seed"] == seed and recipe["learning_rate"] == 1e-4
    assert (recipe["prompts"], recipe["num_generations"]) == (128, 16)
    assert header["reward"] == ("coin_flip" if "coin" in name else "verify")


def test_every_seed_learns_and_a_coin_leaves_pass_at_1_where_it_was():
    for seed in range(3):
        right = series(read(RUNS / f"chain_large_seed{seed}.jsonl"), "pass@1", "eval")
        assert right[0] == pytest.approx(0.463, abs=1e-3) and right[60] > 0.985
        direct = series(read(RUNS / f"chain_large_seed{seed}.jsonl"), "direct", "eval")
        assert direct[20] == pytest.approx(0.05, abs=0.006)
        tossed = series(read(RUNS / f"chain_large_coin_flip_seed{seed}.jsonl"), "pass@1", "eval")
        assert abs(tossed[20] - tossed[0]) < 0.025
    small = reports(RUNS / "chain_controls.json", "coin")
    fell = [small["base"]["pass@1"] - small[f"coin {seed}"]["pass@1"] for seed in range(3)]
    assert min(fell) > 0.025  # the small model lost more, in every seed


def test_no_new_skill_in_either_size():
    for size, rows in before_and_after().items():
        base, after = rows["forced/direct"]
        assert len(after) == 3 and all(abs(x - base) < 0.03 for x in after), size
        assert rows["forced/steps/greedy"][0] == 1.0
        assert min(rows["pass@1"][1]) > rows["pass@1"][0] + 0.5


def test_the_pages_recording_replays(capsys):
    page = Page(Mode("replay", "test"), replay=RUNS / "page_21_h100.json")
    assert page.header["machine"] == H100 and not page.known
    records = page.measure("run", lambda: None)
    assert records[0]["recipe"]["learning_rate"] == 3e-4
    assert series(records, "pass@1", "eval")[60] > 0.99
    before, after = (page.measure(name, lambda: None) for name in ("base", "after"))
    assert before["greedy"] < 0.4 and after["greedy"] == 1.0
    assert capsys.readouterr().out.count("RECORDED, not measured now") == 3
