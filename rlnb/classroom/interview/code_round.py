"""What a batch loss does, in the numbers that a training log would show.

Two prompts with one weight each: a token is good with chance sigmoid(weight), and an answer is
right when its last token is good. A batch has four answers to each prompt and serves two updates.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

__all__ = ["symptoms"]

GROUP, WIDTH, RATE, BATCHES, MOVED = 4, 6, 4.0, 40, 0.5
SEED = 4  # of the one batch: a right and a wrong answer in both groups
START = (0.8, 0.3)  # the chance of a good token, easy prompt and hard

Loss = Callable[..., torch.Tensor]


class _Answers:
    """A batch of answers, drawn at the weights it is given."""

    def __init__(self, weights: torch.Tensor, dice: torch.Generator) -> None:
        rows = len(weights) * GROUP
        chance = weights.sigmoid().repeat_interleave(GROUP)[:, None]
        self.good = torch.rand(rows, WIDTH, generator=dice, dtype=weights.dtype) < chance
        lengths = torch.randint(1, WIDTH + 1, (rows,), generator=dice)
        self.mask = torch.arange(WIDTH) < lengths[:, None]
        self.rewards = self.good[torch.arange(rows), lengths - 1].to(weights.dtype)
        self.sampled = self.logprobs(weights).detach()

    def logprobs(self, weights: torch.Tensor) -> torch.Tensor:
        """(B, T), 0 on padding."""
        each = weights.repeat_interleave(GROUP)[:, None]
        signed = torch.where(self.good, each, -each)
        return torch.where(self.mask, torch.nn.functional.logsigmoid(signed), 0.0)


def _slope(loss: Loss, batch: _Answers, logprobs: torch.Tensor, padding: int = 0) -> torch.Tensor:
    """The loss's gradient in each log-prob, with columns of padding on the right."""
    wide = [torch.nn.functional.pad(x, (0, padding)) for x in (logprobs, batch.sampled, batch.mask)]
    leaf = wide[0].detach().clone().requires_grad_()
    value = loss(leaf, *wide[1:], batch.rewards, GROUP)
    found = torch.autograd.grad(value, leaf, allow_unused=True)[0] if value.requires_grad else None
    return torch.zeros_like(leaf) if found is None else found


def _trained(loss: Loss) -> torch.Tensor:
    """The two pass rates after all batches."""
    dice, weights = torch.Generator().manual_seed(3), _start()
    for _ in range(BATCHES):
        batch = _Answers(weights, dice)
        for _ in range(2):
            leaf = weights.clone().requires_grad_()
            logprobs = batch.logprobs(leaf)
            (logprobs * _slope(loss, batch, logprobs)).sum().backward()
            weights = weights - RATE * leaf.grad
    return weights.sigmoid()


def _start() -> torch.Tensor:
    return torch.logit(torch.tensor(START, dtype=torch.float64))


def symptoms(loss: Loss) -> None:
    """Print what a log would show of this loss: pass rates, clipped tokens, an easy group, padding.

    loss: called as loss(logprobs, sampled, mask, rewards, num_generations).
    """
    rates = _trained(loss)
    batch = _Answers(_start(), torch.Generator().manual_seed(SEED))
    now = batch.sampled
    moved = _slope(loss, batch, now + MOVED)[batch.mask]
    alone, padded = (_slope(loss, batch, now, more).norm() for more in (0, WIDTH))
    batch.rewards = torch.tensor([1.0] * GROUP + [0.0] * GROUP, dtype=torch.float64)
    push = _slope(loss, batch, now)[:GROUP].abs().sum()
    rows = [
        *((f"pass rate, {name} prompt, first and last batch", f"{a:.2f}, {b:.2f}")
          for name, a, b in zip(("easy", "hard"), START, rates.tolist(), strict=True)),
        (f"clip fraction after a move of {MOVED} nats",
         f"{int((moved == 0).sum())} of {len(moved)}"),
        ("one group all right, the other all failed: |gradient|", f"{push:.2f}"),
        (f"gradient norm, {WIDTH} columns and {2 * WIDTH}", f"{alone:.3f}, {padded:.3f}"),
    ]  # fmt: skip
    for what, number in rows:
        print(f"{what:57} {number}")
