"""The lesson on one scalar loss: its tasks can be done, its pictures draw, its numbers are true."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from rlnb import check
from rlnb.classroom.explorers import kl_directions, kl_explorer, nudge, nudge_explorer
from rlnb.classroom.pictures import one_scalar_loss as pictures

START = torch.tensor([0.2, 0.1, 0.4, 0.3])
SETTINGS = [(draws, step) for draws in nudge.DRAWS for step in nudge.NUDGES]


def test_no_goal_is_met_before_anything_moves():
    goals = (
        (kl_explorer(), kl_directions.peak_as_good),
        (kl_explorer(), kl_directions.best_for_both),
        (nudge_explorer(), nudge.mostly_close),
    )
    for explorer, reached in goals:
        assert not reached(explorer.data)


def test_a_peak_is_as_good_as_the_middle_at_2_8_and_not_nearer():
    assert kl_directions.peak_as_good(kl_directions.compute(2.8, 0.5, 2.8, 1.0))
    tries = [
        kl_directions.compute(distance, 0.5, mean, width)
        for distance in (2.0, 2.5, 2.7)
        for mean in (2.0, 2.2, 2.4, 2.6, 2.7, 2.8)
        for width in (0.9, 1.0, 1.1, 1.2, 1.4, 1.7, 2.0)
    ]
    assert not any(map(kl_directions.peak_as_good, tries))
    far = kl_directions.compute(2.9, 0.5, 2.9, 1.0)  # good, but the question was how near
    assert far["reverse"] - far["best"]["reverse"][2] < 0.002
    assert not kl_directions.peak_as_good(far)


def test_one_bell_is_best_both_ways_at_two_and_none_at_three():
    widths = [1 + 0.1 * k for k in range(30)]

    def some(distance, mean):
        return any(
            kl_directions.best_for_both(kl_directions.compute(distance, 0.5, mean, width))
            for width in widths
        )

    assert some(2.0, 0.0) and not any(some(3.0, mean) for mean in (0.0, 1.5, 3.0))


def test_no_single_control_solves_a_task():
    for n in nudge.DRAWS:
        assert not nudge.mostly_close(nudge.compute(n, 1.0))
    for step in nudge.NUDGES:
        assert not nudge.mostly_close(nudge.compute(20, step))
    start = {name: control.value for name, control in kl_explorer().controls.items()}
    for goal in (kl_directions.best_for_both, kl_directions.peak_as_good):
        for moved in ({"mean": 0.0}, {"mean": 2.0}, {"deviation": 2.1}, {"distance": 2.8}):
            assert not goal(kl_directions.compute(**start | moved))


def test_a_hundred_draws_want_a_nudge_of_four():
    assert [s for s in SETTINGS if nudge.mostly_close(nudge.compute(*s))] == [(100, 4.0)]


def test_the_shares_are_those_of_many_throws():
    """The right panel's binomial against dice that are thrown; their mean is the chord."""
    throws = np.random.default_rng(0).random((20_000, 20))
    for step in (0.1, 1.0, 4.0):
        data = nudge.compute(20, step)
        low, high = nudge._chance(data["logits"])
        read = ((throws > low) & (throws <= high)).mean(1) / step
        close = np.abs(read - data["true"]) <= 0.1 * data["true"] + 1e-9
        assert data["close"] == pytest.approx(close.mean(), abs=0.015)
        assert data["shares"][0] == pytest.approx((read == 0).mean(), abs=0.015)
        assert data["shares"].sum() == pytest.approx(1)
        assert data["chord"] == pytest.approx(read.mean(), abs=0.01)
    assert nudge.compute(20, 0.1)["chord"] == pytest.approx(0.14, abs=1e-4)  # right on average
    least = 1 / (20 * 0.1)  # ... and what is not 0 reads this or more
    assert least == pytest.approx(0.5)
    assert nudge.compute(20, 8.0)["chord"] < 0.75 * 0.14  # the bend


def test_few_draws_read_too_much_and_then_nothing():
    true = nudge.compute()["true"]
    assert nudge.compute(20, 0.2)["measured"] > 1.5 * true
    assert all(nudge.compute(20, step)["measured"] == 0 for step in (0.02, 0.05, 0.1))


def test_a_bar_that_is_cut_off_says_so():
    explorer = kl_explorer()
    strokes = explorer.artists["breaks"]
    assert not any(stroke.get_visible() for stroke in strokes)
    explorer.set(mean=3.0, deviation=1.0, distance=3.0)
    assert [stroke.get_visible() for stroke in strokes] == [True, True, False, False]


def test_the_true_slope_is_that_of_the_expected_reward():
    z = START.double().log().requires_grad_()
    J = z.softmax(0)[:2].sum()
    slope = torch.autograd.grad(J, z)[0][0].item()
    assert nudge.compute()["true"] == pytest.approx(slope)
    many = nudge.compute(10_000, 1.0)
    assert many["measured"] == pytest.approx(slope, abs=0.01)


def test_the_explorer_shows_what_compute_says():
    explorer = nudge_explorer().set(draws=100, nudge=0.5)
    assert list(explorer.artists["ends"].get_ydata()) == list(explorer.data["rewards"])
    for words in (explorer.alt_text().lower(), explorer.line.value):
        assert "measured slope" in words and "0.140" in words
    heights = [bar.get_height() for bar in explorer.artists["bars"]]
    assert heights == list(explorer.data["shares"])
    assert explorer.artists["value"].get_text() == f"{100 * explorer.data['close']:.0f} %"


def test_the_gradient_of_J_is_J_times_SFT_on_own_right_answers():
    R = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    z = START.double().log().requires_grad_()
    J = (z.softmax(0) * R).sum()
    kept = (z.softmax(0) * R / J).detach()
    ours = torch.autograd.grad(J, z, retain_graph=True)[0]
    torch.testing.assert_close(ours, (J * (kept - z.softmax(0))).detach(), rtol=0, atol=1e-12)
    log_slope = torch.autograd.grad(J.log(), z)[0]
    torch.testing.assert_close(log_slope, (kept - START).double(), rtol=0, atol=1e-7)


def test_the_mean_push_of_the_right_ones_is_the_bracket_once_there_is_one():
    """Every batch of four listed: right_only's mean push is (1 - (1 - J)^n)(p+ - pi)."""
    pi, J, n = START.double(), 0.3, 4
    eye, total = torch.eye(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    for batch in itertools.product(range(4), repeat=n):
        right = [y for y in batch if y < 2]
        if right:
            total += pi[list(batch)].prod() * sum(eye[y] - pi for y in right) / len(right)
    kept = torch.tensor([2 / 3, 1 / 3, 0, 0], dtype=torch.float64)
    torch.testing.assert_close(total, (1 - (1 - J) ** n) * (kept - pi), rtol=0, atol=1e-7)


def test_descending_the_entropy_drops_the_right_answers():
    """The part that autograd misses when a model trains on its own answers, put back."""
    z = START.double().log().requires_grad_()
    for _ in range(100):
        entropy = -(z.softmax(0) * z.log_softmax(0)).sum()
        z.data -= 0.5 * torch.autograd.grad(entropy, z)[0]
    pi = z.softmax(0)
    assert round(pi[:2].sum().item(), 3) == 0.002 and pi[2] > 0.99  # all on "34"


RIGHT = torch.tensor([1.0, 1.0, 0.0, 0.0]).double()


def many_runs(steps, temperature=1.0):
    """The page's loop on its own answers, ungraded: the probabilities at the end, (400, 4)."""
    dice = torch.Generator().manual_seed(0)
    z = START.double().log().repeat(400, 1)
    for _ in range(steps):
        y = (z / temperature).softmax(1).multinomial(8, True, generator=dice)
        z += 0.5 * (F.one_hot(y, 4).double().mean(1) - z.softmax(1))
    return z.softmax(1)


def test_another_temperature_gives_own_answers_a_direction():
    chance = {t: (many_runs(100, t) @ RIGHT).mean().item() for t in (0.7, 1.0)}
    assert {t: round(c, 2) for t, c in chance.items()} == {0.7: 0.03, 1.0: 0.30}


def test_luck_makes_most_runs_surer_and_chooses_by_the_first_shares():
    def entropy(pi):
        return -(pi * pi.log()).sum(-1)

    surer = (entropy(many_runs(100)) < entropy(START.double())).double().mean()
    assert 0.8 < surer < 0.95  # most, not all
    late = many_runs(1000)
    assert late.max(1).values.mean().item() == pytest.approx(0.85, abs=0.005)
    favourites = late.argmax(1).bincount(minlength=4) / 4  # per cent
    assert favourites.tolist() == pytest.approx([23, 10, 38, 29], abs=0.8)


def test_a_slow_start_is_long_as_one_over_J_and_along_log_J_as_its_log():
    def steps_to_half(J, log):
        z = torch.tensor([0.6 * J, 0.4 * J, 0.505 * (1 - J), 0.495 * (1 - J)]).double().log()
        for step in itertools.count(1):
            pi = z.softmax(0)
            now = pi @ RIGHT
            z = z + 0.5 * (1 if log else now) * (pi * RIGHT / now - pi)
            if z.softmax(0) @ RIGHT > 0.5:
                return step

    assert [steps_to_half(J, False) for J in (0.01, 0.001)] == [205, 1912]
    assert [steps_to_half(J, True) for J in (0.01, 0.001)] == [10, 13]


def test_one_right_answer_counts_n_times_when_only_right_ones_are_divided_by():
    """`right_only` is then `graded` at eight times the rate; minus 1 doubles the mean push."""
    r = torch.tensor([0.0] * 7 + [1.0])
    graded, right_only = r / 8, r / r.sum().clamp(min=1)
    assert torch.equal(right_only, 8 * graded)
    pi = START.double()
    slope = {c: pi * (r - pi @ r) for c, r in ((0, RIGHT), (-1, 2 * RIGHT - 1))}
    torch.testing.assert_close(slope[-1], 2 * slope[0])


def test_pictures_draw_and_say_their_numbers():
    run = torch.rand(20, 30, generator=torch.Generator().manual_seed(0))
    drawn = (
        pictures.authors(
            {"the teacher writes": run, "the model writes": run}, "c", "the model writes"
        ),
        pictures.authors({"one": run}, "c"),
        pictures.authors(dict.fromkeys("abcd", run), "c"),
        pictures.data_minus_model("abcd", START, {"left": START, "right": START.flip(0)}, "c"),
        pictures.floor([2.0, 1.0, 0.7], math.log(2)),
        pictures.copy_or_draw_again(
            {"keep": ([0.3, 0.9], [0.6, 0.7]), "again": ([0.3, 1], [0.6, 1])}
        ),
    )
    for picture in drawn:
        assert picture.png.startswith(b"\x89PNG") and picture.alt and picture.caption
    assert "+0.10" in drawn[3].alt


def test_references_are_torch_s():
    for probe in check.sft_loss.exercise.probes:
        logits, tokens, mask = probe.cast(torch.float64).values()
        labels = torch.where(mask.bool(), tokens, -100)[:, 1:]
        theirs = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels.flatten())
        ours = check.sft_loss.exercise.reference(logits, tokens, mask)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    for probe in check.reverse_kl_push.exercise.probes:
        z, p = probe.cast(torch.float64).values()
        z = z.clone().requires_grad_()
        kl = F.kl_div(p.log(), z.log_softmax(0), log_target=True, reduction="sum")
        ours = check.reverse_kl_push.exercise.reference(z, p)
        torch.testing.assert_close(ours, -torch.autograd.grad(kl, z)[0], rtol=0, atol=1e-12)


def test_the_second_softmax_survives_the_usual_tests():
    bug = check.silent_bug_one_scalar_loss
    tokens, mask = torch.tensor([[0, 1]]), torch.tensor([[1, 1]])
    equal, certain = torch.zeros(1, 2, 3), 40 * F.one_hot(tokens, 3).double()
    assert not bug(lambda f: abs(f(equal, tokens, mask) - math.log(3)) < 1e-6)
    assert not bug(lambda f: f(certain, tokens, mask) < f(equal, tokens, mask))
    assert bug(lambda f: f(certain, tokens, mask) < 1e-6)

    def by_push(f):
        z = torch.tensor([[[0.3, -1.0, 2.0]]], requires_grad=True)
        slope = torch.autograd.grad(f(z, tokens[:, :1], mask[:, :1]), z)[0]
        assert torch.allclose(slope, z.softmax(-1) - F.one_hot(tokens[:, :1], 3), atol=1e-6)

    assert bug(by_push)
