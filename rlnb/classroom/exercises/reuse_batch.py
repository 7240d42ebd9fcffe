"""PPO's inner loop: one batch, used for several steps."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake

__all__ = ["REUSE_BATCH", "reuse_batch"]

Gain = Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]


def _pessimistic(rho: torch.Tensor, advantages: torch.Tensor, epsilon: float) -> torch.Tensor:
    return torch.minimum(rho * advantages, rho.clamp(1 - epsilon, 1 + epsilon) * advantages)


def _climb(
    logits, answers, advantages, epochs, lr, epsilon, *,
    gain: Gain = _pessimistic, keep_old: bool = True, sign: float = 1.0, mean: bool = True,
) -> torch.Tensor:  # fmt: skip
    """The loop with its parts exchanged: what is climbed, and whether the old policy stays."""
    z = logits.detach()
    old = z.log_softmax(-1)[answers]
    for _ in range(epochs):
        z = z.detach().requires_grad_()
        with torch.enable_grad():
            now = z.log_softmax(-1)[answers]
            before = old if keep_old else now.detach()
            gained = gain((now - before).exp(), advantages, epsilon)
            (slope,) = torch.autograd.grad(gained.mean() if mean else gained.sum(), z)
        z = z.detach() + sign * lr * slope
    return z


def reuse_batch(
    logits: torch.Tensor, answers: torch.Tensor, advantages: torch.Tensor, epochs: int, lr: float,
    epsilon: float,
) -> torch.Tensor:  # fmt: skip
    """(V,) logits after `epochs` ascent steps on mean_i min(rho_i A_i, clip(rho_i) A_i).

    answers (N,) were drawn from softmax(logits); advantages (N,). rho_i compares the policy of the
    step with the one that drew: log-probabilities of the first logits, kept for the whole loop.
    """
    return _climb(logits, answers, advantages, epochs, lr, epsilon)


@mistake(
    "the old log-probs are computed anew in each step, so every ratio is 1 and nothing is clipped; "
    "compute them once, before the loop"
)
def _old_forgotten(logits, answers, advantages, epochs, lr, epsilon):
    return _climb(logits, answers, advantages, epochs, lr, epsilon, keep_old=False)


@mistake("one step only: the loop has to run `epochs` times, from where the last step ended")
def _one_step(logits, answers, advantages, epochs, lr, epsilon):
    return _climb(logits, answers, advantages, 1, lr, epsilon)


@mistake("it goes downhill: the objective is maximised, so add the gradient")
def _downhill(logits, answers, advantages, epochs, lr, epsilon):
    return _climb(logits, answers, advantages, epochs, lr, epsilon, sign=-1.0)


@mistake("a sum over the answers where the mean was asked for: the step grows with the batch")
def _summed(logits, answers, advantages, epochs, lr, epsilon):
    return _climb(logits, answers, advantages, epochs, lr, epsilon, mean=False)


@mistake("there is no clip: rho * A alone is climbed")
def _no_clip(logits, answers, advantages, epochs, lr, epsilon):
    plain: Gain = lambda rho, a, _: rho * a  # noqa: E731
    return _climb(logits, answers, advantages, epochs, lr, epsilon, gain=plain)


@mistake("the clip without the min: tokens that went the wrong way get no push back")
def _clip_alone(logits, answers, advantages, epochs, lr, epsilon):
    alone: Gain = lambda rho, a, e: rho.clamp(1 - e, 1 + e) * a  # noqa: E731
    return _climb(logits, answers, advantages, epochs, lr, epsilon, gain=alone)


@mistake("a max where the pessimist takes the min")
def _max(logits, answers, advantages, epochs, lr, epsilon):
    bold: Gain = lambda rho, a, e: torch.maximum(rho * a, rho.clamp(1 - e, 1 + e) * a)  # noqa: E731
    return _climb(logits, answers, advantages, epochs, lr, epsilon, gain=bold)


@mistake("the ratio is upside down: new over old, so exp(now - old)")
def _upside_down(logits, answers, advantages, epochs, lr, epsilon):
    turned: Gain = lambda rho, a, e: _pessimistic(1 / rho, a, e)  # noqa: E731
    return _climb(logits, answers, advantages, epochs, lr, epsilon, gain=turned)


@mistake("the logits come back as they were: put the result of each step into the next")
def _unmoved(logits, answers, advantages, epochs, lr, epsilon):
    return logits.detach().clone()


REUSE_BATCH = Exercise(
    name="reuse_batch",
    reference=reuse_batch,
    probes=(
        Probe(
            "two answers, three epochs",
            {
                "logits": [0.2, -0.3, 0.1],
                "answers": torch.tensor([0, 1]),
                "advantages": [1.0, -1.0],
                "epochs": 3,
                "lr": 1.0,
                "epsilon": 0.2,
            },
        ),
        Probe(
            "six answers, pushed past the band",
            {
                "logits": [0.0, 1.0, -1.0, 0.5],
                "answers": torch.tensor([1, 1, 0, 2, 3, 1]),
                "advantages": [0.5, 0.4, -1.0, 2.0, -0.7, -1.2],
                "epochs": 8,
                "lr": 0.6,
                "epsilon": 0.2,
            },
        ),
        Probe(
            "a common token is carried along the wrong way",
            {
                "logits": [0.5, 0.0, 0.3, -0.5],
                "answers": torch.tensor([0, 1, 2, 0]),
                "advantages": [0.3, 1.5, 1.0, 0.2],
                "epochs": 6,
                "lr": 2.0,
                "epsilon": 0.1,
            },
        ),
    ),
    mistakes=(
        _old_forgotten,
        _one_step,
        _downhill,
        _summed,
        _no_clip,
        _clip_alone,
        _max,
        _upside_down,
        _unmoved,
    ),
    hint="Before the loop: the log-probs of the drawn answers, detached. In it: fresh log-probs, "
    "ratio, min, mean, torch.autograd.grad, a step, detach.",
)
