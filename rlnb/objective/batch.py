"""What a loss may look at: one rollout step, checked once, and the totals of that step."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch

__all__ = ["Batch", "Prepared", "Totals"]

PER_TOKEN = (
    "old_logprobs",
    "ref_logprobs",
    "sampling_logprobs",
    "token_rewards",
    "values",
    "old_values",
    "returns",
    "entropies",
    "sampled_rank",
)
PER_CANDIDATE = ("topk_logprobs", "old_topk_logprobs")


@dataclass(frozen=True)
class Batch:
    """The tensors of one rollout step. B rows, T completion tokens, the prompt is never in it.

    =================== ========= ==========================================================
    field               shape     meaning
    =================== ========= ==========================================================
    logprobs            (B, T)    log pi_theta of the sampled tokens, in nats; carries the gradient
    completion_mask     (B, T)    1 on tokens the policy wrote; padding and tool output are 0
    rewards             (B,)      one scalar per completion
    num_generations     int       G: rows kG ... kG+G-1 answer the same prompt
    old_logprobs        (B, T)    at the start of the update; None: on-policy, ratio exactly 1
    ref_logprobs        (B, T)    frozen reference, for a KL term
    sampling_logprobs   (B, T)    as the rollout engine saw them
    advantages          (B,)/(B, T) given instead of computed
    token_rewards       (B, T)    instead of `rewards` on the last token
    greedy_rewards      (B,)      reward of the greedy answer to the row's prompt
    values, old_values  (B, T)    critic, now and at the start of the update
    returns             (B, T)    the critic's target; computed from the advantages when None
    entropies           (B, T)    of the policy's next-token distribution, in nats
    topk_logprobs       (B, T, K) and old_topk_logprobs: the K likeliest candidates
    sampled_rank        (B, T)    rank of the sampled token among them, 0 is the likeliest, K: none
    max_completion_length int     the constant of `constant_length`
    generator           torch.Generator for the few random parts
    =================== ========= ==========================================================

    What stands under a mask of 0 never matters, inf and nan included. Nothing is checked here;
    `Objective.prepare` calls `check`, which raises a sentence per mistake.
    """

    logprobs: torch.Tensor
    completion_mask: torch.Tensor
    rewards: torch.Tensor
    num_generations: int
    old_logprobs: torch.Tensor | None = None
    ref_logprobs: torch.Tensor | None = None
    sampling_logprobs: torch.Tensor | None = None
    advantages: torch.Tensor | None = None
    token_rewards: torch.Tensor | None = None
    greedy_rewards: torch.Tensor | None = None
    values: torch.Tensor | None = None
    old_values: torch.Tensor | None = None
    returns: torch.Tensor | None = None
    entropies: torch.Tensor | None = None
    topk_logprobs: torch.Tensor | None = None
    old_topk_logprobs: torch.Tensor | None = None
    sampled_rank: torch.Tensor | None = None
    max_completion_length: int | None = None
    generator: torch.Generator | None = None

    def replace(self, **changes: Any) -> Batch:
        """The same batch with other fields."""
        return replace(self, **changes)

    def required(self, field: str, method: str, instead: str = "") -> torch.Tensor:
        """An optional tensor that a method cannot do without.

        Raises ValueError, naming the method and the field, where the batch does not have it;
        `instead` is what else the reader may do.
        """
        value: torch.Tensor | None = getattr(self, field)
        if value is None:
            raise ValueError(
                f"{method} needs {field}, which the batch does not have: pass "
                f"Batch({field}=...){instead}."
            )
        return value

    @property
    def mask(self) -> torch.Tensor:
        """(B, T) bool."""
        return self.completion_mask.bool()

    @property
    def lengths(self) -> torch.Tensor:
        """(B,) number of unmasked tokens, in the dtype of `logprobs`."""
        return self.completion_mask.to(self.logprobs.dtype).sum(1)

    @property
    def anchor_logprobs(self) -> torch.Tensor:
        """(B, T) log pi_old, no gradient: `old_logprobs`, or the current ones when on-policy."""
        old = self.logprobs if self.old_logprobs is None else self.old_logprobs
        return old.detach()

    def grouped(self, per_row: torch.Tensor) -> torch.Tensor:
        """(B,) -> (P, G): one line per prompt."""
        return per_row.view(-1, self.num_generations)

    def expand(self, per_row: torch.Tensor) -> torch.Tensor:
        """(B,) or (P, G) -> (B, T): the same number on every token of a row."""
        return per_row.reshape(-1, 1).expand_as(self.logprobs)

    def rows(self, index: Any) -> Batch:
        """Some rows. The result may cut a group: only a prepared step can do with that."""
        count = len(self.logprobs)
        index = as_index(index)
        taken = {
            f.name: value[index]
            for f in fields(self)
            if torch.is_tensor(value := getattr(self, f.name))
            and value.ndim > 0
            and len(value) == count
        }
        return self.replace(**taken)

    def cleaned(self) -> Batch:
        """Masked entries replaced by 0, so that inf and nan reach neither value nor gradient.

        The replacement must stand before any exp: 0 times a nan gradient is nan.
        """
        mask = self.mask
        clean: dict[str, Any] = {"completion_mask": mask.to(self.logprobs.dtype)}
        for name in ("logprobs", *PER_TOKEN, *PER_CANDIDATE):
            value = getattr(self, name)
            if value is not None:
                where = mask if value.ndim == 2 else mask.unsqueeze(-1)
                clean[name] = torch.where(
                    where, value, torch.zeros((), dtype=value.dtype, device=value.device)
                )
        return self.replace(**clean)

    def check(self) -> None:
        """Raise TypeError or ValueError, in one sentence, for a batch no loss can use."""
        lp = self.logprobs
        if not torch.is_tensor(lp) or not lp.is_floating_point() or lp.ndim != 2:
            raise ValueError(f"logprobs must be a float tensor of shape (B, T), got {_say(lp)}.")
        rows, width = lp.shape
        self._check_shape("completion_mask", (rows, width))
        values = self.completion_mask.float()
        if not bool(((values == 0) | (values == 1)).all()):
            raise ValueError(
                "completion_mask must hold only 0 and 1: it says which tokens the "
                "policy wrote. Pass weights through the objective's `weights`."
            )
        self._check_shape("rewards", (rows,))
        if not bool(torch.isfinite(self.rewards.float()).all()):
            bad = int((~torch.isfinite(self.rewards.float())).nonzero()[0])
            raise ValueError(
                f"rewards[{bad}] is {float(self.rewards[bad])}: a reward must be "
                "finite. Give a failed verifier a number, or drop the prompt."
            )
        size = self.num_generations
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"num_generations must be an int of at least 1, got {size!r}.")
        if rows % size:
            raise ValueError(
                f"logprobs has {rows} rows, which is not a multiple of "
                f"num_generations={size}: rows kG ... kG+G-1 answer one prompt."
            )
        if not bool(self.mask.any()):
            raise ValueError(
                "completion_mask is 0 everywhere: there is no token to learn from. "
                "Were all completions truncated and masked?"
            )
        for name in PER_TOKEN:
            self._check_shape(name, (rows, width))
        for name in PER_CANDIDATE:
            self._check_shape(name, (rows, width, None))
        self._check_shape("greedy_rewards", (rows,))
        if self.advantages is not None and tuple(self.advantages.shape) not in (
            (rows,),
            (rows, width),
        ):
            raise ValueError(
                f"advantages must have shape ({rows},) or ({rows}, {width}), "
                f"got {tuple(self.advantages.shape)}."
            )
        self._check_finite()

    def _check_shape(self, name: str, shape: tuple[int | None, ...]) -> None:
        value = getattr(self, name)
        if value is None and name not in ("completion_mask", "rewards"):
            return
        wanted = (
            "("
            + ", ".join("K" if n is None else str(n) for n in shape)
            + ("," if len(shape) == 1 else "")
            + ")"
        )
        if not torch.is_tensor(value):
            raise ValueError(f"{name} must be a tensor of shape {wanted}, got {_say(value)}.")
        if value.ndim != len(shape) or any(
            n is not None and n != m for n, m in zip(shape, value.shape, strict=False)
        ):
            raise ValueError(
                f"{name} must have shape {wanted} to match logprobs, got {tuple(value.shape)}."
            )

    def _check_finite(self) -> None:
        mask = self.mask
        names = (
            "logprobs",
            "old_logprobs",
            "ref_logprobs",
            "sampling_logprobs",
            "values",
            "token_rewards",
        )
        for name in names:
            value = getattr(self, name)
            if value is None:
                continue
            bad = mask & ~torch.isfinite(value)
            if bool(bad.any()):
                row, col = (int(i) for i in bad.nonzero()[0])
                raise ValueError(
                    f"{name}[{row}, {col}] is {float(value[row, col])} on an unmasked "
                    "token. Mask the token or mend the model's output."
                )
            if name.endswith("logprobs") and bool((mask & (value > 1e-3)).any()):
                row, col = (int(i) for i in (mask & (value > 1e-3)).nonzero()[0])
                raise ValueError(
                    f"{name}[{row}, {col}] is {float(value[row, col]):.4f}, but a log-"
                    "probability is at most 0. Did you pass probabilities? Take log."
                )


def as_index(index: Any) -> Any:
    """A list, range, int or boolean tensor as something a tensor can be indexed with."""
    if isinstance(index, int):
        return torch.tensor([index])
    if isinstance(index, (list, tuple, range)):
        return torch.tensor(list(index), dtype=torch.long)
    return index


@dataclass(frozen=True)
class Totals:
    """The denominators of a whole optimizer step, so that its micro-batches add up exactly."""

    rows: int
    nonempty_rows: torch.Tensor  # 0-d: rows with at least one unmasked token
    prompts: int
    tokens: torch.Tensor  # 0-d: unmasked tokens
    row_group_tokens: torch.Tensor  # (B,): unmasked tokens in the row's group

    @classmethod
    def of_groups(cls, batch: Batch) -> Totals:
        """Of a whole step: rows kG ... kG+G-1 are one group."""
        lengths, size = batch.lengths, batch.num_generations
        per_group = lengths.view(-1, size).sum(1, keepdim=True).expand(-1, size).reshape(-1)
        return cls(
            len(lengths),
            (lengths > 0).sum().to(lengths.dtype),
            len(lengths) // size,
            lengths.sum(),
            per_group,
        )

    @classmethod
    def of(cls, lengths: torch.Tensor, group: torch.Tensor) -> Totals:
        """Of any rows, from their (B,) lengths and (B,) group ids."""
        ids, place = torch.unique(group, return_inverse=True)
        per_group = torch.zeros(len(ids), dtype=lengths.dtype, device=lengths.device)
        per_group.index_add_(0, place, lengths)
        return cls(
            len(lengths),
            (lengths > 0).sum().to(lengths.dtype),
            len(ids),
            lengths.sum(),
            per_group[place],
        )


@dataclass(frozen=True)
class Prepared:
    """A rollout step whose advantages and totals are known. `Objective.loss` needs nothing else."""

    batch: Batch
    advantages: torch.Tensor  # (B, T), no gradient
    group: torch.Tensor  # (B,) id of the row's prompt
    totals: Totals

    def __len__(self) -> int:
        return len(self.advantages)

    def rows(self, index: Any) -> Prepared:
        """Rows as a micro-batch: the step's totals stay, so losses of a split add up to the step's.

        sum(obj.loss(p.rows(i)) for i in split) == obj.loss(p), also when a group is cut.
        """
        index = as_index(index)
        totals = replace(self.totals, row_group_tokens=self.totals.row_group_tokens[index])
        return Prepared(self.batch.rows(index), self.advantages[index], self.group[index], totals)

    def minibatch(self, index: Any) -> Prepared:
        """Rows as an optimizer step of their own: the same advantages, totals of these rows."""
        part = self.rows(index)
        return replace(part, totals=Totals.of(part.batch.lengths, part.group))

    def replace(self, **changes: Any) -> Prepared:
        """The same step seen by a newer policy: `prepared.replace(logprobs=...)`."""
        return replace(self, batch=self.batch.replace(**changes))


def _say(value: Any) -> str:
    return (
        f"shape {tuple(value.shape)} {value.dtype}"
        if torch.is_tensor(value)
        else f"{type(value).__name__}"
    )
