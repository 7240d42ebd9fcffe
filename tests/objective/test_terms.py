"""KL estimators, value loss: values, gradients, corrections."""

from __future__ import annotations

import pytest
import torch
from worked import worked_batch

from rlnb.objective import (
    Batch,
    Objective,
    absolute_kl,
    clip,
    group_center,
    k1,
    k2,
    k3,
    kl_estimate,
    raw_reward,
    sequence,
    token_mean,
    value_loss,
)

LOGITS = torch.tensor([0.3, -0.5, 1.1, 0.0], dtype=torch.float64)
REF_LOGITS = torch.tensor([0.1, 0.4, 0.2, 0.3], dtype=torch.float64).log()


REVERSE = [0.091325, -0.181437, 0.257102, -0.166990]
FORWARD = [0.126465, -0.298243, 0.304008, -0.132230]


def expected_term_gradient(term, old_logits=None):
    """E over actions of the term's gradient, by enumeration of the four actions."""
    logits = LOGITS.clone().requires_grad_()
    lp = logits.log_softmax(0)
    old = (LOGITS if old_logits is None else old_logits).log_softmax(0)
    batch = Batch(
        lp[:, None],
        torch.ones(4, 1),
        torch.zeros(4),
        1,
        ref_logprobs=REF_LOGITS.log_softmax(0)[:, None],
        old_logprobs=old[:, None].detach(),
    )
    (old.exp().detach() * term(batch)[:, 0]).sum().backward()
    return logits.grad.tolist()


def critic_batch(mask=None, values=None, **fields):
    values = torch.tensor([[0.2, 0.5, 0.7]]) if values is None else values
    mask = torch.ones_like(values) if mask is None else mask
    return Batch(
        torch.full_like(values, -0.1, requires_grad=True),
        mask,
        torch.ones(len(values)),
        1,
        values=values,
        **fields,
    )


@pytest.mark.parametrize(
    ("kind", "mean", "std"),
    [("k1", 0.414160, 0.810987), ("k2", 0.414614, 0.198584), ("k3", 0.414160, 0.388715)],
)
def test_values_of_the_kl_estimators(kind, mean, std):
    p = LOGITS.softmax(0)
    k = kl_estimate(kind, LOGITS.log_softmax(0) - REF_LOGITS.log_softmax(0))
    assert (p * k).sum().item() == pytest.approx(mean, abs=1e-6)
    assert ((p * k.square()).sum() - (p * k).sum() ** 2).sqrt().item() == pytest.approx(
        std, abs=1e-6
    )


def test_gradients_of_the_kl_estimators_as_losses():
    from rlnb.objective import k1, k2

    other = torch.tensor([0.0, 0.2, 0.6, -0.4])
    assert expected_term_gradient(k1(1.0)) == pytest.approx([0.0] * 4, abs=1e-12)
    assert expected_term_gradient(k2(1.0)) == pytest.approx(REVERSE, abs=1e-6)
    assert expected_term_gradient(k3(1.0)) == pytest.approx(FORWARD, abs=1e-6)
    assert expected_term_gradient(k3(1.0, corrected=True), other) == pytest.approx(
        REVERSE, abs=1e-6
    )
    assert expected_term_gradient(k3(1.0, corrected="detached"), other) == pytest.approx(
        FORWARD, abs=1e-6
    )


def test_value_loss_takes_the_worse_of_clipped_and_plain():
    values = torch.tensor([[1.0, 0.3]], requires_grad=True)
    batch = critic_batch(
        values=values, old_values=torch.tensor([[0.5, 0.3]]), returns=torch.tensor([[1.0, 1.0]])
    )
    batch = batch.replace(advantages=torch.zeros(1))
    loss = Objective(raw_reward(), clip(0.2), token_mean, terms=value_loss(1.0, clip=0.2))(
        batch
    ).loss
    # token 0: plain error 0, clipped value .7 -> .09; token 1: .49
    assert loss.item() == pytest.approx((0.09 + 0.49) / 2 / 2)
    loss.backward()
    assert values.grad[0].tolist() == pytest.approx([0.0, -0.35])


def test_sequence_corrected_k3_uses_the_undetached_sequence_ratio():
    batch = worked_batch(advantages=torch.zeros(2, dtype=torch.float64)).cleaned()
    got = k3(1.0, corrected="sequence")(batch)
    s = sequence()(batch).exp()
    want = s * k3(1.0)(batch)
    assert torch.allclose(got, want, atol=1e-12)
    (gradient,) = torch.autograd.grad(got[0, 0], batch.logprobs)
    assert gradient[0, 2] != 0  # through the mean over the answer


@pytest.mark.parametrize("estimator", [k1, k3])
def test_straight_through_has_the_estimators_value_and_k2s_slope(estimator):
    batch = worked_batch().cleaned()
    value = estimator(1.0, straight_through=True)(batch)
    assert torch.equal(value, estimator(1.0)(batch))
    slopes = [
        torch.autograd.grad(part(batch).sum(), batch.logprobs, retain_graph=True)[0]
        for part in (estimator(1.0, straight_through=True), k2(1.0))
    ]
    assert torch.allclose(*slopes, atol=1e-12)


def test_absolute_kl():
    batch = worked_batch().cleaned()
    assert torch.equal(absolute_kl(1.0)(batch), (batch.logprobs - batch.ref_logprobs).abs())


@pytest.mark.parametrize(
    "term",
    [
        k1(0.1),
        k2(0.1),
        k3(0.1),
        absolute_kl(0.1),
        k3(0.1, corrected=True),
        k3(0.1, corrected="sequence"),
        k3(0.1, corrected="detached"),
        k3(0.1, straight_through=True),
    ],
    ids=repr,
)
def test_no_gradient_reaches_the_reference(term):
    """A reference that shares weights with the policy (adapters) arrives with a graph."""
    plain = worked_batch()
    reference = plain.ref_logprobs.clone().requires_grad_()
    objective = Objective(group_center(), clip(0.2), token_mean, terms=term)
    objective(plain.replace(ref_logprobs=reference)).loss.backward()
    assert reference.grad is None and plain.logprobs.grad.abs().sum() > 0
