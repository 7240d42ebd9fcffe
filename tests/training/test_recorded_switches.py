"""What the recorded runs of single switches show, seed by seed; the tables are in their README."""

from __future__ import annotations

import pytest

from rlnb.training import data_folder, read, series

RUNS = data_folder() / "runs"


def recorded(name, seeds=3):
    paths = sorted(RUNS.glob(f"{name}_seed*.jsonl"))
    assert len(paths) == seeds, f"{name}: {len(paths)} recorded runs"
    return [read(path) for path in paths]


def final(name, step, metric="pass@1", seeds=3):
    return [series(run, metric, "eval")[step] for run in recorded(name, seeds)]


def mean(run, name, first, last):
    values = [value for step, value in series(run, name).items() if first <= step <= last]
    return sum(values) / len(values)


def test_eight_updates_on_one_rollout_end_lower_without_the_clip_in_every_seed():
    clipped, free = (final(f"chain_8_updates_{kind}", 20) for kind in ("clip", "no_clip"))
    assert max(free) < min(clipped)
    for run in recorded("chain_8_updates_clip"):  # the band cuts something, at both edges
        assert max(series(run, "clip_ratio/low_mean").values()) > 0.005
        assert max(series(run, "clip_ratio/high_mean").values()) > 0.005
        assert max(series(run, "ratio/max").values()) > 2


@pytest.mark.parametrize("k", [4, 8])
@pytest.mark.parametrize("kind", ["clip", "no_clip"])
def test_stale_runs_say_how_stale_they_are(k, kind):
    for run in recorded(f"chain_stale_{k}_{kind}"):
        assert run[0]["recipe"]["staleness"] == k
        assert list(series(run, "staleness").values()) == [min(k, n) for n in range(40)]


def test_four_steps_of_staleness_cost_little_and_eight_cost_more_with_or_without_clip():
    fresh = final("chain_stale_0", 40)
    assert min(fresh) > 0.88
    for kind in ("clip", "no_clip"):
        four, eight = (final(f"chain_stale_{k}_{kind}", 40) for k in (4, 8))
        assert 0.8 < min(four) and max(four) < min(fresh)
        assert sum(eight) < sum(four)
    # Without the clip the ratios run away, and seeds end far from each other.
    assert max(final("chain_stale_8_no_clip", 40)) - min(final("chain_stale_8_no_clip", 40)) > 0.2
    largest = [max(series(run, "ratio/max").values()) for run in recorded("chain_stale_8_no_clip")]
    assert max(largest) > 100


def generated_by(run):
    """{step: answers sampled up to it}."""
    total, out = 0, {}
    for step, count in series(run, "generated").items():
        total += count
        out[step] = total
    return out


def test_refills_fill_the_batch_and_lose_per_generated_answer():
    for plain, refilled in zip(recorded("chain_stale_0"), recorded("chain_refill"), strict=True):
        made, plainly = generated_by(refilled), generated_by(plain)
        curves = [series(run, "pass@1", "eval") for run in (plain, refilled)]
        for step in (20, 40):  # against the evaluation after at least as many answers
            later = min(s for s in curves[1] if made.get(s, 0) >= plainly[step])
            assert curves[1][later] < curves[0][step]
        assert abs(curves[0][20] - curves[1][20]) < 0.05  # per update there is no difference
        assert made[24] > 1.5 * 24 * 64 and mean(refilled, "groups/mixed", 1, 24) > 0.8


def test_a_verifier_that_only_looks_at_the_order_destroys_sorting():
    for run in recorded("sort_is_sorted"):
        assert run[0]["reward"] == "is_sorted"
        truth = series(run, "pass@1", "eval")
        assert truth[0] > 0.4 and truth[40] < 0.01
        assert mean(run, "reward", 36, 40) > mean(run, "reward", 1, 5) > 0.8  # the proxy rises
        assert mean(run, "rewards/verify/mean", 36, 40) < 0.02
    for run in recorded("sort_verify"):  # the control: flat, from the same base
        truth = series(run, "pass@1", "eval")
        assert all(abs(rate - truth[0]) < 0.11 for rate in truth.values())


def test_three_times_the_learning_rate_ends_below_every_other_run():
    fast, slow = final("chain_lr_1e-3", 50), final("chain_dr_grpo", 40)
    assert max(fast) < min(slow) and min(fast) < 0.2


def test_forty_steps_do_not_show_what_a_baseline_is_for():
    without, with_one = (final(f"chain_{kind}", 40, seeds=6) for kind in ("no_baseline", "rloo"))
    assert sum(without) > sum(with_one)  # README: by .037 on average
    assert max(max(rates) - min(rates) for rates in (without, with_one)) < 0.06


@pytest.mark.parametrize("kind", ["clip", "no_clip", "cispo"])
def test_one_step_of_staleness_does_not_show_and_four_or_eight_do(kind):
    fresh, one = final("chain_stale_0", 40), final(f"chain_stale_1_{kind}", 40)
    assert max(one) > min(fresh)
    for k in (4, 8):
        assert max(final(f"chain_stale_{k}_{kind}", 40)) < min(fresh)
        stale = final(f"chain_stale_{k}_{kind}", 40)  # the clip makes seeds alike
        assert (max(stale) - min(stale) < 0.04) == (kind == "clip")


@pytest.mark.parametrize("seed", range(3))
def test_on_countdown_pass_at_1_rises_and_pass_at_8_to_32_falls(seed):
    before, after = (r for r in recorded("countdown_grpo")[seed] if r["record"] == "eval")
    assert after["pass@1"] > before["pass@1"] + 0.15 and after["pass@4"] > before["pass@4"]
    for k in (8, 16, 32):
        assert after[f"pass@{k}"] < before[f"pass@{k}"]
    assert before["direct"] > 0.25 and after["direct"] < 0.05  # it searches now
    assert after["mean_length"] > before["mean_length"] + 5


def test_the_token_mean_keeps_right_and_wrong_answers_together():
    for run in recorded("pick_dapo"):
        right, wrong = (
            mean(run, f"completions/mean_length_{side}", 71, 80) for side in ("right", "wrong")
        )
        assert abs(wrong - right) < 6  # GRPO's 1/length: above 50


def test_the_overlong_penalty_makes_right_and_wrong_answers_short():
    for run in recorded("pick_overlong"):
        assert "shape=overlong(72, cache=36)" in run[0]["objective"]
        for side in ("right", "wrong"):
            name = f"completions/mean_length_{side}"
            assert mean(run, name, 1, 10) > 19 and mean(run, name, 71, 80) < 16
        rates = list(series(run, "pass@1", "eval").values())
        assert max(rates) - min(rates) < 0.06
