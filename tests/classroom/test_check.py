"""The engine of the checks: what it says of functions that learners write."""

from __future__ import annotations

import ast
import inspect
import sys
import time

import pytest
import torch

from rlnb import check
from rlnb.classroom.checking.exercise import Convention, Exercise, Mistake, Probe, mistake


def my_k3(logprobs, ref_logprobs):
    d = ref_logprobs - logprobs
    return torch.expm1(d) - d


def my_grpo(lp, old, ref, mask, rewards, G, epsilon, beta, *, where=True, largest=False):
    """As a learner writes it who has read TRL: Bessel std, eps 1e-4."""
    groups = rewards.view(-1, G)
    z = (groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)
    advantage = z.view(-1, 1)
    if where:
        lp, old, ref = (x.masked_fill(~mask, 0) for x in (lp, old, ref))
    ratio = torch.exp(lp - old)
    one, two = ratio * advantage, ratio.clamp(1 - epsilon, 1 + epsilon) * advantage
    surrogate = torch.min(one, two)
    if largest:
        surrogate = torch.where(advantage < 0, torch.max(one, two), surrogate)
    per_token = (beta * my_k3(lp, ref) - surrogate) * mask
    return (per_token.sum(1) / mask.sum(1).clamp(min=1)).mean()


def not_implemented(logprobs, ref_logprobs):
    raise NotImplementedError


def half_filled(logprobs, ref_logprobs):
    d = ...
    return d - 1


@pytest.mark.parametrize(
    "stub", [not_implemented, half_filled, lambda a, b: None, lambda a, b: ..., None, ...]
)
def test_a_stub_is_not_attempted_and_never_raises(stub):
    verdict = check.k3(stub)
    assert verdict.kind == "not attempted"
    assert not verdict and not verdict.passed
    assert repr(verdict).startswith("not attempted: k3(logprobs, ref_logprobs): ")


def test_a_result_in_place_of_the_function_is_explained():
    verdict = check.k3(torch.ones(2))
    assert verdict.kind == "wrong" and "check.k3(your_function)" in verdict.message


def test_an_exception_becomes_one_line_with_the_likely_reason():
    verdict = check.k3(lambda logprobs: logprobs)
    assert verdict.kind == "raised"
    assert verdict.message.startswith("TypeError: ")
    assert verdict.message.endswith("; it is called as k3(logprobs, ref_logprobs)")
    broadcast = check.reinforce_loss(lambda lp, mask, r: -(lp * r * mask).sum(1).mean())
    assert broadcast.kind == "raised" and "x[:, None]" in broadcast.message
    beyond = check.gae(lambda r, v, gamma, lam: r + gamma * v[len(v)])
    assert beyond.kind == "raised" and "past the end" in beyond.message
    minus = check.reinforce_loss(lambda lp, mask, r: ((1 - mask) * lp).sum())
    assert minus.kind == "raised" and "~mask" in minus.message
    for verdict in (broadcast, beyond, minus):
        assert "\n" not in verdict.message and len(verdict.message) <= 165


def test_an_unknown_error_is_shown_on_the_smallest_probe_with_both_numbers():
    verdict = check.group_advantages(lambda rewards, G: 2 * rewards)
    assert repr(verdict) == (
        "wrong: probe 'two answers' (rewards [1, 0], num_generations 2): "
        "[2.0000, 0.0000] came, [1.0000, -1.0000] expected"
    )
    assert list(verdict.probe) == ["rewards", "num_generations"]


def test_a_wrong_gradient_behind_a_right_value_is_shown():
    def straight_through(logprobs, ref_logprobs):
        value = my_k3(logprobs, ref_logprobs)
        return value.detach() + 2 * (logprobs - logprobs.detach())

    verdict = check.k3(straight_through)
    assert verdict.kind == "wrong"
    assert "value right; gradient of logprobs: [2.0000] came, [-0.6487] expected" in verdict.message


def test_a_long_result_is_shown_at_its_first_wrong_entry():
    def spoiled(rewards, values, gamma, lam):
        advantages = check.gae.exercise.reference(rewards, values, gamma, lam).clone()
        if len(advantages) == 5:
            advantages[3] += 1
        return advantages

    # A_3 = 2 + 0.9 * 0.6 - 0.8 + 0.72 * (-0.5 - 0.6)
    assert "at [3], 1.9480 came, 0.9480 expected" in check.gae(spoiled).message


def test_the_nearest_convention_supplies_the_expected_numbers():
    def scaled(rewards, G):
        groups = rewards.view(-1, G)
        z = (groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)
        return 1.0001 * z.view(-1)

    message = check.group_advantages(scaled).message
    assert "came, [0.7070, -0.7070] expected with Bessel std" in message


@pytest.mark.parametrize("bessel", [False, True])
@pytest.mark.parametrize("eps", [1e-10, 2e-4, 0.03])
def test_any_eps_in_the_std_is_a_convention_and_is_said(eps, bessel):
    def z(rewards, G, inside=False):
        groups = rewards.view(-1, G)
        centred = groups - groups.mean(1, keepdim=True)
        var = groups.var(1, keepdim=True, correction=int(bessel))
        return (centred / ((var + eps).sqrt() if inside else var.sqrt() + eps)).view(-1)

    name = "Bessel" if bessel else "population"
    verdict = check.group_advantages(z)
    assert verdict.kind == "convention"
    assert verdict.message.startswith(f"{name} std with eps about {eps:.1g};")
    if eps < 1e-6:  # under the root it would be too small to tell
        return
    verdict = check.group_advantages(lambda r, G: z(r, G, inside=True))
    assert verdict.kind == "convention"
    assert verdict.message.startswith(f"{name} std with eps about {eps:.1g} under the root")


def test_an_eps_does_not_hide_a_mistake():
    def upside_down(rewards, G):
        groups = rewards.view(-1, G)
        z = (groups.mean(1, keepdim=True) - groups) / (groups.std(1, keepdim=True) + 2e-4)
        return z.view(-1)

    assert not check.group_advantages(upside_down)


def test_a_small_number_left_in_a_log_passes_with_a_warning():
    def careful(logits, tokens):
        return torch.log(logits.softmax(-1) + 1e-8).gather(-1, tokens[..., None])[..., 0]

    def bold(logits, tokens):
        return torch.log(logits.softmax(-1)).gather(-1, tokens[..., None])[..., 0]

    assert "an eps in a log" in check.token_logprobs(careful).message
    assert "log_softmax" in check.token_logprobs(bold).message  # the edge says its own sentence


def test_the_exponential_form_of_k3_passes_and_is_told_of_its_rounding():
    verdict = check.k3(lambda a, b: (b - a).exp() - 1 - (b - a))
    assert verdict and "rounds to nothing" in verdict.message
    wrong = check.k3(lambda a, b: (a - b).exp() - 1 - (a - b))
    assert not wrong and "rounds" not in wrong.message


def test_k3_with_a_clamped_log_ratio_is_a_convention():
    for edge in (5, 10):
        clamped = check.k3(lambda a, b, e=edge: my_k3(0 * a, (b - a).clamp(-e, e)))
        assert clamped.kind == "convention" and f"±{edge}" in clamped.message


def test_a_mask_times_infinity_is_a_habit_where_the_exercise_is_about_something_else():
    verdict = check.reinforce_loss(lambda lp, m, r: -(r * (lp * m).sum(1)).mean())
    assert verdict and "with a warning" in verdict.message and "torch.where" in verdict.message
    both = check.reinforce_loss(lambda lp, m, r: (r * (lp * m).sum(1)).mean())
    assert not both and "minus is missing" in both.message


def test_a_name_that_was_never_given_a_value_is_explained():
    def unbound(logprobs, ref_logprobs):
        if logprobs.sum() > 100:
            d = ref_logprobs - logprobs
        return d.exp()

    assert "before the function gives it a value" in check.k3(unbound).message


def test_another_way_to_the_same_numbers_is_right():
    assert repr(check.k3(my_k3)) == "right: k3"
    cross_entropy = torch.nn.functional.cross_entropy
    assert check.token_logprobs(
        lambda logits, tokens: -cross_entropy(logits.transpose(1, 2), tokens, reduction="none")
    )


def test_trl_s_std_is_a_convention_and_its_max_is_still_named():
    verdict = check.grpo_loss(my_grpo)
    assert verdict.kind == "convention"
    assert verdict.message.startswith("Bessel std with eps 1e-4: TRL's; this page uses")
    wrong = check.grpo_loss(lambda *a: my_grpo(*a, largest=True))
    assert wrong.kind == "known mistake" and "max where A < 0" in wrong.message


def test_nan_under_the_mask_is_named_and_hides_no_other_mistake():
    assert "torch.where(mask, x, 0)" in check.grpo_loss(lambda *a: my_grpo(*a, where=False)).message
    both = check.grpo_loss(lambda *a: my_grpo(*a, where=False, largest=True))
    assert "max where A < 0" in both.message


def test_a_cut_gradient_is_named():
    for cut in (lambda *a: my_grpo(*a).item(), lambda *a: my_grpo(*a).detach()):
        verdict = check.grpo_loss(cut)
        assert verdict.kind == "known mistake"
        assert "no gradient reaches logprobs" in verdict.message


def test_a_wrong_shape_is_named_with_both_shapes():
    def grouped(rewards, G):
        return check.group_advantages.exercise.reference(rewards, G).view(-1, G)

    assert check.group_advantages(grouped).message == (
        "the numbers are right, the shape is not: (1, 2) came, (2,) expected, flat "
        "(probe 'two answers')"
    )
    per_answer = check.reinforce_loss(lambda lp, mask, r: -r * lp.masked_fill(~mask, 0).sum(1))
    assert "take the mean of what you return" in per_answer.message


def test_a_list_or_an_array_passes_as_a_convention():
    reference = check.gae.exercise.reference
    for convert in (lambda x: x.tolist(), lambda x: x.numpy(), list):
        verdict = check.gae(lambda *a, convert=convert: convert(reference(*a)))
        assert verdict.kind == "convention" and "returns a tensor" in verdict.message


def test_edited_inputs_are_caught():
    def edits(rewards, G):
        groups = rewards.view(-1, G)
        spread = groups.std(1, keepdim=True, correction=0)
        groups -= groups.mean(1, keepdim=True)
        return (groups / (spread + 1e-6)).view(-1)

    verdict = check.group_advantages(edits)
    assert verdict.kind == "known mistake"
    assert "changes its input rewards in place" in verdict.message

    def edits_a_leaf(lp, mask, rewards):
        lp[~mask] = 0
        return -(rewards * lp.sum(1)).mean()

    assert "changes its input logprobs in place" in check.reinforce_loss(edits_a_leaf).message


def test_float32_answers_are_accepted_and_lost_dtypes_named():
    assert check.k3(lambda a, b: torch.expm1(b - a) - (b - a))  # runs in both dtypes
    down = check.k3(lambda a, b: my_k3(a, b).float())
    assert down and "float32 was computed with" in down.message
    half = check.k3(lambda a, b: my_k3(a, b).half())
    assert not half and "float16 came out" in half.message
    up = check.k3(lambda a, b: my_k3(a, b).double())
    assert "float32 went in and float64 came out" in up.message
    constant = check.surrogate_clip(
        lambda r, A, e: torch.where(
            A > 0, torch.min(r, torch.tensor(1 + e)) * A, torch.max(r, torch.tensor(1 - e)) * A
        )
    )
    assert repr(constant) == "right: surrogate_clip", "a constant in the page's default dtype"
    wide = torch.float32
    rounded = check.surrogate_clip(
        lambda r, A, e: torch.min(
            r * A, r.clamp(torch.tensor(1 - e, dtype=wide), torch.tensor(1 + e, dtype=wide)) * A
        )
    )
    assert rounded and "seven digits" in rounded.message


def test_a_function_that_prints_or_warns_keeps_the_page_clean(capsys, recwarn):
    import warnings

    def noisy(logprobs, ref_logprobs):
        print("hello")
        warnings.warn("look", stacklevel=1)
        return my_k3(logprobs, ref_logprobs)

    with torch.no_grad():
        assert check.k3(noisy)
    assert capsys.readouterr().out == "" and not recwarn.list


def test_a_verdict_is_the_same_line_every_time():
    for function in (my_grpo, lambda *a: 2 * my_grpo(*a), lambda *a: -my_grpo(*a)):
        assert repr(check.grpo_loss(function)) == repr(check.grpo_loss(function))
    assert check.k3(my_k3) == check.k3(my_k3)


def test_a_wrong_answer_is_judged_within_seconds():
    start = time.perf_counter()
    check.grpo_loss(lambda *a: 2 * my_grpo(*a))
    assert time.perf_counter() - start < 10


def test_an_exercise_of_one_s_own_takes_a_dozen_lines():
    def mean(x, *, correction=0):
        return x.sum() / (len(x) - correction)

    exercise = Exercise(
        name="mean",
        reference=mean,
        probes=(Probe("two", {"x": [1.0, 3.0]}), Probe("three", {"x": [1.0, 5.0, 0.0]})),
        conventions=(Convention("divided by n - 1", {"correction": 1}),),
        mistakes=(Mistake("this is the sum", lambda x: x.sum()),),
    )
    assert check.judge(exercise, torch.mean).kind == "right"
    assert check.judge(exercise, lambda x: x.sum() / (len(x) - 1)).message == "divided by n - 1"
    assert check.judge(exercise, torch.sum).message == "this is the sum"
    assert check.judge(exercise, torch.median).kind == "wrong"


def test_every_exercise_says_how_it_is_called():
    assert repr(check.k3) == "check.k3: give it your k3(logprobs, ref_logprobs)"
    for name in check.__all__:
        assert ast.parse(name) and hasattr(check, name)
    assert "not attempted" in inspect.getdoc(check.Verdict)


def test_an_unknown_check_is_a_sentence_that_lists_the_others():
    with pytest.raises(AttributeError, match="no check named 'k4'; there are .*'k3'"):
        check.k4  # noqa: B018


@pytest.mark.parametrize("code", [None, 0, "stop here"])
def test_an_answer_that_exits_is_a_sentence_and_the_page_goes_on(code):
    def leaves(logprobs, ref_logprobs):
        sys.exit(code)

    verdict = check.k3(leaves)
    assert verdict.kind == "raised" and verdict.message.startswith("SystemExit: ")
    why = "exit() ends the whole page: let the function return, or raise an error"
    assert verdict.message.endswith(why)


def test_a_cell_that_is_interrupted_stays_interrupted():
    def interrupted(logprobs, ref_logprobs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check.k3(interrupted)


def test_prints_are_hidden_and_announced_with_their_number(capsys):
    def talks(logprobs, ref_logprobs):
        print("shape", logprobs.shape)
        print("no end", end="")
        print()
        return my_k3(logprobs, ref_logprobs)

    verdict = check.k3(talks)
    # in float64, then in float32, and once for the remark on rounding
    runs = 2 * len(check.k3.exercise.probes) + 1
    assert capsys.readouterr().out == ""
    assert verdict == check.k3(my_k3) and verdict.message == "k3"
    assert repr(verdict).splitlines() == [
        "right: k3",
        f"({2 * runs} lines hidden: all that was printed while the probes ran)",
    ]
    assert repr(check.k3(my_k3)) == "right: k3"


def test_a_last_line_that_has_not_ended_counts():
    verdict = check.k3(lambda a, b: print("once", end=""))
    assert repr(verdict).endswith("\n(1 line hidden: all that was printed while the probes ran)")


def test_two_hundred_thousand_prints_are_counted_and_not_kept():
    def floods(logprobs, ref_logprobs):
        for i in range(200_000):
            print("step", i)

    verdict = check.k3(floods)
    assert verdict.hidden_lines == 200_000 and "200,000 lines hidden" in repr(verdict)
    assert not any("step" in str(value) for value in vars(verdict).values())


def test_a_mistake_is_called_like_its_function():
    doubled = mistake("this is twice x")(lambda x: 2 * x)
    assert (doubled.sentence, doubled(3.0)) == ("this is twice x", 6.0)


def test_a_probe_casts_its_lists_and_leaves_the_rest():
    whole = torch.tensor([1, 2])
    probe = Probe("p", {"x": [[1, 0]], "mask": [True, False], "tokens": whole, "n": 2})
    x, mask, tokens, n = probe.arguments.values()
    assert x.dtype == torch.float64 and x.tolist() == [[1.0, 0.0]]
    assert mask.dtype == torch.bool and tokens is whole and n == 2
