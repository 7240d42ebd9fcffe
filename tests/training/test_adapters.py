"""LoRA: only the factors train, the base is the reference, and a killed run goes on bit by bit."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from rlnb.objective import ZOO
from rlnb.training import BadInput, Recipe, build_model, load, read, token_logprobs, train
from rlnb.training.__main__ import main
from rlnb.training.checkpoint import checkpoints
from rlnb.training.models import adapters
from rlnb.training.models.adapters import merged, without_adapters
from rlnb.training.models.loading import save
from rlnb.training.step import collect, make_batch, start, step


@pytest.fixture
def peft():
    return pytest.importorskip("peft", reason="peft is not installed: LoRA is not tested")


@pytest.fixture
def lora(tiny):
    return replace(tiny, lora_r=4, learning_rate=1e-2)


def weights_of(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_only_factors_have_gradients_and_move(peft, fresh, chain, lora):
    before = weights_of(fresh[0])
    run = start(*fresh, chain, ZOO["dr_grpo"], replace(lora, max_completion_length=72))
    step(run)
    trained = {n for n, p in run.model.named_parameters() if p.requires_grad}
    assert trained and all(".lora_" in name for name in trained)
    layers = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    assert len(trained) == 2 * 3 * len(layers)  # A and B in each of three layers; not the head
    parameters = dict(run.model.named_parameters())
    assert all(p.grad is None for n, p in parameters.items() if n not in trained)
    assert all(parameters[n].grad.abs().max() > 0 for n in trained if ".lora_B" in n)
    base = adapters.base_weights(run.model)
    assert base.keys() == before.keys()
    assert all(torch.equal(base[name], value) for name, value in before.items())


def test_factors_start_at_the_base_and_the_process_random_state_stays(peft, fresh):
    ids, state = torch.tensor([[1, 5, 6, 7]]), torch.get_rng_state()
    want = fresh[0](ids).logits
    adapters.add_adapters(fresh[0], 4, 32.0, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(fresh[0](ids).logits, want)
    other = copy.deepcopy(fresh[0])
    factor = "model.layers.0.mlp.up_proj.lora_A.default.weight"
    assert fresh[0].get_parameter(factor).abs().max() > 0
    with pytest.raises(BadInput, match="has adapters already"):
        adapters.add_adapters(other, 4, 32.0)


def test_the_reference_is_the_base(peft, fresh, chain, lora):
    plain = copy.deepcopy(fresh[0])
    run = start(*fresh, chain, ZOO["grpo"], replace(lora, micro_batch=3))
    assert run.reference is None
    step(run)
    rollout, problems, rewards, *_ = collect(run)
    batch = make_batch(run, rollout, problems, rewards)
    with torch.no_grad():
        want, _ = token_logprobs(plain, rollout, temperature=1.0)
        now, _ = token_logprobs(run.model, rollout, temperature=1.0)
    # in micro-batches, and the factors have moved away from it
    assert (batch.ref_logprobs - want).abs().max() < 1e-5 < (now - want).abs().max()
    assert all(p.requires_grad for n, p in run.model.named_parameters() if ".lora_" in n)


def test_a_resumed_run_is_the_same_run_bit_by_bit(peft, fresh, chain, lora, tmp_path):
    recipe = replace(lora, steps=4, checkpoint_every=2, staleness=1)
    objective = ZOO["grpo"]
    models = [copy.deepcopy(fresh[0]) for _ in range(3)]
    whole = train(models[0], fresh[1], chain, objective, recipe, out=tmp_path / "a", progress=False)
    half = replace(recipe, steps=2)
    train(models[1], fresh[1], chain, objective, half, out=tmp_path / "b", progress=False)
    resumed = train(
        models[2], fresh[1], chain, objective, recipe, out=tmp_path / "b", resume=True,
        progress=False,
    )  # fmt: skip
    want, got = models[0].state_dict(), models[2].state_dict()
    assert all(torch.equal(got[name], value) for name, value in want.items())
    rewards = [[r["reward"] for r in rows if r["record"] == "step"] for rows in (whole, resumed)]
    assert rewards[0] == rewards[1] and len(rewards[0]) == 4
    files = {path.name for path in checkpoints(tmp_path / "a")[-1].iterdir()}
    assert adapters.ADAPTER in files and "model.safetensors" not in files
    past = load_file(checkpoints(tmp_path / "a")[-1] / "past.safetensors")
    assert past and all(".lora_" in name for name in past)


def test_a_finished_run_is_known_and_a_changed_base_refused(peft, fresh, chain, lora, tmp_path):
    recipe, out = replace(lora, steps=2, eval_every=0), tmp_path / "run"
    models = [copy.deepcopy(fresh[0]) for _ in range(3)]
    line = (fresh[1], chain, ZOO["dr_grpo"], recipe)
    train(models[0], *line, out=out, progress=False)
    before = (out / "metrics.jsonl").read_bytes()
    train(models[1], *line, out=out, resume=True, progress=False)  # nothing to do
    assert (out / "metrics.jsonl").read_bytes() == before
    with torch.no_grad():
        models[2].model.layers[0].mlp.up_proj.weight[0, 0] += 1
    with pytest.raises(BadInput, match="started from another model, which its adapters belong to"):
        train(models[2], *line, out=out, resume=True, progress=False)


def test_adapters_of_another_rank_are_refused(peft, fresh, chain, lora, tmp_path):
    out = tmp_path / "run"
    train(
        copy.deepcopy(fresh[0]), fresh[1], chain, ZOO["dr_grpo"],
        replace(lora, steps=1, eval_every=0), out=out, progress=False,
    )  # fmt: skip
    with pytest.raises(BadInput, match="lora_r=4, this one asks for 8"):
        train(
            *fresh, chain, ZOO["dr_grpo"], replace(lora, steps=1, eval_every=0, lora_r=8),
            out=out, resume=True, progress=False,
        )  # fmt: skip
    other = build_model(0, "small")
    adapters.add_adapters(other, 4, 32.0)
    with pytest.raises(RuntimeError, match="other names or shapes"):
        adapters.put_back_adapters(other, out / "model" / adapters.ADAPTER)


def test_the_final_model_is_an_adapter_merged_on_request_and_loads(
    peft, shipped, chain, lora, tmp_path
):
    save(*shipped, tmp_path / "base")
    model, tokenizer = load(tmp_path / "base", device="cpu")
    recipe, out = replace(lora, steps=2, eval_every=0, merge_adapter=True), tmp_path / "run"
    train(model, tokenizer, chain, ZOO["dr_grpo"], recipe, out=out, progress=False)
    assert (out / "model" / adapters.ADAPTER).stat().st_size < 3e5
    assert not (out / "model" / "model.safetensors").exists()
    named = json.loads((out / "model" / "adapter_config.json").read_text())
    assert named["base_model_name_or_path"] == str(tmp_path / "base")
    ids = torch.tensor([[1, 5, 6, 7, 8]])
    with torch.no_grad():
        want, base = model(ids).logits, shipped[0](ids).logits
        for folder in (out / "merged", out / "model"):
            whole, _ = load(folder, device="cpu")
            assert not adapters.has_adapters(whole)
            assert (whole(ids).logits - want).abs().max() < 1e-4 < (base - want).abs().max()
        with without_adapters(model):
            assert torch.equal(model(ids).logits, base)
    assert merged(model).state_dict().keys() == shipped[0].state_dict().keys()


def test_an_adapter_without_its_base_is_a_sentence(tmp_path):
    config = {"base_model_name_or_path": "/nowhere/base"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match=r"no folder '/nowhere/base'.*names it as its base"):
        load(tmp_path, device="cpu")
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(BadInput, match="does not name its base"):
        load(tmp_path, device="cpu")


def test_a_base_of_lower_precision_has_float32_factors(peft, fresh, chain, lora):
    recipe = replace(lora, dtype="bfloat16", autocast="bfloat16")
    run = start(*fresh, chain, ZOO["grpo"], recipe)
    kinds = {(".lora_" in n, p.dtype) for n, p in run.model.named_parameters()}
    assert kinds == {(True, torch.float32), (False, torch.bfloat16)}
    assert run.model.model.rotary_emb.inv_freq.dtype == torch.float32
    assert {p.grad.dtype for p in run.modules.parameters() if p.requires_grad} == {torch.float32}
    metrics = step(run)
    assert metrics["grad_norm"] >= 0 and metrics["sampling/logp_difference"] < 0.5


@pytest.mark.parametrize("objective", ["ppo", "dr_grpo"])
def test_adapters_go_with_a_critic_and_with_recomputed_layers(peft, fresh, chain, lora, objective):
    plain = start(copy.deepcopy(fresh[0]), fresh[1], chain, ZOO[objective], lora)
    step(plain)
    again = start(
        *fresh, chain, ZOO[objective], replace(lora, gradient_checkpointing=True, micro_batch=3)
    )
    step(again)
    pairs = zip(plain.modules.parameters(), again.modules.parameters(), strict=True)
    assert all((a - b).abs().max() < 1e-4 for a, b in pairs)


def test_without_peft_a_sentence(fresh, chain, tiny, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    with pytest.raises(BadInput, match="lora_r: adapters need the library peft"):
        start(*fresh, chain, ZOO["dr_grpo"], replace(tiny, lora_r=4))


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"dtype": "bfloat16"}, "freeze them with lora_r"),
        ({"merge_adapter": True}, "there is no adapter to merge"),
        ({"lora_r": -1}, "lora_r: got -1"),
        ({"lora_r": 4, "lora_alpha": 0.0}, "lora_alpha: got 0.0"),
        ({"lora_r": 4, "dtype": "half"}, "dtype: got 'half'"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(BadInput, match=message):
        Recipe(**wrong)


def test_the_header_says_what_was_trained(peft, fresh, chain, lora, tmp_path):
    recipe = replace(lora, steps=1, eval_every=0)
    train(*fresh, chain, ZOO["dr_grpo"], recipe, out=tmp_path / "run", progress=False)
    header = read(tmp_path / "run")[0]["recipe"]
    assert (header["lora_r"], header["lora_alpha"], header["dtype"]) == (4, 32.0, "float32")


def test_from_the_command_line_to_an_evaluation_of_the_adapter(
    peft, model_folder, tmp_path, capsys
):
    out = tmp_path / "run"
    line = ["grpo", "--model", str(model_folder), "--out", str(out), "--device", "cpu",
            "--lora-r", "2", "--lora-alpha", "8", "--steps", "1", "--prompts", "2",
            "--num-generations", "2", "--eval-every", "0", "--merge-adapter",
            "--warmup-steps", "1", "--lr-scheduler-type", "cosine"]  # fmt: skip
    assert main(line) == 0
    assert (out / "merged" / "model.safetensors").is_file()
    for folder in ("model", "merged"):
        capsys.readouterr()
        words = ["--prompts", "4", "--num-generations", "2", "--device", "cpu"]
        assert main(["eval", "--model", str(out / folder), *words]) == 0
        assert "pass@1" in capsys.readouterr().out
    assert main([*line, "--resume"]) == 0
    assert "nothing to do" in capsys.readouterr().err
