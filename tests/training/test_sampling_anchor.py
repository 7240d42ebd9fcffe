"""Objectives that compare with the rollout's own log-probabilities, not with the trainer's."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from rlnb.objective import (
    ZOO,
    Objective,
    cispo,
    divergence_mask,
    engine_ratio,
    group_center,
    logprob,
    prompt_mean,
    sequence_mask,
    token,
)
from rlnb.training import Recipe, keep_mixed, pass_rate, sample, train
from rlnb.training.metrics_file import METRICS
from rlnb.training.step import accumulate, collect, make_batch, start, step, update

SCALERL = Objective(group_center(), cispo(5.0), prompt_mean, ratio=token("sampling"))
ANCHORED = {
    "ratio": SCALERL,
    "mask": SCALERL.replace(gates=divergence_mask(0.15, anchor="sampling")),
    "kl mask": SCALERL.replace(gates=divergence_mask(0.05, kind="kl", anchor="sampling")),
    "sequence mask": ZOO["dr_grpo"].replace(gates=sequence_mask(0.5, anchor="sampling")),
    "engine": ZOO["dr_grpo"].replace(gates=engine_ratio("token", "truncate", high=2.0)),
}


def reporting(shift):
    """A sampler whose engine reports log-probabilities that are off by `shift` nats."""

    def sampler(*arguments, **options):
        rollout = sample(*arguments, **options)
        moved = torch.where(rollout.completion_mask, rollout.logprobs + shift, 0.0)
        return dataclasses.replace(rollout, logprobs=moved)

    return sampler


def gradient(fresh, chain, objective, recipe, shift=0.0):
    """The first gradient of a run whose engine is off by `shift`."""
    run = start(*fresh, chain, objective, recipe, sampler=reporting(shift))
    rollout, problems, rewards, *_ = collect(run)
    prepared = objective.prepare(make_batch(run, rollout, problems, rewards))
    run.optimizer.zero_grad(set_to_none=False)
    accumulate(run, rollout, prepared, torch.arange(len(rewards)))
    return torch.cat([p.grad.flatten() for p in run.model.parameters()]).clone()


def close(a, b):
    return (a - b).abs().max() < 1e-4 * b.abs().max() and b.abs().max() > 0


@pytest.mark.parametrize("shape", [(1, 1), (2, 2)], ids=["on-policy", "four updates"])
@pytest.mark.parametrize("name", ANCHORED)
def test_an_objective_anchored_to_the_rollout_trains(fresh, chain, tiny, name, shape):
    recipe = dataclasses.replace(tiny, minibatches=shape[0], num_iterations=shape[1])
    run = start(*fresh, chain, ANCHORED[name], recipe)
    before = [p.clone() for p in run.model.parameters()]
    metrics = step(run)
    assert set(metrics) <= set(METRICS) and metrics["sampling/logp_difference"] < 1e-4
    assert math.isfinite(metrics["loss"]) and metrics["grad_norm"] > 0
    assert any(not torch.equal(a, b) for a, b in zip(before, run.model.parameters(), strict=True))
    if shape == (1, 1) and name != "engine":
        assert metrics["ratio/max"] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("minibatches", [1, 2])
def test_the_engine_s_error_is_in_the_ratio_only_when_it_is_the_anchor(
    fresh, chain, tiny, minibatches
):
    # The engine says every token was e^0.5 times less likely than it was: rho = e^0.5 = 1.6487.
    # minibatches=2 makes the loop score the rollout itself; accumulate still sees all rows.
    recipe = dataclasses.replace(tiny, minibatches=minibatches)
    honest = gradient(fresh, chain, SCALERL, recipe)
    assert close(gradient(fresh, chain, SCALERL, recipe, -0.5), math.exp(0.5) * honest)
    capped = SCALERL.replace(surrogate=cispo(1.2))
    assert close(gradient(fresh, chain, capped, recipe, -0.5), 1.2 * honest)
    trainer = SCALERL.replace(ratio=token("old"))
    assert close(gradient(fresh, chain, trainer, recipe, -0.5), honest)


def test_the_anchor_stays_the_rollout_over_minibatches_and_iterations(fresh, chain, roomy):
    seen = []

    class Watched:
        """cispo(5.0) that keeps what it was given; each row's reward is its number."""

        needs = ()

        def __call__(self, batch, advantages, log_ratio):
            seen.append((batch.rewards.long(), batch.logprobs.detach(), log_ratio.detach()))
            return cispo(5.0)(batch, advantages, log_ratio)

    numbers = iter(range(1000))
    recipe = dataclasses.replace(roomy, minibatches=2, num_iterations=3, learning_rate=1e-3)
    objective = SCALERL.replace(surrogate=Watched())
    run = start(
        *fresh, chain, objective, recipe, reward=lambda problem, text: float(next(numbers)),
        sampler=reporting(-0.5),
    )  # fmt: skip
    rollout, problems, rewards, *_ = collect(run)
    assert rewards.tolist() == list(range(16))  # nothing was cut off
    prepared = objective.prepare(make_batch(run, rollout, problems, rewards))
    update(run, rollout, prepared, torch.arange(16))
    assert sorted(torch.cat([rows for rows, *_ in seen]).tolist()) == sorted([*range(16)] * 3)
    for rows, logprobs, log_ratio in seen:
        mask = rollout.completion_mask[rows]
        want = logprobs - rollout.logprobs[rows]
        assert torch.equal(log_ratio[mask], want[mask])
    first, last = (seen[i][2][rollout.completion_mask[seen[i][0]]] for i in (0, -1))
    assert (first - 0.5).abs().max() < 1e-4  # at first the policy is where it sampled
    assert (last - 0.5).abs().max() > 1e-2  # later it has moved, and the anchor has not


def test_the_mask_reads_how_far_the_policy_is_from_the_rollout(fresh, chain, tiny):
    plain = SCALERL.replace(surrogate=logprob(), ratio=token("old"))
    masked = plain.replace(gates=divergence_mask(0.15, anchor="sampling"))
    own = plain.replace(gates=divergence_mask(0.15, anchor="old"))
    free = gradient(fresh, chain, plain, tiny)
    assert close(gradient(fresh, chain, masked, tiny), free)  # nothing has moved
    assert close(gradient(fresh, chain, own, tiny, -1.0), free)

    def by_hand(batch, advantages, log_ratio):
        # q = p/e: p > q, and p - q = (1 - 1/e) p exceeds 0.15 where p does 0.2373.
        p = batch.logprobs.detach().exp()
        return (~((advantages > 0) & (p > 0.15 / (1 - math.exp(-1))))).float()

    cut = gradient(fresh, chain, plain.replace(gates=by_hand), tiny)
    assert close(gradient(fresh, chain, masked, tiny, -1.0), cut)
    assert not close(cut, free)


def test_the_log_shows_an_engine_that_disagrees(fresh, chain, tiny):
    for recipe in (tiny, dataclasses.replace(tiny, minibatches=2)):
        run = start(*fresh, chain, SCALERL, recipe, sampler=reporting(-0.5))
        assert step(run)["sampling/logp_difference"] == pytest.approx(0.5, abs=1e-3)


def test_twelve_short_steps_of_two_updates_lift_pass_at_1_by_a_fifth(fresh, chain):
    model, tokenizer = fresh
    recipe = Recipe(
        steps=12, prompts=8, num_generations=8, minibatches=2, learning_rate=5e-4, eval_every=0
    )
    before = pass_rate(model, tokenizer, chain, prompts=60).right.mean().item()
    train(model, tokenizer, chain, SCALERL, recipe, keep=keep_mixed, progress=False)
    after = pass_rate(model, tokenizer, chain, prompts=60).right.mean().item()
    assert after >= before + 0.2
