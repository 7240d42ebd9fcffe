"""Gates, shapes and the softer surrogates: hand numbers, directions, and what must not leak."""

from __future__ import annotations

import importlib.util
import math
import pathlib

import pytest
import torch

from rlnb.objective import (
    ZOO,
    Objective,
    absolute_kl,
    cispo,
    clip,
    clip_cov,
    constant_length,
    divergence_mask,
    engine_ratio,
    gmpo,
    group_center,
    group_zscore,
    k1,
    k2,
    k3,
    kl_cov,
    leave_one_out,
    logprob,
    overlong,
    padded_length,
    product,
    ratio,
    raw_reward,
    reward_clip,
    sapo,
    sequence,
    sequence_mask,
    sequence_mean,
    sequence_sum,
    token_mean,
    token_sum,
    top_entropy,
    vespo,
)

spec = importlib.util.spec_from_file_location(
    "worked", pathlib.Path(__file__).with_name("worked.py")
)
worked = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worked)
worked_batch = worked.worked_batch
SIGNS = torch.tensor([1.0, -1.0], dtype=torch.float64)


def gate_of(part, **fields):
    """The gate's factor on the worked example's unmasked tokens, row by row, with A = (1, -1)."""
    batch = worked_batch(advantages=SIGNS, **fields).cleaned()
    A = SIGNS[:, None].expand_as(batch.logprobs)
    out = part(batch, A, batch.logprobs - batch.anchor_logprobs)
    return out[0, :3].tolist(), out[1].tolist()


def slope(surrogate, rho, A):
    """d value / d log pi at one token with ratio rho."""
    lp = torch.tensor([[math.log(rho) - 3]], dtype=torch.float64, requires_grad=True)
    batch = worked_batch().replace(logprobs=lp)
    value = surrogate(batch, torch.tensor([[A]], dtype=torch.float64), lp + 3)
    return torch.autograd.grad(value.sum(), lp)[0].item()


# ---- surrogates


@pytest.mark.parametrize(
    ("tau", "rho", "weight"),
    [
        (1.0, 0.5, 0.5 * 0.940015),
        (1.0, 1.0, 1.0),
        (1.0, 1.4, 1.4 * 0.961043),
        (1.0, 2.0, 2 * 0.786448),
        (1.05, 0.5, 0.5 * 0.934140),
        (1.05, 1.4, 1.4 * 0.957165),
        (1.05, 2.0, 2 * 0.768110),
    ],
)
def test_sapo_gate_at_known_ratios(tau, rho, weight):
    A = 1.0 if tau == 1.0 else -1.0
    assert slope(sapo(), rho, A) == pytest.approx(weight * A, abs=2e-6)


def test_sapo_peaks_above_one():
    weights = {rho: slope(sapo(), rho, 1.0) for rho in (2.00, 2.0601, 2.12)}
    assert max(weights, key=weights.get) == 2.0601
    assert weights[2.0601] == pytest.approx(1.574675, abs=1e-6)


def test_cispo_weight_is_bounded_and_never_zero():
    assert [slope(cispo(5.0), rho, 1.0) for rho in (0.01, 1.0, 4.0, 50.0)] == pytest.approx(
        [0.01, 1.0, 4.0, 5.0]
    )
    assert slope(cispo(None), 50.0, 1.0) == pytest.approx(50.0)
    assert slope(cispo(1.2, floor=0.8), 0.01, -1.0) == pytest.approx(-0.8)


def test_vespo_weight_by_hand():
    """A > 0, W = 1.5785: W^2 e^(3(1-W)); A < 0, W = 0.452571: W^3 e^(2(1-W))."""
    batch = worked_batch(advantages=SIGNS)
    out = Objective(raw_reward(), vespo(), token_sum, ratio=product)(batch)
    out.loss.backward()
    first = 1.5785**2 * math.exp(3 * (1 - 1.5785))
    second = -(0.45257142857**3) * math.exp(2 * (1 - 0.45257142857))
    assert batch.logprobs.grad[0, :3].tolist() == pytest.approx([-first] * 3, abs=1e-9)
    assert batch.logprobs.grad[1].tolist() == pytest.approx([-second] * 5, abs=1e-9)


def test_kl_cov_penalises_the_largest_covariance_and_says_it_is_not_silent():
    batch = worked_batch(advantages=SIGNS)
    plain = Objective(raw_reward(), ratio(), token_sum)
    out = plain.replace(surrogate=kl_cov(1 / 8, coefficient=0.1))(batch)
    gap = out.loss - plain(batch).loss
    # the rarest token of the bad answer (p = .06) has the largest covariance; |log 1.2|
    assert gap.item() == pytest.approx(0.1 * math.log(1.2), abs=1e-12)
    assert not kl_cov().silent and clip().silent


def test_delta_is_dual_clip_above_the_upper_edge_only():
    rho = torch.linspace(0.3, 5, 200, dtype=torch.float64).log()[None]
    for A in (1.0, -1.0):
        A = torch.full_like(rho, A)
        same = clip(0.2, delta=3.0)(None, A, rho), clip(0.2, dual=3.0)(None, A, rho)
        assert torch.equal(*same)
    tight, band = clip(0.2, delta=1.1), clip(0.2)
    up = torch.ones_like(rho)
    assert tight(None, up, rho).max().item() == pytest.approx(1.1)
    assert band(None, up, rho).max().item() == pytest.approx(1.2)


def test_a_band_wider_than_one_never_cuts_below():
    assert slope(clip(10.0), 0.001, -1.0) == pytest.approx(-0.001)


# ---- ratios


def test_gmpo_clips_before_the_mean():
    batch = worked_batch(advantages=SIGNS).cleaned()
    log_ratio = gmpo(0.4)(batch, SIGNS[:, None].expand_as(batch.logprobs))
    want = (math.log(0.75) + math.log(1.2) + math.log(0.88 / 0.9) - 0.4 + math.log(0.72 / 0.7)) / 5
    assert log_ratio[1, 0].item() == pytest.approx(want, abs=1e-12)
    assert log_ratio[0, 0].item() == pytest.approx(math.log(1.5785) / 3, abs=1e-12)


# ---- gates


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


# ---- shapes


def test_overlong_at_known_lengths():
    lengths = torch.tensor([16384.0, 17408.0, 18432.0, 20480.0, 30000.0])
    assert overlong(20480, 4096).penalty(lengths).tolist() == [0, -0.25, -0.5, -1, -1]
    assert "-0." not in str(overlong(20480, 4096).penalty(lengths[:1]).tolist())
    with pytest.raises(ValueError, match="cache must lie in"):
        overlong(10, 20)


def test_shapes_reach_the_baseline():
    batch = worked_batch()
    shaped = Objective(group_center(), logprob(), sequence_sum, shape=overlong(6, 4))
    # lengths 3 and 5: penalties -0.25 and -0.75, rewards 0.75 and -0.75
    assert shaped.prepare(batch).advantages[:, 0].tolist() == pytest.approx([0.75, -0.75])
    clipped = shaped.replace(shape=reward_clip(-0.5, 0.5))
    assert clipped.prepare(batch).advantages[:, 0].tolist() == pytest.approx([0.25, -0.25])


# ---- terms, advantages, weights


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


def test_normalised_leave_one_out():
    batch = worked_batch()
    got = Objective(leave_one_out(True, "bessel", 0.0), logprob(), token_sum).prepare(batch)
    assert got.advantages[:, 0].tolist() == pytest.approx([1 / math.sqrt(2), -1 / math.sqrt(2)])


def test_padded_length_follows_the_widest_row_and_does_not_split():
    objective = Objective(group_center(), ratio(), padded_length)
    prepared = objective.prepare(worked_batch())
    assert objective.evaluate(prepared).weights[0, 0].item() == pytest.approx(1 / (2 * 5))
    narrow = objective.replace(weights=constant_length(5))
    assert objective.loss(prepared).item() == pytest.approx(narrow.loss(prepared).item())


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


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: cispo(0.0), "cap must be above 0"),
        (lambda: cispo(1.2, floor=-0.1), "floor must be above 0"),
        (lambda: sapo(0.0), "tau_pos must be above 0"),
        (lambda: gmpo(-0.1), "epsilon must be at least 0"),
        (lambda: clip(delta=0.0), "delta must be above 0"),
        (lambda: reward_clip(1.0, 0.0), "low must be below high"),
        (
            lambda: Objective(
                group_center(), ratio(), token_mean, gates=divergence_mask(kind="js")
            )(worked_batch()),
            "kind must be 'tv' or 'kl'",
        ),
        (
            lambda: Objective(group_center(), ratio(), token_mean, gates=sequence_mask(anchor="x"))(
                worked_batch()
            ),
            "anchor must be 'old' or 'sampling'",
        ),
        (
            lambda: Objective(group_center(), ratio(), token_mean, gates=engine_ratio("row"))(
                worked_batch()
            ),
            "level must be 'token' or 'sequence'",
        ),
        (
            lambda: Objective(group_center(), ratio(), token_mean, gates=engine_ratio(kind="x"))(
                worked_batch()
            ),
            "kind must be 'truncate' or 'mask'",
        ),
    ],
)
def test_bad_values_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
