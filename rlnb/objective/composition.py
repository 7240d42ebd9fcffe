"""An objective is a composition of parts, and this is the whole of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import torch

from rlnb.objective.batch import Batch, Prepared, Totals
from rlnb.objective.part import Part, canonical, spell
from rlnb.objective.ratios import token
from rlnb.objective.report import Explanation, Metrics
from rlnb.objective.shapes import on_last_token
from rlnb.objective.terms import term

__all__ = ["Objective", "Output"]

MANY = ("shape", "credit", "gates", "terms")


@dataclass(frozen=True, repr=False)
class Objective:
    """L = sum_{i,t} c_{i,t} * ( - gate * surrogate(A, log-ratio) )_{i,t} + terms.

    ============ ============================================ ================================
    part         signature                                     what it decides
    ============ ============================================ ================================
    advantage    (batch, token_rewards) -> A (B, T)            the baseline
    surrogate    (batch, A, log-ratio) -> value (B, T)         what a token is worth, maximised
    weights      (batch, totals) -> c (B, T)                   how tokens are averaged
    ratio        (batch, A) -> log-ratio (B, T)                how far the policy moved
    shape        (batch, token_rewards) -> token_rewards       KL in the reward, length penalty
    credit       (batch, A) -> A                               whitening, prompt weights
    gates        (batch, A, log-ratio) -> factor (B, T)        detached, policy term only
    terms        coefficient, (batch) -> (B, T), weights       KL, entropy, critic; minimised
    ============ ============================================ ================================

    Any callable of the signature is a part. `shape`, `credit`, `gates` and `terms` take one part
    or a tuple; a term may also be a tuple (coefficient, function[, weights]). Losses are
    minimised; a masked token has gradient exactly 0 whatever stands there.

    >>> from rlnb.objective import group_zscore, clip, sequence_mean, k3
    >>> Objective(group_zscore(), clip(0.2), sequence_mean, terms=k3(0.04))
    Objective(group_zscore(), clip(0.2), sequence_mean, terms=k3(0.04))
    """

    advantage: Callable
    surrogate: Callable
    weights: Callable
    ratio: Callable = field(default=token(), kw_only=True)
    shape: tuple = field(default=(), kw_only=True)
    credit: tuple = field(default=(), kw_only=True)
    gates: tuple = field(default=(), kw_only=True)
    terms: tuple = field(default=(), kw_only=True)

    # words of a library's configuration that did not touch the loss; set by from_trl, from_verl
    ignored: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in MANY:
                value = tuple(_one(f.name, p) for p in _many(f.name, value))
            else:
                value = _one(f.name, value)
            object.__setattr__(self, f.name, value)

    # ---- using it

    def __call__(self, batch: Batch) -> Output:
        """Validate, prepare and evaluate one batch."""
        return self.evaluate(self.prepare(batch))

    def prepare(self, batch: Batch) -> Prepared:
        """Once per rollout step, on whole groups: check, rewards -> advantages, totals.

        Raises ValueError in one sentence for a batch that this objective cannot use.
        """
        batch.check()
        self._check(batch)
        return self.prepare_unchecked(batch)

    def prepare_unchecked(self, batch: Batch) -> Prepared:
        """`prepare` for a batch known to be good: tensor operations only, so that it can be vmapped
        over many small steps."""
        with torch.no_grad():
            clean = batch.cleaned()
            if batch.advantages is not None:
                given = batch.advantages.to(batch.logprobs.dtype)
                advantages = given if given.ndim == 2 else batch.expand(given)
            else:
                rewards = _place(clean)
                for part in self.shape:
                    rewards = part(clean, rewards)
                advantages = self.advantage(clean, rewards)
            advantages = torch.where(batch.mask, advantages, 0.0)
            if clean.values is not None:
                if batch.returns is None:
                    batch = batch.replace(returns=advantages + clean.values.detach())
                if batch.old_values is None:
                    batch = batch.replace(old_values=clean.values.detach())
            if batch.advantages is None:
                for part in self.credit:
                    advantages = part(clean, advantages)
            advantages = torch.where(batch.mask, advantages, 0.0)
            group = torch.arange(len(advantages), device=advantages.device)
            group = group // batch.num_generations
            return Prepared(batch, advantages, group, Totals.of_groups(batch))

    def loss(self, prepared: Prepared) -> torch.Tensor:
        """The loss of some rows of a prepared step, 0-d. Pure: no validation, no .item().

        Over any split of the rows, inside groups too, the losses add up to the step's.
        `local_token_mean` and parts that use batch statistics are the exceptions.
        """
        return self._loss(prepared)[0]

    def evaluate(self, prepared: Prepared) -> Output:
        """The loss with what it was made of."""
        loss, policy, weights, _ = self._loss(prepared)
        return Output(loss, policy, weights, prepared.advantages, Metrics(self, prepared))

    def _loss(self, prepared: Prepared) -> tuple[torch.Tensor, ...]:
        batch, advantages, totals = prepared.batch.cleaned(), prepared.advantages, prepared.totals
        mask = batch.mask
        log_ratio = self.ratio(batch, advantages)
        value = self.surrogate(batch, advantages, log_ratio)
        for gate in self.gates:
            value = value * gate(batch, advantages, log_ratio).detach()
        policy = torch.where(mask, -value, 0.0)
        weights = torch.where(mask, self.weights(batch, totals), 0.0)
        loss = (weights * policy).sum()
        for part in self.terms:
            own = part.weights
            c = weights if own is None else torch.where(mask, own(batch, totals), 0.0)
            loss = loss + part.coefficient * (c * torch.where(mask, part(batch), 0.0)).sum()
        return loss, policy, weights, log_ratio

    # ---- other libraries' words

    @classmethod
    def from_trl(cls, config: Any = None, **keywords: Any) -> Objective:
        """What TRL computes for a GRPOConfig or its keywords: see interop.from_trl."""
        from rlnb.objective.interop.trl import from_trl  # here: that room builds objectives

        return from_trl(config, **keywords)

    @classmethod
    def from_verl(cls, config: Any = None, **keywords: Any) -> Objective:
        """What verl computes for its words: see interop.from_verl."""
        from rlnb.objective.interop.verl import from_verl

        return from_verl(config, **keywords)

    def to_trl(self, *, strict: bool = False) -> dict[str, Any]:
        """This objective as keywords of TRL, with `.differences`: see interop.to_trl."""
        from rlnb.objective.interop.trl_words import to_trl

        return to_trl(self, strict=strict)

    def to_verl(self, *, strict: bool = False) -> dict[str, Any]:
        """This objective as words of verl, with `.differences`: see interop.to_verl."""
        from rlnb.objective.interop.verl_words import to_verl

        return to_verl(self, strict=strict)

    # ---- looking at it

    @property
    def parts(self) -> tuple:
        """All parts, flat."""
        return (
            self.advantage,
            self.surrogate,
            self.weights,
            self.ratio,
            *self.shape,
            *self.credit,
            *self.gates,
            *self.terms,
        )

    @property
    def needs(self) -> frozenset[str]:
        """The optional Batch fields this objective cannot do without."""
        return frozenset(name for p in self.parts for name in getattr(p, "needs", ()))

    def replace(self, **changes: Any) -> Objective:
        """The same composition with other parts: `grpo.replace(terms=())`."""
        known = [f.name for f in fields(self)]
        for name in changes:
            if name not in known:
                raise TypeError(
                    f"an objective has no part {name!r}; its parts are {', '.join(known)}."
                )
        return replace(self, **changes)

    def explain(self, batch: Batch) -> Explanation:
        """A per-token table of what this objective does to a batch; str() prints it."""
        prepared = self.prepare(batch)
        lp = batch.logprobs.detach().clone().requires_grad_()
        prepared = prepared.replace(logprobs=lp)
        loss, policy, weights, log_ratio = self._loss(prepared)
        (gradient,) = torch.autograd.grad(loss, lp, retain_graph=True, allow_unused=True)
        (push,) = torch.autograd.grad((weights * policy).sum(), lp, allow_unused=True)
        gradient = torch.zeros_like(lp) if gradient is None else gradient
        push = torch.zeros_like(lp) if push is None else push
        scale = weights * prepared.advantages
        gate = torch.where(scale != 0, -push / torch.where(scale != 0, scale, 1.0), torch.nan)
        return Explanation(
            repr(self),
            batch.mask,
            prepared.advantages,
            log_ratio.exp().detach(),
            gate.detach(),
            weights.detach(),
            gradient,
            loss.detach(),
        )

    def __repr__(self) -> str:
        words = [spell(self.advantage), spell(self.surrogate), spell(self.weights)]
        if self.ratio != token():
            words.append(f"ratio={spell(self.ratio)}")
        for name in MANY:
            value = getattr(self, name)
            if value:
                text = spell(value)
                words.append(f"{name}={text if len(value) == 1 else f'({text})'}")
        return f"Objective({', '.join(words)})"

    def canonical(self) -> Objective:
        """The same method with every convention at its default."""
        changes = {f.name: getattr(self, f.name) for f in fields(self)}
        return Objective(
            **{
                name: tuple(canonical(p) for p in v) if name in MANY else canonical(v)
                for name, v in changes.items()
            }
        )

    def _check(self, batch: Batch) -> None:
        given = batch.advantages is not None
        skipped = (self.advantage, *self.shape, *self.credit) if given else ()
        for part in self.parts:
            if any(part is s for s in skipped):
                continue
            for name in getattr(part, "needs", ()):
                if getattr(batch, name) is None:
                    from rlnb.objective.zoo import (
                        name_of,  # here, because the zoo is built from this module
                    )

                    hint = " or drop the term with .replace(terms=())" if part in self.terms else ""
                    raise ValueError(
                        f"{name_of(self) or 'this objective'}: {spell(part)} needs "
                        f"{name}, which the batch does not have: pass "
                        f"Batch({name}=...){hint}."
                    )
            check = getattr(part, "check", None)
            if check is not None:
                check(batch)


def _one(name: str, part: Any) -> Any:
    if isinstance(part, type) and issubclass(part, Part):
        part = part()
    if name == "terms" and isinstance(part, tuple):
        part = term(*part)
    if name == "terms" and not hasattr(part, "coefficient"):
        raise TypeError(f"a term needs a coefficient: write (0.01, {spell(part)}) or k3(0.04).")
    if not callable(part):
        raise TypeError(f"{name} must be a part, that is a callable; got {part!r}.")
    if name == "terms" and not hasattr(part, "weights"):
        part = term(part.coefficient, part)
    return part


def _many(name: str, value: Any) -> tuple:
    if value is None:
        return ()
    if (
        name == "terms"
        and isinstance(value, tuple)
        and value
        and isinstance(value[0], (int, float))
    ):
        return (value,)
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _place(batch: Batch) -> torch.Tensor:
    """(B, T) token rewards: given, or the scalar on the last unmasked token."""
    if batch.token_rewards is not None:
        return batch.token_rewards.to(batch.logprobs.dtype)
    return on_last_token(batch, batch.rewards)


@dataclass(frozen=True, eq=False)
class Output:
    """loss: 0-d, minimised. per_token_loss (B, T): the policy term before weighting, 0 where
    masked. weights (B, T). advantages (B, T), no gradient. metrics: a lazy mapping."""

    loss: torch.Tensor
    per_token_loss: torch.Tensor
    weights: torch.Tensor
    advantages: torch.Tensor
    metrics: Metrics
