from __future__ import annotations

import itertools

import pytest

from rlnb.training import (
    BadInput,
    Sampling,
    answer,
    evaluate,
    held_out,
    pass_at_k,
    pass_rate,
    summary,
)


def test_pass_at_k_is_the_share_of_subsets_with_a_correct_answer():
    answers = [1, 1, 0, 0, 0, 0]
    for k in range(1, 7):
        subsets = list(itertools.combinations(answers, k))
        by_counting = sum(any(s) for s in subsets) / len(subsets)
        assert abs(pass_at_k(6, 2, k) - by_counting) < 1e-12


def test_pass_at_k_by_hand():
    assert pass_at_k(4, 1, 2) == 0.5  # 1 - C(3,2)/C(4,2) = 1 - 3/6
    assert pass_at_k(8, 0, 8) == 0.0 and pass_at_k(8, 1, 8) == 1.0
    # The plug-in 1 - (1 - c/n)^k is biased low here: 1 - 0.75^2 = 0.4375
    assert pass_at_k(4, 1, 2) != 0.4375


@pytest.mark.parametrize("n, correct, k", [(4, 2, 0), (4, 2, 5), (4, 5, 1), (4, -1, 1)])
def test_pass_at_k_refuses_what_is_not_a_draw(n, correct, k):
    with pytest.raises(BadInput, match="expected 1 <= k <= n"):
        pass_at_k(n, correct, k)


def test_the_shipped_base_is_mediocre_on_1000_held_out_samples(shipped, chain):
    report = summary(chain, pass_rate(*shipped, chain, prompts=250, num_generations=4))
    assert report["samples"] == 1000
    assert 0.30 <= report["pass@1"] <= 0.45
    assert 0.5 <= report["direct"] <= 0.7  # its likeliest style is the one it is bad at


def test_the_base_knows_the_steps_and_greedy_decoding_hides_it(shipped, chain):
    # The control: with the first number of the first step written for it, the base is
    # right. Training elicits a skill that is there; it does not teach a new one.
    report = evaluate(*shipped, chain, prompts=100, num_generations=4)
    assert report["forced/steps/greedy"] >= 0.97
    assert report["forced/steps"] >= 0.55 > 0.35 >= report["forced/direct"]
    assert report["greedy"] <= 0.40
    assert report["pass@1"] < report["pass@2"] < report["pass@4"]


def test_a_forced_opening_is_part_of_the_answer(shipped, chain):
    answers = pass_rate(*shipped, chain, prompts=20, num_generations=2, style="direct")
    assert all(text.startswith("so") for text in answers.texts)
    assert summary(chain, answers)["direct"] == 1.0


def test_a_truncated_answer_is_wrong_even_if_it_reads_right(shipped, chain):
    # With 2 tokens `so7` fits and its end token does not.
    answers = pass_rate(
        *shipped, chain, prompts=50, num_generations=4, sampling=Sampling(max_new_tokens=2)
    )
    reads_right = [
        chain.verify(answers.problems[i // 4], text) for i, text in enumerate(answers.texts)
    ]
    assert sum(reads_right) > 0 and not answers.finished.any()
    assert answers.right.sum() == 0


def test_evaluation_is_repeatable(shipped, chain):
    first = pass_rate(*shipped, chain, prompts=20, num_generations=2)
    second = pass_rate(*shipped, chain, prompts=20, num_generations=2)
    assert first.texts == second.texts
    other = pass_rate(*shipped, chain, prompts=20, num_generations=2, seed=1)
    assert first.texts != other.texts


def test_answers_in_several_rounds_keep_their_own_problem_and_opening(shipped, chain):
    # Greedy, so that the rounds change nothing: 1,024 rows are a round, and 250 x 8 are two.
    problems = held_out(chain, 12)
    openings = [chain.openings(problem)["steps"] for problem in problems]
    assert len(set(openings)) > 5
    cold = Sampling(temperature=0.0)
    once, rounds = (
        answer(*shipped, chain, problems, 2, cold, openings=openings, rows_in_flight=rows)
        for rows in (1024, 6)
    )
    assert rounds.texts == once.texts and rounds.right.equal(once.right)
    assert all(text.startswith(openings[i // 2]) for i, text in enumerate(rounds.texts))
    assert rounds.right.mean() > 0.9  # with the right first step it is solved
