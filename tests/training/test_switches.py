"""The switches of the loop: staleness, refills, overlong answers, a coarser sampler."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch

from rlnb.objective import (
    ANNEX,
    ZOO,
    Objective,
    clip,
    engine_ratio,
    group_center,
    overlong,
    ratio,
    sequence_mean,
)
from rlnb.training import BadInput, Recipe, keep_mixed, sample, token_logprobs, train
from rlnb.training.rewards import mixed_groups
from rlnb.training.rollouts import join
from rlnb.training.step import accumulate, collect, make_batch, start, step

DR_GRPO = ZOO["dr_grpo"]


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def change(recipe, **fields):
    return dataclasses.replace(recipe, **fields)


# staleness


@pytest.mark.parametrize("k", [0, 2])
def test_rollouts_come_from_the_weights_of_exactly_k_steps_ago(fresh, chain, tiny, k):
    drawn_with = []

    def watching(model, *arguments, **options):
        drawn_with.append(weights(model))
        return sample(model, *arguments, **options)

    run = start(*fresh, chain, DR_GRPO, change(tiny, staleness=k), sampler=watching)
    after, said = [weights(run.model)], []
    for _ in range(5):
        said.append(step(run)["staleness"])
        after.append(weights(run.model))
    assert all(not torch.equal(a, b) for a, b in zip(after, after[1:], strict=False))
    for number, used in enumerate(drawn_with, 1):
        assert torch.equal(used, after[max(0, number - 1 - k)])
    assert said == [min(k, number) for number in range(5)]


def test_a_stale_rollout_is_compared_with_the_policy_that_sampled_it(fresh, chain, tiny):
    recipe = change(tiny, staleness=1, learning_rate=1e-3, prompts=8)
    run = start(*fresh, chain, DR_GRPO, recipe)
    step(run)
    stale = copy.deepcopy(run.model)
    step(run)  # the next rollout comes from before this update
    assert run.fall_behind() == 1
    rollout, problems, rewards, *_ = collect(run)
    batch = make_batch(run, rollout, problems, rewards)
    with torch.no_grad():
        want, _ = token_logprobs(stale, rollout, temperature=1.0)
        now, _ = token_logprobs(run.model, rollout, temperature=1.0)
    assert (batch.old_logprobs - want).abs().max() < 1e-5
    assert (batch.sampling_logprobs - want).abs().max() < 1e-4
    assert (now - want).abs().max() > 1e-2  # and the ratio is not 1


def test_the_log_tells_a_stale_step_from_a_fresh_one(fresh, chain, tiny):
    run = start(*fresh, chain, DR_GRPO, change(tiny, staleness=2, learning_rate=1e-3, prompts=8))
    first, second = step(run), step(run)
    assert first["ratio/max"] == pytest.approx(1.0, abs=1e-4)
    assert second["ratio/min"] < 0.99 < 1.01 < second["ratio/max"]
    assert second["clip_ratio/low_mean"] + second["clip_ratio/high_mean"] == pytest.approx(
        second["clip_ratio/region_mean"]
    )
    assert second["sampling/logp_difference"] < 1e-4  # same weights, two ways to compute


# dynamic sampling


def rewards_by_prompt(mixed):
    """The n-th different prompt gets a mixed group if mixed(n), all wrong otherwise."""
    seen = {}

    def reward(problem, text):
        n, count = seen.setdefault(problem.prompt, [len(seen), 0])
        seen[problem.prompt][1] += 1
        return float(mixed(n) and count == 0)

    return reward, seen


def test_a_refill_goes_on_until_the_batch_is_full_of_mixed_groups(fresh, chain, roomy):
    reward, seen = rewards_by_prompt(lambda n: n % 2 == 1)  # half of the groups teach
    trained = []

    def keep(batch):
        trained.append(batch)
        return torch.arange(len(batch.rewards) // batch.num_generations)

    run = start(*fresh, chain, DR_GRPO, change(roomy, max_resample=5), reward=reward, keep=keep)
    metrics = step(run)  # 4 prompts a round: 2 mixed, 4 mixed
    assert metrics["generated"] == 32 and len(seen) == 8
    assert metrics["groups/kept"] == 0.5 and metrics["groups/mixed"] == pytest.approx(0.5)
    (batch,) = trained
    assert len(batch.rewards) == 16 and len(mixed_groups(batch.rewards, 4)) == 4
    assert metrics["grad_norm"] > 0 and metrics["sampling/logp_difference"] < 1e-4


def test_surplus_groups_are_dropped_and_full_batches_need_no_refill(fresh, chain, roomy):
    reward, _ = rewards_by_prompt(lambda n: n != 0)  # 3 of 4, then 4 of 4
    sizes = []

    def keep(batch):
        sizes.append(len(batch.rewards))
        return torch.arange(len(batch.rewards) // 4)

    run = start(*fresh, chain, DR_GRPO, change(roomy, max_resample=5), reward=reward, keep=keep)
    assert step(run)["generated"] == 32 and step(run)["generated"] == 16
    assert sizes == [16, 16]


@pytest.mark.parametrize("rounds", [1, 3])
def test_refills_end_and_the_step_trains_on_what_there_is(fresh, chain, roomy, rounds):
    reward, _ = rewards_by_prompt(lambda n: n == 0)
    recipe = change(roomy, max_resample=rounds)
    run = start(*fresh, chain, DR_GRPO, recipe, reward=reward)
    metrics = step(run)
    assert metrics["generated"] == 16 * (1 + rounds) and metrics["grad_norm"] > 0
    assert metrics["groups/kept"] == pytest.approx(1 / (4 * (1 + rounds)))
    before = weights(run.model)
    metrics = step(run)  # no group teaches: nothing to train on
    assert metrics["groups/kept"] == 0.0 and "grad_norm" not in metrics
    assert torch.equal(before, weights(run.model))


def test_without_refills_the_filter_makes_the_batch_smaller(fresh, chain, roomy):
    reward, _ = rewards_by_prompt(lambda n: n % 2 == 1)
    metrics = step(start(*fresh, chain, DR_GRPO, roomy, reward=reward, keep=keep_mixed))
    assert metrics["generated"] == 16 and metrics["groups/kept"] == 0.5


def test_joined_rounds_are_scored_as_they_were_sampled(fresh, chain, tiny):
    run = start(*fresh, chain, ZOO["dppo_topk"], tiny)  # with candidates, (N, T, K)
    parts = [collect(run) for _ in range(3)]
    assert len({part.rollout.prompt_ids.shape[1] for part in parts}) > 1  # or padding is untested
    whole = join(parts, run.tokenizer.pad_token_id)
    assert whole.rollout.texts(run.tokenizer) == [text for part in parts for text in part.texts]
    scored, _ = token_logprobs(run.model, whole.rollout, temperature=1.0)
    assert (scored - whole.rollout.logprobs).abs().max() < 1e-4
    second = whole.groups(torch.tensor([4, 6]))
    assert second.texts == parts[1].texts[:4] + parts[1].texts[8:12]
    assert second.problems == [parts[1].problems[0], parts[1].problems[2]]
    assert torch.equal(second.rewards, whole.rewards[[16, 17, 18, 19, 24, 25, 26, 27]])
    assert second.rollout.candidate_ids.shape[:2] == second.rollout.completion_ids.shape


# overlong answers


def gradient(fresh, chain, objective, recipe, **options):
    run = start(*fresh, chain, objective, recipe, **options)
    rollout, problems, rewards, *_ = collect(run)
    prepared = run.objective.prepare(make_batch(run, rollout, problems, rewards))
    run.optimizer.zero_grad(set_to_none=False)
    accumulate(run, rollout, prepared, torch.arange(len(rewards)))
    return run, rollout, prepared, torch.cat([p.grad.flatten() for p in run.model.parameters()])


@pytest.mark.parametrize("count_empty", [True, False])
def test_truncated_rows_stay_out_of_the_loss_and_in_the_baseline(fresh, chain, tiny, count_empty):
    objective = Objective(group_center(), clip(0.2), sequence_mean(count_empty=count_empty))
    recipe = change(tiny, max_completion_length=12, mask_truncated_completions=True)
    numbers = iter(range(1000))
    run, rollout, prepared, got = gradient(
        fresh, chain, objective, recipe, reward=lambda p, t: float(next(numbers) % 5)
    )
    done, rewards = rollout.finished, prepared.batch.rewards
    assert 0 < done.sum() < 16 and (rewards[~done] == 0).all()
    assert torch.equal(prepared.batch.mask.any(1), done)
    # L = -(1/rows) sum over finished rows of A_i mean_t log pi; A_i with the truncated zeros in
    groups = rewards.view(-1, 4)
    advantages = (groups - groups.mean(1, keepdim=True)).flatten()
    run.optimizer.zero_grad(set_to_none=False)
    logprobs, _ = token_logprobs(run.model, rollout, temperature=1.0)
    each = logprobs.sum(1) / rollout.lengths * advantages
    (-each[done].sum() / (16 if count_empty else int(done.sum()))).backward()
    want = torch.cat([p.grad.flatten() for p in run.model.parameters()])
    assert want.abs().max() > 0 and (got - want).abs().max() < 1e-5 * want.abs().max()


def test_without_the_switch_truncated_rows_are_punished(fresh, chain, tiny):
    short = change(tiny, max_completion_length=12)
    *_, plain = gradient(fresh, chain, DR_GRPO, short)
    *_, masked = gradient(fresh, chain, DR_GRPO, change(short, mask_truncated_completions=True))
    assert (plain - masked).abs().max() > 0.1 * plain.abs().max()


def test_a_rollout_of_truncated_answers_only_trains_nothing(fresh, chain, tiny):
    recipe = change(tiny, max_completion_length=2, mask_truncated_completions=True)
    run = start(*fresh, chain, DR_GRPO, recipe)
    before = weights(run.model)
    metrics = step(run)
    assert metrics["completions/clipped_ratio"] == 1.0 and "grad_norm" not in metrics
    assert torch.equal(before, weights(run.model))


def test_overlong_shaping_is_a_part_of_the_objective(fresh, chain, roomy):
    # Rewards all 1: only the penalty of the last 52 of 72 tokens differs inside a group.
    shaped = DR_GRPO.replace(shape=overlong(72, 52))
    _, rollout, prepared, _ = gradient(fresh, chain, shaped, roomy, reward=lambda p, t: 1.0)
    worth = 1.0 - ((rollout.lengths - 20) / 52).clamp(0, 1)
    want = worth.view(-1, 4) - worth.view(-1, 4).mean(1, keepdim=True)
    assert (prepared.advantages[:, 0] - want.flatten()).abs().max() < 1e-6 < want.abs().max()


# a sampler of lower precision


def coarse(model, *arguments, **options):
    """Rollouts, and their log-probabilities, from a bfloat16 copy of the weights."""
    return sample(copy.deepcopy(model).to(torch.bfloat16), *arguments, **options)


@pytest.mark.parametrize("minibatches", [1, 2])
def test_a_bfloat16_sampler_disagrees_with_the_trainer_and_the_log_says_so(
    fresh, chain, tiny, minibatches
):
    recipe = change(tiny, minibatches=minibatches, prompts=8)
    metrics = step(start(*fresh, chain, DR_GRPO, recipe, sampler=coarse))
    name = "sampling/importance_sampling_ratio/"
    assert 1e-3 < metrics["sampling/logp_difference"] < 0.5
    assert metrics[name + "min"] < 0.999 < 1.001 < metrics[name + "max"]
    assert metrics[name + "mean"] == pytest.approx(1.0, abs=0.01)
    exact = step(start(*fresh, chain, DR_GRPO, recipe))
    assert exact[name + "min"] > 0.9999 and exact[name + "max"] < 1.0001


@pytest.mark.parametrize(
    "gate",
    [engine_ratio("token", "truncate", high=1.002), engine_ratio("token", "mask", high=1.002),
     engine_ratio("sequence", "truncate", high=1.002), engine_ratio("sequence", "mask", high=1.0)],
    ids=repr,
)  # fmt: skip
def test_importance_sampling_weighs_tokens_by_trainer_over_sampler(fresh, chain, tiny, gate):
    objective = Objective(group_center(), ratio(), sequence_mean, gates=gate)
    recipe = change(tiny, num_iterations=2, prompts=8)  # the trainer scores the rollout itself
    run, rollout, prepared, got = gradient(fresh, chain, objective, recipe, sampler=coarse)
    logprobs, _ = token_logprobs(run.model, rollout, temperature=1.0)
    gap = (logprobs.detach() - rollout.logprobs) * rollout.completion_mask
    if gate.level == "sequence":
        gap = gap.sum(1, keepdim=True).expand_as(gap)
    omega = gap.exp()
    weight = omega.clamp(max=gate.high) if gate.kind == "truncate" else omega * (omega <= gate.high)
    assert (weight != omega).any() and (weight == omega).any()  # the bound binds, not everywhere
    run.optimizer.zero_grad(set_to_none=False)
    tokens = weight * prepared.advantages * logprobs * rollout.completion_mask
    (-(tokens.sum(1) / rollout.lengths).mean()).backward()
    want = torch.cat([p.grad.flatten() for p in run.model.parameters()])
    assert (got - want).abs().max() < 1e-4 * want.abs().max()
    *_, free = gradient(fresh, chain, objective.replace(gates=()), recipe, sampler=coarse)
    assert (free - want).abs().max() > 1e-4 * want.abs().max()


# all of them


def test_the_defaults_are_the_on_policy_run(fresh, chain, tiny):
    assert Recipe().on_policy and not Recipe(staleness=1).on_policy
    metrics = step(start(*fresh, chain, DR_GRPO, tiny))
    assert metrics["staleness"] == 0 and metrics["generated"] == 16
    assert metrics["ratio/min"] == metrics["ratio/max"] == 1.0


@pytest.mark.parametrize("name", ["staleness", "max_resample", "record_rollouts"])
def test_a_switch_below_zero_names_its_field(name):
    with pytest.raises(BadInput, match=f"^{name}: got -1, expected 0 or more"):
        Recipe(**{name: -1})


# what is recorded for the eye


@pytest.mark.parametrize("name", ["dr_grpo", "grpo", "ppo", "gspo", "dppo_topk"])
def test_rollouts_are_recorded_with_the_gradient_of_each_token(fresh, chain, roomy, name):
    recipe = change(roomy, steps=3, record_rollouts=2, eval_prompts=1)
    records = train(*fresh, chain, ZOO[name], recipe, progress=False)
    found = [r for r in records if r["record"] == "rollout"]
    assert [r["step"] for r in found] == [1] * 8 + [2] * 8 + [3] * 8
    for i in range(0, 24, 4):  # groups stay together
        assert len({r["prompt"] for r in found[i : i + 4]}) == 1
    for record in found:
        assert len(record["tokens"]) == len(record["gradient"]) and record["tokens"][-1] == "<eos>"
        if name == "dr_grpo":  # c A = A / (rows x max_completion_length)
            want = [-record["advantage"] / (16 * 72)] * len(record["tokens"])
            assert record["gradient"] == pytest.approx(want, rel=0.06)
    assert any(g for record in found for g in record["gradient"])


def test_recording_rollouts_does_not_change_the_run(shipped, chain, tiny):
    model, tokenizer = shipped
    objective = ANNEX["clip_cov"]  # draws random numbers, from the same generator as the sampler

    def end(count):
        own = copy.deepcopy(model)
        recipe = change(tiny, steps=2, record_rollouts=count, eval_prompts=1)
        train(own, tokenizer, chain, objective, recipe, progress=False)
        return weights(own)

    assert torch.equal(end(0), end(2))
