"""Every exercise: the reference passes, conventions are recognised, mistakes are named apart."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
import torch

from rlnb import check
from rlnb.classroom.checking.exercise import Mistake
from rlnb.classroom.checking.outcome import run

CHECKS = [c for name in check.__all__ if isinstance(c := getattr(check, name), check.Check)]
EACH = pytest.mark.parametrize("one", CHECKS, ids=lambda one: one.exercise.name)
TWINS = Path(__file__).parents[2] / "notebooks" / "text"
FEWEST_MISTAKES = {"token_logprobs": 3, "k3": 3}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def fingerprint(exercise, candidate):
    """Values and gradients on all probes in one vector; nan becomes a number of its own."""
    pieces = []
    for probe in exercise.ordered_probes:
        outcome = run(candidate.function, exercise, probe, torch.float64)
        assert outcome.error is None, (candidate.sentence, probe.label, outcome.error)
        pieces += [torch.tensor(outcome.value.shape, dtype=torch.float64), outcome.value.flatten()]
        if outcome.gradients is None:
            pieces.append(torch.full((1,), 321.0, dtype=torch.float64))
        else:
            pieces += [g.flatten() for g in outcome.gradients.values()]
    return torch.cat(pieces).nan_to_num(nan=-777.0, posinf=-778.0, neginf=-779.0)


def test_these_exercises_are_offered():
    assert {one.exercise.name for one in CHECKS} == {
        "dpo_loss",
        "ipo_loss",
        "simpo_loss",
        "bradley_terry",
        "token_logprobs",
        "logit_push",
        "step_loss",
        "kl_slope",
        "tipping_lambda",
        "largest_advantage",
        "surrogate_push",
        "reinforce_loss",
        "baseline_leave_one_out",
        "group_advantages",
        "surrogate_clip",
        "dual_clip",
        "gae",
        "k3",
        "grpo_loss",
        "optimal_baseline",
        "noise_scale",
        "shared_baseline",
        "importance_estimate",
        "effective_sample_size",
        "kl_in_reward",
        "reverse_kl_push",
        "sft_loss",
        "kl_divergence",
        "cross_entropy",
        "overlong_penalty",
        "kept_reward",
        "refill_fates",
        "keep_informative",
        "prompt_weight",
        "stop_push",
        "token_mean",
        "constant_length",
        "prompt_mean",
        "switch_factor",
        "worker_losses",
        "cispo_loss",
        "sapo_gate",
        "dppo_mask",
        "sequence_ratio",
        "gspo_loss",
        "outlier_length",
        "two_ratios",
        "max_rl_advantages",
        "sigmoid_fit",
        "clip_fraction",
        "reuse_batch",
        "token_entropy",
        "pass_at_k",
        "majority_vote",
        "entropy_change",
        "later_loss",
        "run_log",
        "style_slope",
        "best_of_n_kl",
        "keep_best",
        "several_rewards",
        "observation_mask",
        "turn_advantages",
        "break_even_error",
        "memory_bytes",
        "queue_age",
        "corrected_loss",
        "batch_loss",
    }


@EACH
def test_the_reference_is_right(one):
    verdict = one(one.exercise.reference)
    assert repr(verdict) == f"right: {one.exercise.name}"
    assert verdict and verdict.passed


@EACH
def test_each_convention_is_recognised_by_its_own_sentence(one):
    for candidate in one.exercise.accepted[1:]:
        verdict = one(candidate.function)
        assert (verdict.kind, verdict.message) == ("convention", candidate.sentence)
        assert verdict.passed


@EACH
def test_each_mistake_is_named(one):
    assert len(one.exercise.mistakes) >= FEWEST_MISTAKES.get(one.exercise.name, 5)
    for mistake in one.exercise.mistakes:
        verdict = one(mistake.function)
        if mistake.harmless:  # a habit: right here, and told
            assert repr(verdict) == f"right: with a warning: {mistake.sentence}" and verdict
            continue
        assert (verdict.kind, verdict.message) == ("known mistake", mistake.sentence)
        assert not verdict


@EACH
def test_no_two_candidates_give_the_same_results(one):
    """Also not two different mistakes, each under its own convention (every third, if many)."""
    exercise = one.exercise
    plain = len(exercise.mistakes)
    stride = 3 if len(exercise.wrong) > 300 else 1
    assert stride == 1 or plain % stride  # or some mistakes would never be met
    found = {}
    for candidate in (*exercise.accepted, *exercise.wrong[:plain], *exercise.wrong[plain::stride]):
        vector = fingerprint(exercise, candidate)
        same_width = found.setdefault(len(vector), ([], []))
        for sentence, other in zip(*same_width, strict=True):
            if sentence != candidate.sentence:
                gap = float((vector - other).abs().max())
                assert gap > 1e-7, (gap, sentence, candidate.sentence)
        same_width[0].append(candidate.sentence)
        same_width[1].append(vector)


def test_a_mistake_is_named_under_another_std_as_well():
    one = check.grpo_loss
    crossed = one.exercise.wrong[len(one.exercise.mistakes) :]
    for candidate in crossed[::29]:
        assert one(candidate.function).message == candidate.sentence


@EACH
def test_every_sentence_fits_one_line(one):
    exercise = one.exercise
    sentences = [c.sentence for c in (*exercise.conventions, *exercise.mistakes)]
    for sentence in sentences + [p.catches for p in exercise.probes]:
        assert len(sentence) <= 160 and "\n" not in sentence, sentence
    assert len(set(sentences)) == len(sentences)
    assert 20 < len(one.hint) <= 320


@EACH
def test_every_convention_of_numbers_survives_float32(one):
    """The candidates themselves stay in the dtype they are given."""
    for candidate in (*one.exercise.accepted, *one.exercise.wrong[: len(one.exercise.mistakes)]):
        for probe in one.exercise.probes:
            outcome = run(candidate.function, one.exercise, probe, torch.float32)
            assert outcome.value.dtype == torch.float32, candidate.sentence


def test_probes_cover_the_cases_a_real_batch_has():
    probes = {p.label: p.arguments for p in check.grpo_loss.exercise.probes}
    lengths = probes["unequal lengths"]["mask"].sum(1)
    assert lengths[0] != lengths[1]
    off_policy = probes["unequal lengths"]
    assert not torch.equal(off_policy["logprobs"], off_policy["old_logprobs"])
    rate = probes["one right of four, padded"]["rewards"].mean()
    assert float(rate) == 0.25
    assert not probes["a row without tokens"]["mask"].any(1).all()
    garbage = probes["-inf and nan under the mask"]
    assert not torch.isfinite(garbage["logprobs"]).all()
    assert torch.isfinite(garbage["logprobs"][garbage["mask"]]).all()


# The references against the package


def probe_batches():
    from rlnb import Batch

    for probe in check.grpo_loss.exercise.probes:
        a = probe.cast(torch.float64)
        batch = Batch(
            a["logprobs"].requires_grad_(),
            a["mask"],
            a["rewards"],
            a["num_generations"],
            old_logprobs=a["old_logprobs"],
            ref_logprobs=a["ref_logprobs"],
        )
        yield a, batch


def test_grpo_loss_is_the_zoo_s():
    from rlnb import ZOO
    from rlnb.objective import clip, k3

    for a, batch in probe_batches():
        objective = ZOO["grpo"].replace(surrogate=clip(a["epsilon"]), terms=k3(a["beta"]))
        theirs = objective(batch).loss
        ours = check.grpo_loss.exercise.reference(*a.values())
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
        grads = [torch.autograd.grad(loss, batch.logprobs)[0] for loss in (ours, theirs)]
        torch.testing.assert_close(*grads, rtol=0, atol=1e-12)


def test_reinforce_loss_is_the_zoo_s():
    from rlnb import ZOO

    for a, batch in probe_batches():
        ours = check.reinforce_loss.exercise.reference(a["logprobs"], a["mask"], a["rewards"])
        torch.testing.assert_close(ours, ZOO["reinforce"](batch).loss, rtol=0, atol=1e-12)


def test_group_advantages_and_leave_one_out_are_the_package_s():
    from rlnb.objective import group_zscore, leave_one_out

    for a, batch in probe_batches():
        rewards, size = a["rewards"], a["num_generations"]
        token_rewards = torch.zeros_like(a["logprobs"])
        token_rewards[:, 0] = rewards
        batch = batch.replace(completion_mask=torch.ones_like(a["mask"]))
        z = group_zscore()(batch, token_rewards)[:, 0]
        ours = check.group_advantages.exercise.reference(rewards, size)
        torch.testing.assert_close(ours, z, rtol=0, atol=1e-12)
        loo = leave_one_out()(batch, token_rewards)[:, 0]
        ours = rewards - check.baseline_leave_one_out.exercise.reference(rewards, size)
        torch.testing.assert_close(ours, loo, rtol=0, atol=1e-12)


def test_clip_is_the_package_s():
    from rlnb.objective import clip

    for probe in check.surrogate_clip.exercise.probes:
        a = probe.cast(torch.float64)
        ours = check.surrogate_clip.exercise.reference(*a.values())
        theirs = clip(a["epsilon"])(None, a["advantage"], a["ratio"].log())
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    for probe in check.dual_clip.exercise.probes:
        a = probe.cast(torch.float64)
        ours = check.dual_clip.exercise.reference(*a.values())
        theirs = clip(a["epsilon"], dual=a["c"])(None, a["advantage"], a["ratio"].log())
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_gae_is_the_package_s():
    from rlnb import Batch
    from rlnb.objective import gae

    for probe in check.gae.exercise.probes:
        rewards, values, gamma, lam = probe.cast(torch.float64).values()
        row = torch.zeros(1, len(rewards), dtype=torch.float64)
        batch = Batch(row, torch.ones_like(row), torch.zeros(1), 1, values=values[None])
        theirs = gae(gamma, lam)(batch, rewards[None])[0]
        ours = check.gae.exercise.reference(rewards, values, gamma, lam)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_gae_gives_the_worked_numbers():
    probe = next(p for p in check.gae.exercise.probes if p.label == "reward at the end")
    advantages = check.gae.exercise.reference(*probe.cast(torch.float64).values())
    assert [round(a, 6) for a in advantages.tolist()] == [0.76075, 0.485, 0.3]


def test_k3_has_the_worked_slope():
    """d k3 / d log pi = 1 - ref/pi."""
    logprobs = torch.tensor([0.55, 0.14], dtype=torch.float64).log().requires_grad_()
    ref = torch.tensor([0.50, 0.12], dtype=torch.float64).log()
    value = check.k3.exercise.reference(logprobs, ref)
    assert [round(v, 6) for v in value.tolist()] == [0.004401, 0.011294]
    (slope,) = torch.autograd.grad(value.sum(), logprobs)
    torch.testing.assert_close(slope, 1 - (ref - logprobs.detach()).exp())


def test_kl_in_the_reward_is_the_package_s():
    from rlnb import Batch
    from rlnb.objective import Objective, kl_in_reward, logprob, return_to_go, token_mean

    for probe in check.kl_in_reward.exercise.ordered_probes[:3]:
        a = probe.cast(torch.float64)
        ours = check.kl_in_reward.exercise.reference(*a.values())
        batch = Batch(
            a["logprobs"],
            a["mask"],
            a["rewards"],
            1,
            old_logprobs=a["logprobs"],
            ref_logprobs=a["ref_logprobs"],
        )
        whole = (
            Objective(return_to_go(1.0), logprob(), token_mean, shape=kl_in_reward(a["beta"]))
            .prepare(batch)
            .advantages
        )
        to_go = ours.flip(1).cumsum(1).flip(1)
        torch.testing.assert_close(whole[a["mask"]], to_go[a["mask"]], rtol=0, atol=1e-12)


def test_effective_sample_size_runs_from_one_to_n():
    size = check.effective_sample_size.exercise.reference
    assert float(size(torch.zeros(8))) == pytest.approx(8)
    assert float(size(torch.tensor([1000.0, 0.0, 0.0]))) == pytest.approx(1)


MODULES = sorted({one.exercise.reference.__module__ for one in CHECKS})


@pytest.mark.parametrize("module", MODULES, ids=lambda name: name.rpartition(".")[2])
def test_every_mistake_with_a_sentence_belongs_to_an_exercise(module):
    """A function below `@mistake` that no exercise lists would never be recognised."""
    known = {id(m) for one in CHECKS for m in one.exercise.mistakes}
    written = {n: m for n, m in vars(import_module(module)).items() if isinstance(m, Mistake)}
    assert [name for name, m in written.items() if id(m) not in known] == []


def test_each_page_of_the_table_calls_its_checks():
    for page, modules in check.PAGES.items():
        (twin,) = TWINS.glob(f"??_{page}.py")
        text = twin.read_text(encoding="utf-8")
        beside = TWINS.parent / "statements" / "text" / twin.name  # some stand there
        text += beside.read_text(encoding="utf-8") if beside.exists() else ""
        for names in modules.values():
            for name in names:
                assert re.search(rf"\bcheck\.{name}\b", text), (page, name)
