"""What a step reports and pays, each against a number by hand."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import pytest
import torch

from rlnb.objective import ZOO
from rlnb.training.rollouts import collect, make_batch, rollout_metrics
from rlnb.training.run import start
from rlnb.training.update import accumulate, engine_metrics


def test_an_engines_largest_difference_may_be_below_zero():
    """The last token is masked. omega is not that of the largest difference."""
    trainer = torch.tensor([[-1.5, -1.0, -2.0, -9.0]])
    engine = torch.tensor([[-1.0, -1.2, -2.0, -1.0]])
    told = engine_metrics(trainer, engine, torch.tensor([[True, True, True, False]]))
    assert told["sampling/logp_difference"] == pytest.approx(0.5)
    kind = "sampling/importance_sampling_ratio/"
    assert told[kind + "max"] == pytest.approx(math.exp(0.2))
    assert told[kind + "min"] == pytest.approx(math.exp(-0.5))
    mean = (math.exp(-0.5) + math.exp(0.2) + 1) / 3
    assert told[kind + "mean"] == pytest.approx(mean)


def test_the_rollouts_entropy_is_per_token_and_its_std_bessels():
    rollout = SimpleNamespace(
        num_generations=2,
        lengths=torch.tensor([1, 3]),
        entropies=torch.tensor([[2.0, 0.0, 0.0], [1.0, 0.5, 0.3]]),
        finished=torch.tensor([True, True]),
    )
    told = rollout_metrics(rollout, torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.0]), ["", ""])
    assert told["entropy"] == pytest.approx(3.8 / 4)  # not (2.0 + 0.6) / 2
    assert told["reward_std"] == pytest.approx(math.sqrt(0.5))  # population: 0.5


def test_a_clip_share_is_of_all_tokens_also_of_those_left_out(fresh, chain, tiny):
    """Rows without an advantage are skipped; the share of cut tokens must not grow by that."""
    recipe = dataclasses.replace(tiny, prompts=8)
    run = start(*fresh, chain, ZOO["dr_grpo"], recipe)
    rollout, problems, rewards, *_ = collect(run)
    batch = make_batch(run, rollout, problems, rewards)
    batch = batch.replace(old_logprobs=batch.logprobs.detach() - 0.5)  # every ratio is 1.65
    prepared = run.objective.prepare(batch)
    want = run.objective.evaluate(prepared).metrics
    silent = (prepared.advantages == 0).all(1)
    assert 0 < silent.sum() < len(silent)
    told = accumulate(run, rollout, prepared, torch.arange(len(rewards)))
    for name in ("clip_ratio/high_mean", "clip_ratio/region_mean"):
        assert told[name] == pytest.approx(want[name], abs=1e-6)
    # over the tokens of the rows that were computed it would be larger by this
    share = float(batch.mask[~silent].sum() / batch.mask.sum())
    assert want["clip_ratio/high_mean"] * (1 / share - 1) > 0.02


@pytest.mark.parametrize(("longest", "paid"), [(2, 0.0), (64, 1.0)])
def test_a_greedy_answer_that_was_cut_off_is_not_paid(fresh, chain, tiny, longest, paid):
    recipe = dataclasses.replace(tiny, max_completion_length=longest)
    run = start(*fresh, chain, ZOO["remax"], recipe, reward=lambda problem, text: 1.0)
    rollout, problems, rewards, *_ = collect(run)
    batch = make_batch(run, rollout, problems, rewards)
    assert (batch.greedy_rewards == paid).all()
