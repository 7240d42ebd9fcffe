"""Losses on pairs: reward models, DPO and its family. Needs neither samples nor advantages.

    pairs = Pairs.from_tokens(logprobs, mask, ref_logprobs)   # chosen rows first, then rejected
    dpo(pairs, beta=0.1).mean().backward()

With h = log pi(y) - log pi_ref(y), summed over the tokens of an answer, and w the chosen, l the
rejected answer of a pair, every loss here is a function of h_w and h_l (SimPO: of log pi itself,
per token). Each returns one number per pair (P,), to be minimised; KTO one per answer (B,). The
reference never carries gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

__all__ = [
    "Pairs",
    "bradley_terry",
    "conservative_dpo",
    "dpo",
    "dpo_nll",
    "dpo_shift",
    "implicit_rewards",
    "ipo",
    "kto",
    "kto_reference_point",
    "normalized_dpo",
    "normalized_ipo",
    "robust_dpo",
    "simpo",
]


@dataclass(frozen=True)
class Pairs:
    """P pairs of answers, each pair to one prompt: what a preference loss may look at.

    chosen, rejected (P,): log pi_theta(y | x), summed over the answer's tokens, with gradient.
    ref_chosen, ref_rejected (P,): the same under the frozen reference; SimPO needs none.
    chosen_length, rejected_length (P,): tokens of the answers, at least 1; only losses that average
    over tokens need them.
    """

    chosen: torch.Tensor
    rejected: torch.Tensor
    ref_chosen: torch.Tensor | None = None
    ref_rejected: torch.Tensor | None = None
    chosen_length: torch.Tensor | None = None
    rejected_length: torch.Tensor | None = None

    def __post_init__(self) -> None:
        if self.chosen.ndim != 1 or len(self.chosen) == 0:
            raise ValueError(f"chosen must be (P,), one pair at least, got {_shape(self.chosen)}.")
        for name in ("rejected", *_OPTIONAL):
            value = getattr(self, name)
            if value is not None and value.shape != self.chosen.shape:
                raise ValueError(
                    f"{name} must be {_shape(self.chosen)} like chosen, got {_shape(value)}: "
                    "a (P,) and a (P, 1) would make a table of P x P differences."
                )

    @classmethod
    def from_tokens(
        cls, logprobs: torch.Tensor, mask: torch.Tensor, ref_logprobs: torch.Tensor | None = None
    ) -> Pairs:
        """From tokens: (2 P, T), the P chosen rows first, then their rejected ones, as TRL lays.

        mask is 1 on tokens of the answer; what stands elsewhere, nan included, counts for nothing.
        Raises ValueError for an odd number of rows, a row without tokens, or unequal shapes.
        """
        if logprobs.ndim != 2 or len(logprobs) % 2:
            raise ValueError(f"logprobs must be (2 P, T), got {_shape(logprobs)}.")
        if mask.shape != logprobs.shape:
            raise ValueError(f"mask must be {_shape(logprobs)}, got {_shape(mask)}.")
        lengths = mask.sum(1)
        if not bool((lengths > 0).all()):
            raise ValueError("a row of mask has no token: an answer needs one at least.")

        def halves(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            first, second = torch.where(mask.bool(), values, 0).sum(1).chunk(2)
            return first, second

        long = dict(zip(("chosen_length", "rejected_length"), lengths.chunk(2), strict=True))
        if ref_logprobs is None:
            return cls(*halves(logprobs), **long)
        return cls(*halves(logprobs), *halves(ref_logprobs), **long)

    @property
    def log_ratios(self) -> tuple[torch.Tensor, torch.Tensor]:
        """h_w and h_l, (P,) each: log pi - log pi_ref of the chosen and the rejected answer."""
        ref_chosen, ref_rejected = self._both("ref_chosen", "ref_rejected")
        return self.chosen - ref_chosen.detach(), self.rejected - ref_rejected.detach()

    @property
    def gap(self) -> torch.Tensor:
        """h_w - h_l, (P,): how far the policy has moved towards the chosen answer, in nats."""
        chosen, rejected = self.log_ratios
        return chosen - rejected

    @property
    def lengths(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens of the chosen and of the rejected answers, (P,) each."""
        return self._both("chosen_length", "rejected_length")

    def _both(self, *names: str) -> tuple[torch.Tensor, torch.Tensor]:
        found = [getattr(self, name) for name in names]
        for name, value in zip(names, found, strict=True):
            if value is None:
                raise ValueError(f"this loss needs {name}, and the pairs have none.")
        return found[0], found[1]


_OPTIONAL = ("ref_chosen", "ref_rejected", "chosen_length", "rejected_length")


def _shape(value: torch.Tensor) -> str:
    return f"({', '.join(str(n) for n in value.shape)}{',' if value.ndim == 1 else ''})"


def _positive(beta: float) -> None:
    if not beta > 0:
        raise ValueError(f"beta must be above 0, got {beta!r}.")


def _flips(flipped: float, below: float) -> None:
    if not 0 <= flipped < below:
        raise ValueError(f"flipped must be from 0 to below {below:g}, got {flipped!r}.")


def bradley_terry(
    chosen: torch.Tensor,
    rejected: torch.Tensor,
    margin: float | torch.Tensor = 0.0,
    center: float = 0.0,
) -> torch.Tensor:
    """-log sigma(r_w - r_l - m) + c (r_w + r_l)^2, (P,): the loss of a reward model.

    chosen, rejected (P,): the model's scores. margin m: by how much the chosen one must lead (Llama
    2, arXiv 2307.09288, eq. 2). center c pulls the free offset to 0 (TRL's
    `center_rewards_coefficient`). Raises ValueError when the shapes differ.

    >>> bradley_terry(torch.tensor([1.2]), torch.tensor([0.3]))
    tensor([0.3412])
    """
    if chosen.shape != rejected.shape:
        raise ValueError(f"chosen is {_shape(chosen)}, rejected {_shape(rejected)}.")
    loss = -torch.nn.functional.logsigmoid(chosen - rejected - margin)
    return loss + center * (chosen + rejected).square() if center else loss


def dpo(pairs: Pairs, beta: float = 0.1) -> torch.Tensor:
    """-log sigma(beta (h_w - h_l)), (P,). Rafailov et al. 2023, arXiv 2305.18290, eq. 7.

    d/d log pi_w = -beta sigma(-beta (h_w - h_l)), and the opposite for the rejected answer.

    >>> one = Pairs(*torch.tensor([[-4.0], [-8.0], [-6.0], [-7.0]]))   # h = 2 and -1
    >>> dpo(one)
    tensor([0.5544])
    """
    _positive(beta)
    return -torch.nn.functional.logsigmoid(beta * pairs.gap)


def conservative_dpo(pairs: Pairs, beta: float = 0.1, flipped: float = 0.1) -> torch.Tensor:
    """(1 - e) dpo + e dpo of the pair turned round, (P,): labels are wrong with chance e.

    The best gap is finite, log((1 - e) / e) / beta. Mitchell's note on cDPO, 2023.
    """
    _positive(beta)
    _flips(flipped, 0.5)
    z = beta * pairs.gap
    return -(1 - flipped) * torch.nn.functional.logsigmoid(
        z
    ) - flipped * torch.nn.functional.logsigmoid(-z)


def robust_dpo(pairs: Pairs, beta: float = 0.1, flipped: float = 0.1) -> torch.Tensor:
    """((1 - e) dpo - e dpo of the pair turned round) / (1 - 2 e), (P,).

    Its mean over labels that flip with chance e is DPO's on clean labels. Chowdhury et al. 2024,
    arXiv 2403.00409; TRL's "robust".
    """
    _positive(beta)
    _flips(flipped, 0.5)
    z = beta * pairs.gap
    return (
        flipped * torch.nn.functional.logsigmoid(-z)
        - (1 - flipped) * torch.nn.functional.logsigmoid(z)
    ) / (1 - 2 * flipped)


def dpo_shift(pairs: Pairs, beta: float = 0.1, factor: float = 0.75) -> torch.Tensor:
    """-log sigma(beta (h_w - f h_l)), (P,): a smaller push on the rejected answer.

    f = 1 is DPO. Yang et al. 2025, arXiv 2502.07599 (fixed, or linear from 0.5 to 1).
    """
    _positive(beta)
    if not 0 < factor <= 1:
        raise ValueError(f"factor must be above 0 and at most 1, got {factor!r}.")
    chosen, rejected = pairs.log_ratios
    return -torch.nn.functional.logsigmoid(beta * (chosen - factor * rejected))


def dpo_nll(
    pairs: Pairs,
    beta: float = 0.1,
    alpha: float = 1.0,
    average: Literal["answer", "batch"] = "answer",
) -> torch.Tensor:
    """dpo - alpha log pi_w / T_w, (P,): DPO with a likelihood anchor on the chosen answer.

    Pang et al. 2024 (iterative RPO), arXiv 2404.19733, eq. 2: the mean over each answer's own
    tokens. average="batch" divides by the mean length of the chosen answers instead; then the mean
    over pairs is TRL's `loss_type=["sigmoid", "sft"]`, one mean over all tokens.
    """
    length = pairs.lengths[0].to(pairs.chosen.dtype)
    if average == "batch":
        length = length.mean().expand_as(length)
    elif average != "answer":
        raise ValueError(f"average must be 'answer' or 'batch', got {average!r}.")
    return dpo(pairs, beta) - alpha * pairs.chosen / length


def normalized_dpo(pairs: Pairs, beta: float = 0.1) -> torch.Tensor:
    """-log sigma(beta (h_w / T_w - h_l / T_l)), (P,): DPO per token. TRL's "sigmoid_norm"."""
    _positive(beta)
    return -torch.nn.functional.logsigmoid(beta * _per_token_gap(pairs))


def ipo(pairs: Pairs, beta: float = 0.1) -> torch.Tensor:
    """(h_w - h_l - 1 / (2 beta))^2, (P,): the gap has a target. arXiv 2310.12036, eq. 17.

    beta is the paper's tau. Sums over tokens, as OpenRLHF has it; TRL averages: normalized_ipo.
    """
    _positive(beta)
    return (pairs.gap - 1 / (2 * beta)).square()


def normalized_ipo(pairs: Pairs, beta: float = 0.1) -> torch.Tensor:
    """(h_w / T_w - h_l / T_l - 1 / (2 beta))^2, (P,): IPO per token, TRL's "ipo"."""
    _positive(beta)
    return (_per_token_gap(pairs) - 1 / (2 * beta)).square()


def _per_token_gap(pairs: Pairs) -> torch.Tensor:
    (chosen, rejected), (chosen_length, rejected_length) = pairs.log_ratios, pairs.lengths
    return chosen / chosen_length - rejected / rejected_length


def simpo(
    pairs: Pairs, beta: float = 2.0, gamma: float = 1.0, flipped: float = 0.0
) -> torch.Tensor:
    """-log sigma(beta log pi_w / T_w - beta log pi_l / T_l - gamma), (P,): no reference.

    Meng et al. 2024, arXiv 2405.14734, eq. 6. gamma is a margin in reward, not multiplied by beta.
    flipped: TRL's `label_smoothing`, as in conservative_dpo. In TRL this is CPO with
    `loss_type="simpo"` and `cpo_alpha=0`.
    """
    _positive(beta)
    _flips(flipped, 0.5)
    chosen_length, rejected_length = pairs.lengths
    z = beta * (pairs.chosen / chosen_length - pairs.rejected / rejected_length) - gamma
    return -(1 - flipped) * torch.nn.functional.logsigmoid(z) - (
        flipped * torch.nn.functional.logsigmoid(-z) if flipped else 0.0
    )


def kto(
    logprobs: torch.Tensor,
    ref_logprobs: torch.Tensor,
    desirable: torch.Tensor,
    reference_point: float | torch.Tensor = 0.0,
    beta: float = 0.1,
    desirable_weight: float = 1.0,
    undesirable_weight: float = 1.0,
) -> torch.Tensor:
    """Answers marked good or bad, not paired: (B,). Ethayarajh et al. 2024, arXiv 2402.01306.

    good: w_D (1 - sigma(beta (h - z_0))), bad: w_U (1 - sigma(beta (z_0 - h))).

    logprobs, ref_logprobs (B,): sums over tokens. desirable (B,) bool. reference_point z_0: see
    `kto_reference_point`; it carries no gradient. Raises ValueError when the shapes differ.
    """
    _positive(beta)
    if not logprobs.shape == ref_logprobs.shape == desirable.shape:
        raise ValueError(
            f"logprobs, ref_logprobs and desirable must have one shape, got {_shape(logprobs)}, "
            f"{_shape(ref_logprobs)} and {_shape(desirable)}."
        )
    h = logprobs - ref_logprobs.detach()
    point = (
        reference_point.detach() if isinstance(reference_point, torch.Tensor) else reference_point
    )
    good = desirable_weight * torch.sigmoid(beta * (point - h))  # 1 - sigma(z) = sigma(-z)
    bad = undesirable_weight * torch.sigmoid(beta * (h - point))
    return torch.where(desirable.bool(), good, bad)


def kto_reference_point(logprobs: torch.Tensor, ref_logprobs: torch.Tensor) -> torch.Tensor:
    """z_0 = max(0, mean h) over answers that belong to other prompts: 0-d, detached.

    A batch's estimate of KL(pi || pi_ref); mismatched answers make it cheap and biased.
    """
    return (logprobs - ref_logprobs).mean().clamp(min=0).detach()


def implicit_rewards(pairs: Pairs, beta: float = 0.1) -> tuple[torch.Tensor, torch.Tensor]:
    """beta h_w and beta h_l, detached: TRL logs their means as rewards/chosen and /rejected.

    Their difference is the margin, its sign the accuracy. Each alone lacks beta log Z(x).
    """
    chosen, rejected = pairs.log_ratios
    return (beta * chosen).detach(), (beta * rejected).detach()
