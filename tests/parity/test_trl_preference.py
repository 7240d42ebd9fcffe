"""Preference losses, value and gradient: TRL's methods as installed against rlnb's."""

from __future__ import annotations

import pytest
import torch

from rlnb.objective import preference as p
from rlnb.objective.preference import Pairs

PAIRS, WIDTH = 5, 7
BETAS = (0.05, 0.1, 0.5, 2.0)


@pytest.fixture(autouse=True)
def float64():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def recorded(seed: int, rows: int = 2 * PAIRS):
    """Log-probs of the policy and the reference, mask; zero where masked, as TRL's head returns."""
    g = torch.Generator().manual_seed(seed)
    mask = torch.arange(WIDTH) < torch.randint(1, WIDTH + 1, (rows, 1), generator=g)
    policy = -2 * torch.rand(rows, WIDTH, generator=g)
    ref = policy + 0.5 * torch.randn(rows, WIDTH, generator=g)
    return torch.where(mask, policy, 0), torch.where(mask, ref, 0), mask


def ours(policy, ref, mask, loss):
    leaf = policy.clone().requires_grad_()
    value = loss(Pairs.from_tokens(leaf, mask, ref)).mean()
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient


def equal(one, other, mask):
    assert torch.allclose(one[0], other[0], rtol=0, atol=1e-12)
    assert torch.allclose(one[1] * mask, other[1] * mask, rtol=0, atol=1e-12)
    assert float(other[1].abs().max()) > 0


CASES = {
    "sigmoid": (["sigmoid"], {}, p.dpo, {}),
    "ipo": (["ipo"], {}, p.normalized_ipo, {}),
    "sigmoid_norm": (["sigmoid_norm"], {}, p.normalized_dpo, {}),
    "robust .1": (["robust"], {"label_smoothing": 0.1}, p.robust_dpo, {"flipped": 0.1}),
    "robust .4": (["robust"], {"label_smoothing": 0.4}, p.robust_dpo, {"flipped": 0.4}),
    "rpo 1": (["sigmoid", "sft"], {"weights": [1.0, 1.0]}, p.dpo_nll, {"average": "batch"}),
    "rpo .2": (["sigmoid", "sft"], {"weights": [1.0, 0.2]}, p.dpo_nll,
               {"average": "batch", "alpha": 0.2}),
}  # fmt: skip


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", CASES)
def test_dpo_trainer(preferences, name, beta):
    loss_types, settings, function, keywords = CASES[name]
    for seed in range(5):
        policy, ref, mask = recorded(seed)
        trl = preferences.dpo(policy, ref, mask, loss_types, beta, **settings)
        equal(trl, ours(policy, ref, mask, lambda x: function(x, beta, **keywords)), mask)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 1.33), (0.7, 2.0)])
def test_kto_trainer(preferences, beta, weights):
    for seed in range(5):
        policy, ref, mask = recorded(seed)
        g = torch.Generator().manual_seed(100 + seed)
        kl, kl_ref = torch.randn(2, 2 * PAIRS, generator=g)
        good = torch.rand(2 * PAIRS, generator=g) < 0.5
        trl = preferences.kto(policy, ref, mask, good, kl, kl_ref, beta=beta,
                         desirable_weight=weights[0], undesirable_weight=weights[1])  # fmt: skip
        leaf = policy.clone().requires_grad_()
        point = p.kto_reference_point(kl, kl_ref)
        loss = p.kto(leaf.sum(1), ref.sum(1), good, point, beta, *weights)
        # TRL averages over all rows, good and bad together
        (gradient,) = torch.autograd.grad(loss.mean(), leaf)
        equal(trl, (loss.mean().detach(), gradient), mask)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.375])
@pytest.mark.parametrize("flipped", [0.0, 0.1])
def test_cpo_trainer_as_simpo(preferences, beta, gamma, flipped):
    for seed in range(5):
        policy, _, mask = recorded(seed)
        pairs = Pairs.from_tokens(policy.requires_grad_(), mask)
        chosen, rejected = (
            pairs.chosen / pairs.chosen_length,
            pairs.rejected / pairs.rejected_length,
        )
        value, gradient = preferences.cpo(chosen, rejected, "simpo", beta, gamma, flipped)
        loss = p.simpo(pairs, beta, gamma, flipped).mean()
        mine = torch.stack(torch.autograd.grad(loss, (pairs.chosen, pairs.rejected)))
        lengths = torch.stack(pairs.lengths)
        equal((value, gradient / lengths), (loss.detach(), mine), 1)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("kind, loss", [("ipo", p.ipo), ("sigmoid", p.dpo)])
def test_cpo_trainer_without_reference(preferences, beta, kind, loss):
    """Sums against a reference of zeros: IPO as the paper writes it, and DPO."""
    for seed in range(5):
        policy, _, mask = recorded(seed)
        chosen, rejected = policy.sum(1).chunk(2)
        zero = torch.zeros(PAIRS)
        leaf = torch.stack([chosen, rejected]).requires_grad_()
        value = loss(Pairs(leaf[0], leaf[1], zero, zero), beta).mean()
        (gradient,) = torch.autograd.grad(value, leaf)
        equal(preferences.cpo(chosen, rejected, kind, beta), (value.detach(), gradient), 1)


@pytest.mark.parametrize("flipped", [0.1, 0.3])
def test_cpo_trainer_with_label_smoothing_is_conservative(preferences, flipped):
    policy, _, _ = recorded(0)
    chosen, rejected = policy.sum(1).chunk(2)
    zero = torch.zeros(PAIRS)
    leaf = torch.stack([chosen, rejected]).requires_grad_()
    value = p.conservative_dpo(Pairs(leaf[0], leaf[1], zero, zero), 0.1, flipped).mean()
    (gradient,) = torch.autograd.grad(value, leaf)
    trl = preferences.cpo(chosen, rejected, "sigmoid", 0.1, label_smoothing=flipped)
    equal(trl, (value.detach(), gradient), 1)


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("center", [None, 0.01])
def test_reward_trainer(preferences, margin, center):
    for seed in range(5):
        g = torch.Generator().manual_seed(seed)
        leaf = torch.randn(2, PAIRS, generator=g).requires_grad_()
        m = torch.rand(PAIRS, generator=g) if margin else None
        value = p.bradley_terry(leaf[0], leaf[1], 0.0 if m is None else m, center or 0.0).mean()
        (gradient,) = torch.autograd.grad(value, leaf)
        trl = preferences.reward(leaf[0], leaf[1], m, center)
        equal(trl, (value.detach(), gradient), 1)
