"""What an objective says about a step: metrics, and a table per token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch

from rlnb.objective.batch import Batch
from rlnb.objective.terms import kl_estimate

__all__ = ["Explanation", "Metrics"]


class Metrics(Mapping[str, float]):
    """TRL's names, each computed when it is looked up. Floats.

    reward, reward_std (mean over groups, Bessel), frac_reward_zero_std, completions/*_length;
    clip_ratio/{low,high,region}_mean where there is a PPO band: the share of tokens it *cut*,
    sign-aware; ratio/{mean,min,max}; kl (k3 to the reference) and entropy where the batch has them.
    """

    def __init__(
        self,
        batch: Batch,
        log_ratio: torch.Tensor,
        cut: tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> None:
        """batch: cleaned. log_ratio (B, T). cut: (low, high) bool (B, T), the tokens that a PPO
        band silenced on either side; None where there is no band."""
        mask, size = batch.mask, batch.num_generations
        self._values: dict[str, Callable[[], torch.Tensor]] = {
            "reward": lambda: batch.rewards.mean(),
            "completions/mean_length": lambda: batch.lengths.mean(),
            "completions/min_length": lambda: batch.lengths.min(),
            "completions/max_length": lambda: batch.lengths.max(),
        }
        if size > 1 and len(batch.rewards) % size == 0:
            groups = batch.grouped(batch.rewards)
            self._values["reward_std"] = lambda: groups.std(1).mean()
            self._values["frac_reward_zero_std"] = lambda: (
                (groups.amax(1) == groups.amin(1)).to(groups.dtype).mean()
            )
        moved = log_ratio.detach()
        self._values["ratio/mean"] = lambda: moved[mask].exp().mean()
        self._values["ratio/min"] = lambda: moved[mask].exp().min()
        self._values["ratio/max"] = lambda: moved[mask].exp().max()
        if cut is not None:
            low, high = cut
            share = _masked_share(mask)
            self._values["clip_ratio/low_mean"] = lambda: share(low)
            self._values["clip_ratio/high_mean"] = lambda: share(high)
            self._values["clip_ratio/region_mean"] = lambda: share(low | high)
        if (ref := batch.ref_logprobs) is not None:
            self._values["kl"] = lambda: kl_estimate("k3", batch.logprobs.detach() - ref)[
                mask
            ].mean()
        if (entropies := batch.entropies) is not None:
            self._values["entropy"] = lambda: entropies.detach()[mask].mean()

    def __getitem__(self, name: str) -> float:
        return float(self._values[name]())

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return "\n".join(f"{name:24s} {value:.4f}" for name, value in self.items())


def _masked_share(mask: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda hit: (hit & mask).sum() / mask.sum().clamp(min=1)


@dataclass(frozen=True, eq=False)
class Explanation:
    """Per token: advantage A, ratio, gate w, weight c and gradient dL/dlogprob, all (B, T).

    The policy term's share of the gradient is -c w A; the rest comes from the terms. Where A is
    0 the gate cannot be seen and is nan. mask (B, T); loss 0-d.
    """

    objective: str
    mask: torch.Tensor
    advantages: torch.Tensor
    ratio: torch.Tensor
    gate: torch.Tensor
    weights: torch.Tensor
    gradient: torch.Tensor
    loss: torch.Tensor

    def __str__(self) -> str:
        lines = [
            f"{'row':>3} {'token':>5} {'A':>8} {'ratio':>8} {'gate':>8} {'weight':>8} "
            f"{'dL/dlogp':>9}"
        ]
        for row, col in self.mask.nonzero().tolist():
            cells = [
                _number(t[row, col]) for t in (self.advantages, self.ratio, self.gate, self.weights)
            ]
            lines.append(
                f"{row:>3} {col:>5} "
                + " ".join(f"{c:>8}" for c in cells)
                + f" {_number(self.gradient[row, col]):>9}"
            )
        return "\n".join([*lines, f"loss {_number(self.loss)}"])

    __repr__ = __str__


def _number(x: torch.Tensor) -> str:
    """Four decimals, no negative zero, a dash for nan."""
    value = float(x)
    return "-" if value != value else f"{round(value, 4) + 0.0:.4f}"
