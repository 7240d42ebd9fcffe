"""Qwen's shape with its 151,936 tokens: sampling, scoring in slices, steps, resuming."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from chat_models import VOCABULARY, chat_tokenizer, random_model
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import Gemma2Config, Gemma2ForCausalLM

from rlnb.objective import ZOO
from rlnb.training import (
    TASKS,
    CoinFlip,
    Recipe,
    Sampling,
    encode_prompts,
    end_ids,
    sample,
    series,
    token_logprobs,
    train,
)
from rlnb.training.sampling.scoring import candidate_logprobs, likeliest
from rlnb.training.sampling.sliced_head import plain_head
from rlnb.training.step import accumulate, collect, make_batch, prepare, start, step

FEWER = 4001  # where the size of the vocabulary is not what is tested
SLICE = 7 * FEWER  # 7 places at a time
WHOLE = 2**40
HEAT = 0.8  # the temperature
SMALL = Recipe(
    steps=2, prompts=2, num_generations=4, max_completion_length=12, learning_rate=1e-2,
    eval_every=0, checkpoint_every=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    return chat_tokenizer()


@pytest.fixture(scope="module")
def task():
    return TASKS["arithmetic_text"]


def random_policy(kind, vocabulary):
    # A fifth of all tokens end an answer, so that random answers do end.
    return random_model(kind, ends=range(0, vocabulary, 5), vocabulary=vocabulary)


@pytest.fixture(scope="module", params=["qwen2", "qwen3"])
def large(request):
    """With the real vocabulary. Shared: do not train it."""
    return random_policy(request.param, VOCABULARY)


@pytest.fixture(scope="module")
def model():
    """With a smaller vocabulary. Shared: do not train it."""
    return random_policy("qwen3", FEWER)


def draw(model, tokenizer, task, n=8):
    prompts = [task.parse(p).prompt for p in ("1 + 2 * 3", "17 - 4")]
    return sample(
        model, encode_prompts(tokenizer, prompts, task=task), n, Sampling(HEAT, max_new_tokens=12),
        eos_id=end_ids(model, tokenizer), pad_id=tokenizer.pad_token_id,
        generator=torch.Generator().manual_seed(3),
    )  # fmt: skip


@pytest.fixture(scope="module")
def rollout(model, tokenizer, task):
    return draw(model, tokenizer, task)


def run_of(model, tokenizer, task, objective="dr_grpo", **changes):
    """(run, rollout, prepared, rows) just before the update."""
    recipe = dataclasses.replace(SMALL, **changes)
    run = start(copy.deepcopy(model), tokenizer, task, ZOO[objective], recipe, reward=CoinFlip(0))
    drawn, problems, rewards, *_ = collect(run)
    prepared = prepare(run.objective, make_batch(run, drawn, problems, rewards))
    return run, drawn, prepared, torch.arange(len(rewards))


def gradient(run, *parts, **changes):
    run.recipe = dataclasses.replace(run.recipe, **changes)
    run.optimizer.zero_grad(set_to_none=False)
    accumulate(run, *parts)
    return torch.cat([p.grad.flatten() for p in run.model.parameters()])


def close(got, expected, within=1e-6):
    return (got - expected).abs().max() <= within * expected.abs().max()


def test_a_chat_model_is_sampled_and_scored_alike(large, tokenizer, task):
    rollout = draw(large, tokenizer, task)
    assert rollout.finished.any() and rollout.lengths.max() > rollout.lengths.min()
    assert rollout.logprobs[rollout.completion_mask].std() > 0.5  # not a uniform distribution
    with torch.no_grad():
        for chunk in (7 * VOCABULARY, WHOLE):
            logprobs, entropies = token_logprobs(large, rollout, temperature=HEAT, chunk=chunk)
            assert (logprobs - rollout.logprobs).abs().max() < 1e-4
            assert (entropies - rollout.entropies).abs().max() < 1e-4
    # Qwen's head has 151,936 rows, its tokenizer 151,665 tokens; an untrained model writes them all
    assert (rollout.completion_ids >= len(tokenizer)).any()
    assert all(isinstance(text, str) for text in rollout.texts(tokenizer))


def test_any_of_several_end_tokens_ends_an_answer(rollout):
    place = rollout.lengths[:, None] - 1
    last, done = rollout.completion_ids.gather(1, place)[:, 0], rollout.finished
    assert torch.equal(last % 5 == 0, done) and len(last[done].unique()) > 1
    before = rollout.completion_mask.clone().scatter_(1, place, False)
    assert (rollout.completion_ids[before] % 5 != 0).all()


@pytest.mark.parametrize("dtype, within", [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_scoring_in_slices_has_the_value_and_gradient_of_the_whole(rollout, model, dtype, within):
    policy = copy.deepcopy(model).to(dtype)
    rows = torch.tensor([5, 0, 2])
    weights = torch.randn(rollout.completion_ids[rows].shape, dtype=dtype)
    found = {}
    for chunk in (SLICE, WHOLE):
        policy.zero_grad()
        logprobs, entropies = token_logprobs(
            policy, rollout, temperature=HEAT, rows=rows, entropy_gradient=True, chunk=chunk
        )
        (weights * (logprobs + 0.3 * entropies)).sum().backward()
        gradients = torch.cat([p.grad.flatten() for p in policy.parameters()])
        found[chunk] = logprobs.detach(), entropies.detach(), gradients
    assert found[SLICE][0].dtype == dtype
    for sliced, whole in zip(found[SLICE], found[WHOLE], strict=True):
        assert whole.abs().max() > 0 and close(sliced, whole, within)


def test_slices_take_their_products_in_the_type_of_autocast(rollout, model):
    found = {}
    for chunk, on in ((SLICE, True), (WHOLE, True), (WHOLE, False)):
        policy = copy.deepcopy(model)
        with torch.autocast("cpu", torch.bfloat16, enabled=on):
            logprobs, _ = token_logprobs(policy, rollout, temperature=HEAT, chunk=chunk)
        logprobs.mean().backward()
        assert policy.lm_head.weight.grad.dtype == torch.float32
        found[chunk, on] = logprobs.detach(), policy.lm_head.weight.grad
    sliced, whole, exact = found.values()
    for lower, same, full in zip(sliced, whole, exact, strict=True):
        assert (lower - same).norm() < 0.5 * (same - full).norm() < 0.05 * full.norm()


def test_candidates_are_scored_in_slices_too(model, rollout):
    rows = torch.arange(16)
    ids, whole = (
        likeliest(model, rollout, 3, temperature=HEAT, rows=rows, chunk=c) for c in (SLICE, WHOLE)
    )
    assert torch.equal(ids, whole)
    asked = dataclasses.replace(rollout, candidate_ids=ids)
    with torch.no_grad():
        sliced, whole = (
            candidate_logprobs(model, asked, temperature=HEAT, rows=rows, chunk=c)
            for c in (SLICE, WHOLE)
        )
    assert sliced.shape == (*rollout.completion_ids.shape, 3) and close(sliced, whole)


class Largest(TorchDispatchMode):
    """Elements of the largest result with a vocabulary axis, backward included; no weights."""

    def __init__(self, weights):
        super().__init__()
        self.weights, self.numel = {p.data_ptr() for p in weights}, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if torch.is_tensor(tensor) and tensor.data_ptr() not in self.weights:
                self.numel = max(self.numel, tensor.numel() * (FEWER in tensor.shape))
        return out


def test_slices_bound_the_largest_tensor(model, rollout):
    policy, tokens, seen = copy.deepcopy(model), int(rollout.lengths.sum()), {}
    policy.model.embed_tokens.weight.requires_grad_(False)  # its gradient is as large as itself
    assert plain_head(policy)  # asked now, with 8 tokens
    for chunk in (SLICE, WHOLE):
        with Largest(policy.parameters()) as largest:
            logprobs, _ = token_logprobs(policy, rollout, temperature=HEAT, chunk=chunk)
            logprobs.sum().backward()
        seen[chunk] = largest.numel
    assert seen[SLICE] == SLICE and seen[WHOLE] >= tokens * FEWER > 5 * SLICE


def test_a_model_that_does_more_to_its_logits_is_not_sliced(rollout):
    config = Gemma2Config(
        vocab_size=FEWER, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, head_dim=8, final_logit_softcapping=30.0,
    )  # fmt: skip
    gemma = Gemma2ForCausalLM(config).eval()
    assert not plain_head(gemma)
    with torch.no_grad():
        whole, sliced = (
            token_logprobs(gemma, rollout, temperature=HEAT, chunk=c)[0] for c in (WHOLE, SLICE)
        )
    assert torch.equal(whole, sliced)


def test_a_step_on_a_text_task_moves_the_weights(large, tokenizer, task):
    run = start(copy.deepcopy(large), tokenizer, task, ZOO["dr_grpo"], SMALL, reward=CoinFlip(0))
    metrics = step(run)
    assert metrics["reward_std"] > 0 and metrics["sampling/logp_difference"] < 1e-4
    moved = [
        (new - old).abs().max().item()
        for new, old in zip(run.model.parameters(), large.parameters(), strict=True)
    ]
    assert min(moved) > 1e-3  # AdamW's first step is the learning rate, 1e-2, wherever it can be


@pytest.mark.parametrize("chunk", [SLICE, WHOLE])
def test_micro_batches_have_the_gradient_of_the_whole(model, tokenizer, task, chunk, monkeypatch):
    monkeypatch.setitem(token_logprobs.__kwdefaults__, "chunk", chunk)
    parts = run_of(model, tokenizer, task)
    whole = gradient(*parts, micro_batch=100).clone()
    assert whole.abs().max() > 0 and close(gradient(*parts, micro_batch=3), whole)


def test_recomputed_layers_have_the_same_gradient_and_keep_less(model, tokenizer, task):
    parts = run_of(model, tokenizer, task)
    found = []
    for on in (False, True):
        kept = []

        def keep(tensor, kept=kept):
            kept.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            found.append((gradient(*parts, gradient_checkpointing=on).clone(), len(kept)))
    (plain, many), (recomputed, few) = found
    assert plain.abs().max() > 0 and close(recomputed, plain) and few < many / 2
    assert "forward" not in vars(parts[0].model.model.layers[0])


def test_a_resumed_run_repeats_the_uninterrupted_one(tokenizer, task, tmp_path):
    def go(out, steps, **options):
        model = random_policy("qwen2", FEWER)
        recipe = dataclasses.replace(SMALL, steps=steps, sampler_dtype="bfloat16")
        records = train(
            model, tokenizer, task, ZOO["dr_grpo"], recipe, out=tmp_path / out,
            reward=CoinFlip(0), progress=False, **options,
        )  # fmt: skip
        return model, series(records, "reward"), series(records, "sampling/logp_difference")

    whole, *numbers = go("whole", 3)
    go("parts", 2)
    resumed, *again = go("parts", 3, resume=True)
    assert numbers == again and numbers[1][1] > 1e-4
    state = resumed.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in whole.state_dict().items())
