"""Loss and per-token gradient of every composition against six-digit numbers made by hand.

The numbers were computed independently (numpy, gradients by central differences).
"""

from __future__ import annotations

import pytest
import torch
from worked import worked_batch

from rlnb.objective import (
    ZOO,
    Objective,
    cispo,
    clip,
    constant_length,
    divergence_mask,
    gmpo,
    group_zscore,
    k1,
    k2,
    k3,
    leave_one_out,
    product,
    ratio,
    sapo,
    sequence,
    sequence_mean,
    sequence_token,
    token_mean,
)

POPULATION, BESSEL = group_zscore(eps=0.0), group_zscore("bessel", eps=0.0)
GSPO = dict(ratio=sequence)

ROWS = {
    "grpo": (
        Objective(POPULATION, clip(0.2), sequence_mean),
        -0.073532,
        [-0.183333, 0, -0.170833],
        [0, 0.120000, 0.097778, 0, 0.102857],
    ),
    "grpo token mean": (
        Objective(POPULATION, clip(0.2), token_mean),
        0.185169,
        [-0.1375, 0, -0.128125],
        [0, 0.15, 0.122222, 0, 0.128571],
    ),
    "dapo": (
        Objective(POPULATION, clip(0.2, high=0.28), token_mean),
        0.175169,
        [-0.1375, 0, -0.128125],
        [0, 0.15, 0.122222, 0, 0.128571],
    ),
    "gspo tight": (
        Objective(POPULATION, clip(3e-4, high=4e-4), sequence_mean, **GSPO),
        -0.000350,
        [0, 0, 0],
        [0, 0, 0, 0, 0],
    ),
    "gspo wide": (
        Objective(POPULATION, clip(0.2, high=0.28), sequence_mean, **GSPO),
        -0.155487,
        [-0.194057] * 3,
        [0.085337] * 5,
    ),
    "gspo_token wide": (
        Objective(POPULATION, clip(0.2, high=0.28), sequence_mean, ratio=sequence_token),
        -0.155487,
        [-0.194057] * 3,
        [0.085337] * 5,
    ),
    "grpo bessel": (
        Objective(BESSEL, clip(0.2), sequence_mean),
        -0.051995,
        [-0.129636, 0, -0.120797],
        [0, 0.084853, 0.069139, 0, 0.072731],
    ),
    "grpo bessel + k3": (
        Objective(BESSEL, clip(0.2), sequence_mean, terms=k3(0.04)),
        -0.051052,
        [-0.129030, 0.000952, -0.120472],
        [-0.001156, 0.085519, 0.069003, -0.002667, 0.072842],
    ),
    "token mean bessel": (
        Objective(BESSEL, clip(0.2), token_mean),
        0.130934,
        [-0.097227, 0, -0.090598],
        [0, 0.106066, 0.086424, 0, 0.090914],
    ),
    "gspo wide bessel": (
        Objective(BESSEL, clip(0.2, high=0.28), sequence_mean, **GSPO),
        -0.109946,
        [-0.137219] * 3,
        [0.060342] * 5,
    ),
    "dr_grpo L=8": (
        ZOO["dr_grpo"],
        0.046292,
        [-0.034375, 0, -0.032031],
        [0, 0.0375, 0.030556, 0, 0.032143],
    ),
    "dr_grpo L=5": (
        ZOO["dr_grpo"].replace(weights=constant_length(5)),
        0.074067,
        [-0.055, 0, -0.05125],
        [0, 0.06, 0.048889, 0, 0.051429],
    ),
    "gmpo": (
        Objective(POPULATION, ratio(), sequence_mean, ratio=gmpo(0.4)),
        -0.129723,
        [-0.194057] * 3,
        [0.090490, 0.090490, 0.090490, 0, 0.090490],
    ),
    "gmpo bessel": (
        Objective(BESSEL, ratio(), sequence_mean, ratio=gmpo(0.4)),
        -0.091728,
        [-0.137219] * 3,
        [0.063986, 0.063986, 0.063986, 0, 0.063986],
    ),
    "cispo cap 5": (
        Objective(POPULATION, cispo(5.0), token_mean),
        -0.221603,
        [-0.1375, -0.175, -0.128125],
        [0.09375, 0.15, 0.122222, 0.0625, 0.128571],
    ),
    "cispo cap 1.2": (
        Objective(POPULATION, cispo(1.2), token_mean),
        -0.270756,
        [-0.1375, -0.15, -0.128125],
        [0.09375, 0.15, 0.122222, 0.0625, 0.128571],
    ),
    "cispo two-sided": (
        Objective(POPULATION, cispo(1.2, floor=0.8), token_mean),
        -0.346889,
        [-0.1375, -0.15, -0.128125],
        [0.1, 0.15, 0.122222, 0.1, 0.128571],
    ),
    "sapo": (
        Objective(POPULATION, sapo(1.0, 1.05), sequence_mean),
        -0.187408,
        [-0.182876, -0.224243, -0.170807],
        [0.073723, 0.118687, 0.097764, 0.046707, 0.102834],
    ),
    "sapo bessel": (
        Objective(BESSEL, sapo(1.0, 1.05), sequence_mean),
        -0.132518,
        [-0.129313, -0.158564, -0.120779],
        [0.052130, 0.083924, 0.069130, 0.033027, 0.072715],
    ),
    "dppo tv": (
        Objective(POPULATION, cispo(None), constant_length(8), gates=divergence_mask(0.10)),
        -0.014087,
        [-0.06875, -0.0875, -0.064062],
        [0, 0.075, 0.061111, 0, 0.064286],
    ),
    "dppo kl": (
        Objective(POPULATION, ratio(), constant_length(8), gates=divergence_mask(0.05, kind="kl")),
        None,
        [-0.06875, -0.0875, -0.064062],
        [0.046875, 0.075, 0.061111, 0, 0.064286],
    ),
    "rloo product": (
        Objective(leave_one_out(), ratio(), sequence_mean, ratio=product),
        -0.562965,
        [-0.78925] * 3,
        [0.226286] * 5,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_loss_and_gradient_of_the_worked_example(name):
    objective, loss, first, second = ROWS[name]
    batch = worked_batch()
    out = objective(batch)
    out.loss.backward()
    expected = torch.tensor([first + [0, 0], second], dtype=torch.float64)
    if loss is not None:  # some rows are known by their gradient only
        assert out.loss.item() == pytest.approx(loss, abs=1e-6)
    assert torch.allclose(batch.logprobs.grad, expected, atol=1e-6, rtol=0)


def test_rloo_on_a_product_ratio_by_hand():
    """L = -(1.5785 - 0.452571)/2, every token of a row gets the row's product over B."""
    batch = worked_batch()
    out = ROWS["rloo product"][0](batch)
    assert out.loss.item() == pytest.approx(-(1.5785 - 0.45257142857) / 2, abs=1e-10)


@pytest.mark.parametrize(
    ("term", "sequence_value", "token_value"),
    [(k1, -0.008852, -0.036021), (k2, 0.020971, 0.024741), (k3, 0.023577, 0.028061)],
)
def test_kl_terms_under_both_aggregations(term, sequence_value, token_value):
    batch = worked_batch(advantages=torch.zeros(2, dtype=torch.float64))
    for weights, value in ((sequence_mean, sequence_value), (token_mean, token_value)):
        loss = Objective(POPULATION, clip(0.2), weights, terms=term(1.0))(batch).loss
        assert loss.item() == pytest.approx(value, abs=1e-6)


def test_k3_per_token():
    batch = worked_batch()
    got = k3(1.0)(batch.cleaned()).detach()
    want = torch.tensor(
        [[0.004401, 0.011294, 0.001230, 0, 0], [0.035108, 0.015655, 0.000568, 0.155841, 0.000393]],
        dtype=torch.float64,
    )
    assert torch.allclose(got, want, atol=1e-6, rtol=0)


# a detached weight or a value borrowed from elsewhere: the loss is not the gradient's integral
STOPPED = {"cispo cap 5", "cispo cap 1.2", "cispo two-sided", "dppo tv", "gspo_token wide"}


@pytest.mark.parametrize("name", sorted(ROWS.keys() - STOPPED))
def test_gradient_agrees_with_finite_differences(name):
    """Central differences of the loss in every log-probability; no kink lies within 1e-6."""
    objective, *_ = ROWS[name]
    batch = worked_batch()
    objective(batch).loss.backward()
    for row, col in batch.mask.nonzero().tolist():
        step = torch.zeros_like(batch.logprobs)
        step[row, col] = 1e-6
        up, down = (
            objective(batch.replace(logprobs=batch.logprobs.detach() + s)).loss
            for s in (step, -step)
        )
        assert ((up - down) / 2e-6).item() == pytest.approx(
            batch.logprobs.grad[row, col].item(), abs=1e-7
        )


def test_float32_follows_float64():
    for objective, *_ in ROWS.values():
        wide, narrow = objective(worked_batch()), objective(worked_batch(torch.float32))
        assert narrow.loss.dtype == torch.float32
        assert narrow.loss.item() == pytest.approx(wide.loss.item(), abs=1e-6)


def test_explain_shows_weight_times_gate_times_advantage():
    batch = worked_batch()
    table = ROWS["grpo"][0].explain(batch)
    want = torch.where(batch.mask, -(table.weights * table.gate * table.advantages), 0.0)
    assert torch.allclose(table.gradient, want, atol=1e-12)
    assert table.gate[0, 1] == 0 and table.gate[1, 1].item() == pytest.approx(1.2)
    assert "1.1000" in str(table) and "-0.0000" not in str(table)
