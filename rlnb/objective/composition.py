"""An objective is a composition of parts, and this is the whole of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, TypeVar

import torch

from rlnb.objective.batch import Batch, Prepared, Totals
from rlnb.objective.part import (
    Advantage,
    Credit,
    Gate,
    Part,
    Ratio,
    Seam,
    Shape,
    Surrogate,
    Term,
    Weights,
    canonical,
    spell,
)
from rlnb.objective.ratios import token
from rlnb.objective.report import Explanation, Metrics
from rlnb.objective.shapes import on_last_token
from rlnb.objective.surrogates import clip
from rlnb.objective.terms import term

__all__ = ["Objective", "Output"]

SEVERAL = ("shape", "credit", "gates", "terms")

P = TypeVar("P")
One: TypeAlias = P | type[Part]  # a part, or its class where every argument has a default
Many: TypeAlias = P | type[Part] | Sequence[P | type[Part]] | None


@dataclass(frozen=True, repr=False, init=False)
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

    advantage: Advantage
    surrogate: Surrogate
    weights: Weights
    ratio: Ratio
    shape: tuple[Shape, ...]
    credit: tuple[Credit, ...]
    gates: tuple[Gate, ...]
    terms: tuple[Term, ...]

    def __init__(
        self,
        advantage: One[Advantage],
        surrogate: One[Surrogate],
        weights: One[Weights],
        *,
        ratio: One[Ratio] = token,
        shape: Many[Shape] = (),
        credit: Many[Credit] = (),
        gates: Many[Gate] = (),
        terms: Many[Term] | tuple[Any, ...] = (),
    ) -> None:
        given: dict[Seam, Any] = {
            "advantage": advantage,
            "surrogate": surrogate,
            "weights": weights,
            "ratio": ratio,
            "shape": shape,
            "credit": credit,
            "gates": gates,
            "terms": terms,
        }
        for seam, value in given.items():
            several = seam in SEVERAL
            part = (
                tuple(_one(seam, p) for p in _many(seam, value)) if several else _one(seam, value)
            )
            object.__setattr__(self, seam, part)

    # ---- using it

    def __call__(self, batch: Batch) -> Output:
        """Validate, prepare and evaluate one batch."""
        return self._evaluate(*self._prepare(batch, check=True))

    def prepare(self, batch: Batch, check: bool = True) -> Prepared:
        """Once per rollout step, on whole groups: check, rewards -> advantages, totals.

        check=False is for a batch known to be good: tensor operations only, so that it can be
        vmapped over many small steps. Raises ValueError in one sentence for a batch that this
        objective cannot use.
        """
        return self._prepare(batch, check)[0]

    def _prepare(self, batch: Batch, check: bool) -> tuple[Prepared, Batch]:
        """The prepared step, and its batch with the masked entries cleaned away."""
        if check:
            batch.check()
            self._check(batch)
        clean = batch.cleaned()
        with torch.no_grad():
            advantages = torch.where(batch.mask, self._advantages(batch, clean), 0.0)
            made: dict[str, torch.Tensor] = {}
            if clean.values is not None:
                # the critic's target is taken before the credit, which may whiten
                if batch.returns is None:
                    made["returns"] = advantages + clean.values.detach()
                if batch.old_values is None:
                    made["old_values"] = clean.values.detach()
            if batch.advantages is None:
                for part in self.credit:
                    advantages = part(clean, advantages)
                advantages = torch.where(batch.mask, advantages, 0.0)
            group = torch.arange(len(advantages), device=advantages.device)
            group = group // batch.num_generations
            prepared = Prepared(batch.replace(**made), advantages, group, Totals.of_groups(batch))
        return prepared, clean.replace(**made)

    def _advantages(self, batch: Batch, clean: Batch) -> torch.Tensor:
        """(B, T) before the credit: given, or computed from the rewards."""
        if batch.advantages is not None:
            given = batch.advantages.to(batch.logprobs.dtype)
            return given if given.ndim == 2 else batch.expand(given)
        rewards = _place(clean)
        for part in self.shape:
            rewards = part(clean, rewards)
        return self.advantage(clean, rewards)

    def loss(self, prepared: Prepared) -> torch.Tensor:
        """The loss of some rows of a prepared step, 0-d. Pure: no validation, no .item().

        Over any split of the rows, inside groups too, the losses add up to the step's.
        `local_token_mean` and parts that use batch statistics are the exceptions.
        """
        return self._loss(prepared, prepared.batch.cleaned())[0]

    def evaluate(self, prepared: Prepared) -> Output:
        """The loss with what it was made of."""
        return self._evaluate(prepared, prepared.batch.cleaned())

    def _evaluate(self, prepared: Prepared, clean: Batch) -> Output:
        loss, policy, weights, log_ratio = self._loss(prepared, clean)
        cut = None
        if isinstance(self.surrogate, clip):
            cut = self.surrogate.cut(prepared.advantages, log_ratio.detach())
        return Output(loss, policy, weights, prepared.advantages, Metrics(clean, log_ratio, cut))

    def _loss(
        self, prepared: Prepared, clean: Batch
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """(loss, policy term, weights, log-ratio) on the prepared step's batch, cleaned."""
        advantages, totals, mask = prepared.advantages, prepared.totals, clean.mask
        log_ratio = self.ratio(clean, advantages)
        value = self.surrogate(clean, advantages, log_ratio)
        for gate in self.gates:
            value = value * gate(clean, advantages, log_ratio).detach()
        policy = torch.where(mask, -value, 0.0)
        weights = torch.where(mask, self.weights(clean, totals), 0.0)
        loss = (weights * policy).sum()
        for part in self.terms:
            own = part.weights
            c = weights if own is None else torch.where(mask, own(clean, totals), 0.0)
            loss = loss + part.coefficient * (c * torch.where(mask, part(clean), 0.0)).sum()
        return loss, policy, weights, log_ratio

    # ---- looking at it

    @property
    def parts(self) -> tuple[Callable[..., torch.Tensor], ...]:
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
        loss, policy, weights, log_ratio = self._loss(prepared, prepared.batch.cleaned())
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
        for name in SEVERAL:
            value = getattr(self, name)
            if value:
                text = spell(value)
                words.append(f"{name}={text if len(value) == 1 else f'({text})'}")
        return f"Objective({', '.join(words)})"

    def canonical(self) -> Objective:
        """The same method with every convention at its default."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        plain: dict[str, Any] = {
            name: tuple(canonical(p) for p in part) if name in SEVERAL else canonical(part)
            for name, part in parts.items()
        }
        return Objective(**plain)

    def _check(self, batch: Batch) -> None:
        given = batch.advantages is not None
        skipped = (self.advantage, *self.shape, *self.credit) if given else ()
        for part in self.parts:
            if any(part is s for s in skipped):
                continue
            hint = " or drop the term with .replace(terms=())" if part in self.terms else ""
            for name in getattr(part, "needs", ()):
                batch.required(name, spell(part), hint)
            if isinstance(part, Part):
                self._check_company(part)
            check = getattr(part, "check", None)
            if check is not None:
                check(batch)

    def _check_company(self, part: Part) -> None:
        for seam, kinds in part.beside.items():
            there = getattr(self, seam)
            if not isinstance(there, kinds):
                wanted = " or ".join(f"{kind.__name__}()" for kind in kinds)
                raise ValueError(
                    f"{spell(part)} takes {seam}={wanted}, and this objective has "
                    f"{seam}={spell(there)}: write .replace({seam}={wanted})."
                )


def _one(name: Seam, part: Any) -> Any:
    if isinstance(part, type) and issubclass(part, Part):
        part = part()
    if name == "terms" and isinstance(part, tuple):
        part = term(*part)
    if name == "terms" and not hasattr(part, "coefficient"):
        raise TypeError(f"a term needs a coefficient: write (0.01, {spell(part)}) or k3(0.04).")
    if not callable(part):
        raise TypeError(f"{name} must be a part, that is a callable; got {part!r}.")
    fits = getattr(part, "fits", None)
    if fits not in (None, name):
        raise TypeError(
            f"{spell(part)} is a part for `{fits}`, and stands in `{name}`; write "
            f"{fits}={spell(part)}, or another part here."
        )
    if name == "terms" and not hasattr(part, "weights"):
        part = term(part.coefficient, part)
    return part


def _many(name: Seam, value: Any) -> tuple[Any, ...]:
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
