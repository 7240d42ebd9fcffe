"""Recorded runs of `pick`, the tiny bonus and the pool: small, described, and what they say."""

from __future__ import annotations

import pytest

from rlnb.training import data_folder, read, series

RUNS = data_folder() / "runs"
NEW = sorted(
    [
        *RUNS.glob("pick_*.jsonl"),
        *RUNS.glob("chain_wait_bonus_*.jsonl"),
        *RUNS.glob("chain_pool_*.jsonl"),
    ]
)


def seeds(kind):
    return sorted(RUNS.glob(f"{kind}_seed*.jsonl"))


def mean(records, name, first, last):
    values = [value for step, value in series(records, name).items() if first <= step <= last]
    return sum(values) / len(values)


@pytest.mark.parametrize("path", NEW, ids=lambda path: path.stem)
def test_a_recording_is_a_cpu_run_without_paths(path):
    text = path.read_text(encoding="utf-8")
    header = read(path)[0]
    assert header["device"] == "cpu" and header["threads"] == 1
    assert header["model"] == ("data/model_pick" if header["task"] == "pick" else "data/model")
    assert header["recipe"]["seed"] == int(path.stem[-1])
    assert len(text) < 65_000 and "/tmp" not in text and "/home" not in text


def test_every_recording_is_described():
    described = (RUNS / "README.md").read_text(encoding="utf-8")
    for path in RUNS.glob("*.jsonl"):
        kind = path.stem[:-1]
        assert f"{kind}N.jsonl" in described or path.name in described, path.name
    assert (
        sum(path.stat().st_size for path in RUNS.glob("*.jsonl")) < 1_550_000
    )  # 35 kB of it from a GPU


@pytest.mark.parametrize("kind", ["zscore", "mean"])
def test_the_zscore_blows_the_tiny_bonus_up_and_the_mean_does_not(kind):
    paths = seeds(f"chain_wait_bonus_{kind}")
    assert paths, "there is no recorded run of the tiny bonus"
    for path in paths:
        records = read(path)
        assert records[0]["reward"] == "wait_bonus"
        assert ("group_zscore" in records[0]["objective"]) == (kind == "zscore")
        assert "constant_length" in records[0]["objective"]
        waits = series(records, "mean_wait", "eval")
        assert list(waits) == [0, 25, 50] and waits[0] < 0.2
        assert waits[50] > 1.0 if kind == "zscore" else waits[50] < 0.4
        # The bonus can be read from the rewards as well: 0.01 per `wait`.
        paid = mean(records, "reward", 1, 50) - mean(records, "rewards/verify/mean", 1, 50)
        assert paid == pytest.approx(0.01 * mean(records, "completions/mean_wait", 1, 50), abs=1e-3)


def lengths(path, first, last):
    records = read(path)
    return [
        mean(records, f"completions/mean_length_{side}", first, last) for side in ("right", "wrong")
    ]


def test_one_over_length_drives_right_and_wrong_answers_apart_in_every_seed():
    paths = seeds("pick_grpo")
    assert len(paths) == 3
    for path in paths:
        right, wrong = lengths(path, 71, 80)
        assert right < 15 and wrong > 60  # README: gaps of +52.0, +50.6 and +50.6


@pytest.mark.parametrize(
    ("kind", "first", "last", "bound"),
    [
        ("pick_dr_grpo", 71, 80, 3),
        ("pick_coin_flip_grpo", 21, 30, 2),
        ("pick_coin_flip_dr_grpo", 21, 30, 2),
    ],
)
def test_without_the_divisor_or_with_a_coin_they_stay_together(kind, first, last, bound):
    paths = seeds(kind)
    assert paths, f"there is no recorded run of {kind}"
    for path in paths:
        right, wrong = lengths(path, first, last)
        assert abs(wrong - right) < bound


@pytest.mark.parametrize("seed", range(3))
def test_dividing_by_the_std_does_not_change_which_prompts_improve(seed):
    with_std, without = (
        read(RUNS / f"types_{kind}_seed{seed}.jsonl") for kind in ("zscore", "mean")
    )
    assert "group_zscore" in with_std[0]["objective"] and "group_center" in without[0]["objective"]
    for rate in (0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95):
        a, b = (series(run, f"pass@1/{rate}", "eval") for run in (with_std, without))
        assert list(a) == list(b) == [0, 10, 20, 30, 40]
        assert all(abs(a[step] - b[step]) < 0.12 for step in a)  # seeds differ by up to 0.24


def test_mastered_prompts_leave_and_the_last_sixteen_stay():
    paths = seeds("chain_pool_retire")
    assert len(paths) == 3
    for path in paths:
        records = read(path)
        pool = records[0]["pool"]
        assert (pool["size"], pool["retire"], pool["visits"]) == (64, 0.9, 1)
        left = list(series(records, "pool/size").values())
        gone = list(series(records, "pool/retired").values())
        assert len(left) == 40 and all(a + b == 64 for a, b in zip(left, gone, strict=True))
        assert gone == sorted(gone) and gone[0] < 48 == gone[-1]


def test_retirement_makes_more_groups_mixed_and_does_not_show_in_pass_at_1():
    # README, means of three seeds, against new prompts every step: .625 to .510 and .915 to .934.
    shares, finals = [], []
    for kind in ("chain_pool_retire", "chain_dr_grpo"):
        runs = [read(path) for path in seeds(kind)]
        shares.append(sum(mean(run, "groups/mixed", 21, 30) for run in runs) / 3)
        finals.append(sum(series(run, "pass@1", "eval")[40] for run in runs) / 3)
    assert shares == pytest.approx([0.625, 0.510], abs=5e-4)
    assert finals == pytest.approx([0.915, 0.934], abs=5e-4)


def test_the_value_of_the_loss_is_the_gap_in_length():
    """Right answers are longer, so -mean(A T)/72 is below 0; the losses are the shipped run's."""
    from rlnb.training.studies import loss_value

    rows = loss_value.kept()
    assert list(rows) == [0, 1, 2]
    for seed, columns in rows.items():
        run = read(RUNS / f"chain_dr_grpo_seed{seed}.jsonl")
        losses = [record["loss"] for record in run if record["record"] == "step"]
        assert columns["loss"] == pytest.approx(losses, abs=2e-4), seed
        first = slice(0, 10)
        gap = [r - w for r, w in zip(columns["right"][first], columns["wrong"][first], strict=True)]
        assert min(gap) > 4 and max(columns["loss"][first]) < 0


def test_from_lengths_is_the_loss_of_fresh_answers():
    import torch

    from rlnb.objective import ZOO, Batch
    from rlnb.training.studies.loss_value import from_lengths

    mask = torch.zeros(4, 6, dtype=torch.float64)
    lengths = torch.tensor([5.0, 6.0, 2.0, 3.0], dtype=torch.float64)
    for row, n in enumerate(lengths.int().tolist()):
        mask[row, :n] = 1
    rewards = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    logp = torch.full((4, 6), -0.5, dtype=torch.float64, requires_grad=True)
    loss = ZOO["dr_grpo"](Batch(logp, mask, rewards, 4, max_completion_length=72)).loss
    assert loss.item() == pytest.approx(from_lengths(rewards - 0.5, lengths, 72), abs=1e-12)
    assert loss.item() == pytest.approx(-(5.5 - 2.5) / 4 / 72, abs=1e-12)
