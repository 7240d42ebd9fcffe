from __future__ import annotations

import dataclasses
import random

import pytest
import torch

from rlnb.objective import ZOO
from rlnb.training import (
    BadInput,
    PromptPool,
    Sampling,
    build_model,
    encode_prompts,
    sample,
    token_logprobs,
)
from rlnb.training.sampling import scoring
from rlnb.training.sampling.sampler import left_pad, truncate
from rlnb.training.step import collect, start


def draw(shipped, chain, n=12, size=6, seed=0, prompts=None, model=None, **sampling):
    own, tokenizer = shipped
    rng = random.Random(seed)
    prompts = prompts or [chain.problem(rng, "test").prompt for _ in range(n)]
    return sample(
        model or own, encode_prompts(tokenizer, prompts), size,
        Sampling(**{"max_new_tokens": 72, **sampling}), eos_id=tokenizer.eos_token_id,
        pad_id=tokenizer.pad_token_id, generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip


@torch.no_grad()
def alone(model, rollout, row, temperature=1.0):
    """Log-probabilities and entropies of one row, by itself: no padding, no mask, no cache."""
    prompt = rollout.prompt_ids[row][rollout.prompt_mask[row].bool()]
    n = int(rollout.lengths[row])
    ids = torch.cat([prompt, rollout.completion_ids[row, :n]])
    every = (model(ids[None]).logits[0, len(prompt) - 1 : -1] / temperature).log_softmax(-1)
    chosen = every.gather(1, ids[len(prompt) :, None])[:, 0]
    return chosen, -(every.exp() * every).sum(-1)


@pytest.mark.parametrize("temperature", [1.0, 0.7, 1.5])
def test_sampled_logprobs_equal_teacher_forcing(shipped, chain, temperature):
    rollout = draw(shipped, chain, temperature=temperature)
    assert len(set(rollout.prompt_mask.sum(1).tolist())) > 3  # left padding is exercised
    assert rollout.lengths.min() < 5 and rollout.lengths.max() > 25  # rows were dropped
    for row in range(len(rollout.completion_ids)):
        logprobs, entropies = alone(shipped[0], rollout, row, temperature)
        n = len(logprobs)
        assert (logprobs - rollout.logprobs[row, :n]).abs().max() < 1e-4
        assert (entropies - rollout.entropies[row, :n]).abs().max() < 1e-4
        assert (rollout.logprobs[row, n:] == 0).all()


def test_batched_teacher_forcing_equals_each_row_by_itself(shipped, chain):
    model, _ = shipped
    rollout = draw(shipped, chain)
    rows = torch.tensor([5, 0, 41, 17])
    with torch.no_grad():
        logprobs, entropies = token_logprobs(model, rollout, temperature=1.0, rows=rows)
    assert logprobs.shape == (4, rollout.completion_ids.shape[1])
    for i, row in enumerate(rows.tolist()):
        by_itself, entropy = alone(model, rollout, row)
        n = len(by_itself)
        assert (by_itself - logprobs[i, :n]).abs().max() < 1e-4
        assert (entropy - entropies[i, :n]).abs().max() < 1e-4
        assert (logprobs[i, n:] == 0).all()


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("chunk", [scoring.CHUNK, 1])
def test_one_bias_for_all_layers_is_bit_for_bit_the_mask(
    shipped, chain, monkeypatch, autocast, chunk
):
    model, _ = shipped
    rollout = draw(shipped, chain)
    assert not rollout.prompt_mask.bool().all()  # some prompts have padding in front

    def scored():
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            found = token_logprobs(model, rollout, temperature=1.0, chunk=chunk)
        found[0].sum().backward()
        return *found, torch.cat([p.grad.flatten() for p in model.parameters()])

    with_bias = scored()
    monkeypatch.setattr(scoring, "takes_bias", lambda model: False)
    with_mask = scored()
    model.zero_grad()
    assert all(torch.equal(a, b) for a, b in zip(with_bias, with_mask, strict=True))
    assert with_bias[2].abs().max() > 0


def test_dropping_rows_changes_nothing_but_the_time(shipped, chain):
    # Greedy, so that both runs choose the same tokens whatever random numbers a row meets.
    model, tokenizer = shipped
    prompts = encode_prompts(tokenizer, ["4+3-8=?", "1+1+1+1+1+1+1+1+1=?", "9*9-9+9=?"])
    runs = [
        sample(model, prompts, 2, Sampling(temperature=0.0), eos_id=2, pad_id=0, drop_below=bound)
        for bound in (0.0, 2.0)
    ]
    assert torch.equal(runs[0].completion_ids, runs[1].completion_ids)


def test_greedy_is_the_argmax_of_teacher_forcing(shipped, chain):
    model, _ = shipped
    rollout = draw(shipped, chain, size=1, temperature=0.0)
    for row in range(len(rollout.completion_ids)):
        n = int(rollout.lengths[row])
        prompt = rollout.prompt_ids[row][rollout.prompt_mask[row].bool()]
        ids = torch.cat([prompt, rollout.completion_ids[row, :n]])
        with torch.no_grad():
            best = model(ids[None]).logits[0, len(prompt) - 1 : -1].argmax(-1)
        assert torch.equal(best, rollout.completion_ids[row, :n])


def test_first_tokens_appear_as_often_as_the_model_says(shipped):
    model, tokenizer = shipped
    n, prompt = 6000, encode_prompts(tokenizer, ["4+3-8+6=?"])
    rollout = sample(
        model, prompt, n, Sampling(temperature=1.5, max_new_tokens=1), eos_id=2, pad_id=0,
        generator=torch.Generator().manual_seed(1),
    )  # fmt: skip
    with torch.no_grad():
        p = (model(torch.tensor(prompt)).logits[0, -1] / 1.5).softmax(-1)
    seen = torch.bincount(rollout.completion_ids[:, 0], minlength=32) / n
    assert ((seen - p).abs() < 5 * (p * (1 - p) / n).sqrt() + 1e-3).all()
    assert p.max() < 0.95  # or the test would say nothing


def test_rows_of_a_group_answer_the_same_prompt(shipped, chain):
    rollout = draw(shipped, chain, n=3, size=4)
    for k in range(3):
        assert (rollout.prompt_ids[4 * k : 4 * k + 4] == rollout.prompt_ids[4 * k]).all()
    assert len({tuple(row) for row in rollout.completion_ids[:4].tolist()}) > 1


def test_finished_rows_end_with_the_end_token_and_then_padding(shipped, chain):
    rollout = draw(shipped, chain)
    assert rollout.finished.any()
    for ids, n, done in zip(
        rollout.completion_ids, rollout.lengths.tolist(), rollout.finished, strict=True
    ):
        assert (2 in ids[:n].tolist()) == bool(done)
        assert (ids[n:] == 0).all() and (ids[: n - 1] != 2).all()


def test_a_completion_that_is_cut_off_is_not_finished(shipped, chain):
    rollout = draw(shipped, chain, max_new_tokens=4)
    assert not rollout.finished.all() and rollout.lengths.max() == 4
    assert (rollout.lengths[~rollout.finished] == 4).all()


def test_the_end_token_may_equal_the_padding(shipped, chain):
    # Many tokenizers have no padding token and use the end token; lengths must not be guessed.
    model, tokenizer = shipped
    prompts = encode_prompts(tokenizer, ["4+3-8=?", "1+2+3+4+5=?"])
    rollout = sample(
        model, prompts, 4, Sampling(), eos_id=2, pad_id=2,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    for row in range(8):
        logprobs, _ = alone(model, rollout, row)
        assert (logprobs - rollout.logprobs[row, : len(logprobs)]).abs().max() < 1e-4


def test_the_same_seed_gives_the_same_rows(shipped, chain):
    first, second = draw(shipped, chain, seed=3), draw(shipped, chain, seed=3)
    assert torch.equal(first.completion_ids, second.completion_ids)
    other = draw(shipped, chain, seed=4)
    assert first.completion_ids.shape != other.completion_ids.shape or not torch.equal(
        first.completion_ids, other.completion_ids
    )


def test_the_recipe_s_seed_draws_the_answers_too(fresh, chain, tiny):
    # One prompt, so that the seed has nothing to choose but the answers.
    recipe = dataclasses.replace(tiny, prompts=1, num_generations=16)

    def answers(seed):
        pool = PromptPool([chain.parse("4+3-8+6=?")])
        run = start(
            *fresh, chain, ZOO["dr_grpo"], dataclasses.replace(recipe, seed=seed), pool=pool
        )
        return collect(run).texts

    assert answers(0) == answers(0) != answers(1)


def test_top_k_and_top_p_keep_what_they_say():
    logits = torch.tensor([[0.5, 0.25, 0.15, 0.1]]).log()
    assert truncate(logits, 2, 1.0).isfinite().tolist() == [[True, True, False, False]]
    assert truncate(logits, 0, 0.7).isfinite().tolist() == [[True, True, False, False]]
    assert truncate(logits, 0, 0.8).isfinite().tolist() == [[True, True, True, False]]
    assert truncate(logits, 0, 1e-9).isfinite().tolist() == [[True, False, False, False]]
    assert truncate(logits, 0, 1.0) is logits


def test_truncated_sampling_stays_inside_the_nucleus(shipped, chain):
    rollout = draw(shipped, chain, temperature=1.5, top_k=1)
    greedy = draw(shipped, chain, temperature=0.0)
    assert torch.equal(rollout.completion_ids, greedy.completion_ids)
    assert rollout.entropies.abs().max() == 0


def test_scoring_at_another_temperature_is_refused(shipped, chain):
    rollout = draw(shipped, chain, n=1, size=1, temperature=0.7)
    with pytest.raises(BadInput, match=r"sampled at 0\.7, scoring asked for 1\.0"):
        token_logprobs(shipped[0], rollout, temperature=1.0)


@pytest.mark.parametrize("truncation", [{"top_k": 5}, {"top_p": 0.9}])
def test_scoring_a_truncated_rollout_is_refused(shipped, chain, truncation):
    rollout = draw(shipped, chain, n=1, size=1, **truncation)
    with pytest.raises(BadInput, match="sample with top_k=0 and top_p=1 to train"):
        token_logprobs(shipped[0], rollout, temperature=1.0)


@pytest.mark.parametrize(
    "field, value",
    [("temperature", -1.0), ("temperature", float("nan")), ("top_k", -1), ("top_p", 0.0),
     ("top_p", 1.1), ("max_new_tokens", 0)],
)  # fmt: skip
def test_an_impossible_sampling_names_its_field(field, value):
    with pytest.raises(BadInput, match=f"^{field}: got"):
        Sampling(**{field: value})


def test_left_padding_puts_the_prompt_at_the_end():
    ids, mask = left_pad([[5], [6, 7, 8]], 0, "cpu")
    assert ids.tolist() == [[0, 0, 5], [6, 7, 8]] and mask.tolist() == [[0, 0, 1], [1, 1, 1]]
    with pytest.raises(BadInput, match="at least one token"):
        left_pad([[5], []], 0, "cpu")


def test_a_sharp_random_model_agrees_too(shipped, chain):
    # Larger weights, so that a wrong position or a leaking pad would show.
    model = build_model(3).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    rollout = draw(shipped, chain, model=model, n=6, size=3, max_new_tokens=40)
    for row in range(18):
        logprobs, _ = alone(model, rollout, row)
        assert (logprobs - rollout.logprobs[row, : len(logprobs)]).abs().max() < 1e-4
