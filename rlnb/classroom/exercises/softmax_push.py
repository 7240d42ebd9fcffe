"""The policy gradient of a softmax, in closed form: what each logit is pushed by."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake

__all__ = ["LOGIT_PUSH", "logit_push"]


def logit_push(logits: torch.Tensor, rewards: torch.Tensor) -> torch.Tensor:
    """dJ/dz_k = pi_k (R_k - J) with J = sum pi R: (K,), (K,) -> (K,)."""
    pi = logits.softmax(0)
    return pi * (rewards - pi @ rewards)


@mistake("this is pi R: the score of answer a is 1[a = k] - pi_k, its second half is missing")
def _no_second_half(logits, rewards):
    return logits.softmax(0) * rewards


@mistake(
    "you pushed every logit by its own answer's draw alone, pi R (1 - pi): a drawn answer pushes "
    "the other logits down too"
)
def _own_draw_only(logits, rewards):
    pi = logits.softmax(0)
    return pi * rewards * (1 - pi)


@mistake("R - J without pi in front: an answer that is seldom drawn pushes seldom")
def _no_probability(logits, rewards):
    return rewards - logits.softmax(0) @ rewards


@mistake("you subtracted the plain mean of the rewards: J weighs them with pi")
def _plain_mean(logits, rewards):
    return logits.softmax(0) * (rewards - rewards.mean())


@mistake("the sign is that of a loss: J is to go up, so an answer better than J is pushed up")
def _minus(logits, rewards):
    return -logit_push(logits, rewards)


@mistake("the logits stand where probabilities belong: take their softmax first")
def _logits_for_pi(logits, rewards):
    return logits * (rewards - logits @ rewards)


@mistake("you multiplied by log pi; its gradient belongs there, 1[a = k] - pi_k")
def _value_for_gradient(logits, rewards):
    pi = logits.softmax(0)
    return pi * rewards * logits.log_softmax(0)


LOGIT_PUSH = Exercise(
    name="logit_push",
    reference=logit_push,
    probes=(
        Probe("two answers", {"logits": [0.3, -0.2], "rewards": [1.0, 0.0]}),
        Probe("four answers", {"logits": [0.5, -1.0, 0.2, 1.3], "rewards": [1.0, 1.0, 0.0, 0.0]}),
        Probe("any rewards", {"logits": [-0.4, 0.9, 0.1], "rewards": [2.0, -1.0, 0.5]}),
    ),
    mistakes=(
        _no_second_half,
        _own_draw_only,
        _no_probability,
        _plain_mean,
        _minus,
        _logits_for_pi,
        _value_for_gradient,
    ),
    hint="Draw a with probability pi_a; it pushes logit k by R_a (1[a = k] - pi_k). Sum over a and "
    "take pi_k out. What stands in the bracket?",
)
