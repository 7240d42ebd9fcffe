"""The lesson on one scalar loss: its tasks can be done, its pictures draw, its numbers are true."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from rlnb import check
from rlnb.classroom.explorers import kl_directions, kl_explorer, slow_start, slow_start_explorer
from rlnb.classroom.pictures import one_scalar_loss as pictures
from rlnb.toys import SequencePolicy

START = torch.tensor([0.2, 0.1, 0.4, 0.3])
SETTINGS = list(itertools.product(slow_start.SIZES, slow_start.RATES, slow_start.DIVISORS))


def test_no_goal_is_met_before_anything_moves():
    goals = (
        (kl_explorer(), kl_directions.last_good_peak),
        (slow_start_explorer(), slow_start.frugal),
    )
    for explorer, reached in goals:
        assert not reached(explorer.data)


def test_a_peak_is_as_good_as_the_middle_at_2_8_and_not_nearer():
    def gap(distance, mean, width):
        data = kl_directions.compute(distance, 0.5, mean, width)
        return data["reverse"] - data["best"]["reverse"][2]

    assert gap(2.8, 2.8, 1.0) <= 0.02 and gap(2.9, 2.9, 1.0) < 0.002
    tries = itertools.product(
        (2.0, 2.5, 2.7), (2.0, 2.2, 2.4, 2.6, 2.7, 2.8), (0.9, 1.0, 1.1, 1.2, 1.4, 1.7, 2.0)
    )
    assert all(gap(*setting) > 0.02 for setting in tries)


def test_the_task_wants_the_smallest_distance_at_which_a_peak_is_as_good():
    done = {
        distance
        for distance in (2.0, 2.4, 2.6, 2.7, 2.8, 2.9, 3.0)
        for mean in (0.0, distance - 0.1, distance)
        for width in (1.0, 1.1, 2.6)
        if kl_directions.last_good_peak(kl_directions.compute(distance, 0.5, mean, width))
    }
    assert done == {2.8}


def test_no_single_control_solves_a_task():
    for explorer, goal, moves in (
        (
            kl_explorer(),
            kl_directions.last_good_peak,
            ({"mean": 0.0}, {"mean": 2.0}, {"deviation": 2.1}, {"distance": 2.8}),
        ),
        (
            slow_start_explorer(),
            slow_start.frugal,
            [{"size": n} for n in slow_start.SIZES]
            + [{"rate": r} for r in slow_start.RATES]
            + [{"divisor": "right"}],
        ),
    ):
        start = {name: control.value for name, control in explorer.controls.items()}
        for moved in moves:
            assert not goal(explorer.compute(**start | moved))


def test_a_frugal_start_divides_by_the_right_ones_and_draws_16_or_32():
    done = [s for s in SETTINGS if slow_start.frugal(slow_start.compute(*s))]
    assert done == [(16, 2.0, "right"), (16, 4.0, "right"), (32, 4.0, "right")]


def test_no_setting_learns_before_it_has_met_a_right_answer():
    """The grey curve is a ceiling, the same for all: the mean is at most that share plus 0.01."""
    assert 0.99**230 == pytest.approx(0.1, abs=0.001)
    met = slow_start.compute()["met"]
    exact = 1 - 0.99 ** np.arange(1, slow_start.BUDGET + 1)
    assert np.abs(met - exact).max() < 0.02 and met[229] == pytest.approx(0.9, abs=0.01)
    for size, rate, divisor in SETTINGS[::3]:
        data = slow_start.compute(size, rate, divisor)
        answers = np.arange(1, len(data["own"])) * size
        share = met[answers - 1]
        assert (data["own"][1:] <= share + 0.01 * (1 - share) + 1e-9).all()
        assert data["passed"] is None or data["passed"] >= 220


def test_graded_costs_by_rate_over_answers():
    cost = {s[:2]: slow_start.compute(*s)["passed"] for s in SETTINGS if s[2] == "all"}
    assert (cost[8, 0.5], cost[16, 1.0]) == (2128, 2144)
    one = slow_start.compute(1, 4.0)
    assert (one["taught_passed"], one["passed"]) == (3, 227)
    for size, rate in ((1, 0.25), (2, 0.5), (4, 1.0), (8, 2.0)):
        assert cost[size, rate] == pytest.approx(cost[2 * size, 2 * rate], rel=0.03)


def test_the_climb_is_that_of_the_page_s_loop():
    """A step of the explorer's arithmetic against autograd on the page's two losses."""
    z0, n = torch.tensor(slow_start.FIRST).log(), 8
    for divisor in slow_start.DIVISORS:
        chance = slow_start.compute(n, 0.5, divisor)["own"][1]
        ends = []
        for u in torch.tensor(slow_start._numbers()[:, :n]):
            y = torch.where(u < 0.006, 0, torch.where(u < 0.01, 1, 2))
            z = z0.clone().requires_grad_()
            r = (y < 2).double()
            total = (r * z.log_softmax(0)[y]).sum()
            L = -total / (n if divisor == "all" else r.sum().clamp(min=1))
            z = z - 0.5 * torch.autograd.grad(L, z)[0]
            ends.append(z.softmax(0)[:2].sum().item())
        assert chance == pytest.approx(np.mean(ends))


def test_few_draws_read_no_slope_when_the_nudge_is_small():
    """The page's arithmetic of a nudge against many throws of 20 random numbers."""
    before = 0.3

    def chance(by):
        seven = 0.2 * math.exp(by)
        return (seven + 0.1) / (seven + 0.8)

    turned = chance(0.1) - before
    assert turned / 0.1 == pytest.approx(0.144, abs=5e-4)
    throws = np.random.default_rng(0).random((20_000, 20))
    read = ((throws >= before) & (throws < chance(0.1))).mean(1) / 0.1
    assert (read == 0).mean() == pytest.approx((1 - turned) ** 20, abs=0.01)
    assert round((1 - turned) ** 20, 2) == 0.75
    assert read[read > 0].min() == pytest.approx(0.5) and read.mean() == pytest.approx(
        0.144, abs=0.01
    )


def test_a_bar_that_is_cut_off_says_so():
    explorer = kl_explorer()
    strokes = explorer.artists["breaks"]
    assert not any(stroke.get_visible() for stroke in strokes)
    explorer.set(mean=3.0, deviation=1.0, distance=3.0)
    assert [stroke.get_visible() for stroke in strokes] == [True, True, False, False]


def test_the_explorer_shows_what_compute_says():
    explorer = slow_start_explorer().set(size=16, rate=2.0, divisor="right")
    x, y = explorer.artists["own_dot"].get_data()
    assert list(x) == [explorer.data["passed"]] == [288] and y[0] >= 0.9
    for words in (explorer.alt_text().lower(), explorer.line.value):
        assert "288 own answers (18 steps)" in words
    explorer.set(size=64, rate=0.25, divisor="all")
    assert "not in 3,200 own answers" in explorer.line.value
    assert len(explorer.artists["own_dot"].get_xdata()) == 0


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


def test_a_mean_chance_creeps_where_the_mean_logits_stay():
    """A step on eight own answers, all batches listed: two answers creep, the page's do not."""

    def creep(pi, right, n=8):
        pi = torch.tensor(pi, dtype=torch.float64)
        right = torch.tensor(right, dtype=torch.float64)
        logits, chance = torch.zeros_like(pi), 0.0
        for counts in itertools.product(range(n + 1), repeat=len(pi)):
            if sum(counts) == n:
                ways = math.factorial(n) / math.prod(map(math.factorial, counts))
                weight = ways * math.prod(p**c for p, c in zip(pi.tolist(), counts, strict=True))
                push = 0.5 * (torch.tensor(counts) / n - pi)
                logits += weight * push
                chance += weight * ((pi.log() + push).softmax(0) @ right).item()
        assert logits.abs().max() < 1e-12
        return chance - (pi @ right).item()

    assert creep([0.3, 0.7], [1, 0]) == pytest.approx(0.001, abs=1e-4)
    assert abs(creep([0.2, 0.1, 0.4, 0.3], [1, 1, 0, 0])) < 2e-5


def test_the_push_of_a_right_answer_goes_to_each_of_its_tokens():
    """On a tree of tokens: reward x (one-hot - pi) where the answer went, elsewhere nothing."""
    policy = SequencePolicy(2, 3, torch.sin(torch.arange(21.0)).view(7, 3).double())
    answer = (0, 1, policy.stop)
    log_pi = policy.logprobs().sum(1)[policy.outcomes.index(answer)]
    slope = torch.autograd.grad(log_pi, policy.logits)[0]
    wanted = torch.zeros_like(slope)
    for t, token in enumerate(answer):
        row = policy.states[answer[:t]]
        pi = policy.logits[row].detach().softmax(0)
        wanted[row] = F.one_hot(torch.tensor(token), 3) - pi
    torch.testing.assert_close(slope, wanted)


def test_a_mean_within_each_answer_climbs_reward_over_length():
    policy = SequencePolicy(2, 3, torch.sin(torch.arange(21.0)).view(7, 3).double())
    R = torch.tensor([float(y.count(1) == 1 and y[-1] == policy.stop) for y in policy.outcomes])
    T = torch.tensor([float(len(y)) for y in policy.outcomes])
    pi = policy.probabilities()
    slopes = []
    for wanted, weight in ((R, R), (R / T, R / T)):
        exact = torch.autograd.grad((pi * wanted).sum(), policy.logits, retain_graph=True)[0]
        log_pi = policy.logprobs().sum(1)
        drawn = (pi.detach() * weight * log_pi).sum()  # the mean over own draws
        slopes.append((exact, torch.autograd.grad(drawn, policy.logits, retain_graph=True)[0]))
        torch.testing.assert_close(*slopes[-1])
    cosine = F.cosine_similarity(slopes[0][0].flatten(), slopes[1][0].flatten(), dim=0)
    assert cosine < 0.999  # another direction


def test_two_right_answers_of_two_and_six_tokens_weigh_by_the_divisor():
    mask = torch.arange(6) < torch.tensor([[2], [6]])
    log_p = torch.zeros(2, 6, requires_grad=True)
    total = torch.where(mask, log_p, 0.0).sum(1)
    for objective, weights in (
        (total.mean(), (1 / 2, 1 / 2)),
        (total.sum() / mask.sum(), (1 / 8, 1 / 8)),
        ((total / mask.sum(1)).mean(), (1 / 4, 1 / 12)),
    ):
        slope = torch.autograd.grad(objective, log_p, retain_graph=True)[0]
        torch.testing.assert_close(slope, mask * torch.tensor(weights)[:, None])


def test_a_prompt_s_weight_lies_between_that_of_J_and_of_log_J():
    def weight(J, n):
        return (1 - (1 - J) ** n) / J

    assert [round(weight(J, 8), 1) for J in (0.01, 0.5)] == [7.7, 2.0]
    assert weight(0.01, 1) == pytest.approx(1) and weight(0.01, 10**6) == pytest.approx(100)


def test_pooled_right_answers_push_along_the_mean_of_J():
    """Of a large batch: prompt x has J_x of the right answers, each pushes by one-hot minus pi."""
    z = torch.stack([START, torch.tensor([0.006, 0.004, 0.5, 0.49])]).double().log()
    z.requires_grad_()
    pi = z.softmax(1)
    J = pi @ RIGHT
    slope = torch.autograd.grad(J.mean(), z, retain_graph=True)[0]
    bracket = (pi * RIGHT / J[:, None] - pi).detach()
    pooled = (J / J.sum()).detach()[:, None] * bracket
    torch.testing.assert_close(pooled, slope / J.mean().detach())


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
        pictures.staircase(
            torch.linspace(-1, 1, 9), torch.rand(9), torch.rand(9), {1.0: 0.1, 0.2: 0.3, 0.1: 0.0}
        ),
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
