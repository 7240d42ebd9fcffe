"""Baselines: rewards become advantages.

Every part here maps (batch, token_rewards (B, T)) to A (B, T), without gradient, on whole groups.
`token_rewards` holds `batch.rewards` on the last unmasked token, plus whatever the objective's
shapes added (a KL penalty, say); its row sums are the returns r_i below.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch

from rlnb.objective.batch import Batch
from rlnb.objective.part import Part

__all__ = [
    "batch_mean",
    "batch_zscore",
    "gae",
    "greedy_baseline",
    "group_center",
    "group_zscore",
    "leave_one_out",
    "max_rl",
    "raw_reward",
    "return_to_go",
]

Std = Literal["population", "bessel"]


def standard_deviation(x: torch.Tensor, std: Std, dim: int) -> torch.Tensor:
    """Square root of the mean squared deviation: over n (population) or n - 1 (Bessel)."""
    if std not in ("population", "bessel"):
        raise ValueError(f"std must be 'population' or 'bessel', got {std!r}.")
    return x.std(dim, keepdim=True, correction=int(std == "bessel"))


def deviation_in_group(
    batch: Batch, token_rewards: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(P, G) rewards and their deviation from the group mean, exactly 0 where all are equal.

    The mean of equal rewards that are not representable (0.7) differs from them in the last
    bit, and dividing by a std of the same size would make an advantage out of it.
    """
    rewards = batch.grouped(token_rewards.sum(1))
    spread = rewards.amax(1, keepdim=True) != rewards.amin(1, keepdim=True)
    deviation = rewards - rewards.mean(1, keepdim=True)
    return rewards, torch.where(spread, deviation, torch.zeros_like(deviation))


def refuse_single_answers(batch: Batch, name: str) -> None:
    """Raise ValueError where a prompt has one answer only."""
    if batch.num_generations < 2:
        raise ValueError(
            f"{name} compares answers to one prompt and needs num_generations "
            "of at least 2, got 1. Sample more answers, or use raw_reward or batch_mean."
        )


class _Group(Part):
    fits = "advantage"

    def check(self, batch: Batch) -> None:
        refuse_single_answers(batch, type(self).__name__)


class _Whole(Part):
    fits = "advantage"

    def check(self, batch: Batch) -> None:
        if len(batch.logprobs) < 2:
            raise ValueError(
                f"{type(self).__name__} compares the rows of a batch and needs at "
                "least 2, got 1: with one row every advantage would be 0."
            )


@dataclass(frozen=True, repr=False)
class raw_reward(Part):
    """A_i = r_i: no baseline. Unbiased, and as noisy as the rewards are large (Williams 1992)."""

    fits = "advantage"

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        return batch.expand(token_rewards.sum(1))


@dataclass(frozen=True, repr=False)
class batch_mean(_Whole):
    """A_i = r_i - (1/B) sum_j r_j over the whole batch, own sample included.

    The own sample scales the expected gradient by (B-1)/B and leaves its direction alone.
    """

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        rewards = token_rewards.sum(1)
        return batch.expand(rewards - rewards.mean())


@dataclass(frozen=True, repr=False)
class leave_one_out(_Group):
    """A_i = r_i - 1/(G-1) sum_{j != i} r_j = G/(G-1) (r_i - mean): RLOO, arXiv 2402.14740.

    normalise: divide by the std of all A of the batch, plus eps (TRL's `normalize_advantages`).
    Their mean is 0 by construction.
    """

    normalise: bool = False
    std: Std = "population"
    eps: float = 1e-6
    conventions: ClassVar[tuple[str, ...]] = ("std", "eps")

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        size = batch.num_generations
        out = deviation_in_group(batch, token_rewards)[1].reshape(-1) * (size / (size - 1))
        if self.normalise:
            out = out / (standard_deviation(out, self.std, dim=0) + self.eps)
        return batch.expand(out)


@dataclass(frozen=True, repr=False)
class greedy_baseline(Part):
    """A_i = r_i - r(greedy answer to the same prompt): ReMax, arXiv 2310.10505.

    The greedy answer does not depend on the sample, so the estimate stays unbiased.
    """

    fits = "advantage"
    needs: ClassVar[tuple[str, ...]] = ("greedy_rewards",)

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        greedy = batch.required("greedy_rewards", "greedy_baseline")
        return batch.expand(token_rewards.sum(1) - greedy.to(token_rewards.dtype))


@dataclass(frozen=True, repr=False)
class return_to_go(Part):
    """A_t = sum_{t' >= t} gamma^{t'-t} r_{t'}: what is still to come, no baseline.

    Differs from raw_reward where rewards arrive before the end, as a KL penalty per token does.
    """

    fits = "advantage"
    gamma: float = field(default=1.0, metadata={"always": True, "named": True})

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(token_rewards)
        running = token_rewards.new_zeros(len(token_rewards))
        for t in reversed(range(token_rewards.shape[1])):
            here = batch.mask[:, t]
            running = torch.where(here, token_rewards[:, t] + self.gamma * running, running)
            out[:, t] = torch.where(here, running, 0.0)
        return out


@dataclass(frozen=True, repr=False)
class group_center(_Group):
    """A_i = r_i - mean of the group: Dr. GRPO's advantage, arXiv 2503.20783."""

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        return batch.expand(deviation_in_group(batch, token_rewards)[1])


@dataclass(frozen=True, repr=False)
class group_zscore(_Group):
    """A_i = (r_i - mean) / (std + eps) inside the group: GRPO, arXiv 2402.03300.

    The paper states neither which std nor eps, so both are conventions: TRL has Bessel and 1e-4,
    verl Bessel and 1e-6. The default here is the population std and 1e-6. eps is added, not a
    floor. In any group with unequal rewards |A| is at most sqrt(G-1), whatever the rewards.
    """

    std: Std = "population"
    eps: float = 1e-6
    conventions: ClassVar[tuple[str, ...]] = ("std", "eps")

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        rewards, deviation = deviation_in_group(batch, token_rewards)
        scale = standard_deviation(rewards, self.std, dim=1) + self.eps
        # an all-equal group is 0 / scale, which with eps = 0 would be nan
        return batch.expand(torch.where(deviation == 0, deviation, deviation / scale))


@dataclass(frozen=True, repr=False)
class batch_zscore(_Whole):
    """A_i = (r_i - mean) / (one std for the whole batch + eps).

    center: "batch" subtracts the batch mean (REINFORCE++ in its row form, arXiv 2501.03262);
    "group" subtracts the group mean (Lite-PPO, arXiv 2508.08221; TRL's `scale_rewards="batch"`).
    of: whose std. "rewards" takes the raw rewards' (Lite-PPO, TRL), "centred" that of r_i - mean
    (ScaleRL, arXiv 2510.13786): smaller, because the spread between prompts is gone.
    """

    center: Literal["batch", "group"] = "batch"
    std: Std = "population"
    eps: float = 1e-6
    of: Literal["rewards", "centred"] = "rewards"
    conventions: ClassVar[tuple[str, ...]] = ("std", "eps")

    def check(self, batch: Batch) -> None:
        super().check(batch)
        if self.center not in ("batch", "group"):
            raise ValueError(f"center must be 'batch' or 'group', got {self.center!r}.")
        if self.of not in ("rewards", "centred"):
            raise ValueError(f"of must be 'rewards' or 'centred', got {self.of!r}.")
        if self.center == "group":
            refuse_single_answers(batch, type(self).__name__)

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        rewards = token_rewards.sum(1)
        if self.center == "group":
            deviation = deviation_in_group(batch, token_rewards)[1].reshape(-1)
        else:
            deviation = rewards - rewards.mean()
            equal = rewards.max() == rewards.min()
            deviation = torch.where(equal, torch.zeros_like(deviation), deviation)
        spread = deviation if self.of == "centred" else rewards
        scale = standard_deviation(spread, self.std, dim=0) + self.eps
        return batch.expand(torch.where(deviation == 0, deviation, deviation / scale))


@dataclass(frozen=True, repr=False)
class max_rl(_Group):
    """A_i = (r_i - mean) / mean for rewards of 0 and 1: MaxRL, arXiv 2602.02710.

    The mean where GRPO has the std. Its expectation is the gradient of
    sum_{k=1}^{G-1} pass@k / k, the first G-1 terms of log p = -sum_k (1-p)^k / k, so a prompt
    weighs like 1/p and not like 1/sqrt(p(1-p)). A is at most G - 1.

    no_success: a group without a right answer gets 0 ("zero"), or -1 on every answer
    ("minus_one": the control variate stays, and with it the G-th term).

    >>> import torch
    >>> from rlnb.objective import Batch
    >>> b = Batch(torch.zeros(4, 1), torch.ones(4, 1), torch.tensor([1., 0., 0., 0.]), 4)
    >>> max_rl()(b, b.rewards[:, None])[:, 0].tolist()
    [3.0, -1.0, -1.0, -1.0]
    """

    no_success: Literal["zero", "minus_one"] = "zero"
    conventions: ClassVar[tuple[str, ...]] = ("no_success",)

    def check(self, batch: Batch) -> None:
        super().check(batch)
        if self.no_success not in ("zero", "minus_one"):
            raise ValueError(f"no_success must be 'zero' or 'minus_one', got {self.no_success!r}.")
        graded = (batch.rewards != 0) & (batch.rewards != 1)
        if bool(graded.any()):
            row = int(graded.nonzero()[0])
            raise ValueError(
                f"max_rl raises the log-probability of success and takes rewards of 0 "
                f"and 1; rewards[{row}] is {float(batch.rewards[row])}. Threshold the "
                "reward, or use group_center."
            )

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        rewards, deviation = deviation_in_group(batch, token_rewards)
        mean = rewards.mean(1, keepdim=True)
        none = 0.0 if self.no_success == "zero" else -1.0
        some = mean > 0
        return batch.expand(torch.where(some, deviation / torch.where(some, mean, 1.0), none))


@dataclass(frozen=True, repr=False)
class gae(Part):
    """delta_t = r_t + gamma V_{t+1} - V_t,  A_t = sum_l (gamma lam)^l delta_{t+l}.

    V after the last token is 0. Masked tokens (tool output) are stepped over: the next unmasked
    token is the successor. lam=0 trusts the critic, lam=1 with gamma=1 is return minus value.
    Generalised advantage estimation, arXiv 1506.02438.

    >>> import torch
    >>> from rlnb.objective import Batch
    >>> b = Batch(torch.zeros(1, 3), torch.ones(1, 3), torch.tensor([1.]), 1,
    ...           values=torch.tensor([[.2, .5, .7]]))
    >>> [round(a, 4) for a in gae(1.0, 0.95)(b, torch.tensor([[0., 0., 1.]]))[0].tolist()]
    [0.7607, 0.485, 0.3]
    """

    fits = "advantage"
    gamma: float = field(default=1.0, metadata={"always": True, "named": True})
    lam: float = field(default=0.95, metadata={"always": True})
    needs: ClassVar[tuple[str, ...]] = ("values",)

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        values = batch.required("values", "gae").detach()
        out = torch.zeros_like(token_rewards)
        value_next = token_rewards.new_zeros(len(token_rewards))
        running = token_rewards.new_zeros(len(token_rewards))
        for t in reversed(range(token_rewards.shape[1])):
            here = batch.mask[:, t]
            delta = token_rewards[:, t] + self.gamma * value_next - values[:, t]
            running = torch.where(here, delta + self.gamma * self.lam * running, running)
            value_next = torch.where(here, values[:, t], value_next)
            out[:, t] = torch.where(here, running, 0.0)
        return out
