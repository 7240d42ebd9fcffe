"""TRL as installed against rlnb: loss, gradient and advantages, setting by setting."""

from __future__ import annotations

import importlib.metadata
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from named_methods import aligned, said

from rlnb.interop import from_trl
from rlnb.objective import clip, logprob, raw_reward, sequence, token, token_sum

ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    "grpo",
    "bnpo",
    "dr_grpo",
    "dapo",
    "luspo",
    "cispo",
    "sapo",
    "vespo",
    "entropy",
    "rloo",
    "gmpo",
    "engine",
    "from_rewards",
    "from_rewards_float32",
    "rloo_from_rewards",
    "rloo_from_rewards_float32",
    "gmpo_from_rewards",
    "methods",
]


@pytest.fixture(autouse=True)
def float64():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def test_trl_is_the_locked_version(reference):
    lock = (ROOT / "requirements-test.txt").read_text()
    wanted = re.search(r"^trl==(.+)$", lock, re.MULTILINE)[1]
    assert reference.VERSION == importlib.metadata.version("trl") == wanted


# ---- the harness: hand numbers must come out of TRL

OLD = [[0.50, 0.10, 0.80], [0.60, 0.05, 0.90, 0.30, 0.70]]
NEW = [[0.55, 0.14, 0.82], [0.45, 0.06, 0.88, 0.15, 0.72]]
REF = [[0.50, 0.12, 0.78], [0.58, 0.05, 0.91, 0.25, 0.70]]

# one prompt, two answers, A = +-1: six digits made by hand, not by this package
BY_HAND = {
    "grpo": (
        dict(loss_type="grpo"),
        -0.073532,
        [-0.183333, 0, -0.170833],
        [0, 0.120000, 0.097778, 0, 0.102857],
    ),
    "token mean": (
        dict(loss_type="dapo"),
        0.185169,
        [-0.1375, 0, -0.128125],
        [0, 0.15, 0.122222, 0, 0.128571],
    ),
    "dapo": (
        dict(loss_type="dapo", epsilon_high=0.28),
        0.175169,
        [-0.1375, 0, -0.128125],
        [0, 0.15, 0.122222, 0, 0.128571],
    ),
    "dr_grpo L=8": (
        dict(loss_type="dr_grpo", max_completion_length=8),
        2 * 0.046292,
        [2 * -0.034375, 0, 2 * -0.032031],
        [0, 2 * 0.0375, 2 * 0.030556, 0, 2 * 0.032143],
    ),
    "gspo tight": (
        dict(
            loss_type="grpo", importance_sampling_level="sequence", epsilon=3e-4, epsilon_high=4e-4
        ),
        -0.000350,
        [0] * 3,
        [0] * 5,
    ),
    "gspo wide": (
        dict(loss_type="grpo", importance_sampling_level="sequence", epsilon_high=0.28),
        -0.155487,
        [-0.194057] * 3,
        [0.085337] * 5,
    ),
    "gmpo": (
        dict(kind="gmpo"),
        -0.129723,
        [-0.194057] * 3,
        [0.090490, 0.090490, 0.090490, 0, 0.090490],
    ),
    "cispo cap 5": (
        dict(loss_type="cispo", epsilon_high=5.0),
        -0.221603,
        [-0.1375, -0.175, -0.128125],
        [0.09375, 0.15, 0.122222, 0.0625, 0.128571],
    ),
    "sapo": (
        dict(loss_type="sapo"),
        -0.187408,
        [-0.182876, -0.224243, -0.170807],
        [0.073723, 0.118687, 0.097764, 0.046707, 0.102834],
    ),
    "rloo, no clip": (
        dict(kind="rloo", beta=0.0, epsilon=0.6),
        -0.562965,
        [-0.78925] * 3,
        [0.226286] * 5,
    ),
}


def two_answers(reference, **fields):
    def logs(rows):
        return torch.tensor([row + [1.0] * (5 - len(row)) for row in rows]).log()

    given = dict(old=logs(OLD), ref=logs(REF), advantages=torch.tensor([1.0, -1.0]))
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    return reference.Rollout(logs(NEW), mask, 2, **(given | fields))


@pytest.mark.parametrize("name", BY_HAND)
def test_hand_numbers_come_out_of_trl(reference, name):
    keywords, loss, first, second = BY_HAND[name]
    got, gradient = reference.loss_and_gradient(two_answers(reference), **keywords)
    expected = torch.tensor([first + [0, 0], second], dtype=torch.float64)
    assert got.item() == pytest.approx(loss, abs=1.5e-6)
    assert torch.allclose(gradient, expected, atol=1.5e-6, rtol=0)


def test_hand_numbers_of_the_kl_come_out_of_trl(reference):
    """Plain k3 by default is not TRL's: it multiplies by the ratio unless told not to."""
    bessel = two_answers(reference, advantages=torch.tensor([1.0, -1.0]) / math.sqrt(2))
    plain = dict(loss_type="grpo", beta=0.04, use_bias_correction_kl=False)
    loss, gradient = reference.loss_and_gradient(bessel, **plain)
    assert loss.item() == pytest.approx(-0.051052, abs=1e-6)
    assert gradient[0, 1].item() == pytest.approx(0.000952, abs=1e-6)
    corrected, _ = reference.loss_and_gradient(bessel, loss_type="grpo", beta=0.04)
    k3 = [[0.004401, 0.011294, 0.001230], [0.035108, 0.015655, 0.000568, 0.155841, 0.000393]]
    rho = [[n / o for n, o in zip(*rows, strict=True)] for rows in zip(NEW, OLD, strict=True)]
    extra = (
        sum(
            sum((r - 1) * k for r, k in zip(*rows, strict=True)) / len(rows[0])
            for rows in zip(rho, k3, strict=True)
        )
        / 2
    )
    assert (corrected - loss).item() == pytest.approx(0.04 * extra, abs=1e-6)


# ---- the comparison


def test_every_comparison_is_run(comparison):
    assert list(comparison.comparisons()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_rlnb_computes_what_trl_computes(comparison, name, record_property):
    tally = comparison.run(comparison.comparisons()[name])
    record_property("parity", f"TRL {comparison.trl_reference.VERSION}, {tally.name}")
    for field in ("cases", "value", "gradient"):
        record_property(field, getattr(tally, field))
    count = len(tally.failures)
    assert not count, "\n".join(
        [
            f"{count} of {tally.cases} cases differ by more than {tally.tolerance:g}:",
            *tally.failures[:5],
        ]
    )


def changed(method):
    """The method with one part taken out or replaced, for every part that makes it."""
    yield method.replace(advantage=raw_reward())
    yield method.replace(weights=token_sum())
    if not isinstance(method.surrogate, logprob):  # RLOO, compared where every ratio is 1
        yield method.replace(surrogate=clip(0.05))
        if "ratio" not in method.surrogate.beside:  # another one is refused: test_parts
            yield method.replace(ratio=sequence() if method.ratio == token() else token())
    for name in ("gates", "terms"):
        if getattr(method, name):
            yield method.replace(**{name: ()})


@pytest.mark.parametrize("name", said("trl"))
def test_a_method_with_another_part_disagrees_with_trl(comparison, name):
    for wrong in changed(aligned("trl", name)):
        tally = comparison.Tally(name, 1e-8)
        comparison.compare_method(tally, name, wrong)
        assert tally.failures, wrong


def test_twelve_methods_are_compared_with_trl(comparison):
    assert len(said("trl")) == 12
    assert comparison.run(comparison.methods).cases == 2 * 12 - 1  # RLOO at ratio 1 only


def test_no_keyword_is_idle(comparison):
    """Each keyword changes TRL's loss or gradient on some rollout, or its case proves nothing."""
    changes = {
        "grpo": [
            {"beta": 0.04},
            {"epsilon": 0.1},
            {"epsilon_high": 0.28},
            {"delta": 4.0},
            {"delta": 1.15},
            {"importance_sampling_level": "sequence"},
            {"off_policy_mask_threshold": 0.05},
            {"top_entropy_quantile": 0.5},
            {"entropy_coef": 0.01},
        ],
        "dr_grpo": [{"max_completion_length": 8}],
        "cispo": [{"epsilon_high": 5.0}, {"epsilon_high": 1.05}],
        "sapo": [{"sapo_temperature_pos": 2.0}, {"sapo_temperature_neg": 0.5}],
        "vespo": [
            {"vespo_k_pos": 1.0},
            {"vespo_lambda_pos": 0.5},
            {"vespo_k_neg": 0.5},
            {"vespo_lambda_neg": 1.0},
        ],
    }
    for kind, words in changes.items():
        for change in words:
            assert moved(comparison, {"loss_type": kind}, change), (kind, change)
    sequence = {"loss_type": "grpo", "importance_sampling_level": "sequence"}
    for change in ({"delta": 4.0}, {"epsilon": 0.1}, {"off_policy_mask_threshold": 0.05}):
        assert moved(comparison, sequence, change), change
    for level in comparison.LEVELS:
        base = {"loss_type": "grpo", "importance_sampling_level": level, "beta": 0.04}
        assert moved(comparison, base, {"use_bias_correction_kl": False}), level


def moved(comparison, base, change):
    for rollout in comparison.rollouts().values():
        before = comparison.trl_reference.loss_and_gradient(rollout, **base)
        after = comparison.trl_reference.loss_and_gradient(rollout, **base, **change)
        if any(not torch.equal(a, b) for a, b in zip(before, after, strict=True)):
            return True
    return False


def test_off_policy_mask_looks_at_the_engine_where_there_is_one(comparison):
    """Row 1 (A < 0) rose since the trainer's old policy, and fell since the engine's."""
    whole = comparison.full()
    engine = whole.logprobs + 0.5
    rollout = replace(whole, sampling=engine.clamp(max=-0.01))
    words = dict(
        loss_type="grpo",
        off_policy_mask_threshold=0.05,
        use_vllm=True,
        vllm_importance_sampling_correction=False,
    )
    loss, gradient = comparison.trl_reference.loss_and_gradient(rollout, **words)
    mine = comparison.ours(from_trl(**words).objective, rollout)
    assert bool((gradient[1] == 0).all())
    assert torch.allclose(loss, mine[0], atol=1e-10, rtol=0)
    assert torch.allclose(gradient, mine[1], atol=1e-10, rtol=0)


def test_fully_masked_rows_of_rloo_and_gmpo_add_a_constant(comparison):
    """The one place where the values differ: TRL adds -A_i/B for such a row, ours adds 0."""
    rollout = comparison.rollouts()["holes"]
    constant = comparison.constant_of_empty_rows(rollout, rollout.advantages)
    assert constant == pytest.approx(0.2 / 12)
    for kind, words in (("rloo", {"beta": 0.0}), ("gmpo", {})):
        loss, gradient = comparison.trl_reference.loss_and_gradient(rollout, kind, **words)
        mine, own = comparison.ours(from_trl(trainer=kind, **words).objective, rollout)
        assert (loss - mine).item() == pytest.approx(constant, abs=1e-10)
        assert torch.allclose(gradient, own, atol=1e-10, rtol=0)


def test_a_wrong_objective_is_noticed(comparison):
    """The comparison can fail: every part of GRPO, changed slightly, is told from TRL's."""
    tally = comparison.Tally("wrong", 1e-10)
    rollout = comparison.rollouts()["holes"]
    theirs = comparison.trl_reference.loss_and_gradient(rollout, loss_type="grpo", beta=0.04)
    wrong = [
        dict(loss_type="dapo", beta=0.04),
        dict(loss_type="bnpo", beta=0.04),
        dict(loss_type="grpo", beta=0.04, use_bias_correction_kl=False),
        dict(loss_type="grpo"),
        dict(loss_type="grpo", beta=0.04, epsilon=0.2001),
        dict(loss_type="grpo", beta=0.04, importance_sampling_level="sequence"),
    ]
    for words in wrong:
        tally.add(str(words), theirs, comparison.ours(from_trl(**words).objective, rollout))
    assert len(tally.failures) == len(wrong)
