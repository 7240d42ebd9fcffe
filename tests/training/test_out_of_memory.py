"""What a run does when a card has too few bytes, played on a CPU."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace

import pytest
import torch

from rlnb.objective import ZOO
from rlnb.training import BadInput, evaluation, loop, memory, train, update
from rlnb.training.__main__ import main
from rlnb.training.memory import OutOfMemory, make_way_to_train, training_bytes
from rlnb.training.models import base_training
from rlnb.training.sampling.sampler import sample
from rlnb.training.step import collect, start, step


def full(monkeypatch, most, then=None):
    """Forward passes of more than `most` rows run out of bytes, after they have begun."""
    sizes, plain = [], update.token_logprobs

    def forward(model, rollout, *, rows, **options):
        sizes.append(len(rows))
        if len(rows) > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return plain(model, rollout, rows=rows, **options)

    monkeypatch.setattr(update, "token_logprobs", forward)
    return sizes


def trained(fresh, chain, recipe, objective="dr_grpo"):
    model = copy.deepcopy(fresh[0])
    run = start(model, fresh[1], chain, ZOO[objective], recipe)
    metrics = step(run)
    return run, metrics, torch.cat([p.grad.flatten() for p in model.parameters()])


def test_a_micro_batch_that_does_not_fit_is_halved_and_the_gradient_stays(
    fresh, chain, roomy, monkeypatch
):
    recipe = replace(roomy, micro_batch=16, skip_silent_rows=False)
    _, _, want = trained(fresh, chain, recipe)
    sizes = full(monkeypatch, 5)
    with pytest.warns(UserWarning, match="a micro-batch of .* rows does not fit") as caught:
        run, metrics, got = trained(fresh, chain, recipe)
    assert run.recipe.micro_batch == 4 and sizes == [16, 8, 4, 4, 4, 4]
    assert [str(w.message)[-15:] for w in caught] == ["--micro-batch 8", "--micro-batch 4"]
    assert (got - want).abs().max() < 1e-6 < want.abs().max()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(run)  # it stays small: nothing is tried in vain again
    assert max(sizes[6:]) == 4


def test_what_was_added_before_bytes_ran_out_does_not_count_twice(fresh, chain, roomy, monkeypatch):
    recipe = replace(roomy, micro_batch=8, skip_silent_rows=False)
    _, _, want = trained(fresh, chain, recipe)
    plain, calls = update.token_logprobs, []

    def second_fails(*args, **options):
        calls.append(1)
        if len(calls) == 2:
            raise torch.OutOfMemoryError("CUDA")
        return plain(*args, **options)

    monkeypatch.setattr(update, "token_logprobs", second_fails)
    with pytest.warns(UserWarning, match="a micro-batch of 8 rows"):
        _, _, got = trained(fresh, chain, recipe)
    assert (got - want).abs().max() < 1e-6


def test_where_one_row_is_too_much_a_run_ends_in_a_sentence(fresh, chain, tiny, monkeypatch):
    full(monkeypatch, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(OutOfMemory, match="^memory: the card has too few bytes") as caught:
            train(*fresh, chain, ZOO["dr_grpo"], tiny, progress=False)
    said = str(caught.value)
    assert "4 prompts x 4 answers of 24 tokens in micro-batches of 1 (counted" in said
    assert "--sampler-dtype bfloat16" in said and "--gradient-checkpointing" in said
    assert "--prompts 2" in said and isinstance(caught.value, BadInput)


def test_the_probe_for_divergence_is_not_asked_when_bytes_run_out(fresh, chain, tiny, monkeypatch):
    """Out of memory is a RuntimeError: another forward pass on a full card would only fail again,
    and a weight that happens not to be finite would be blamed instead."""
    full(monkeypatch, 0)
    asked = []
    monkeypatch.setattr(loop, "not_finite", lambda *args: asked.append(args) or "a weight")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(OutOfMemory, match="^memory: the card has too few bytes"):
            train(*fresh, chain, ZOO["dr_grpo"], replace(tiny, eval_every=0), progress=False)
    assert not asked


def test_on_the_command_line_it_is_exit_status_2(model_folder, tmp_path, monkeypatch, capsys):
    full(monkeypatch, 0)
    line = ["grpo", "--model", str(model_folder), "--out", str(tmp_path / "run"), "--steps", "1",
            "--prompts", "2", "--num-generations", "2", "--eval-every", "0", "--device", "cpu",
            "--max-completion-length", "72"]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(line) == 2
    error = capsys.readouterr().err
    assert "error: memory: the card has too few bytes" in error and "Traceback" not in error


def test_a_batch_that_must_stay_whole_is_not_split(fresh, chain, roomy, monkeypatch):
    sizes = full(monkeypatch, 5)
    objective = ZOO["dr_grpo"]
    monkeypatch.setattr(type(objective.weights), "batch_statistics", True)
    run = start(*fresh, chain, objective, replace(roomy, skip_silent_rows=False))
    with pytest.raises(torch.OutOfMemoryError):
        step(run)
    assert len(sizes) == 1


def test_way_is_made_for_what_the_backward_pass_takes(fresh, chain, tiny, monkeypatch):
    run = start(*fresh, chain, ZOO["dr_grpo"], tiny)
    rollout = collect(run).rollout
    asked = []
    monkeypatch.setattr(memory, "make_way", lambda device, wanted: asked.append(wanted) or 7)
    assert make_way_to_train(run, rollout) == 0 and not asked  # on a CPU there is no such memory
    wanted = training_bytes(run, rollout)
    twice = start(*fresh, chain, ZOO["ppo"], tiny)  # a critic keeps as much again
    assert training_bytes(twice, rollout) == pytest.approx(2 * wanted)
    small = replace(tiny, micro_batch=4)
    run.recipe = small
    assert wanted / 5 < training_bytes(run, rollout) < wanted / 3
    monkeypatch.setattr(memory, "shape_of", lambda config: None)
    assert training_bytes(run, rollout) == float("inf")


def test_way_is_made_after_sampling_and_before_the_update(fresh, chain, tiny, monkeypatch):
    order = []

    def drawn(*args, **options):
        order.append("sample")
        return sample(*args, **options)

    run = start(*fresh, chain, ZOO["dr_grpo"], tiny, sampler=drawn)
    monkeypatch.setattr("rlnb.training.step.make_way_to_train", lambda *a: order.append("way"))
    plain = update.accumulate
    monkeypatch.setattr(update, "accumulate", lambda *a: order.append("backward") or plain(*a))
    step(run)
    assert order == ["sample", "way", "backward"]


@pytest.mark.parametrize("command", ["eval", "base"])
def test_a_command_that_finds_the_card_full_says_so_in_a_sentence(
    command, tmp_path, monkeypatch, capsys
):
    def nothing_left(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB")

    monkeypatch.setattr(evaluation, "evaluate", nothing_left)
    monkeypatch.setattr(base_training, "train_base", nothing_left)
    typed = ["--out", str(tmp_path / "base")] if command == "base" else []
    assert main([command, *typed]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: memory: the card has too few free bytes for '{command}'; end")
    assert said.count("\n") == 1 and ("--prompts" in said or "--preset" in said)


def test_another_error_of_torch_is_no_memory(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(evaluation, "evaluate", broken)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        main(["eval"])
