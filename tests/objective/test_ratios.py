"""How far the policy moved: geometric means, clipped and soft, and shared gradients."""

from __future__ import annotations

import math

import pytest
import torch
from worked import worked_batch

from rlnb.objective import (
    Batch,
    Objective,
    gmpo,
    group_center,
    ratio,
    sequence_mean,
    soft_sequence,
    topk_mix,
)
from rlnb.objective.ratios import fork_tokens

SIGNS = torch.tensor([1.0, -1.0], dtype=torch.float64)


def test_gmpo_clips_before_the_mean():
    batch = worked_batch(advantages=SIGNS).cleaned()
    log_ratio = gmpo(0.4)(batch, SIGNS[:, None].expand_as(batch.logprobs))
    want = (math.log(0.75) + math.log(1.2) + math.log(0.88 / 0.9) - 0.4 + math.log(0.72 / 0.7)) / 5
    assert log_ratio[1, 0].item() == pytest.approx(want, abs=1e-12)
    assert log_ratio[0, 0].item() == pytest.approx(math.log(1.5785) / 3, abs=1e-12)


def test_simko_shares_the_gradient_of_right_answers_with_the_top_k():
    """Against the formula of the authors' code, differentiated by autograd."""
    g = torch.Generator().manual_seed(0)
    new, old = (
        torch.randn(2, 5, 4, generator=g, dtype=torch.float64).log_softmax(-1) for _ in range(2)
    )
    new = new.requires_grad_()
    H = torch.rand(2, 5, generator=g, dtype=torch.float64)
    ones = torch.ones(2, 5, dtype=torch.float64)
    A = torch.tensor([[1.0], [-1.0]], dtype=torch.float64).expand(2, 5)
    batch = Batch(
        new[..., 0],
        ones,
        torch.tensor([1.0, 0.0]),
        2,
        old_logprobs=old[..., 0],
        topk_logprobs=new[..., 1:],
        entropies=H,
    )
    alpha = 0.25
    got = (topk_mix(alpha=alpha, quantile=0.5)(batch, A).exp() * A).sum()
    rho, rivals = (new[..., 0] - old[..., 0]).exp(), (new[..., 1:] - old[..., 1:]).exp()
    mixed = (1 - alpha) * rho + alpha / 3 * ((rho[..., None] / rivals).detach() * rivals).sum(-1)
    fork = H > H.quantile(0.5, 1, keepdim=True)
    assert fork.sum() == 4  # two of five per answer
    want = (torch.where(fork & (A > 0), mixed, rho) * A).sum()
    assert got.item() == pytest.approx(want.item(), abs=1e-14)
    ours, theirs = (torch.autograd.grad(x, new, retain_graph=True)[0] for x in (got, want))
    assert torch.allclose(ours, theirs, atol=1e-14) and ours[0, :, 1:].abs().sum() > 0
    assert (ours[1, :, 1:] == 0).all()  # nothing shared in a wrong answer


@pytest.mark.parametrize(
    ("part", "g", "slope"),
    [
        (soft_sequence(gate="arctan"), 0.545468, 0.675469),
        (soft_sequence(), None, None),
        (soft_sequence(tau=3.0), None, None),
    ],
)
def test_soft_sequence_is_the_geometric_mean_of_gates(part, g, slope):
    """w_t = s rho g'(rho) / g(rho), c = 1 / (B T)."""
    batch = worked_batch(advantages=SIGNS)
    out = Objective(group_center(), ratio(), sequence_mean, ratio=part).explain(batch)
    rho = (batch.logprobs - batch.old_logprobs).exp().detach()

    def gate(x):
        if part.gate == "sigmoid":
            return 4 / part.tau * torch.sigmoid(part.tau * (x - 1))
        return (torch.atan(part.tau * x.log()) / part.tau).exp()

    x = rho.clone().requires_grad_()
    (derivative,) = torch.autograd.grad(gate(x).sum(), x)
    log_g = torch.where(batch.mask, gate(rho).log(), 0.0)
    s = (log_g.sum(1) / batch.lengths).exp()[:, None]
    want = s * rho * derivative / gate(rho)
    assert torch.allclose(out.gate[batch.mask], want[batch.mask], atol=1e-12)
    if g is not None:
        half = torch.tensor(0.5, dtype=torch.float64).requires_grad_()
        (at,) = torch.autograd.grad(gate(half), half)
        assert gate(half).item() == pytest.approx(g, abs=1e-6)
        assert (half * at / gate(half)).item() == pytest.approx(slope, abs=1e-6)


def test_fork_tokens_lie_above_the_quantile_of_their_own_answer_without_padding():
    """Padding read as entropy 0 would lower the median of the short answer from 2.5 to 1.5."""
    entropies = torch.tensor([[1.0, 2.0, 3.0, 4.0, 9.0, 9.0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]])
    mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
    batch = Batch(torch.zeros(2, 6), mask, torch.zeros(2), 1, entropies=entropies).cleaned()
    assert fork_tokens(batch, 0.5).tolist() == [
        [False, False, True, True, False, False],
        [True, True, True, False, False, False],
    ]
