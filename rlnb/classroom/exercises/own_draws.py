"""A mean over the model's own draws, differentiated: the push of KL(model || teacher)."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake

__all__ = ["REVERSE_KL_PUSH", "reverse_kl_push"]


def reverse_kl_push(z: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """-d KL(pi || p) / dz with pi = softmax(z): (V,), (V,) -> (V,)."""
    pi, ell, kl = _parts(z, p)
    return pi * (kl - ell)


def _parts(z, p):
    pi = z.softmax(-1)
    ell = z.log_softmax(-1) - p.log()
    return pi, ell, (pi * ell).sum()


@mistake("the sign is flipped: this is the gradient; descent goes against it")
def _uphill(z, p):
    return -reverse_kl_push(z, p)


@mistake("this is p - pi, the push of the other KL, whose mean runs over the teacher's answers")
def _forward(z, p):
    return p - z.softmax(-1)


@mistake("only the log was differentiated: pi stands in front of it too, and depends on z")
def _inside(z, p):
    return torch.zeros_like(z)


@mistake("the KL itself is not subtracted: a logit also takes probability from all the others")
def _no_mean(z, p):
    pi, ell, _ = _parts(z, p)
    return -pi * ell


@mistake("the factor pi_v in front is missing: an answer that is never drawn cannot push")
def _no_weight(z, p):
    _, ell, kl = _parts(z, p)
    return kl - ell


@mistake("the model's own entropy is missing: log pi counts in the log-ratio beside log p")
def _no_entropy(z, p):
    pi, _, _ = _parts(z, p)
    return pi * (p.log() - (pi * p.log()).sum())


@mistake("you divided by the number of answers: the weights pi already make it a mean")
def _divided(z, p):
    return reverse_kl_push(z, p) / len(z)


REVERSE_KL_PUSH = Exercise(
    name="reverse_kl_push",
    reference=reverse_kl_push,
    probes=(
        Probe("two answers", {"z": [0.0, 1.0], "p": [0.5, 0.5]}),
        Probe("three answers", {"z": [0.3, -1.0, 2.0], "p": [0.7, 0.2, 0.1]}),
        Probe("four, shifted logits", {"z": [5.0, 4.2, 6.1, 5.5], "p": [0.1, 0.4, 0.2, 0.3]}),
    ),
    mistakes=(_uphill, _forward, _inside, _no_mean, _no_weight, _no_entropy, _divided),
    hint="Write it as J with a reward: R = -log(pi / p). Two places depend on z, the weight and "
    "the log; the second gives 0 on average.",
)
