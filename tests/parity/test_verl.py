"""Our losses, gradients and advantages beside those that verl 0.9.1 gave: see record_verl.py.

Float64 to 1e-10 throughout; the worst difference is a few units in the last place. Fully masked
rows, holes in the mask, micro-batches and nan on every masked entry are in the cases.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import verl_table
from named_methods import aligned, said

from rlnb.interop import VERL_DEFAULTS, from_verl, known_words
from rlnb.interop.rosetta_table import ROWS
from rlnb.objective import (
    Batch,
    clip,
    engine_ratio,
    logprob,
    ratios,
    raw_reward,
    sequence,
    sequence_mean,
    token_mean,
    token_sum,
)

recorded, compare, Tally = verl_table.recorded, verl_table.compare, verl_table.Tally

# loss, then d loss / d log-prob of 3 + 5 tokens, made by hand from the worked example with A = +-1
BY_HAND = [
    (-0.073532, [-0.183333, 0, -0.170833, 0, 0.120000, 0.097778, 0, 0.102857]),  # GRPO
    (0.185169, [-0.1375, 0, -0.128125, 0, 0.15, 0.122222, 0, 0.128571]),  # one token mean
    (0.175169, [-0.1375, 0, -0.128125, 0, 0.15, 0.122222, 0, 0.128571]),  # DAPO
    (-0.000350, [0] * 8),  # GSPO, its own band
    (-0.155487, [-0.194057] * 3 + [0.085337] * 5),  # GSPO, a wide band
    (-0.129723, [-0.194057] * 3 + [0.090490] * 3 + [0, 0.090490]),  # GMPO
    (
        -0.346889,
        [-0.1375, -0.15, -0.128125, 0.1, 0.15, 0.122222, 0.1, 0.128571],
    ),  # CISPO, verl's band
    (-0.270756, [-0.1375, -0.15, -0.128125, 0.09375, 0.15, 0.122222, 0.0625, 0.128571]),  # no floor
    (
        -0.187408,
        [-0.182876, -0.224243, -0.170807, 0.073723, 0.118687, 0.097764, 0.046707, 0.102834],
    ),  # SAPO
    (-0.014087, [-0.068750, -0.0875, -0.064062, 0, 0.075, 0.061111, 0, 0.064286]),  # DPPO
    (
        2 * 0.046292,
        [2 * g for g in (-0.034375, 0, -0.032031, 0, 0.0375, 0.030556, 0, 0.032143)],
    ),  # / 8
    (2 * 0.074067, [2 * g for g in (-0.055, 0, -0.05125, 0, 0.06, 0.048889, 0, 0.051429)]),  # / 5
]


def test_verl_gives_the_numbers_made_by_hand():
    cases = [case for case in recorded()["losses"] if case["batch"] == "worked"]
    assert len(cases) == len(BY_HAND)
    for case, (loss, gradient) in zip(cases, BY_HAND, strict=True):
        # Dr. GRPO was worked with A = +-1/2 and rounded there: twice the rounding here
        assert case["loss"] == pytest.approx([loss], abs=1.1e-6), verl_table.say(case)
        assert case["gradient"] == pytest.approx(gradient, abs=1.1e-6), verl_table.say(case)


LOSSES = {
    "vanilla": 60,
    "gspo": 40,
    "geo_mean": 10,
    "cispo": 40,
    "sapo": 15,
    "dppo_tv": 40,
    "dppo_kl": 40,
    "clip_cov": 15,
    "kl_cov": 20,
    "gpg": 15,
    "reinforce": 15,
    "KL loss": 60,
    "entropy": 18,
    "engine correction": 36,
    "engine as anchor": 42,
    "value loss": 6,
    "methods by name": 34,
}
ADVANTAGES = {
    "grpo": 8,
    "rloo": 4,
    "rloo_vectorized": 4,
    "remax": 1,
    "reinforce_plus_plus": 8,
    "reinforce_plus_plus_baseline": 4,
    "gae": 8,
}


@pytest.mark.parametrize("name", [*LOSSES, *ADVANTAGES])
def test_ours_is_verls(name, record_property):
    tally = verl_table.verl_tables()[name]
    for word, value in (
        ("parity", f"verl {name}"),
        ("cases", tally.cases),
        ("value", tally.value),
        ("gradient", tally.gradient),
    ):
        record_property(word, value)
    assert tally.tolerance == 1e-10
    assert not tally.failures, "\n".join(tally.failures[:3])
    assert tally.cases >= {**LOSSES, **ADVANTAGES}[name]


def test_every_recorded_case_is_compared_or_refused():
    data = recorded()
    losses = {verl_table.kind(case) for case in data["losses"]} - {*verl_table.REFUSED_MODES}
    estimators = {case["words"]["adv_estimator"] for case in data["advantages"]}
    assert losses | {"value loss", "methods by name"} == LOSSES.keys()
    assert estimators - {*verl_table.REFUSED_ESTIMATORS} == ADVANTAGES.keys()
    assert set(verl_table.verl_tables()) == LOSSES.keys() | ADVANTAGES.keys()
    for words in (
        [{"loss_mode": mode} for mode in verl_table.REFUSED_MODES]
        + [{"adv_estimator": name} for name in verl_table.REFUSED_ESTIMATORS]
        + [
            {"adv_estimator": "remax", "use_kl_in_reward": True},
            {"rollout_is": "token"},
            {"rollout_rs": "token_k1"},
            {"use_pf_ppo": True},
            {"bypass_mode": True, "use_kl_in_reward": True},
            {"bypass_mode": True, "loss_mode": "geo_mean"},
            {"rollout_correction": {"rollout_is": "sequence"}},
            {"use_kl_in_reward": True, "kl_ctrl": {"type": "adaptive"}},
        ]
    ):
        with pytest.raises(ValueError, match="no word for|must be one of"):
            from_verl(**words)


def test_every_method_that_verl_can_say_is_recorded_in_its_words():
    """To add a method: see record_verl.py."""
    cases = recorded()["methods"]
    assert {case["name"]: case["words"] for case in cases} == said("verl")
    assert len(said("verl")) == 17 and len(cases) == 34


def changed(method):
    """The method with one part taken out or replaced, for every part that makes it."""
    yield method.replace(advantage=raw_reward())
    yield method.replace(surrogate=clip(0.05))
    yield method.replace(weights=token_sum())
    if not isinstance(method.surrogate, logprob):  # which reads no ratio
        yield method.replace(ratio=sequence() if method.ratio == ratios.token() else ratios.token())
    for name in ("shape", "credit", "gates", "terms"):
        if getattr(method, name):
            yield method.replace(**{name: ()})


@pytest.mark.parametrize("name", said("verl"))
def test_a_method_with_another_part_disagrees_with_verl(name):
    for wrong in changed(aligned("verl", name)):
        tally = Tally(name)
        for case in recorded()["methods"]:
            if case["name"] == name:
                verl_table.compare_method(tally, case, wrong)
        assert len(tally.failures) > 0, wrong


@pytest.mark.parametrize("mode, kind", [("dppo_tv", "tv"), ("dppo_kl", "kl")])
def test_dppo_keeps_a_token_that_moved_by_its_threshold_exactly(mode, kind):
    cases = [case for case in recorded()["ties"] if case["words"]["loss_mode"] == mode]
    assert [case["what"] for case in cases] == ["at", "above", "back"] * 2
    for case in cases:
        new, old = (torch.tensor([[case[k]]], dtype=torch.float64).log() for k in ("new", "old"))
        batch = Batch(
            new.requires_grad_(),
            torch.ones(1, 1),
            torch.zeros(1),
            1,
            old_logprobs=old,
            advantages=torch.tensor([[case["advantage"]]], dtype=torch.float64),
        )
        objective = from_verl(**case["words"]).objective
        assert objective.gates[0].kind == kind
        gradient = float(torch.autograd.grad(objective(batch).loss, new)[0])
        assert gradient == pytest.approx(case["gradient"], rel=1e-12), case
        assert (gradient == 0) == (case["what"] == "above"), case


def test_sections_may_be_given_whole():
    flat = from_verl(loss_mode="gspo", use_kl_in_reward=True, kl_coef=0.02).objective
    assert (
        flat
        == from_verl(
            policy_loss={"loss_mode": "gspo"},
            use_kl_in_reward=True,
            kl_ctrl={"type": "fixed", "kl_coef": 0.02},
        ).objective
    )


@pytest.mark.parametrize(
    "name, change",
    [
        ("vanilla", lambda o: o.replace(surrogate=replace(o.surrogate, dual=None))),
        ("vanilla", lambda o: o.replace(surrogate=replace(o.surrogate, high=None))),
        ("vanilla", lambda o: o.replace(weights=token_mean())),
        ("gspo", lambda o: o.replace(ratio=sequence())),
        ("gspo", lambda o: o.replace(ratio=ratios.token())),
        ("gspo", lambda o: o.replace(weights=sequence_mean())),
        ("cispo", lambda o: o.replace(surrogate=replace(o.surrogate, floor=None))),
        (
            "sapo",
            lambda o: o.replace(
                surrogate=replace(
                    o.surrogate, tau_pos=o.surrogate.tau_neg, tau_neg=o.surrogate.tau_pos
                )
            ),
        ),
        ("sapo", lambda o: o.replace(weights=token_mean())),
        ("geo_mean", lambda o: o.replace(ratio=sequence())),
        ("geo_mean", lambda o: o.replace(ratio=replace(o.ratio, high=None))),
        ("geo_mean", lambda o: o.replace(weights=replace(o.weights, count_empty=False))),
        ("dppo_tv", lambda o: o.replace(gates=())),
        ("dppo_tv", lambda o: o.replace(gates=replace(o.gates[0], kind="kl"))),
        ("dppo_tv", lambda o: o.replace(surrogate=replace(o.surrogate, cap=None))),
        ("dppo_kl", lambda o: o.replace(gates=replace(o.gates[0], kind="tv"))),
        ("dppo_kl", lambda o: o.replace(gates=replace(o.gates[0], low=o.gates[0].high or 1.0))),
        ("clip_cov", lambda o: o.replace(gates=())),
        ("clip_cov", lambda o: o.replace(surrogate=clip(0.2, dual=3.0))),
        ("kl_cov", lambda o: o.replace(surrogate=replace(o.surrogate, coefficient=0.0))),
        ("kl_cov", lambda o: o.replace(surrogate=replace(o.surrogate, fraction=0.5))),
        (
            "KL loss",
            lambda o: o.replace(
                terms=tuple(replace(t, straight_through=not t.straight_through) for t in o.terms)
            ),
        ),
        ("KL loss", lambda o: o.replace(terms=tuple(replace(t, weights=None) for t in o.terms))),
        ("entropy", lambda o: o.replace(terms=())),
        ("engine as anchor", lambda o: o.replace(ratio=ratios.token())),
        ("engine correction", lambda o: o.replace(gates=())),
        (
            "engine correction",
            lambda o: o.replace(gates=engine_ratio("token", "truncate", None, 2.0)),
        ),
    ],
)
def test_a_wrong_part_disagrees_with_verl(name, change, monkeypatch):
    right = verl_table.objective_of
    monkeypatch.setattr(verl_table, "objective_of", lambda case: change(right(case)))
    wrong = Tally(name)
    for case in recorded()["losses"]:
        if verl_table.kind(case) == name:
            compare(wrong, case)
    assert wrong.failures and max(wrong.value, wrong.gradient) > 1e-5


def test_verl_clamps_where_we_do_not():
    """Inside its clamps (+-20 nats; gspo +10) verl agrees; outside its ratio stays at the edge."""

    def ours(case, move):
        logprobs = torch.tensor([[-0.5]], dtype=torch.float64, requires_grad=True)
        batch = Batch(
            logprobs,
            torch.ones(1, 1),
            torch.zeros(1),
            1,
            old_logprobs=logprobs.detach() - move,
            advantages=torch.tensor([[case["advantage"]]], dtype=torch.float64),
        )
        loss = from_verl(**case["words"]).objective(batch).loss
        return float(loss.detach()), float(torch.autograd.grad(loss, logprobs)[0])

    beyond = 0
    for case in recorded()["clamps"]:
        mode = case["words"]["loss_mode"]
        edge = 10.0 if mode == "gspo" else 20.0
        loss, gradient = ours(case, min(case["move"], edge))
        assert case["loss"] == pytest.approx(loss, rel=1e-10)
        if case["move"] < edge:
            assert case["gradient"] == pytest.approx(gradient, rel=1e-10)
            continue
        beyond += 1
        # the ratio no longer moves; where it only weighs log pi the token still learns
        detached = mode in ("cispo", "dppo_tv")
        assert case["gradient"] == pytest.approx(gradient if detached else 0.0, rel=1e-10)
        free, _ = ours(case, case["move"])
        assert abs(free) > 1.6 * abs(case["loss"])
    assert beyond == 12


def test_defaults_are_those_of_verls_yaml():
    shipped = recorded()["defaults"]
    assert {word: shipped[word] for word in VERL_DEFAULTS} == VERL_DEFAULTS
    assert {word for word in shipped if "." not in word} <= known_words("verl")


def test_the_rosetta_tables_column_is_verls_yaml():
    shipped = recorded()["defaults"]
    quoted = [(word, value) for row in ROWS for word, value in row.defaults.get("verl", {}).items()]
    assert len(quoted) == 32
    assert not [(word, value) for word, value in quoted if shipped[word] != value]


def test_the_table_lists_every_loss():
    table = verl_table.verl_table()
    assert all(f"\n{name} " in table for name in {*LOSSES, *ADVANTAGES})
    assert "DISAGREE" not in table
