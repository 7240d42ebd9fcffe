"""The KL explorer against the package's terms, and the silent bug of the page on KL."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rlnb import check
from rlnb.classroom.explorers.kl_estimators import (
    DISTANCES,
    ESTIMATORS,
    LOGITS,
    REFERENCE,
    alt,
    compute,
    kl_estimator_explorer,
)
from rlnb.objective import Batch, k1, k2, k3

TERMS = {"k1": k1(1.0), "k2": k2(1.0), "k3": k3(1.0), "ratio k3": k3(1.0, corrected=True)}
SETTINGS = [(0.3, "fresh"), (1.0, "fresh"), (1.0, "stale"), (2.5, "stale")]


def logits_at(distance):
    ref = torch.tensor(REFERENCE).log()
    return ref + distance * (torch.tensor(LOGITS) - ref)


@pytest.mark.parametrize(("distance", "samples"), SETTINGS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_value_and_gradient_are_the_package_s_by_enumeration(name, distance, samples):
    data = compute(distance, samples)
    logits = logits_at(distance).requires_grad_()
    old = logits_at(distance * (0.5 if samples == "stale" else 1.0)).log_softmax(0)
    ref = torch.tensor(REFERENCE).log()
    batch = Batch(
        logits.log_softmax(0)[:, None],
        torch.ones(4, 1),
        torch.zeros(4),
        1,
        old_logprobs=old[:, None],
        ref_logprobs=ref[:, None],
    )
    mean = (old.exp() * TERMS[name](batch)[:, 0]).sum()
    (gradient,) = torch.autograd.grad(mean, logits)
    assert data["value"][name] == pytest.approx(mean.item(), abs=1e-12)
    assert np.allclose(data["gradient"][name], gradient.numpy(), atol=1e-12)


def test_distance_one_gives_the_worked_numbers():
    data = compute()
    assert data["kl"] == pytest.approx(0.414160, abs=1e-6)
    assert data["forward"] == pytest.approx(0.455309, abs=1e-6)
    spreads = [round(data["spread"][name], 6) for name in ("k1", "k2", "k3")]
    assert spreads == [0.810987, 0.198584, 0.388715]
    assert data["truth"].round(6).tolist() == [0.091325, -0.181437, 0.257102, -0.16699]


@pytest.mark.parametrize("distance", [0.2, 1.0, 3.0])
def test_on_fresh_samples_each_loss_follows_another_gradient(distance):
    data = compute(distance)
    assert np.allclose(data["gradient"]["k1"], 0, atol=1e-12)
    assert np.allclose(data["gradient"]["k2"], data["truth"], atol=1e-12)
    assert np.allclose(data["gradient"]["k3"], data["forward_gradient"], atol=1e-12)
    assert np.allclose(data["gradient"]["ratio k3"], data["truth"], atol=1e-12)


@pytest.mark.parametrize("distance", [0.2, 1.0, 3.0])
def test_only_the_corrected_form_survives_stale_samples(distance):
    data = compute(distance, "stale")
    assert data["value"]["ratio k3"] == pytest.approx(data["kl"], abs=1e-12)
    assert np.allclose(data["gradient"]["ratio k3"], data["truth"], atol=1e-12)
    for name in ("k1", "k2", "k3"):
        assert abs(data["value"][name] - data["kl"]) > 1e-4
        assert data["cosine"][name] < 0.9999
    assert data["cosine"]["k1"] < -0.8  # it pushes further away


def test_k3_is_quieter_than_k1_near_the_reference_and_noisier_far_from_it():
    curves = compute()["curves"]
    quieter = curves["k3"]["spread"][1:] < curves["k1"]["spread"][1:]
    assert quieter[0] and not quieter[-1]
    assert (np.diff(quieter.astype(int)) != 0).sum() == 1
    assert 1.0 < DISTANCES[1:][~quieter][0] < 1.5


def test_a_bad_setting_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match=r"one of \['fresh', 'stale'\]"):
        compute(1.0, "old")
    with pytest.raises(ValueError, match="must be from 0 to 3"):
        compute(4.0)


def test_picture_after_a_move_equals_a_fresh_drawing():
    explorer = kl_estimator_explorer()
    seen = {explorer.png()}
    before = len(explorer.figure.findobj())
    for distance, samples in [(2.5, "stale"), (0.0, "fresh"), (3.0, "stale"), (0.5, "fresh")]:
        explorer.set(distance=distance, samples=samples)
        assert np.array_equal(explorer.pixels(), explorer.pixels_from_scratch())
        assert explorer.alt_text() == alt(compute(distance, samples))
        seen.add(explorer.png())
    assert len(seen) == 5 and len(explorer.figure.findobj()) == before


def test_the_penalty_at_two_temperatures_is_exposed_on_the_first_step():
    def nothing_to_pay_at_the_reference(kl_penalty):
        logits = torch.tensor([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        tokens = torch.tensor([0, 2])
        assert kl_penalty(logits, logits, tokens, 0.7).abs().max() < 1e-6

    assert check.silent_bug_kl(nothing_to_pay_at_the_reference)


def test_the_penalty_at_two_temperatures_survives_the_usual_tests():
    logits, ref = torch.tensor([[1.0, 0.0, -1.0]]), torch.tensor([[0.0, 0.5, 0.0]])
    tokens = torch.tensor([1])
    bug = check.silent_bug_kl
    assert not bug(lambda f: bool((f(logits, ref, tokens, 0.7) >= 0).all()))
    assert not bug(lambda f: bool(f(logits, logits, tokens, 1.0).abs().max() < 1e-6))
    assert not bug(lambda f: f(logits, ref, tokens, 0.7).shape == (1,))
