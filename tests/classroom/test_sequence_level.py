"""GSPO's checks: against the package, other ways to write it, the doubled gradient, the table."""

from __future__ import annotations

import pytest
import torch

from rlnb import check
from rlnb.objective import ZOO, Batch, clip
from rlnb.objective import sequence as package_ratio


def batch_of(probe):
    a = probe.cast(torch.float64)
    rows = len(a["mask"])
    extra = {"advantages": a["advantages"]} if "advantages" in a else {}
    clean = {name: torch.where(a["mask"], a[name], -1.0) for name in ("logprobs", "old_logprobs")}
    gap = torch.where(a["mask"], clean["logprobs"] - clean["old_logprobs"], 0.0)
    # the same ratios further down: a Batch takes log-probs below 0 only
    lp = (clean["old_logprobs"] - 20 + gap).requires_grad_()
    return a, Batch(
        lp,
        a["mask"].double(),
        torch.zeros(rows),
        rows,
        old_logprobs=clean["old_logprobs"] - 20,
        **extra,
    )


def ordinary(name):
    return [p for p in getattr(check, name).exercise.probes if not p.catches]


@pytest.mark.parametrize("probe", ordinary("sequence_ratio"), ids=lambda p: p.label)
def test_the_ratio_is_the_package_s(probe):
    a, batch = batch_of(probe)
    mine = check.sequence_ratio.exercise.reference(**a)
    torch.testing.assert_close(mine, package_ratio()(batch).exp()[:, 0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("probe", ordinary("gspo_loss"), ids=lambda p: p.label)
def test_the_loss_and_its_gradient_are_the_package_s(probe):
    a, batch = batch_of(probe)
    a["logprobs"].requires_grad_()
    mine = check.gspo_loss.exercise.reference(**a)
    theirs = ZOO["gspo"].replace(surrogate=clip(a["epsilon"], high=a["epsilon_high"]))(batch).loss
    torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)
    pair = (
        torch.autograd.grad(mine, a["logprobs"])[0],
        torch.autograd.grad(theirs, batch.logprobs)[0],
    )
    torch.testing.assert_close(*pair, rtol=1e-9, atol=1e-12)


def test_the_example_that_goes_around():
    moves = torch.tensor(
        [
            [0.1, 0.1, 0.1, 0.1, -0.1, -0.1],
            [0.1, 0.1, 0.1, -0.1, -0.1, 9],
            [0.1, 0.1, -0.1, -0.1, 9, 9],
        ]
    )
    s = check.sequence_ratio.exercise.reference(moves, torch.zeros(3, 6), moves < 9)
    assert s.tolist() == pytest.approx([1.033895, 1.020201, 1.0], abs=1e-6)


def test_other_ways_to_write_the_ratio_are_right():
    def by_row(lp, old, mask):
        rows = [
            (a[m] - b[m]).mean() if m.any() else a[m].sum()
            for a, b, m in zip(lp, old, mask, strict=True)
        ]
        return torch.stack(rows).exp()

    assert repr(check.sequence_ratio(by_row)) == "right: sequence_ratio"

    def by_root(lp, old, mask):
        rho = torch.where(mask, lp - torch.where(mask, old, 0), 0).exp()
        return rho.prod(1) ** (1 / mask.sum(1).clamp(min=1).to(lp.dtype))

    assert check.sequence_ratio(by_root)


def test_the_token_form_of_the_loss_is_the_same_loss():
    ratio = check.silent_bug_gspo.right

    def token_form(lp, old, mask, A, low, high):
        lp, old = (torch.where(mask, x, 0) for x in (lp, old))
        s, A = ratio(lp, old, mask), A[:, None]
        value = torch.min(s * A, s.clamp(1 - low, 1 + high) * A)
        return -(torch.where(mask, value, 0).sum(1) / mask.sum(1)).mean()

    assert repr(check.gspo_loss(token_form)) == "right: gspo_loss"


def test_a_flipped_sign_and_a_cap_of_ten_are_recognised():
    reference = check.gspo_loss.exercise.reference
    assert "minimises" in check.gspo_loss(lambda *a: -reference(*a)).message
    verdict = check.gspo_loss(lambda *a: reference(*a, cap=10.0))
    assert verdict.kind == "convention" and "verl" in verdict.message


NEW = torch.tensor([[-0.5, -1.0, -0.2], [-0.7, -0.4, 0.0]], dtype=torch.float64)
OLD = torch.tensor([[-0.6, -0.8, -0.3], [-0.9, -0.5, 0.0]], dtype=torch.float64)
MASK = torch.tensor([[True] * 3, [True, True, False]])


def gradient(ratio, weights):
    new = NEW.clone().requires_grad_()
    value = torch.where(MASK, ratio(new, OLD, MASK), 0.0)
    return torch.autograd.grad((weights * value).sum(), new)[0], value.detach()


def test_the_bug_has_every_value_right_and_the_gradient_doubled():
    bug = check.silent_bug_gspo
    even = torch.ones(2, 3, dtype=torch.float64)
    right, value = gradient(bug.right, even)
    broken, other = gradient(bug.broken, even)
    assert torch.equal(value, other)
    torch.testing.assert_close(broken, 2 * right, rtol=0, atol=1e-12)
    one = torch.zeros(2, 3, dtype=torch.float64)
    one[0, 0] = 1.0
    right, _ = gradient(bug.right, one)
    broken, _ = gradient(bug.broken, one)
    assert right[0, 1] == 0 != broken[0, 1]


def test_the_bug_is_exposed_by_a_gradient_and_not_by_a_value():
    def size(ratio):
        even = torch.ones(2, 3, dtype=torch.float64)
        g, value = gradient(ratio, even)
        assert torch.allclose(g, torch.where(MASK, value, 0.0))

    assert check.silent_bug_gspo(size)

    def values(ratio):
        s = check.sequence_ratio.exercise.reference(NEW, OLD, MASK)
        assert torch.allclose(ratio(NEW, OLD, MASK)[:, 0], s)

    def direction(ratio):
        g, value = gradient(ratio, torch.ones(2, 3, dtype=torch.float64))
        assert torch.cosine_similarity(g.flatten(), value.flatten(), dim=0) > 1 - 1e-12

    for blind in (values, direction):
        assert check.silent_bug_gspo(blind).message.startswith(
            "your test passes on the broken code"
        )


@pytest.mark.parametrize("answer", ["GMPO", "gmpo", "Geometric-Mean Policy Optimization"])
def test_the_table_is_gmpo_s(answer):
    verdict = check.name_this_gspo(answer)
    assert verdict and "before" in verdict.message


@pytest.mark.parametrize(
    "near", ["GSPO", "GSPO-token", "GRPO", "PPO", "DAPO", "CISPO", "SAPO", "LUSPO", "DPPO", "SSPO"]
)
def test_a_near_miss_is_told_what_gives_it_away(near):
    verdict = check.name_this_gspo(near)
    assert verdict.kind == "wrong" and "look at the baseline" not in verdict.message
