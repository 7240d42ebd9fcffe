"""Gates: which tokens they drop, what they never touch."""

from __future__ import annotations

import math

import pytest
import torch
from worked import worked_batch

from rlnb.objective import (
    Batch,
    Objective,
    cispo,
    clip_cov,
    divergence_mask,
    engine_ratio,
    group_center,
    k2,
    ratio,
    raw_reward,
    sequence_mask,
    token_mean,
    token_sum,
    top_entropy,
)

SIGNS = torch.tensor([1.0, -1.0], dtype=torch.float64)


def gate_of(part, **fields):
    """The gate's factor on the worked example's unmasked tokens, row by row, with A = (1, -1)."""
    batch = worked_batch(advantages=SIGNS, **fields).cleaned()
    A = SIGNS[:, None].expand_as(batch.logprobs)
    out = part(batch, A, batch.logprobs - batch.anchor_logprobs)
    return out[0, :3].tolist(), out[1].tolist()


def candidates(old, new, sampled, k=None):
    """One token whose K candidates had and have these probabilities; the rest is the remainder.
    With k only the first k are candidates; the sampled token may be another."""
    old, new = (torch.tensor(p, dtype=torch.float64) for p in (old, new))
    one = torch.ones(1, 1, dtype=torch.float64)
    return Batch(
        new[sampled].log().view(1, 1),
        one,
        torch.zeros(1),
        1,
        old_logprobs=old[sampled].log().view(1, 1),
        topk_logprobs=new[:k].log()[None, None],
        old_topk_logprobs=old[:k].log()[None, None],
        sampled_rank=torch.tensor([[min(sampled, len(new[:k]))]]),
    )


def test_divergence_mask_drops_what_moves_further_away():
    assert gate_of(divergence_mask(0.10)) == ([1, 1, 1], [0, 1, 1, 0, 1])
    assert gate_of(divergence_mask(0.05, kind="kl")) == ([1, 1, 1], [1, 1, 1, 0, 1])
    assert gate_of(divergence_mask(0.10, high=0.03)) == ([0, 0, 1], [0, 1, 1, 0, 1])
    # the same movement with the signs turned round comes back: nothing is dropped but the rises
    batch = worked_batch().cleaned()
    A = -SIGNS[:, None].expand_as(batch.logprobs)
    log_ratio = batch.logprobs - batch.anchor_logprobs
    assert divergence_mask(0.10)(batch, A, log_ratio)[batch.mask].tolist() == [1] * 8


def test_sequence_mask_drops_a_bad_answer_that_has_become_unlikely():
    """mean log(old/new) = (-0.152158, 0.158562)."""
    assert gate_of(sequence_mask(0.1)) == ([1] * 3, [0] * 5)
    assert gate_of(sequence_mask(0.2)) == ([1] * 3, [1] * 5)


def test_engine_ratio_truncates_and_masks_token_and_product():
    shift = torch.tensor([[1.5, 3.0, 0.2, 1, 1], [1.0] * 5], dtype=torch.float64).log()
    sampled = worked_batch().old_logprobs - shift
    token = [
        gate_of(engine_ratio("token", how, low, 2.0), sampling_logprobs=sampled)[0]
        for how, low in (("truncate", None), ("mask", 0.5))
    ]
    assert token == [pytest.approx([1.5, 2.0, 0.2]), pytest.approx([1.5, 0, 0])]
    whole = gate_of(engine_ratio(), sampling_logprobs=sampled)[0]
    assert whole == pytest.approx([0.9] * 3)
    with pytest.raises(ValueError, match="needs sampling_logprobs"):
        Objective(group_center(), ratio(), token_mean, gates=engine_ratio())(
            worked_batch(sampling_logprobs=None)
        )


def test_top_entropy_keeps_a_share_of_the_tokens():
    entropies = torch.tensor([[1.0, 8, 2, 99, 99], [3, 4, 5, 6, 7]], dtype=torch.float64)
    first, second = gate_of(top_entropy(0.25), entropies=entropies)
    assert (first, second) == ([0, 1, 0], [0, 0, 0, 0, 1])


def test_clip_cov_silences_some_eligible_tokens_at_random():
    part = clip_cov(fraction=0.25, low=-9, high=9, epsilon=9)
    seen = set()
    for seed in range(20):
        first, second = gate_of(part, generator=torch.Generator().manual_seed(seed))
        assert sorted(first + second) == [0, 0, 1, 1, 1, 1, 1, 1]
        seen.add(tuple(first + second))
    assert len(seen) > 5
    assert gate_of(clip_cov(low=90, high=99)) == ([1] * 3, [1] * 5)  # none eligible


@pytest.mark.parametrize("gate", [divergence_mask(0.1), sequence_mask(0.1), engine_ratio("token")])
def test_gates_carry_no_gradient_and_leave_the_terms_alone(gate):
    batch = worked_batch(advantages=SIGNS)
    objective = Objective(raw_reward(), cispo(), token_sum, gates=gate, terms=k2(1.0))
    objective(batch).loss.backward()
    alone = worked_batch(advantages=SIGNS)
    objective.replace(gates=())(alone).loss.backward()
    factor = torch.tensor([[*gate_of(gate)[0], 0, 0], gate_of(gate)[1]], dtype=torch.float64)
    pull = (alone.logprobs - alone.ref_logprobs).detach() * alone.mask
    want = (alone.logprobs.grad - pull) * factor + pull
    assert torch.allclose(batch.logprobs.grad, want, atol=1e-12)


def test_top_k_divergence_by_hand():
    """.5 .3 (rest .2) becomes .5 .1 (rest .4): TV .2, though the sampled token never moved."""
    batch = candidates([0.5, 0.3], [0.5, 0.1], 0)
    assert divergence_mask(0.15)(batch, torch.ones(1, 1), None).item() == 1
    assert divergence_mask(0.15, top_k=True).divergence(batch).item() == pytest.approx(0.2)
    assert divergence_mask(0.15).divergence(batch).item() == pytest.approx(0)
    kl = 0.3 * math.log(3) + 0.2 * math.log(0.5)
    got = divergence_mask(0.05, kind="kl", top_k=True).divergence(batch).item()
    assert got == pytest.approx(kl, abs=1e-7)


@pytest.mark.parametrize("kind", ["tv", "kl"])
def test_top_k_never_sees_less_than_the_sampled_token(kind):
    """Also where the sampled token (2 or 6) is none of the first four: it is added to them."""
    g = torch.Generator().manual_seed(1)
    for trial in range(200):
        old, new = torch.randn(2, 8, generator=g, dtype=torch.float64).softmax(-1)
        batch = candidates(old.tolist(), new.tolist(), (2, 6)[trial % 2], 4)
        full = (old - new).abs().sum() / 2 if kind == "tv" else (old * (old / new).log()).sum()
        binary, top = (
            divergence_mask(0.1, kind=kind, top_k=k).divergence(batch).item() for k in (False, True)
        )
        assert binary <= top + 1e-7 and top <= full.item() + 1e-7


@pytest.mark.parametrize("kind", ["tv", "kl"])
def test_the_mask_looks_at_the_direction(kind):
    """|dp| = .4 in all four corners; two of them are masked, with candidates as without."""
    kept = []
    for new in (0.7, 0.3):
        for A in (1.0, -1.0):
            old = 1 - new
            batch = candidates([old, new], [new, old], 0)
            A = torch.full((1, 1), A, dtype=torch.float64)
            one, many = (
                divergence_mask(0.1, kind=kind, top_k=k)(batch, A, None).item()
                for k in (False, True)
            )
            assert one == many
            kept.append(one)
    assert kept == [0, 1, 1, 0]  # rose & A>0 dropped, rose & A<0, fell & A>0, fell & A<0
