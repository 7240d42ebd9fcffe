"""Named methods whole: what each computes, and that no two compute the same."""

from __future__ import annotations

import pytest
import torch
from worked import worked_batch

from rlnb.objective import (
    ANNEX,
    ZOO,
    Batch,
    Objective,
    absolute_kl,
    cispo,
    clip,
    constant_length,
    divergence_mask,
    engine_ratio,
    gmpo,
    group_zscore,
    k3,
    overlong,
    product,
    ratio,
    sapo,
    sequence_mask,
    sequence_mean,
    token_mean,
    token_sum,
    vespo,
)
from rlnb.toys import running_batch


def rows(rewards, size, **fields):
    """A batch of one-token answers with these rewards."""
    rewards = torch.tensor(rewards, dtype=torch.float64)
    zero = torch.zeros(len(rewards), 1, dtype=torch.float64)
    return Batch(zero.clone().requires_grad_(), zero + 1, rewards, size, **fields)


SIGNS = torch.tensor([1.0, -1.0], dtype=torch.float64)


def test_reinforce_plus_plus_whitens_the_penalised_return_over_tokens():
    lp = torch.tensor([[-1.0, -2.0], [-1.0, -1.0]], requires_grad=True)
    ref = torch.tensor([[-2.0, -2.0], [-1.0, -3.0]])
    batch = Batch(lp, torch.ones(2, 2), torch.tensor([1.0, 0.0]), 1, ref_logprobs=ref)
    returns = torch.tensor([1 - 0.01, 1.0, -0.02, -0.02])
    want = (returns - returns.mean()) / returns.std()
    got = ZOO["reinforce_plus_plus"].prepare(batch).advantages.ravel()
    assert torch.allclose(got, want, atol=1e-6)


@pytest.mark.parametrize(
    "objective",
    [
        Objective(group_zscore(), ratio(), sequence_mean, ratio=gmpo(0.4)),
        Objective(group_zscore(), cispo(), token_mean),
        Objective(group_zscore(), sapo(), sequence_mean),
        Objective(group_zscore(), vespo(), token_mean, ratio=product),
        Objective(group_zscore(), cispo(20.0), constant_length(), gates=divergence_mask(kind="kl")),
        Objective(
            group_zscore(),
            clip(),
            token_mean,
            gates=(sequence_mask(0.1), engine_ratio()),
            terms=(k3(0.1, corrected="sequence"), absolute_kl(0.1)),
        ),
        Objective(group_zscore(), clip(), token_mean, shape=overlong(6, 4)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("rubbish", [float("nan"), float("inf"), -float("inf")])
def test_rubbish_under_the_mask_reaches_nothing_and_splits_add_up(objective, rubbish):
    clean = worked_batch(sampling_logprobs=worked_batch().old_logprobs * 1.01)
    dirty = clean.replace(
        **{
            name: torch.where(clean.mask, getattr(clean, name).detach(), rubbish)
            for name in ("logprobs", "old_logprobs", "ref_logprobs", "sampling_logprobs")
        }
    )
    dirty = dirty.replace(logprobs=dirty.logprobs.requires_grad_())
    for batch in (clean, dirty):
        objective(batch).loss.backward()
    assert torch.equal(clean.logprobs.grad, dirty.logprobs.grad)
    assert (dirty.logprobs.grad[~dirty.mask] == 0).all()
    prepared = objective.prepare(clean)
    parts = objective.loss(prepared.rows([0])) + objective.loss(prepared.rows([1]))
    assert parts.item() == pytest.approx(objective.loss(prepared).item(), abs=1e-12)


@pytest.mark.parametrize("name", ["dapo", "gspo", "gmpo", "cispo", "sapo"])
def test_at_the_old_policy_every_gate_is_one(name):
    """One update per rollout: all methods with GRPO's advantage and weights are one method."""
    batch = worked_batch(old_logprobs=None)
    same = ZOO[name].replace(weights=sequence_mean(), terms=())
    same(batch).loss.backward()
    wanted = worked_batch(old_logprobs=None)
    ZOO["grpo"].replace(terms=())(wanted).loss.backward()
    assert torch.allclose(batch.logprobs.grad, wanted.logprobs.grad, atol=1e-12)


def test_scalerl_loss_by_hand():
    """c = 1 / (P tokens of the prompt), weight min(pi / pi_engine, 5), A over one std."""
    batch = worked_batch(sampling_logprobs=worked_batch().logprobs.detach() - 2.0)
    out = ZOO["scalerl"](batch)
    out.loss.backward()
    c, weight = 1 / 8, 5.0  # one prompt, 3 + 5 tokens; e^2 > 5
    A = torch.tensor([[1.0], [-1.0]], dtype=torch.float64).expand(2, 5) / (1 + 2e-6)
    want = torch.where(batch.mask, -c * weight * A, 0.0)
    assert torch.allclose(batch.logprobs.grad, want, atol=1e-12)
    assert torch.allclose(out.loss, (want * batch.logprobs.detach()).sum())


def test_mgpo_is_grpo_times_a_weight_per_prompt():
    rewards = [1, 0, 0, 0, 1, 1, 0, 0]
    plain = ZOO["grpo"].replace(terms=()).prepare(rows(rewards, 4)).advantages[:, 0]
    got = ZOO["mgpo"].prepare(rows(rewards, 4)).advantages[:, 0]
    assert torch.allclose(got / plain, torch.tensor([0.592593] * 4 + [1.0] * 4).double(), atol=1e-6)
    with pytest.raises(ValueError, match="reads the group mean as an accuracy"):
        ZOO["mgpo"](rows([3, 0], 2))


def test_dppo_on_the_worked_example():
    objective = ZOO["dppo"].replace(gates=divergence_mask(0.10, anchor="sampling"))
    batch = worked_batch(advantages=SIGNS)
    out = objective(batch)
    out.loss.backward()
    assert out.loss.item() == pytest.approx(-0.014087, abs=1e-6)
    want = [-0.068750, -0.087500, -0.064062, 0, 0.075000, 0.061111, 0, 0.064286]
    assert batch.logprobs.grad[batch.mask].tolist() == pytest.approx(want, abs=1e-6)


def test_dppo_asks_for_the_rollout_engine():
    with pytest.raises(ValueError, match=r"token\(.sampling.\) needs sampling_logprobs"):
        ZOO["dppo"](running_batch())


def test_dppo_topk_needs_the_candidates():
    with pytest.raises(ValueError, match="needs (topk_logprobs|old_topk_logprobs|sampled_rank)"):
        ZOO["dppo_topk"](running_batch().replace(sampling_logprobs=running_batch().old_logprobs))


@pytest.mark.parametrize("name", [n for n in ZOO | ANNEX if n != "clip_cov"])
def test_every_gate_is_one_where_nothing_has_moved(name):
    """At theta_old, against an engine that agrees, no method weighs a token by anything but A."""
    objective = (ZOO | ANNEX)[name].replace(terms=(), weights=token_sum)
    batch = running_batch(complete=True)
    still = batch.logprobs.detach().clone().requires_grad_()
    batch = batch.replace(
        logprobs=still,
        old_logprobs=still.detach(),
        sampling_logprobs=still.detach(),
        old_topk_logprobs=batch.topk_logprobs,
    )
    gate = objective.explain(batch).gate
    gate = gate[~gate.isnan()]
    # SimKO passes alpha = 0.01 of a fork token's gradient on to its rivals
    allowed = {"simko": (0.99, 1.0)}.get(name, (1.0, 1.0))
    assert len(gate) > 0
    assert gate.min().item() == pytest.approx(allowed[0], abs=1e-12)
    assert gate.max().item() == pytest.approx(allowed[1], abs=1e-12)


def test_the_complete_running_batch_serves_every_method():
    for name, objective in (ZOO | ANNEX).items():
        out = objective(running_batch(complete=True))
        assert out.loss.isfinite() and out.per_token_loss.isfinite().all(), name


def test_the_methods_differ_somewhere_on_the_running_batch():
    """No two names of the zoo are one gradient there, save those that say so."""
    batch, seen = running_batch(complete=True), {}
    for name, objective in ZOO.items():
        (gradient,) = torch.autograd.grad(objective(batch).loss, batch.logprobs)
        gradient = gradient / gradient.norm()
        twin = [n for n, g in seen.items() if torch.allclose(g, gradient, atol=1e-9)]
        seen[name] = gradient
        if name == "gspo_token":
            assert twin == ["gspo"]
        else:
            assert twin == [], name


def test_dppo_weighs_a_bad_token_that_rose_by_its_ratio_up_to_20():
    """.5 from .05 weighs 10; .5 from .01 would weigh 50. Neither is masked: A pulls them back."""
    old = torch.tensor([[0.05, 0.01]], dtype=torch.float64).log()
    ones = torch.ones(1, 2, dtype=torch.float64)
    batch = Batch(
        (ones / 2).log().requires_grad_(),
        ones,
        torch.zeros(1),
        1,
        old_logprobs=old,
        sampling_logprobs=old,
        advantages=-ones[:, 0],
        max_completion_length=1,
    )
    gate = ZOO["dppo"].replace(weights=token_sum).explain(batch).gate[0].tolist()
    assert gate == pytest.approx([10.0, 20.0])
