"""Page 20's code round: a loss with four faults, and what each of them leaves behind.

`broken` leaves any of the four in. The judge counts what is left and names its symptoms, never the
line: that is the learner's part.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations

import torch

from rlnb.classroom.checking.exercise import Exercise, Mistake, Probe, mistake

__all__ = ["BATCH_LOSS", "SYMPTOMS", "batch_loss", "broken"]

SYMPTOMS = {
    "baseline": "groups without a wrong answer are pushed",
    "old": "the clip never acts",
    "ratio": "right answers lose probability",
    "mean": "padding shrinks the gradient",
}
EPSILON = 0.2


def broken(
    logprobs: torch.Tensor,
    sampled: torch.Tensor,
    mask: torch.Tensor,
    rewards: torch.Tensor,
    num_generations: int,
    *,
    faults: tuple[str, ...] = tuple(SYMPTOMS),
) -> torch.Tensor:
    """The loss with these faults in: (B, T), (B, T), (B, T), (B,), G -> a number, minimised."""
    groups = rewards.view(-1, num_generations)
    baseline = groups.mean() if "baseline" in faults else groups.mean(1, keepdim=True)
    advantage = (groups - baseline).view(-1, 1)
    old = logprobs.detach() if "old" in faults else sampled
    moved = torch.where(mask, logprobs - old, 0.0)
    ratio = (-moved if "ratio" in faults else moved).exp()
    clipped = ratio.clamp(1 - EPSILON, 1 + EPSILON)
    objective = torch.minimum(ratio * advantage, clipped * advantage)
    objective = torch.where(mask, objective, 0.0)
    return -objective.mean() if "mean" in faults else -objective.sum() / mask.sum()


def batch_loss(
    logprobs: torch.Tensor,
    sampled: torch.Tensor,
    mask: torch.Tensor,
    rewards: torch.Tensor,
    num_generations: int,
) -> torch.Tensor:
    """The mended loss: the group's mean, PPO's clip at 0.2, one mean over the real tokens."""
    return broken(logprobs, sampled, mask, rewards, num_generations, faults=())


def _left(faults: tuple[str, ...]) -> Mistake:
    count = {1: "one fault is", 2: "two faults are", 3: "three faults are", 4: "all four are"}
    named = "; ".join(SYMPTOMS[fault] for fault in faults)
    said = f": {named}" if len(faults) < len(SYMPTOMS) else ""
    return Mistake(f"{count[len(faults)]} still in it{said}", partial(broken, faults=faults))


@mistake("mended, and more: you also divide by the group's std, which was not asked for")
def _std_too(logprobs, sampled, mask, rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    scaled = (groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-6)
    return batch_loss(logprobs, sampled, mask, scaled.view(-1), num_generations)


@mistake("a mean inside each answer, then over the answers: one mean over all tokens was asked for")
def _answer_means(logprobs, sampled, mask, rewards, num_generations):
    rows, terms = len(rewards), []
    for row in range(rows):
        only = torch.zeros_like(mask)
        only[row] = mask[row]
        terms.append(batch_loss(logprobs, sampled, only, rewards, num_generations))
    return torch.stack(terms).mean()


def _probe(label: str, lengths: list[int], rewards: list[float], group: int) -> Probe:
    """Log-probs that have moved enough for the clip to act on some tokens of either sign."""
    rows, width = len(lengths), max(lengths)
    place = torch.arange(rows * width, dtype=torch.float64).view(rows, width)
    sampled = -1.5 + torch.sin(1.3 * place + 0.4)
    arguments = {
        "logprobs": (sampled + 0.5 * torch.sin(2.1 * place + 1.0)).clamp(max=-0.01),
        "sampled": sampled,
        "mask": torch.arange(width) < torch.tensor(lengths)[:, None],
        "rewards": rewards,
        "num_generations": group,
    }
    return Probe(label, arguments)


BATCH_LOSS = Exercise(
    name="batch_loss",
    reference=batch_loss,
    probes=(
        _probe("two groups of two", [2, 3, 1, 3], [1.0, 0.0, 1.0, 1.0], 2),
        _probe("two groups of three", [3, 1, 4, 2, 5, 3], [1.0, 0.0, 0.0, 0.5, 1.0, 0.0], 3),
        _probe("one group, padded", [1, 4, 2], [0.0, 1.0, 1.0], 3),
    ),
    mistakes=(
        *(_left(left) for n in (4, 3, 2, 1) for left in combinations(SYMPTOMS, n)),
        _std_too,
        _answer_means,
    ),
    differentiate=("logprobs",),
    direction="minimised",
    hint="Take one number of the log at a time, and ask which line could make it so. The first: "
    "what is the advantage of an answer in a group where all are right? The second: what is the "
    "ratio of a token that has moved since it was drawn?",
)
