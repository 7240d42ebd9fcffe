"""What a part promises: its seam, its company, the fields it needs, and one cleaning per call."""

from __future__ import annotations

import pytest
import torch
from worked import worked_batch

from rlnb import objective as package
from rlnb.objective import (
    ANNEX,
    ZOO,
    Batch,
    Objective,
    Part,
    clip,
    group_center,
    group_zscore,
    k3,
    kl_cov,
    local_token_mean,
    mgpo_weight,
    product,
    ratio,
    sequence,
    sequence_mean,
    token,
    token_mean,
    vespo,
    whiten,
)
from rlnb.toys import running_batch

SEAMS = ("advantage", "surrogate", "weights", "ratio", "shape", "credit", "gates", "terms")


def test_every_part_says_its_seam_and_stands_in_it():
    for name in package.__all__:
        value = getattr(package, name)
        if isinstance(value, type) and issubclass(value, Part) and value is not Part:
            assert value.fits in SEAMS, name
    for objective in (ZOO | ANNEX).values():
        for seam in SEAMS:
            held = getattr(objective, seam)
            for part in held if isinstance(held, tuple) else (held,):
                assert part.fits == seam


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Objective(clip(0.2), group_zscore(), token_mean),
            r"clip\(0.2\) is a part for `surrogate`, and stands in `advantage`",
        ),
        (
            lambda: Objective(group_zscore(), clip(0.2), token_mean, ratio=ratio()),
            r"ratio\(\) is a part for `surrogate`, and stands in `ratio`",
        ),
        (
            lambda: ZOO["grpo"].replace(gates=(whiten(),)),
            r"whiten\(\) is a part for `credit`, and stands in `gates`; write credit=whiten\(\)",
        ),
        (lambda: ZOO["grpo"].replace(weights=k3(0.1)), "stands in `weights`"),
    ],
)
def test_a_part_in_another_seam_is_refused(make, sentence):
    with pytest.raises(TypeError, match=sentence):
        make()


@pytest.mark.parametrize("other", [token(), sequence(), lambda b, A: b.logprobs])
def test_vespo_runs_only_beside_the_product_of_ratios(other):
    """Its weight is that of the answer: on token ratios it runs, and means something else."""
    alone = Objective(group_zscore(), vespo(), token_mean, ratio=other)
    with pytest.raises(ValueError, match=r"vespo\(\) takes ratio=product\(\), and this objective"):
        alone(worked_batch())
    assert alone.replace(ratio=product)(worked_batch()).loss.isfinite()


def test_a_missing_field_is_named_with_the_part_that_needs_it():
    batch = worked_batch()
    assert batch.required("ref_logprobs", "k3") is batch.ref_logprobs
    with pytest.raises(ValueError) as error:
        batch.required("values", "gae(gamma=1.0, lam=0.95)", " or use another baseline")
    assert str(error.value) == (
        "gae(gamma=1.0, lam=0.95) needs values, which the batch does not have: pass "
        "Batch(values=...) or use another baseline."
    )


NEEDING = {name: objective for name, objective in (ZOO | ANNEX).items() if objective.needs}


@pytest.mark.parametrize("name", NEEDING)
def test_a_part_called_on_its_own_misses_its_field_in_the_same_words(name):
    """check=False skips the check of the whole; the part itself still says what is missing."""
    objective = NEEDING[name]
    bare = worked_batch(ref_logprobs=None, sampling_logprobs=None)
    with pytest.raises(ValueError, match=r"needs (\w+), which the batch does not have: pass Batch"):
        objective.loss(objective.prepare(bare, check=False))


@pytest.mark.parametrize("name", [n for n in ZOO | ANNEX])
def test_prepare_without_check_prepares_the_same(name):
    objective, batch = (ZOO | ANNEX)[name], running_batch(complete=True)
    checked, plain = objective.prepare(batch), objective.prepare(batch, check=False)
    assert torch.equal(checked.advantages, plain.advantages)
    assert torch.equal(checked.totals.tokens, plain.totals.tokens)


def test_prepare_without_check_asks_nothing():
    batch = worked_batch().replace(rewards=torch.tensor([torch.nan, 0.0]))
    with pytest.raises(ValueError, match="rewards"):
        ZOO["dr_grpo"].prepare(batch)
    assert ZOO["dr_grpo"].prepare(batch, check=False).advantages.isnan().any()


def test_a_batch_is_cleaned_once_per_call(monkeypatch):
    calls = []
    real = Batch.cleaned
    monkeypatch.setattr(Batch, "cleaned", lambda self: calls.append(1) or real(self))
    objective, batch = ZOO["grpo"], worked_batch()
    prepared = objective.prepare(batch)
    for call in (objective, objective.prepare, lambda b: objective.loss(prepared)):
        calls.clear()
        call(batch)
        assert len(calls) == 1, call
    calls.clear()
    dict(objective.evaluate(prepared).metrics)
    assert len(calls) == 1


def test_parts_that_look_at_the_batch_say_so():
    """The enumeration of `rlnb.toys` sums rows of one class only where no part meets the others."""
    looking = {
        n for n in package.__all__ if getattr(getattr(package, n), "batch_statistics", False)
    }
    assert looking == {"clip_cov", "kl_cov", "top_entropy"}
    assert package.clip_cov.random and not kl_cov.random and not local_token_mean.batch_statistics


def test_a_homemade_callable_needs_no_seam():
    mine = Objective(
        lambda batch, rewards: batch.expand(rewards.sum(1)),
        lambda batch, A, moved: A * moved,
        lambda batch, totals: batch.completion_mask / totals.tokens,
        credit=mgpo_weight(),
    )
    assert mine(worked_batch()).loss.isfinite()
    assert Objective(group_center, clip, sequence_mean) == Objective(
        group_center(), clip(), sequence_mean()
    )
