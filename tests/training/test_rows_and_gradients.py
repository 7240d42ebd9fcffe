"""Each optimizer step has its own rows, its own gradient, and the last one is looked at."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from rlnb.objective import ZOO
from rlnb.training import train
from rlnb.training.step import collect, start, step


def last_groups_only(batch):
    """The second half of the groups."""
    groups = torch.arange(len(batch.rewards) // batch.num_generations)
    return groups[len(groups) // 2 :]


def test_every_answer_is_verified_against_its_own_prompt(fresh, chain, tiny):
    asked = []

    def reward(problem, text):
        asked.append(problem.prompt)
        return 0.0

    recipe = dataclasses.replace(tiny, prompts=3, num_generations=4, max_completion_length=4)
    run = start(*fresh, chain, ZOO["dr_grpo"], recipe, reward=reward)
    drawn = collect(run)
    assert asked == [problem.prompt for problem in drawn.problems for _ in range(4)]
    assert len(set(asked)) == 3  # or nothing is tested


@pytest.mark.parametrize("minibatches", [1, 2])
def test_after_a_filter_the_ratio_is_one_on_the_weights_that_sampled(
    fresh, chain, tiny, minibatches
):
    # Old and new log-probabilities are of one policy, as long as they are of the same tokens.
    recipe = dataclasses.replace(
        tiny, prompts=4, minibatches=minibatches, num_iterations=2, learning_rate=0.0
    )
    run = start(*fresh, chain, ZOO["dr_grpo"], recipe, keep=last_groups_only)
    metrics = step(run)
    assert metrics["groups/kept"] == 0.5
    assert abs(metrics["ratio/min"] - 1) < 1e-4 and abs(metrics["ratio/max"] - 1) < 1e-4


def test_a_second_pass_over_a_rollout_begins_with_no_gradient(fresh, chain, tiny, monkeypatch):
    # At learning rate 0 both passes have one gradient; left-over ones would double the second.
    recipe = dataclasses.replace(tiny, num_iterations=2, learning_rate=0.0, max_grad_norm=1e9)
    run, seen = start(*fresh, chain, ZOO["dr_grpo"], recipe), []
    optimize = run.optimizer.step

    def watched():
        seen.append(torch.cat([p.grad.flatten() for p in run.model.parameters()]).clone())
        optimize()

    monkeypatch.setattr(run.optimizer, "step", watched)
    step(run)
    first, second = seen
    assert first.abs().max() > 0
    assert (first - second).abs().max() < 1e-5 * first.abs().max()


def test_the_last_step_is_evaluated_and_kept_whatever_its_number(fresh, chain, tiny, tmp_path):
    recipe = dataclasses.replace(tiny, steps=3, eval_every=2, checkpoint_every=2)
    records = train(*fresh, chain, ZOO["dr_grpo"], recipe, out=tmp_path / "run", progress=False)
    assert [r["step"] for r in records if r["record"] == "eval"] == [0, 2, 3]
    assert sorted(folder.name for folder in (tmp_path / "run").glob("checkpoint-*")) == [
        "checkpoint-000002",  # the one before is kept, in case the last is damaged
        "checkpoint-000003",
    ]
