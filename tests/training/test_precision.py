"""A sampler in bfloat16 beside float32 master weights, autocast, TF32."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import warnings

import pytest
import torch

from rlnb.objective import ZOO, kl_in_reward
from rlnb.training import BadInput, Recipe, build_model, read, rollouts, token_logprobs
from rlnb.training.__main__ import main
from rlnb.training.checkpoint import restore_optimizer
from rlnb.training.models.precision import (
    compiled_layers,
    recomputed_layers,
    refresh,
    sampler_copy,
    tensor_float_32,
)
from rlnb.training.step import accumulate, collect, make_batch, prepare, start, step


def run_of(fresh, chain, tiny, objective="dr_grpo", **changes):
    """(run, rollout, prepared, rows) just before the update."""
    run = start(*fresh, chain, ZOO[objective], dataclasses.replace(tiny, **changes))
    rollout, problems, rewards, *_ = collect(run)
    prepared = prepare(run.objective, make_batch(run, rollout, problems, rewards))
    return run, rollout, prepared, torch.arange(len(rewards))


def test_the_copy_has_the_master_weights_rounded(fresh):
    model, _ = fresh
    engine = sampler_copy(model, torch.bfloat16)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert engine.lm_head.weight is engine.model.embed_tokens.weight  # still one tensor
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01)
    refresh(engine, model)
    for rounded, master in zip(engine.parameters(), model.parameters(), strict=True):
        assert torch.equal(rounded, master.to(torch.bfloat16)) and not rounded.requires_grad


def test_the_copy_keeps_its_rotary_frequencies(fresh):
    # In bfloat16 position 300 would be off by up to 0.6: Module.to casts buffers as well.
    frequencies = sampler_copy(fresh[0], torch.bfloat16).model.rotary_emb.inv_freq
    assert torch.equal(frequencies, fresh[0].model.rotary_emb.inv_freq)
    assert not torch.equal(frequencies, frequencies.to(torch.bfloat16).float())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_lower_sampler_is_told_apart_from_the_trainer(fresh, chain, tiny, dtype):
    run, rollout, prepared, _ = run_of(fresh, chain, tiny, sampler_dtype=dtype, num_iterations=2)
    batch, mask = prepared.batch, rollout.completion_mask
    with torch.no_grad():
        trainer, _ = token_logprobs(run.model, rollout, temperature=1.0)
    assert (batch.old_logprobs - trainer)[mask].abs().max() < 1e-6
    assert torch.equal(batch.sampling_logprobs, rollout.logprobs)
    # rounded to 8 or 11 bits; two ways of computing in float32 differ by 1e-5
    assert 1e-3 < (rollout.logprobs - trainer)[mask].abs().max() < 0.5


def test_on_policy_the_ratio_is_one_whatever_sampled(fresh, chain, tiny):
    parts = run_of(fresh, chain, tiny, "grpo", sampler_dtype="bfloat16")
    sums = accumulate(*parts)
    assert sums["ratio/max"] == sums["ratio/min"] == 1.0  # one forward pass, not two that agree
    assert sums["sampling/logp_difference"] > 1e-4


def counted(monkeypatch, module):
    """Calls of its token_logprobs."""
    calls, plain = [], module.token_logprobs
    monkeypatch.setattr(module, "token_logprobs", lambda *a, **k: calls.append(1) or plain(*a, **k))
    return calls


def test_on_policy_nothing_is_scored_before_the_update(fresh, chain, tiny, monkeypatch):
    calls = counted(monkeypatch, rollouts)
    run, rollout, prepared, rows = run_of(fresh, chain, tiny, sampler_dtype="bfloat16")
    assert not calls and prepared.batch.old_logprobs is None
    accumulate(run, rollout, prepared, rows)
    found = [p.grad.clone() for p in run.model.parameters()]
    run.optimizer.zero_grad(set_to_none=False)
    with torch.no_grad():  # as it was: the same weights asked twice
        old, _ = token_logprobs(run.model, rollout, temperature=1.0)
    scored = prepared.replace(logprobs=old, old_logprobs=old)
    accumulate(run, rollout, scored, rows)
    for one, parameter in zip(found, run.model.parameters(), strict=True):
        assert torch.allclose(one, parameter.grad, rtol=1e-4, atol=1e-7)
    assert sum(g.abs().sum() for g in found) > 0


@pytest.mark.parametrize(
    ("changes", "shape"),
    [({"num_iterations": 2}, ()), ({"minibatches": 2}, ()), ({}, (kl_in_reward(0.1),)),
     ({}, (lambda batch, rewards: rewards + batch.logprobs,))],
    ids=["iterations", "minibatches", "KL in the reward", "anything"],
)  # fmt: skip
def test_where_old_logprobs_matter_the_trainers_are_scored(
    fresh, chain, tiny, monkeypatch, changes, shape
):
    calls = counted(monkeypatch, rollouts)
    recipe = dataclasses.replace(tiny, sampler_dtype="bfloat16", **changes)
    run = start(*fresh, chain, ZOO["grpo"].replace(terms=(), shape=shape), recipe)
    rollout, problems, rewards, *_ = collect(run)
    batch = make_batch(run, rollout, problems, rewards)
    with torch.no_grad():
        trainer, _ = token_logprobs(run.model, rollout, temperature=1.0)
    assert calls and (batch.old_logprobs - trainer).abs().max() < 1e-6


def test_the_verifier_reads_each_answer_once(fresh, chain, tiny, monkeypatch):
    seen, verify = [], type(chain).verify
    monkeypatch.setattr(
        type(chain), "verify", lambda *a: seen.append(a[2]) or verify(*a), raising=True
    )
    run = start(*fresh, chain, ZOO["dr_grpo"], tiny)
    drawn = collect(run)
    assert seen == drawn.texts and torch.equal(
        drawn.rewards, drawn.verified * drawn.rollout.finished
    )
    seen.clear()
    drawn = collect(start(*fresh, chain, ZOO["dr_grpo"], tiny, reward=lambda p, text: len(text)))
    assert seen == drawn.texts  # another reward is asked beside it
    assert drawn.rewards.max() > 1


def test_all_rows_become_text_as_each_of_them_would(fresh, chain, tiny, monkeypatch):
    run = start(*fresh, chain, ZOO["dr_grpo"], tiny)
    rollout = collect(run).rollout
    pairs = zip(rollout.completion_ids.tolist(), rollout.lengths.tolist(), strict=True)
    one_by_one = [run.tokenizer.decode(r[:n], skip_special_tokens=True) for r, n in pairs]
    assert rollout.texts(run.tokenizer) == one_by_one
    # a tokenizer that does something to its texts afterwards
    monkeypatch.setattr(run.tokenizer, "clean_up_tokenization_spaces", True)
    monkeypatch.setattr(run.tokenizer, "clean_up_tokenization", lambda text: text + "!")
    assert rollout.texts(run.tokenizer) == [text + "!" for text in one_by_one]


@pytest.mark.parametrize("fused", [True, False])
def test_a_fused_optimizer_finds_its_step_counts_beside_its_moments(fused):
    weight = torch.nn.Parameter(torch.zeros(2, device="meta"))
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(2))], fused=fused)
    optimizer.state.clear()
    tensors = {"w::step": torch.tensor(3.0), "w::exp_avg": torch.zeros(2)}
    restore_optimizer(optimizer, {weight: "w"}, tensors)
    state = optimizer.state[weight]
    assert state["exp_avg"].device.type == "meta"
    assert state["step"].device.type == ("meta" if fused else "cpu")


def test_a_fused_step_is_the_plain_one(fresh, chain, tiny):
    model, tokenizer = fresh
    weights = []
    for fused in (False, True):
        run = start(copy.deepcopy(model), tokenizer, chain, ZOO["dr_grpo"], tiny)
        assert not run.optimizer.defaults["fused"]  # the recorded runs of a CPU stay as they are
        for group in run.optimizer.param_groups:
            group["fused"] = fused
        step(run)
        weights.append(torch.cat([p.detach().flatten() for p in run.model.parameters()]))
    assert (weights[0] - weights[1]).abs().max() < 1e-7


def test_each_rollout_is_drawn_from_the_weights_as_they_are(fresh, chain, tiny):
    run = start(*fresh, chain, ZOO["dr_grpo"], dataclasses.replace(tiny, sampler_dtype="bfloat16"))
    for _ in range(2):
        before = [p.detach().clone() for p in run.model.parameters()]
        step(run)
        drawn_from = run.engine.parameters()
        assert all(torch.equal(e, b.bfloat16()) for e, b in zip(drawn_from, before, strict=True))
    assert {p.dtype for p in run.model.parameters()} == {torch.float32}
    moments = [value for s in run.optimizer.state.values() for value in s.values()]
    assert {m.dtype for m in moments} == {torch.float32}


def test_a_stale_sampler_may_be_of_lower_precision_too(fresh, chain, tiny):
    recipe = dataclasses.replace(tiny, sampler_dtype="bfloat16", staleness=1)
    run = start(*fresh, chain, ZOO["dr_grpo"], recipe)
    first = [p.detach().clone() for p in run.model.parameters()]
    step(run)
    step(run)  # drawn from the weights of one update ago
    drawn_from = run.engine.parameters()
    assert all(torch.equal(e, b.bfloat16()) for e, b in zip(drawn_from, first, strict=True))


def test_autocast_lowers_products_only(fresh, chain, tiny):
    # two updates per rollout, so that the old log-probabilities are scored on their own
    run, rollout, prepared, rows = run_of(
        fresh, chain, tiny, "grpo", autocast="bfloat16", num_iterations=2
    )
    exact = dataclasses.replace(run.recipe, autocast="off")
    sums = accumulate(run, rollout, prepared, rows)
    lower = torch.cat([p.grad.flatten() for p in run.model.parameters()]).clone()
    # old and new log-probabilities are both taken inside, or these would differ by 1e-2
    assert abs(sums["ratio/max"] - 1) < 1e-5 and abs(sums["ratio/min"] - 1) < 1e-5
    assert lower.dtype == torch.float32
    run.optimizer.zero_grad(set_to_none=False)
    run.recipe = exact
    accumulate(run, rollout, prepared, rows)
    full = torch.cat([p.grad.flatten() for p in run.model.parameters()])
    gap = (lower - full).norm() / full.norm()
    assert 1e-4 < gap < 0.1


def test_tf32_is_on_only_inside(fresh, chain, tiny):
    before = torch.get_float32_matmul_precision()
    with tensor_float_32(False):
        assert torch.get_float32_matmul_precision() == before == "highest"
    seen = []

    def watching(model, *args, **options):
        seen.append(torch.get_float32_matmul_precision())
        return sampler(model, *args, **options)

    for on in (False, True):
        run = start(*fresh, chain, ZOO["dr_grpo"], dataclasses.replace(tiny, tf32=on))
        sampler, run.sampler = run.sampler, watching
        step(run)
    assert seen == ["highest", "high"] and torch.get_float32_matmul_precision() == before


def test_layers_that_cannot_be_recomputed_are_refused():
    with pytest.raises(BadInput, match="^gradient_checkpointing: Linear has no layers"):
        with recomputed_layers(torch.nn.Linear(2, 2)):
            pass
    with recomputed_layers(torch.nn.Linear(2, 2), False):
        pass


def gradients(model, rollout, *, on, backend="aot_eager", kind=torch.float32, again=False):
    """Log-probabilities and the gradient of their sum, layers compiled or not."""
    model.zero_grad()
    with (
        torch.autocast("cpu", torch.bfloat16, enabled=kind == torch.bfloat16),
        compiled_layers(model, on, backend),
        recomputed_layers(model, again),
    ):
        logprobs, _ = token_logprobs(model, rollout, temperature=1.0)
    logprobs.sum().backward()
    return logprobs.detach(), torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize("again", [False, True], ids=["kept", "recomputed"])
def test_compiled_layers_compute_what_the_plain_ones_do(fresh, chain, tiny, again):
    run = start(*fresh, chain, ZOO["dr_grpo"], tiny)
    for prompts in (4, 3):  # other numbers of rows and places: the same code
        run.recipe = dataclasses.replace(tiny, prompts=prompts)
        rollout = collect(run).rollout
        want = gradients(run.model, rollout, on=False, again=again)
        got = gradients(run.model, rollout, on=True, again=again)
        assert (got[0] - want[0]).abs().max() < 1e-5
        assert (got[1] - want[1]).norm() < 1e-5 * want[1].norm()
    assert all("forward" not in vars(layer) for layer in run.model.model.layers)


def test_fused_kernels_are_as_exact_as_the_plain_ones(fresh, chain, tiny):
    """As torch.compile makes them here; the first time it takes most of a minute.

    Under autocast, looked at once by hand, both round apart, and each is as near to float32.
    """
    run = start(*fresh, chain, ZOO["dr_grpo"], tiny)
    rollout = collect(run).rollout
    exact = gradients(run.model, rollout, on=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fused = gradients(run.model, rollout, on=True, backend="inductor")
    if any("nothing can be compiled" in str(w.message) for w in caught):
        pytest.skip("no compiler here")
    assert (fused[0] - exact[0]).abs().max() < 1e-5
    assert 0 < (fused[1] - exact[1]).norm() < 1e-5 * exact[1].norm()  # 0: nothing was fused


def test_all_layers_share_one_compilation(fresh, chain, tiny):
    seen = []

    def count(graph, inputs):
        seen.append(len(inputs))
        return graph.forward

    run = start(*fresh, chain, ZOO["dr_grpo"], tiny)
    rollout = collect(run).rollout
    want = gradients(run.model, rollout, on=False)
    got = gradients(run.model, rollout, on=True, backend=count)
    assert len(seen) == 2  # one line of arithmetic to see whether it works; three layers
    assert torch.allclose(got[1], want[1], atol=1e-4)


def test_where_nothing_can_be_compiled_one_sentence_says_so(fresh, chain, tiny):
    def broken(graph, inputs):
        raise RuntimeError("no working compiler found")

    run = start(*fresh, chain, ZOO["dr_grpo"], tiny)
    rollout = collect(run).rollout
    want = gradients(run.model, rollout, on=False)
    with pytest.warns(UserWarning, match="torch_compile: nothing can be compiled here") as caught:
        for _ in range(2):
            got = gradients(run.model, rollout, on=True, backend=broken)
    assert len(caught) == 1 and torch.equal(got[1], want[1])


def test_the_switch_reaches_every_pass_that_a_ratio_compares(fresh, chain, tiny, monkeypatch):
    entered = []

    @contextlib.contextmanager
    def note(module, on, backend="inductor"):
        entered.append((module, on))
        yield

    monkeypatch.setattr("rlnb.training.run.compiled_layers", note)
    recipe = dataclasses.replace(tiny, torch_compile=True, staleness=1)
    run = start(*fresh, chain, ZOO["grpo"], recipe)
    with run.precision():
        pass
    assert entered == [(run.modules, True), (run.reference, True), (run.behaviour, True)]
    entered.clear()
    step(start(*fresh, chain, ZOO["dr_grpo"], tiny))
    assert {on for _, on in entered} == {False} and len(entered) == 1


def test_an_error_inside_leaves_the_layers_as_they_were():
    model = build_model(0)
    with pytest.raises(KeyError), recomputed_layers(model):
        assert "forward" in vars(model.model.layers[2])
        raise KeyError
    assert all("forward" not in vars(layer) for layer in model.model.layers)


@pytest.mark.parametrize("field", ["sampler_dtype", "autocast"])
def test_an_unknown_type_names_its_field(field):
    with pytest.raises(BadInput, match=f"^{field}: got 'float8', expected one of (same|off), bfl"):
        Recipe(**{field: "float8"})


def test_the_switches_of_precision_are_flags(model_folder, tmp_path):
    line = ["grpo", "--model", str(model_folder), "--out", str(tmp_path / "run"), "--steps", "1",
            "--prompts", "2", "--num-generations", "2", "--eval-every", "0", "--device", "cpu",
            "--sampler-dtype", "bfloat16", "--autocast", "bfloat16", "--gradient-checkpointing",
            "--tf32"]  # fmt: skip
    assert main(line) == 0
    recipe = read(tmp_path / "run")[0]["recipe"]
    assert (recipe["sampler_dtype"], recipe["autocast"]) == ("bfloat16", "bfloat16")
    assert recipe["gradient_checkpointing"] and recipe["tf32"]
