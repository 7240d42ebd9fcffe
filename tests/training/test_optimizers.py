"""Learning rates by step, AdamW with moments of one byte, and the scale of a float16 loss."""

from __future__ import annotations

import copy
import math
import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

from rlnb.objective import ZOO
from rlnb.training import BadInput, Recipe, train, update
from rlnb.training.checkpoint import optimizer_tensors, restore_optimizer
from rlnb.training.errors import Diverged
from rlnb.training.models.optimizers import adamw
from rlnb.training.step import start, step


def rates(**numbers):
    recipe = Recipe(learning_rate=1.0, **numbers)
    return [recipe.rate(step) for step in range(1, recipe.steps + 1)]


def test_rates_by_hand():
    assert rates(steps=3) == [1.0, 1.0, 1.0]
    assert rates(steps=4, warmup_steps=3) == pytest.approx([1 / 3, 2 / 3, 1.0, 1.0])
    assert rates(steps=4, lr_scheduler_type="linear") == [1.0, 0.75, 0.5, 0.25]
    half = rates(steps=4, lr_scheduler_type="cosine")
    assert half == pytest.approx([1.0, (1 + math.sqrt(0.5)) / 2, 0.5, (1 - math.sqrt(0.5)) / 2])
    assert rates(steps=2, warmup_steps=5, lr_scheduler_type="cosine") == [0.2, 0.4]


@pytest.mark.parametrize("kind", ["constant", "linear", "cosine"])
def test_rates_are_those_of_transformers(kind):
    from transformers import get_scheduler

    name = "constant_with_warmup" if kind == "constant" else kind
    optimizer = torch.optim.AdamW([nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = get_scheduler(name, optimizer, num_warmup_steps=3, num_training_steps=10)
    theirs = []
    for _ in range(10):
        theirs.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    ours = rates(steps=10, warmup_steps=3, lr_scheduler_type=kind)
    # theirs begins its warm-up with a step of rate 0, which does nothing
    assert theirs[0] == 0.0 and ours[0] > 0.0
    assert ours[:3] == pytest.approx([*theirs[1:3], 1.0])
    assert ours[3:] == pytest.approx(theirs[3:])


def test_a_run_follows_its_rates_and_goes_on_with_them(fresh, chain, tiny, tmp_path):
    recipe = replace(
        tiny, steps=4, warmup_steps=2, lr_scheduler_type="linear", eval_every=0, checkpoint_every=3
    )
    line = (fresh[1], chain, ZOO["dr_grpo"])
    one, two = copy.deepcopy(fresh[0]), copy.deepcopy(fresh[0])
    records = train(one, *line, recipe, out=tmp_path / "a", progress=False)
    seen = [r["learning_rate"] for r in records if r["record"] == "step"]
    assert seen == [recipe.rate(k) for k in (1, 2, 3, 4)] and seen[0] < seen[1] > seen[3]
    with pytest.raises(BadInput, match="steps=4, this one asks for 8"):
        train(fresh[0], *line, replace(recipe, steps=8), out=tmp_path / "a", resume=True,
              progress=False)  # fmt: skip

    def stop(record):
        if record.get("step") == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(two, *line, recipe, out=tmp_path / "b", progress=False, watch=stop)
    train(two, *line, recipe, out=tmp_path / "b", resume=True, progress=False)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_moments_of_one_byte_go_through_a_checkpoint():
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    torch.manual_seed(0)
    models = [nn.Linear(100, 100)]
    grads = [torch.randn(100, 100) for _ in range(4)]

    def made(model):
        return adamw(model.parameters(), "adamw8bit", 1e-2, (0.9, 0.95), 0.0, torch.device("cpu"))

    def go(model, optimizer, found):
        for grad in found:
            model.weight.grad, model.bias.grad = grad.clone(), grad[0].clone()
            optimizer.step()

    optimizer = made(models[0])
    go(models[0], optimizer, grads[:2])
    names = {p: n for n, p in models[0].named_parameters()}
    saved = optimizer_tensors(optimizer, names)
    assert saved["weight::state1"].dtype == torch.uint8 and int(saved["weight::step"]) == 2
    models.append(copy.deepcopy(models[0]))
    again = made(models[1])
    restore_optimizer(again, {p: n for n, p in models[1].named_parameters()}, saved)
    go(models[0], optimizer, grads[2:])
    go(models[1], again, grads[2:])
    assert torch.equal(models[0].weight, models[1].weight)
    assert torch.equal(models[0].bias, models[1].bias)


def test_moments_of_one_byte_resume_in_a_run(fresh, chain, tiny, tmp_path):
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    recipe = replace(tiny, optim="adamw8bit", eval_every=0)
    models = [copy.deepcopy(fresh[0]) for _ in range(3)]
    line = (fresh[1], chain, ZOO["dr_grpo"])
    train(models[0], *line, recipe, out=tmp_path / "a", progress=False)
    train(models[1], *line, replace(recipe, steps=2), out=tmp_path / "b", progress=False)
    train(models[2], *line, recipe, out=tmp_path / "b", resume=True, progress=False)
    pairs = zip(models[0].parameters(), models[2].parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_without_bitsandbytes_a_sentence(fresh, chain, tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim", None)
    with pytest.raises(BadInput, match="optim: adamw8bit needs the library bitsandbytes"):
        start(*fresh, chain, ZOO["dr_grpo"], replace(tiny, optim="adamw8bit"))


def scaled(fresh, chain, recipe):
    model = copy.deepcopy(fresh[0])
    return start(model, fresh[1], chain, ZOO["dr_grpo"], replace(recipe, autocast="float16"))


def gradient(run):
    return torch.cat([p.grad.flatten() for p in run.model.parameters()])


def test_a_scaled_loss_leaves_the_gradient_in_its_own_size(fresh, chain, roomy):
    run, plain = scaled(fresh, chain, roomy), start(*fresh, chain, ZOO["dr_grpo"], roomy)
    assert run.scaler.get_scale() == 65536.0 and not plain.scaler.is_enabled()
    metrics, want = step(run), step(plain)
    assert metrics["grad_norm"] == pytest.approx(want["grad_norm"], rel=0.03)
    one, two = gradient(run), gradient(plain)
    assert torch.nn.functional.cosine_similarity(one, two, dim=0) > 0.99


def overflowing(monkeypatch, most):
    """Gradients are infinite while the loss is scaled by more than `most`."""
    plain, seen = update.accumulate, []

    def accumulate(run, *args):
        sums = plain(run, *args)
        seen.append(run.scaler.get_scale())
        if seen[-1] > most:
            next(run.model.parameters()).grad[0] = math.inf
        return sums

    monkeypatch.setattr(update, "accumulate", accumulate)
    return seen


def test_an_update_that_overflows_is_computed_again_at_half_the_scale(
    fresh, chain, roomy, monkeypatch
):
    want = scaled(fresh, chain, roomy)
    step(want)
    seen = overflowing(monkeypatch, 20_000)
    run = scaled(fresh, chain, roomy)
    metrics = step(run)
    assert seen == [65536.0, 32768.0, 16384.0] and math.isfinite(metrics["grad_norm"])
    assert run.scaler.get_scale() == 16384.0
    moved = [run, want]
    moves = [
        torch.cat([(p - q).flatten() for p, q in
                   zip(r.model.parameters(), fresh[0].parameters(), strict=True)])
        for r in moved
    ]  # fmt: skip
    assert moves[0].abs().max() > 0  # the step was taken, once
    assert torch.nn.functional.cosine_similarity(*moves, dim=0) > 0.95


def test_what_is_not_finite_at_any_scale_has_diverged(fresh, chain, tiny, monkeypatch):
    seen = overflowing(monkeypatch, 0)
    recipe = replace(tiny, autocast="float16", eval_every=0)
    with pytest.raises(Diverged, match="diverged at step 1: grad_norm is not finite"):
        train(*fresh, chain, ZOO["dr_grpo"], recipe, progress=False)
    assert seen == [2.0**k for k in range(16, -1, -1)]


def test_the_scale_is_kept_in_a_checkpoint(fresh, chain, tiny, tmp_path, monkeypatch):
    recipe = replace(tiny, steps=2, autocast="float16", eval_every=0, checkpoint_every=1)
    overflowing(monkeypatch, 20_000)
    line = (fresh[1], chain, ZOO["dr_grpo"])
    train(copy.deepcopy(fresh[0]), *line, recipe, out=tmp_path / "a", progress=False)
    seen = overflowing(monkeypatch, 20_000)
    longer = replace(recipe, steps=3)
    train(*fresh[:1], *line, longer, out=tmp_path / "a", resume=True, progress=False)
    assert seen == [16384.0]
