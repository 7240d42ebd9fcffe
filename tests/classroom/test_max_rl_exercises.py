"""Page 14's exercises: MaxRL against the package, the fit against its tolerance, both riddles."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rlnb import check
from rlnb.classroom.checking.outcome import agree, run
from rlnb.objective import ANNEX, Batch, max_rl


@pytest.mark.parametrize("minus_one", [False, True])
def test_max_rl_advantages_are_the_package_s(minus_one):
    part = max_rl(no_success="minus_one" if minus_one else "zero")
    for probe in check.max_rl_advantages.exercise.probes:
        rewards, size = probe.arguments.values()
        row = torch.zeros(len(rewards), 1, dtype=torch.float64)
        batch = Batch(row, torch.ones_like(row), rewards, size)
        theirs = part(batch, rewards[:, None])[:, 0]
        ours = check.max_rl_advantages.exercise.reference(rewards, size, minus_one=minus_one)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_an_all_wrong_group_is_nan_for_who_forgets_it_and_the_check_says_so():
    def unguarded(rewards, num_generations):
        groups = rewards.view(-1, num_generations)
        mean = groups.mean(1, keepdim=True)
        return (groups / mean - 1).reshape(-1)

    verdict = check.max_rl_advantages(unguarded)
    assert verdict.kind == "known mistake" and "0/0" in verdict.message


def zoom(compute, reward, rounds=60):
    """What a learner may write: a 9 x 9 grid that moves to its best point and shrinks."""
    x = compute.log()
    centre, width = torch.tensor([0.0, float(x.mean())]), torch.tensor([1.5, 3.0])
    offsets = torch.cartesian_prod(*[torch.linspace(-1, 1, 9)] * 2).to(x.dtype)
    for _ in range(rounds):
        tried = centre + offsets * width
        s = torch.sigmoid(tried[:, :1].exp() * (x - tried[:, 1:]))
        ds, dr = s - s.mean(1, keepdim=True), reward - reward.mean()
        gain = (ds @ dr) / ds.square().sum(1)
        best = (dr - gain[:, None] * ds).square().sum(1).argmin()
        centre, width = tried[best], width * 0.8
    start = reward.mean() - gain[best] * s[best].mean()
    exponent, midpoint = centre.exp()
    return torch.stack([start + gain[best], exponent, midpoint, start])


def test_a_grid_that_shrinks_passes_the_fit():
    verdict = check.sigmoid_fit(zoom)
    assert verdict.kind == "right", verdict


def test_a_coarse_grid_is_not_enough_and_the_message_shows_the_numbers():
    verdict = check.sigmoid_fit(lambda c, r: zoom(c, r, rounds=1))
    assert verdict.kind == "wrong" and "expected" in verdict.message


def test_a_tuple_of_numbers_is_accepted_as_such():
    verdict = check.sigmoid_fit(lambda c, r: tuple(zoom(c.double(), r.double()).tolist()))
    assert verdict.passed and verdict.kind == "convention"


def test_the_noiseless_probes_are_recovered_and_the_noisy_ones_move_a_little():
    truths = ([0.6, 1.5, 20, 0.1], [0.85, 0.8, 8, 0.3], [0.6, 1.5, 20, 0.1], [0.7, 2, 15, 0.25])
    exercise = check.sigmoid_fit.exercise
    for probe, truth in zip(exercise.probes, truths, strict=True):
        came = exercise.reference(*probe.arguments.values()).numpy()
        far = np.abs(came / np.array(truth) - 1).max()
        assert (far < 2e-4) if "without" in probe.label else (0.005 < far < 0.2), probe.label


def test_the_tolerance_of_the_fit_tells_every_mistake_from_the_right_answer_and_from_the_others():
    exercise = check.sigmoid_fit.exercise
    candidates = [*exercise.accepted, *exercise.wrong]
    found = {
        c: [run(c.function, exercise, p, torch.float64) for p in exercise.probes]
        for c in candidates
    }
    for one in candidates:
        for other in candidates:
            if one is not other:
                assert not all(
                    agree(a, b) for a, b in zip(found[one], found[other], strict=True)
                ), one.sentence


def test_the_bug_is_seen_on_a_solved_prompt_only():
    bug = check.silent_bug_the_zoo
    mixed = torch.tensor([[[1.0, 1, 1, 0], [1, 0, 0, 0]]])
    solved = torch.ones(3, 1, 4)
    assert torch.equal(bug.right(mixed), bug.broken(mixed))
    assert bug.right(solved).all() and not bug.broken(solved).any()
    assert bug(lambda f: bool(f(torch.ones(2, 1, 4)).all()))
    assert not bug(lambda f: bool(~f(torch.zeros(2, 1, 4)).any()))


def test_the_riddle_has_one_answer_which_the_annex_knows():
    assert check.name_this_the_zoo("DeepSeek-V3.2") and check.name_this_the_zoo("deepseek_v3_2")
    assert check.name_this_the_zoo.answer in ANNEX
    assert not check.name_this_the_zoo("grpo") and "std" in check.name_this_the_zoo("grpo").message
