"""The lesson on one scalar loss: its tasks can be done, its pictures draw, its numbers are true."""

from __future__ import annotations

import math

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
        (kl_explorer(), kl_directions.reverse_below_070),
        (kl_explorer(), kl_directions.best_for_both),
        (nudge_explorer(), nudge.small_and_right),
    )
    for explorer, reached in goals:
        assert not reached(explorer.data)


def test_the_middle_is_a_dead_end_and_a_peak_is_not():
    widths = [0.7 + 0.1 * k for k in range(54)]
    least = min(kl_directions.compute(mean=0, deviation=w)["reverse"] for w in widths)
    assert 0.84 < least < 0.85
    assert kl_directions.reverse_below_070(kl_explorer().set(mean=3.0, deviation=1.0).data)
    cheap = kl_explorer().set(mean=3.0, deviation=1.0, distance=2.9).data
    assert not kl_directions.reverse_below_070(cheap)  # the peaks were to stay


def test_one_bell_is_best_both_ways_at_two_and_none_at_three():
    widths = [1 + 0.1 * k for k in range(30)]

    def some(distance, mean):
        return any(
            kl_directions.best_for_both(kl_directions.compute(distance, 0.5, mean, width))
            for width in widths
        )

    assert some(2.0, 0.0) and not any(some(3.0, mean) for mean in (0.0, 1.5, 3.0))


def test_a_small_nudge_needs_ten_thousand_draws():
    small = [s for s in SETTINGS if nudge.small_and_right(nudge.compute(*s))]
    assert small == [(10_000, 0.05), (10_000, 0.1)]


def test_few_draws_read_too_much_and_then_nothing():
    true = nudge.compute()["true"]
    assert nudge.compute(20, 0.2)["measured"] > 1.5 * true
    assert all(nudge.compute(20, step)["measured"] == 0 for step in (0.02, 0.05, 0.1))


def test_a_bar_that_is_cut_off_says_so():
    explorer = kl_explorer()
    strokes = explorer.artists["breaks"]
    assert not any(stroke.get_visible() for stroke in strokes)
    explorer.set(mean=3.0, deviation=1.0)
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
    for words in (explorer.alt_text(), explorer.line.value):
        assert "measured slope" in words and "0.140" in words


def test_the_gradient_of_J_is_J_times_SFT_on_own_right_answers():
    R = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    z = START.double().log().requires_grad_()
    J = (z.softmax(0) * R).sum()
    kept = (z.softmax(0) * R / J).detach()
    ours = torch.autograd.grad(J, z, retain_graph=True)[0]
    torch.testing.assert_close(ours, (J * (kept - z.softmax(0))).detach(), rtol=0, atol=1e-12)
    log_slope = torch.autograd.grad(J.log(), z)[0]
    torch.testing.assert_close(log_slope, (kept - START).double(), rtol=0, atol=1e-7)


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
