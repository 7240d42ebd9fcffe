"""The runs of 25 million weights on a GPU, and the small model's that explain them."""

from __future__ import annotations

import pytest

from rlnb.classroom.live_or_replay import Mode, Page
from rlnb.classroom.pictures.larger_model import before_and_after
from rlnb.training import data_folder, read, series
from rlnb.training.studies import direct_only
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


def test_the_rate_spares_the_small_model_from_the_coin_and_more_answers_do_not():
    def coins(name):
        found = reports(RUNS / name, "coin")
        base = found.pop("base")["pass@1"]
        return base, *zip(*((one["pass@1"], one["moved"]) for one in found.values()), strict=True)

    base, usual, far = coins("chain_controls.json")
    _, slow, near = coins("chain_coin_lr_1e-4.json")
    _, many, as_far = coins("chain_coin_2048.json")
    _, fast, farthest = coins("chain_coin_lr_9e-4.json")
    assert len(slow) == len(many) == len(fast) == 3
    mean = {k: sum(v) / 3 for k, v in dict(u=usual, s=slow, m=many, f=fast).items()}
    assert abs(mean["s"] - base) < 0.01 and mean["u"] < base - 0.07
    assert mean["f"] < mean["m"] < mean["u"]  # sixteen times the answers are no help
    assert max(near) < 0.3 and min(far) > 0.75 and 0.8 < min(as_far) < max(as_far) < 0.95
    assert min(farthest) > 2.2


def test_paid_for_direct_answers_alone_it_writes_them_and_gets_no_better():
    found = direct_only.reports(RUNS / "chain_direct_only.json")
    assert len(found) == 3
    for rows in found:
        assert [row["step"] for row in rows] == list(direct_only.STEPS)
        assert rows[0]["direct"] < 0.62 and all(row["direct"] > 0.97 for row in rows[1:])
        assert all(abs(row["forced/direct"] - rows[0]["forced/direct"]) < 0.025 for row in rows)
    assert [f"{rows[-1]['forced/direct']:.2f}" for rows in found] == ["0.23", "0.24", "0.25"]


def test_the_study_completes_a_file(tmp_path, capsys):
    path = tmp_path / "direct.json"
    direct_only.measure(path, at=(0, 1), seeds=(0,), prompts=2)
    first = path.read_text(encoding="utf-8")
    direct_only.measure(path, at=(0, 1), seeds=(0,), prompts=2)
    assert path.read_text(encoding="utf-8") == first
    direct_only.measure(path, at=(0, 1), seeds=(0, 1), prompts=2)
    assert [row["step"] for row in direct_only.reports(path)[1]] == [0, 1]


def test_the_worst_token_of_a_step_is_a_tenth_of_a_nat_off_and_once_far():
    """Page 19: a bfloat16 sampler beside a trainer under bfloat16 autocast."""
    gaps, tokens = [], []
    for seed in range(3):
        records = read(RUNS / f"chain_large_seed{seed}.jsonl")
        gaps += series(records, "sampling/logp_difference").values()
        tokens += [2048 * x for x in series(records, "completions/mean_length").values()]
    assert len(gaps) == 180 and sorted(gaps)[90] == pytest.approx(0.12, abs=0.006)
    assert max(gaps) == pytest.approx(1.55, abs=0.01)
    assert 30_000 < min(tokens) < max(tokens) < 80_000
