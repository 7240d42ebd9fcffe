from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from rlnb.objective import (
    ANNEX,
    ZOO,
    Objective,
    clip,
    entropy_bonus,
    group_center,
    group_zscore,
    kl_in_reward,
    sequence,
    sequence_mean,
    token_mean,
)
from rlnb.training import BadInput, CoinFlip, Recipe, Sampling, keep_mixed, sample, token_logprobs
from rlnb.training.metrics_file import METRICS
from rlnb.training.step import accumulate, collect, make_batch, silent_rows, start, step, update
from rlnb.training.update import ENGINE, engine_metrics

NAMED = ZOO | ANNEX


def one_rollout(fresh, chain, objective, recipe, **options):
    """(run, rollout, prepared, rows) just before the update."""
    run = start(*fresh, chain, objective, recipe, **options)
    rollout, problems, rewards, *_ = collect(run)
    prepared = run.objective.prepare(make_batch(run, rollout, problems, rewards))
    return run, rollout, prepared, torch.arange(len(rewards))


def gradient(run, rollout, prepared, rows, **changes):
    run.recipe = dataclasses.replace(run.recipe, **changes)
    run.optimizer.zero_grad(set_to_none=False)
    sums = accumulate(run, rollout, prepared, rows)
    return torch.cat([p.grad.flatten() for p in run.model.parameters()]).clone(), sums


SPLITTABLE = {
    "dr_grpo": ZOO["dr_grpo"],
    "grpo": ZOO["grpo"],
    "dapo-like": Objective(group_zscore(), clip(0.2, high=0.28), token_mean),
    "gspo-like": Objective(group_zscore(), clip(3e-4, high=4e-4), sequence_mean, ratio=sequence()),
    "entropy": Objective(group_center(), clip(0.2), token_mean, terms=entropy_bonus(0.01)),
    "dppo_topk": ZOO["dppo_topk"],
    "simko": ANNEX["simko"],
}


@pytest.mark.parametrize("name", SPLITTABLE)
def test_micro_batches_give_the_gradient_of_the_whole_step(fresh, chain, tiny, name):
    parts = one_rollout(fresh, chain, SPLITTABLE[name], tiny)
    whole, sums = gradient(*parts, micro_batch=1000)
    for size in (1, 3, 5):  # 3 and 5 cut groups of 4
        split, again = gradient(*parts, micro_batch=size)
        assert (split - whole).abs().max() < 1e-5 * whole.abs().max() + 1e-9
        assert abs(sums["loss"] - again["loss"]) < 1e-5
    assert whole.abs().max() > 0


def test_the_gradient_is_that_of_the_objective_written_out(fresh, chain, tiny):
    # dr_grpo, on-policy: L = -(1/(B * max_length)) sum_it A_i log pi_it
    run, rollout, prepared, rows = one_rollout(fresh, chain, ZOO["dr_grpo"], tiny)
    got, _ = gradient(run, rollout, prepared, rows)
    run.optimizer.zero_grad(set_to_none=False)
    rewards = prepared.batch.rewards.view(-1, 4)
    advantages = (rewards - rewards.mean(1, keepdim=True)).flatten()
    loss = 0.0
    for row in range(len(rows)):
        prompt = rollout.prompt_ids[row][rollout.prompt_mask[row].bool()]
        ids = torch.cat([prompt, rollout.completion_ids[row, : rollout.lengths[row]]])
        every = run.model(ids[None]).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        logprob = every.gather(1, ids[len(prompt) :, None]).sum()
        loss = loss - advantages[row] * logprob / (len(rows) * tiny.max_completion_length)
    loss.backward()
    want = torch.cat([p.grad.flatten() for p in run.model.parameters()])
    assert (got - want).abs().max() < 1e-4 * want.abs().max()


@pytest.mark.parametrize("name", ["dr_grpo", "dapo"])
def test_each_minibatch_is_divided_by_its_own_rows_and_tokens(fresh, chain, tiny, name):
    # Weights that do not move, so that both gradients are of one policy. AdamW would hide a factor.
    recipe = dataclasses.replace(tiny, minibatches=2, learning_rate=0.0, max_grad_norm=1e9)
    run, rollout, prepared, rows = one_rollout(fresh, chain, ZOO[name], recipe)
    got, real = [], run.optimizer.step

    def spy():
        got.append(torch.cat([p.grad.flatten() for p in run.model.parameters()]).clone())
        real()

    run.optimizer.step = spy
    state = run.generator.get_state()
    update(run, rollout, prepared, rows)
    run.generator.set_state(state)
    halves = torch.randperm(len(rows), generator=run.generator).chunk(2)
    logprobs, _ = token_logprobs(run.model, rollout, temperature=1.0)
    policy = (prepared.advantages * logprobs * rollout.completion_mask).sum(1)
    for index, gradient_of_half in zip(halves, got, strict=True):
        tokens = int(rollout.lengths[index].sum())
        divisor = tokens if name == "dapo" else len(index) * tiny.max_completion_length
        loss = -policy[index].sum() / divisor
        want = torch.autograd.grad(loss, list(run.model.parameters()), retain_graph=True)
        want = torch.cat([g.flatten() for g in want])
        assert want.abs().max() > 0
        assert (gradient_of_half - want).abs().max() < 1e-4 * want.abs().max()


def test_leaving_out_silent_rows_leaves_the_gradient_alone(fresh, chain, roomy):
    recipe = dataclasses.replace(roomy, prompts=8, num_iterations=2)
    parts = one_rollout(fresh, chain, ZOO["dr_grpo"], recipe)
    silent = silent_rows(ZOO["dr_grpo"], parts[2])
    assert 0 < silent.sum() < len(silent)  # or nothing is tested
    with torch.no_grad():  # a policy that has moved since: some tokens are beyond the clip
        for parameter in parts[0].model.parameters():
            parameter.mul_(1.2)
    lean, a = gradient(*parts, skip_silent_rows=True)
    full, b = gradient(*parts, skip_silent_rows=False)
    assert (lean - full).abs().max() < 1e-5 * full.abs().max()
    # A silent row's tokens are not cut, and count: the share is of all tokens of the step.
    assert a["clip_ratio/region_mean"] > 0.01
    assert abs(a["clip_ratio/region_mean"] - b["clip_ratio/region_mean"]) < 1e-9


def test_the_engine_s_error_is_its_largest_in_either_direction():
    trainer, engine = torch.tensor([[-1.0, -2.0, -9.0]]), torch.tensor([[-1.5, -1.0, 0.0]])
    told = engine_metrics(trainer, engine, torch.tensor([[True, True, False]]))  # gaps 0.5, -1
    assert told["sampling/logp_difference"] == 1.0
    assert told[ENGINE + "max"] == pytest.approx(math.exp(0.5))
    assert told[ENGINE + "min"] == pytest.approx(math.exp(-1.0))
    assert told[ENGINE + "mean"] == pytest.approx((math.exp(0.5) + math.exp(-1.0)) / 2)


def test_a_greedy_answer_that_is_cut_off_is_worth_nothing(fresh, chain, roomy):
    # ReMax's baseline: a greedy answer that is paid all the same would punish every sampled one.
    short = dataclasses.replace(roomy, max_completion_length=2)
    for recipe, wanted in ((short, {0.0}), (roomy, {1.0})):
        run = start(*fresh, chain, ZOO["remax"], recipe, reward=lambda problem, text: 1.0)
        rollout, problems, rewards, *_ = collect(run)
        paid = make_batch(run, rollout, problems, rewards).greedy_rewards
        assert set(paid.tolist()) == wanted


def test_an_entropy_bonus_pulls_on_rows_without_an_advantage(fresh, chain, tiny):
    # All rewards equal: the whole gradient is the bonus's, and a step along it raises the entropy.
    parts = one_rollout(fresh, chain, SPLITTABLE["entropy"], tiny, reward=lambda p, t: 0.0)
    run, rollout, prepared, rows = parts
    assert (prepared.advantages == 0).all() and not silent_rows(run.objective, prepared).any()
    before = token_logprobs(run.model, rollout, temperature=1.0)[1].sum()
    assert gradient(*parts)[0].abs().max() > 0
    run.optimizer.step()
    assert token_logprobs(run.model, rollout, temperature=1.0)[1].sum() > before


def test_no_row_is_silent_where_a_term_pulls_on_it(fresh, chain, tiny):
    _, _, prepared, _ = one_rollout(fresh, chain, ZOO["grpo"], tiny)
    assert not silent_rows(ZOO["grpo"], prepared).any()


@pytest.mark.parametrize("name", NAMED)
def test_the_loop_takes_every_named_objective(fresh, chain, tiny, name):
    recipe = dataclasses.replace(tiny, prompts=2, minibatches=2, num_iterations=2)
    run = start(*fresh, chain, NAMED[name], recipe, reward=CoinFlip(0))  # mixed groups for sure
    before = [p.clone() for p in run.model.parameters()]
    metrics = step(run) | step(run)
    assert set(metrics) <= set(METRICS)
    assert metrics["sampling/logp_difference"] < 1e-4
    moved = any(not torch.equal(a, b) for a, b in zip(before, run.model.parameters(), strict=True))
    assert moved and ("kl" in metrics) == ("ref_logprobs" in NAMED[name].needs)


def test_the_critic_of_ppo_learns(fresh, chain, tiny):
    run = start(*fresh, chain, ZOO["ppo"], dataclasses.replace(tiny, prompts=8))
    before = run.critic.head.weight.clone()
    assert (before == 0).all()
    step(run)
    assert not torch.equal(before, run.critic.head.weight)


def test_kl_in_the_reward_reads_the_frozen_reference(fresh, chain, tiny):
    objective = Objective(group_center(), clip(0.2), token_mean, shape=kl_in_reward(0.05))
    run = start(*fresh, chain, objective, tiny)
    step(run)
    batch = make_batch(run, *(x for i, x in enumerate(collect(run)) if i < 3))
    moved = (batch.logprobs - batch.ref_logprobs)[batch.mask].abs().max()
    assert moved > 1e-3  # the policy moved, the reference did not
    assert not any(p.requires_grad for p in run.reference.parameters())


def test_the_ratio_is_exactly_one_on_policy_and_moves_after_an_update(fresh, chain, tiny):
    assert step(start(*fresh, chain, ZOO["dr_grpo"], tiny))["ratio/max"] == 1.0
    several = dataclasses.replace(tiny, num_iterations=3, prompts=8)
    assert step(start(*fresh, chain, ZOO["dr_grpo"], several))["ratio/max"] > 1.001


def test_metrics_agree_with_the_rollout(fresh, chain, roomy):
    run = start(*fresh, chain, ZOO["dr_grpo"], roomy, reward=lambda problem, text: 0.5)
    metrics = step(run)
    assert metrics["reward"] == pytest.approx(0.5)  # nothing was cut off
    assert metrics["frac_reward_zero_std"] == 1.0 and metrics["reward_std"] == 0.0
    assert metrics["groups/mixed"] == 1.0  # 0.5 is neither a pass nor a fail
    assert metrics["rewards/verify/mean"] != 0.5
    assert metrics["grad_norm"] == 0.0 and metrics["loss"] == 0.0


def test_a_truncated_completion_earns_nothing(fresh, chain, tiny):
    recipe = dataclasses.replace(tiny, max_completion_length=2)
    metrics = step(start(*fresh, chain, ZOO["dr_grpo"], recipe, reward=lambda p, t: 1.0))
    assert metrics["completions/clipped_ratio"] == 1.0 and metrics["reward"] == 0.0


def test_dynamic_sampling_keeps_the_mixed_groups(fresh, chain, tiny):
    recipe = dataclasses.replace(tiny, prompts=8)
    metrics = step(start(*fresh, chain, ZOO["dr_grpo"], recipe, keep=keep_mixed))
    assert metrics["groups/kept"] == 1 - metrics["frac_reward_zero_std"] < 1.0


def test_a_filter_that_keeps_nothing_skips_the_update(fresh, chain, tiny):
    run = start(*fresh, chain, ZOO["dr_grpo"], tiny, keep=lambda batch: torch.tensor([]).long())
    before = [p.clone() for p in run.model.parameters()]
    assert "grad_norm" not in step(run)
    assert all(torch.equal(a, b) for a, b in zip(before, run.model.parameters(), strict=True))


def test_a_sampler_at_another_temperature_is_refused(fresh, chain, tiny):
    def cooler(model, prompts, n, sampling, **options):
        return sample(model, prompts, n, dataclasses.replace(sampling, temperature=0.8), **options)

    # Every group earns the same, so nothing is scored: the loop must refuse before that.
    run = start(
        *fresh, chain, ZOO["dr_grpo"], tiny, sampler=cooler, reward=lambda problem, text: 0.0
    )
    with pytest.raises(BadInput, match=r"sampled at 0\.8, scoring asked for 1\.0"):
        step(run)


def test_a_sampler_that_truncates_is_refused(fresh, chain, tiny):
    def nucleus(model, prompts, n, sampling, **options):
        return sample(model, prompts, n, Sampling(top_p=0.9, max_new_tokens=8), **options)

    with pytest.raises(BadInput, match="top_p=0.9"):
        step(start(*fresh, chain, ZOO["dr_grpo"], tiny, sampler=nucleus))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"top_p": 0.9}, "top_p=0.9"),
        ({"temperature": 0.0}, "greedy rollout has no ratio"),
        ({"num_generations": 1}, "num_generations of at least 2, got 1"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_sampled(
    fresh, chain, tiny, changes, message
):
    with pytest.raises(BadInput, match=message):
        start(*fresh, chain, ZOO["dr_grpo"], dataclasses.replace(tiny, **changes))


def test_a_reward_that_does_not_suit_the_objective_is_one_sentence(fresh, chain, tiny):
    run = start(*fresh, chain, ZOO["mgpo"], tiny, reward=lambda problem, text: 2.0)
    with pytest.raises(BadInput, match="objective: mgpo_weight .* takes rewards between 0 and 1"):
        step(run)


def test_candidates_are_the_likeliest_tokens_of_the_policy_that_sampled(fresh, chain, tiny):
    run, rollout, prepared, _ = one_rollout(fresh, chain, ANNEX["simko"], tiny)
    batch, ranks = prepared.batch, []
    for row in range(len(rollout.lengths)):
        prompt = rollout.prompt_ids[row][rollout.prompt_mask[row].bool()]
        length = int(rollout.lengths[row])
        ids = torch.cat([prompt, rollout.completion_ids[row, :length]])
        with torch.no_grad():
            every = run.model(ids[None]).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        top = every.topk(4)
        gap = batch.topk_logprobs[row, :length] - top.values[:, :3]
        assert gap.abs().max() < 1e-4
        assert (batch.topk_logprobs[row, length:] == 0).all()
        sure = top.values.diff(dim=1).abs().amin(1) > 1e-4  # no tie, whose order is arbitrary
        assert torch.equal(rollout.candidate_ids[row, :length][sure], top.indices[sure, :3])
        wrote = ids[len(prompt) :, None]
        rank = (every > every.gather(1, wrote)).sum(1).clamp(max=3)
        assert torch.equal(batch.sampled_rank[row, :length][sure], rank[sure])
        ranks += rank.tolist()
    assert {0, 1, 3} <= set(ranks)  # or nothing is tested


def test_candidates_keep_their_place_and_move_with_the_policy(fresh, chain, tiny):
    recipe = dataclasses.replace(tiny, num_iterations=2, learning_rate=1e-3)
    seen = []

    def spy(batch, advantages, log_ratio):
        seen.append((batch.topk_logprobs.detach(), batch.old_topk_logprobs, batch.mask))
        return torch.ones_like(advantages)

    objective = ZOO["dppo_topk"].replace(gates=(*ZOO["dppo_topk"].gates, spy))
    step(start(*fresh, chain, objective, recipe))
    gaps = [(now - old)[mask].abs().max() for now, old, mask in seen]
    assert len(gaps) == 2 and gaps[0] < 1e-4 < 1e-2 < gaps[1]


def test_an_objective_that_needs_what_the_loop_has_not(fresh, chain, tiny):
    class StepRewards:
        needs = ("token_rewards",)

        def __call__(self, batch, advantages, log_ratio):
            return advantages

    objective = ZOO["dr_grpo"].replace(surrogate=StepRewards())
    with pytest.raises(BadInput, match="needs token_rewards, which the loop does not produce"):
        start(*fresh, chain, objective, tiny)


@pytest.mark.parametrize(
    "field, value",
    [("prompts", 0), ("num_generations", 0), ("micro_batch", 0), ("steps", -1),
     ("learning_rate", -1.0), ("minibatches", 1000)],
)  # fmt: skip
def test_an_impossible_recipe_names_its_field(field, value):
    with pytest.raises(BadInput, match=f"^{field}: got"):
        Recipe(**{field: value})
