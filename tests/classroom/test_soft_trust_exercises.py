"""Page 12's checks: references against the package, the moving anchor, the table to recognise."""

from __future__ import annotations

import math

import pytest
import torch

from rlnb import check
from rlnb.objective import Batch, cispo, divergence_mask, sapo, token_mean

EXERCISES = (check.cispo_loss, check.sapo_gate, check.dppo_mask)
# page 12's riddle: probability then, now, sign of A, weight
RIDDLE = (
    (0.01, 0.06, 1, 6.0),
    (0.50, 0.40, 1, 0.8),
    (0.60, 0.30, -1, 0.0),
    (0.95, 0.78, -1, 0.0),
    (0.90, 0.76, -1, 0.844),
    (0.30, 0.60, -1, 2.0),
    (0.20, 0.45, 1, 0.0),
)


def token_batch(a):
    """A batch of one token per row: what a gate may look at."""
    logprobs, old = a["logprobs"].flatten()[:, None], a["old_logprobs"].flatten()[:, None]
    return Batch(
        logprobs, torch.ones_like(logprobs), torch.zeros(len(logprobs)), 1, old_logprobs=old
    )


def test_cispo_loss_is_the_package_s_in_value_and_gradient():
    for probe in check.cispo_loss.exercise.probes:
        a = probe.cast(torch.float64)
        a["logprobs"].requires_grad_()
        batch = Batch(
            a["logprobs"], a["mask"], torch.zeros(len(a["mask"])), 1, old_logprobs=a["old_logprobs"]
        )
        clean = batch.cleaned()
        advantages = a["advantages"][:, None].expand_as(a["logprobs"])
        value = cispo(a["cap"])(clean, advantages, clean.logprobs - clean.old_logprobs)
        theirs = -(torch.where(a["mask"], value, 0.0)).sum() / a["mask"].sum()
        ours = check.cispo_loss.exercise.reference(*a.values())
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
        gradients = [torch.autograd.grad(loss, a["logprobs"])[0] for loss in (ours, theirs)]
        torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)


def test_cispo_loss_has_the_worked_gradient():
    """By hand: cap 5, token mean over 8 tokens, A = +-1."""
    p = torch.tensor(
        [[0.55, 0.14, 0.82, 1, 1], [0.45, 0.06, 0.88, 0.15, 0.72]], dtype=torch.float64
    )
    q = torch.tensor(
        [[0.50, 0.10, 0.80, 1, 1], [0.60, 0.05, 0.90, 0.30, 0.70]], dtype=torch.float64
    )
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
    lp = p.log().requires_grad_()
    loss = check.cispo_loss.exercise.reference(
        lp, q.log(), mask, torch.tensor([1.0, -1.0], dtype=torch.float64), 5.0
    )
    (gradient,) = torch.autograd.grad(loss, lp)
    assert loss.item() == pytest.approx(-0.221603, abs=1e-6)
    assert gradient[0].tolist() == pytest.approx([-0.1375, -0.175, -0.128125, 0, 0], abs=1e-6)
    assert gradient[1].tolist() == pytest.approx(
        [0.09375, 0.15, 0.122222, 0.0625, 0.128571], abs=1e-6
    )


def test_sapo_gate_is_the_package_s():
    for probe in check.sapo_gate.exercise.probes:
        a = probe.cast(torch.float64)
        part = sapo(tau_pos=a["tau_pos"], tau_neg=a["tau_neg"])
        theirs = part(None, a["advantage"], a["ratio"].log())
        ours = check.sapo_gate.exercise.reference(*a.values()) * a["advantage"]
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_dppo_mask_is_the_package_s():
    for probe in check.dppo_mask.exercise.probes:
        a = probe.cast(torch.float64)
        part = divergence_mask(a["low"], high=a["high"])
        theirs = part(token_batch(a), a["advantages"].flatten()[:, None], None)
        ours = check.dppo_mask.exercise.reference(*a.values())
        assert ours.dtype == torch.bool
        assert torch.equal(ours.flatten(), theirs.flatten().bool())


def test_another_spelling_of_each_is_right():
    def through_the_log(logprobs, old_logprobs, mask, advantages, cap):
        gap = (logprobs - old_logprobs).masked_fill(~mask, 0)
        weight = gap.detach().clamp(max=math.log(cap)).exp()
        carrier = logprobs.masked_fill(~mask, 0)
        return -(weight * advantages.unsqueeze(1) * carrier)[mask].mean()

    assert repr(check.cispo_loss(through_the_log)) == "right: cispo_loss"

    def through_tanh(ratio, advantage, tau_pos, tau_neg):
        tau = ratio.new_tensor([tau_neg, tau_pos])[(advantage > 0).long()]
        return 2 / tau * (1 + torch.tanh(tau / 2 * (ratio - 1)))

    assert check.sapo_gate(through_tanh).kind == "right"

    def as_a_number(logprobs, old_logprobs, advantages, low, high):
        p, q = logprobs.exp(), old_logprobs.exp()
        far = torch.where(
            advantages > 0, (p > q) & ((p - q).abs() > high), (p < q) & ((p - q).abs() > low)
        )
        return 1 - far.to(p.dtype)

    assert check.dppo_mask(as_a_number).kind == "right"


def test_a_temperature_in_the_default_dtype_is_right():
    """torch.where of two Python numbers has the page's default dtype, whatever that is."""

    def natural(ratio, advantage, tau_pos, tau_neg):
        tau = torch.where(advantage > 0, tau_pos, tau_neg)
        return 4 / tau * torch.sigmoid(tau * (ratio - 1))

    assert repr(check.sapo_gate(natural)) == "right: sapo_gate"


def test_a_gate_without_gradient_is_told_so():
    reference = check.sapo_gate.exercise.reference
    verdict = check.sapo_gate(lambda *a: reference(*a).detach())
    assert not verdict and "no gradient reaches ratio" in verdict.message


def test_cispo_of_the_wrong_sign_is_told_so():
    reference = check.cispo_loss.exercise.reference
    assert "the sign is flipped" in check.cispo_loss(lambda *a: -reference(*a)).message


def test_stubs_are_not_attempted():
    for one in EXERCISES:
        assert one(lambda *a: ...).kind == "not attempted"


def fifty_updates_stay_near(train_on_batch):
    theta = torch.zeros(3)
    p = train_on_batch(theta, torch.tensor([0]), torch.tensor([1.0]), updates=50).softmax(0)
    assert p[0] - 1 / 3 < 0.25


def test_the_moving_anchor_is_exposed_by_many_updates():
    assert check.silent_bug_soft_trust_regions(fifty_updates_stay_near)

    def a_punished_arm_survives(train_on_batch):
        p = train_on_batch(
            torch.zeros(2), torch.tensor([0]), torch.tensor([-1.0]), updates=100
        ).softmax(0)
        assert p[0] > 0.1

    assert check.silent_bug_soft_trust_regions(a_punished_arm_survives)


@pytest.mark.parametrize("delta", [0.05, 0.1, 0.3])
def test_the_moving_anchor_survives_a_test_with_one_update(delta):
    def usual(train_on_batch):
        theta = torch.zeros(4)
        after = train_on_batch(
            theta, torch.tensor([0, 1]), torch.tensor([1.0, -1.0]), updates=1, delta=delta
        )
        assert after[0] > 0 > after[1]

    assert check.silent_bug_soft_trust_regions(usual).message.startswith(
        "your test passes on the broken code"
    )


def test_the_riddle_s_table_is_dppo_s_and_no_neighbour_s():
    q, p, sign, weight = (
        torch.tensor(column, dtype=torch.float64) for column in zip(*RIDDLE, strict=True)
    )
    rho = p / q
    keep = check.dppo_mask.exercise.reference(p.log(), q.log(), sign, 0.15, 0.15)
    torch.testing.assert_close(rho * keep, weight, rtol=0, atol=1e-3)
    a = {"logprobs": p.log(), "old_logprobs": q.log()}
    by_kl = divergence_mask(0.05, kind="kl")(token_batch(a), sign[:, None], None).flatten().bool()
    assert (by_kl != keep).nonzero().flatten().tolist() == [4]  # what the near miss is told
    in_band = torch.where(sign > 0, rho <= 1.28, rho >= 0.8)
    assert not in_band[0] and in_band[3]  # 6 would be dead, 0.82 alive


@pytest.mark.parametrize("answer", ["DPPO", "dppo_tv", "Divergence PPO"])
def test_the_table_is_named(answer):
    verdict = check.name_this_soft_trust_regions(answer)
    assert verdict and "0.15" in verdict.message


@pytest.mark.parametrize(
    "near", ["PPO", "GRPO", "DAPO", "CISPO", "SAPO", "GSPO", "GMPO", "dppo_kl"]
)
def test_a_near_miss_is_told_what_gives_it_away(near):
    verdict = check.name_this_soft_trust_regions(near)
    assert verdict.kind == "wrong" and "look at the baseline" not in verdict.message


def test_token_mean_is_what_cispo_has_in_the_zoo():
    from rlnb import ZOO

    assert ZOO["cispo"].weights == token_mean()
