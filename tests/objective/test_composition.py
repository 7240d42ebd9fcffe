"""Composition as the API: names, differences, splits, masks, permutations, bad input."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb import objective as package
from rlnb.objective import (
    ANNEX,
    ZOO,
    Batch,
    Objective,
    clip,
    closest,
    constant_length,
    difference,
    gae,
    group_center,
    group_zscore,
    k2,
    k3,
    kl_in_reward,
    leave_one_out,
    logprob,
    method,
    name_of,
    product,
    prompt_mean,
    ratio,
    sequence,
    sequence_mean,
    sequence_sum,
    term,
    token,
    token_mean,
    token_sum,
    value_loss,
    whiten,
)

RANDOM_OR_LOCAL = ("clip_cov", "kl_cov")  # over the rows at hand: they say they cannot be split

COMPOSITIONS = {
    **ZOO,
    **{name: objective for name, objective in ANNEX.items() if name not in RANDOM_OR_LOCAL},
    "grpo, sequence ratio": ZOO["grpo"].replace(ratio=sequence),
    "dual, product, sum": Objective(
        leave_one_out(), clip(0.2, dual=3.0), sequence_sum, ratio=product
    ),
    "token mean, k2": Objective(
        group_zscore("bessel"), clip(0.2, high=0.28), token_mean, terms=k2(0.1)
    ),
    "prompt mean, corrected k3": Objective(
        group_center(), ratio(), prompt_mean, terms=k3(0.1, corrected=True)
    ),
    "token sum, kl in reward, whitened": Objective(
        gae(0.9, 0.8),
        clip(0.2),
        token_sum,
        shape=kl_in_reward(0.1),
        credit=whiten,
        terms=value_loss(0.5),
    ),
    "gate and engine anchor": Objective(
        group_center(),
        clip(0.2),
        constant_length(9),
        ratio=token("sampling"),
        gates=lambda b, A, log_ratio: (log_ratio < 0.1).to(A.dtype),
    ),
}


def random_batch(seed, prompts=3, size=3, width=6, empty_row=False, binary=False):
    g = torch.Generator().manual_seed(seed)
    rows = prompts * size
    lengths = torch.randint(1, width + 1, (rows,), generator=g)
    mask = (torch.arange(width) < lengths[:, None]).double()
    mask[:, 1] = mask[:, 1] * (torch.rand(rows, generator=g) > 0.3)  # holes
    if empty_row:
        mask[0] = 0
    lp = -torch.rand(rows, width, generator=g) - 0.5

    def near(scale):
        return (lp + scale * torch.randn(rows, width, generator=g)).clamp(max=0)

    candidates = torch.randn(2, rows, width, 4, generator=g).log_softmax(-1)[..., :3]
    rewards = torch.rand(rows, generator=g).round(decimals=0 if binary else 1)
    return Batch(
        lp.requires_grad_(),
        mask,
        rewards,
        size,
        old_logprobs=near(0.4).detach(),
        ref_logprobs=near(0.3).detach(),
        sampling_logprobs=near(0.4).detach(),
        values=torch.rand(rows, width, generator=g).requires_grad_(),
        old_values=torch.rand(rows, width, generator=g),
        max_completion_length=width,
        greedy_rewards=torch.rand(rows, generator=g),
        entropies=torch.rand(rows, width, generator=g),
        topk_logprobs=candidates[0],
        old_topk_logprobs=candidates[1],
        sampled_rank=torch.randint(0, 3, (rows, width), generator=g),
    )


def batch_for(name, seed, **more):
    return random_batch(seed, binary=name == "maxrl", **more)


def gradient(objective, batch):
    return torch.autograd.grad(objective(batch).loss, batch.logprobs)[0]


# ---- properties


@pytest.mark.parametrize("name", COMPOSITIONS)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), empty=st.booleans())
def test_losses_of_any_split_add_up_also_inside_groups(name, seed, empty):
    objective, batch = COMPOSITIONS[name], batch_for(name, seed, empty_row=empty)
    prepared = objective.prepare(batch)
    whole = objective.loss(prepared)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(seed))
    split = [order[:2], order[2:3], order[3:]]
    parts = sum(objective.loss(prepared.rows(i)) for i in split)
    assert abs(whole - parts).item() < 1e-12 * max(1.0, abs(whole.item()))
    want, got = (
        torch.autograd.grad(x, batch.logprobs, retain_graph=True)[0] for x in (whole, parts)
    )
    assert (want - got).abs().max().item() < 1e-12


@pytest.mark.parametrize("name", COMPOSITIONS)
@pytest.mark.parametrize("poison", [math.inf, -math.inf, math.nan, 1e300])
def test_masked_tokens_get_exactly_zero_gradient_whatever_they_hold(name, poison):
    objective, clean = COMPOSITIONS[name], batch_for(name, 3, empty_row=True)
    dirty = {}
    for field in (
        "logprobs",
        "old_logprobs",
        "ref_logprobs",
        "sampling_logprobs",
        "values",
        "old_values",
        "entropies",
        "topk_logprobs",
        "old_topk_logprobs",
    ):
        value = getattr(clean, field).detach().clone()
        value[~clean.mask] = poison
        dirty[field] = value.requires_grad_(field in ("logprobs", "values"))
    batch = clean.replace(**dirty)
    out = objective(batch)
    out.loss.backward()
    assert out.loss.item() == objective(clean).loss.item()
    assert torch.equal(batch.logprobs.grad, gradient(objective, clean))
    assert (batch.logprobs.grad[~batch.mask] == 0).all()
    assert (out.per_token_loss[~batch.mask] == 0).all() and (out.weights[~batch.mask] == 0).all()


@pytest.mark.parametrize("name", COMPOSITIONS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_permutation_of_groups_changes_nothing(name, seed):
    objective, batch = COMPOSITIONS[name], batch_for(name, seed)
    order = torch.randperm(3, generator=torch.Generator().manual_seed(seed))
    rows = (order[:, None] * 3 + torch.arange(3)).reshape(-1)
    moved = batch.rows(rows)
    assert objective(moved).loss.item() == pytest.approx(objective(batch).loss.item(), abs=1e-12)
    loose = batch.logprobs.detach()[rows].requires_grad_()
    assert torch.allclose(
        gradient(objective, moved.replace(logprobs=loose)),
        gradient(objective, batch)[rows],
        atol=1e-12,
        rtol=0,
    )
    assert torch.allclose(
        objective(moved).advantages, objective(batch).advantages[rows], atol=1e-12
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-5, 5, allow_nan=False), min_size=4, max_size=16), st.booleans())
def test_zscores_are_bounded_by_sqrt_g_minus_1_and_sum_to_zero(rewards, bessel):
    size = len(rewards)
    batch = Batch(torch.zeros(size, 1), torch.ones(size, 1), torch.tensor(rewards), size)
    A = group_zscore("bessel" if bessel else "population")(batch, batch.rewards[:, None])[:, 0]
    assert A.abs().max() <= math.sqrt(size - 1) + 1e-9
    assert abs(A.sum().item()) < 1e-6


def test_minibatch_recomputes_its_totals():
    batch = random_batch(1)
    objective = Objective(group_center(), clip(0.2), token_mean)
    prepared = objective.prepare(batch)
    tokens = batch.lengths
    half = prepared.minibatch([0, 4, 5])
    assert half.totals.tokens == tokens[[0, 4, 5]].sum() and half.totals.rows == 3
    assert half.totals.row_group_tokens.tolist() == [tokens[0], *[tokens[4] + tokens[5]] * 2]
    assert prepared.rows([0, 4, 5]).totals.tokens == tokens.sum()


def test_prepare_once_then_follow_the_moving_policy():
    batch = random_batch(2)
    prepared = ZOO["grpo"].prepare(batch)
    moved = (batch.logprobs.detach() - 0.1).requires_grad_()
    direct = ZOO["grpo"](batch.replace(logprobs=moved)).loss
    assert ZOO["grpo"].loss(prepared.replace(logprobs=moved)).item() == direct.item()


# ---- composition, names, differences


def test_a_method_no_one_named_works():
    """Leave-one-out baseline, clip on the geometric mean, prompt mean, a homemade term."""

    def distance(batch):
        return (batch.logprobs - batch.anchor_logprobs).square()

    mine = Objective(
        leave_one_out(), clip(0.01), prompt_mean, ratio=sequence, terms=((0.5, distance), k3(0.01))
    )
    batch = random_batch(5)
    out = mine(batch)
    out.loss.backward()
    assert batch.logprobs.grad.isfinite().all() and batch.logprobs.grad.abs().sum() > 0
    assert name_of(mine) is None
    assert mine.terms[0] == term(0.5, distance)


def test_repr_is_the_constructor_call():
    names = {n: getattr(package, n) for n in package.__all__}
    for name in (
        *ZOO,
        *(n for n in ANNEX if n in COMPOSITIONS),
        "token mean, k2",
        "dual, product, sum",
        "prompt mean, corrected k3",
        "token sum, kl in reward, whitened",
    ):
        objective = COMPOSITIONS[name]
        assert eval(repr(objective), names) == objective, repr(objective)
    assert (
        repr(ZOO["grpo"]) == "Objective(group_zscore(), clip(0.2), sequence_mean, terms=k3(0.04))"
    )


def test_bare_parts_and_called_parts_are_the_same():
    assert Objective(group_zscore, clip, sequence_mean) == Objective(
        group_zscore(), clip(0.2), sequence_mean()
    )


def test_difference_is_the_changelog():
    assert str(difference(ZOO["grpo"], ZOO["dr_grpo"])).splitlines() == [
        "advantage: group_zscore() -> group_center()",
        "weights: sequence_mean -> constant_length()",
        "terms: k3(0.04) -> none",
    ]
    assert str(difference(ZOO["ppo"], copy.deepcopy(ZOO["ppo"]))) == "no difference"
    change = difference(ZOO["grpo"], ZOO["grpo"].replace(surrogate=clip(0.2, high=0.28))).changes[0]
    assert (change.part, change.after) == ("surrogate", "clip(0.2, high=0.28)")


def test_names_ignore_conventions_and_nothing_else():
    assert name_of(ZOO["grpo"].replace(advantage=group_zscore("bessel", 1e-4))) == "grpo"
    assert name_of(ZOO["dr_grpo"].replace(weights=constant_length(3000))) == "dr_grpo"
    assert name_of(ZOO["grpo"].replace(terms=())) is None
    assert name_of(ZOO["grpo"].replace(surrogate=clip(0.3))) is None
    named = ZOO | ANNEX
    assert {name: name_of(o) for name, o in named.items()} == {name: name for name in named}


def test_closest_says_what_is_missing():
    name, gap = closest(ZOO["grpo"].replace(terms=(), advantage=group_zscore("bessel")))
    assert name == "grpo" and str(gap) == "terms: k3(0.04) -> none"


def test_needs_lists_the_fields():
    assert ZOO["grpo"].needs == {"ref_logprobs"} and ZOO["ppo"].needs == {"values"}
    assert COMPOSITIONS["gate and engine anchor"].needs == {"sampling_logprobs"}


def test_zscored_grpo_on_policy_has_zero_loss_and_a_gradient():
    batch = random_batch(0).replace(old_logprobs=None)
    objective = ZOO["grpo"].replace(terms=())
    assert abs(objective(batch).loss.item()) < 1e-12
    assert gradient(objective, batch).norm() > 0.01


def test_gates_multiply_and_carry_no_gradient():
    """A gate equal to the ratio: weight rho * rho, not the derivative of rho squared."""
    batch = random_batch(0)
    objective = Objective(group_center(), ratio(), token_sum, gates=lambda b, A, x: x.exp())
    prepared = objective.prepare(batch)
    rho = (batch.logprobs - batch.old_logprobs).exp().detach()
    want = torch.where(batch.mask, -rho * rho * prepared.advantages, 0.0)
    assert torch.allclose(gradient(objective, batch), want, atol=1e-12)


def test_given_advantages_are_used_as_they_are():
    batch = random_batch(0).replace(advantages=torch.arange(9.0), num_generations=1)
    assert (
        Objective(group_zscore(), clip(0.2), token_mean)(batch).advantages[:, 0].tolist()
        == (torch.arange(9.0) * batch.completion_mask[:, 0]).tolist()
    )


def test_token_rewards_replace_the_scalar():
    lp = torch.full((2, 2), -1.0, requires_grad=True)
    batch = Batch(
        lp,
        torch.ones(2, 2),
        torch.zeros(2),
        2,
        token_rewards=torch.tensor([[0.5, 0.5], [0.0, 0.0]]),
    )
    assert Objective(group_center(), logprob(), token_mean)(batch).advantages[:, 0].tolist() == [
        0.5,
        -0.5,
    ]


# ---- bad input: one sentence each


def ok(**changes):
    return random_batch(0).replace(**changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (dict(logprobs=torch.zeros(9)), r"logprobs must be a float tensor of shape \(B, T\)"),
        (dict(logprobs=torch.zeros(9, 6, dtype=torch.long)), "float tensor"),
        (dict(completion_mask=torch.ones(9, 5)), r"completion_mask must have shape \(9, 6\)"),
        (dict(completion_mask=torch.full((9, 6), 0.5)), "only 0 and 1"),
        (dict(completion_mask=torch.zeros(9, 6)), "0 everywhere"),
        (dict(rewards=torch.zeros(9, 1)), r"rewards must have shape \(9,\)"),
        (dict(rewards=torch.full((9,), math.nan)), r"rewards\[0\] is nan"),
        (dict(rewards=[1.0] * 9), "rewards must be a tensor"),
        (dict(num_generations=4), "not a multiple of num_generations=4"),
        (dict(num_generations=0), "int of at least 1"),
        (dict(num_generations=1), "group_zscore compares answers to one prompt"),
        (dict(old_logprobs=torch.zeros(9, 7)), r"old_logprobs must have shape \(9, 6\)"),
        (
            dict(ref_logprobs=None),
            r"k3\(0.04\) needs ref_logprobs, which the batch does not have: pass "
            r"Batch\(ref_logprobs=...\) or drop the term with .replace\(terms=\(\)\).",
        ),
        (dict(advantages=torch.zeros(3)), r"advantages must have shape \(9,\) or \(9, 6\)"),
        (dict(logprobs=torch.full((9, 6), math.nan)), "is nan on an unmasked token"),
        (dict(logprobs=torch.full((9, 6), 0.5)), "Did you pass probabilities"),
    ],
)
def test_bad_batches_get_one_clear_sentence(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        ZOO["grpo"](ok(**changes))


def test_constant_length_without_a_length():
    with pytest.raises(ValueError, match="constant_length needs its constant"):
        ZOO["dr_grpo"](ok(max_completion_length=None))


def test_unknown_method_suggests_the_near_one():
    with pytest.raises(ValueError, match="Did you mean 'dr_grpo'"):
        method("drgrpo")
    with pytest.raises(ValueError, match="Did you mean 'grpo'"):
        method("GRPO")
    assert method("rloo") is ZOO["rloo"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: clip(-0.1), "epsilon must be at least 0"),
        (lambda: clip(0.2, dual=0.9), "dual must be above 1"),
        (lambda: ZOO["grpo"].replace(baseline=1), "no part 'baseline'"),
        (lambda: Objective(3, clip(0.2), token_mean), "advantage must be a part"),
        (
            lambda: Objective(group_center(), clip(0.2), token_mean, terms=lambda b: b.logprobs),
            "a term needs a coefficient",
        ),
        (
            lambda: group_zscore("sample")(ok(), ok().logprobs),
            "std must be 'population' or 'bessel'",
        ),
    ],
)
def test_bad_parts_get_one_clear_sentence(call, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        call()
