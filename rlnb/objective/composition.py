"""An objective is a composition of parts, and this is the whole of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch

from .batch import Batch, Prepared, Totals
from .part import Part, canonical, spell
from .ratios import token
from .surrogates import clip
from .terms import kl_estimate, term

__all__ = ["Change", "Difference", "Explanation", "Metrics", "Objective", "Output", "difference"]

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

    # ---- looking at it

    @property
    def parts(self) -> tuple:
        """All parts, flat."""
        return (self.advantage, self.surrogate, self.weights, self.ratio,
                *self.shape, *self.credit, *self.gates, *self.terms)

    @property
    def needs(self) -> frozenset[str]:
        """The optional Batch fields this objective cannot do without."""
        return frozenset(name for p in self.parts for name in getattr(p, "needs", ()))

    def replace(self, **changes: Any) -> Objective:
        """The same composition with other parts: `grpo.replace(terms=())`."""
        known = [f.name for f in fields(self)]
        for name in changes:
            if name not in known:
                raise TypeError(f"an objective has no part {name!r}; its parts are "
                                f"{', '.join(known)}.")
        return replace(self, **changes)

    def explain(self, batch: Batch) -> Explanation:
        """A per-token table of what this objective does to a batch; str() prints it."""
        prepared = self.prepare(batch)
        lp = batch.logprobs.detach().clone().requires_grad_()
        prepared = prepared.replace(logprobs=lp)
        loss, policy, weights, log_ratio = self._loss(prepared)
        gradient, = torch.autograd.grad(loss, lp, retain_graph=True, allow_unused=True)
        push, = torch.autograd.grad((weights * policy).sum(), lp, allow_unused=True)
        gradient = torch.zeros_like(lp) if gradient is None else gradient
        push = torch.zeros_like(lp) if push is None else push
        scale = weights * prepared.advantages
        gate = torch.where(scale != 0, -push / torch.where(scale != 0, scale, 1.0), torch.nan)
        return Explanation(repr(self), batch.mask, prepared.advantages, log_ratio.exp().detach(),
                           gate.detach(), weights.detach(), gradient, loss.detach())

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
        return Objective(**{
            name: tuple(canonical(p) for p in v) if name in MANY else canonical(v)
            for name, v in changes.items()
        })

    def _check(self, batch: Batch) -> None:
        given = batch.advantages is not None
        skipped = (self.advantage, *self.shape, *self.credit) if given else ()
        for part in self.parts:
            if any(part is s for s in skipped):
                continue
            for name in getattr(part, "needs", ()):
                if getattr(batch, name) is None:
                    from .zoo import name_of  # here, because the zoo is built from this module

                    hint = (" or drop the term with .replace(terms=())"
                            if part in self.terms else "")
                    raise ValueError(f"{name_of(self) or 'this objective'}: {spell(part)} needs "
                                     f"{name}, which the batch does not have: pass "
                                     f"Batch({name}=...){hint}.")
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
    if name == "terms" and isinstance(value, tuple) and value \
            and isinstance(value[0], (int, float)):
        return (value,)
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _place(batch: Batch) -> torch.Tensor:
    """(B, T) token rewards: given, or the scalar on the last unmasked token.

    A fully masked row has none; its reward stands on token 0, still counts in its group's
    statistics, and trains nothing.
    """
    if batch.token_rewards is not None:
        return batch.token_rewards.to(batch.logprobs.dtype)
    out = torch.zeros_like(batch.logprobs)
    steps = torch.arange(1, out.shape[1] + 1, device=out.device, dtype=out.dtype)
    last = (batch.completion_mask * steps).argmax(1, keepdim=True)
    return out.scatter(1, last, batch.rewards.to(out.dtype).unsqueeze(1))


@dataclass(frozen=True, eq=False)
class Output:
    """loss: 0-d, minimised. per_token_loss (B, T): the policy term before weighting, 0 where
    masked. weights (B, T). advantages (B, T), no gradient. metrics: a lazy mapping."""

    loss: torch.Tensor
    per_token_loss: torch.Tensor
    weights: torch.Tensor
    advantages: torch.Tensor
    metrics: Metrics


class Metrics(Mapping):
    """TRL's names, each computed when it is looked up. Floats.

    reward, reward_std (mean over groups, Bessel), frac_reward_zero_std, completions/*_length;
    clip_ratio/{low,high,region}_mean where there is a PPO band: the share of tokens it *cut*,
    sign-aware; ratio/{mean,max}; kl (k3 to the reference) and entropy where the batch has them.
    """

    def __init__(self, objective: Objective, prepared: Prepared) -> None:
        batch = prepared.batch.cleaned()
        self._values: dict[str, Callable[[], torch.Tensor | float]] = {
            "reward": lambda: batch.rewards.mean(),
            "completions/mean_length": lambda: batch.lengths.mean(),
            "completions/min_length": lambda: batch.lengths.min(),
            "completions/max_length": lambda: batch.lengths.max(),
        }
        mask, size = batch.mask, batch.num_generations
        if size > 1 and len(batch.rewards) % size == 0:
            groups = batch.grouped(batch.rewards)
            self._values["reward_std"] = lambda: groups.std(1).mean()
            self._values["frac_reward_zero_std"] = lambda: (
                groups.amax(1) == groups.amin(1)).to(groups.dtype).mean()
        with torch.no_grad():
            log_ratio = objective.ratio(batch, prepared.advantages).detach()
        self._values["ratio/mean"] = lambda: log_ratio[mask].exp().mean()
        self._values["ratio/max"] = lambda: log_ratio[mask].exp().max()
        if isinstance(objective.surrogate, clip):
            low, high = objective.surrogate.cut(prepared.advantages, log_ratio)
            share = _masked_share(mask)
            self._values["clip_ratio/low_mean"] = lambda: share(low)
            self._values["clip_ratio/high_mean"] = lambda: share(high)
            self._values["clip_ratio/region_mean"] = lambda: share(low | high)
        if batch.ref_logprobs is not None:
            self._values["kl"] = lambda: kl_estimate(
                "k3", (batch.logprobs.detach() - batch.ref_logprobs))[mask].mean()
        if batch.entropies is not None:
            self._values["entropy"] = lambda: batch.entropies.detach()[mask].mean()

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


@dataclass(frozen=True)
class Change:
    """One line of a changelog."""

    part: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.part}: {self.before} -> {self.after}"


@dataclass(frozen=True)
class Difference:
    """What turns one objective into another; str() is the changelog an interviewer asks for."""

    changes: tuple[Change, ...]

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __str__(self) -> str:
        return "\n".join(str(c) for c in self.changes) or "no difference"

    __repr__ = __str__


def difference(a: Objective, b: Objective) -> Difference:
    """The parts in which two objectives differ, conventions included.

    >>> from rlnb.objective import ZOO
    >>> difference(ZOO["grpo"], ZOO["dr_grpo"])
    advantage: group_zscore() -> group_center()
    weights: sequence_mean -> constant_length()
    terms: k3(0.04) -> none
    """
    return Difference(tuple(
        Change(f.name, spell(getattr(a, f.name)), spell(getattr(b, f.name)))
        for f in fields(Objective) if getattr(a, f.name) != getattr(b, f.name)
    ))


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
        lines = [f"{'row':>3} {'token':>5} {'A':>8} {'ratio':>8} {'gate':>8} {'weight':>8} "
                 f"{'dL/dlogp':>9}"]
        for row, col in self.mask.nonzero().tolist():
            cells = [_number(t[row, col]) for t in (self.advantages, self.ratio, self.gate,
                                                    self.weights)]
            lines.append(f"{row:>3} {col:>5} " + " ".join(f"{c:>8}" for c in cells)
                         + f" {_number(self.gradient[row, col]):>9}")
        return "\n".join([*lines, f"loss {_number(self.loss)}"])

    __repr__ = __str__


def _number(x: torch.Tensor) -> str:
    """Four decimals, no negative zero, a dash for nan."""
    value = float(x)
    return "-" if value != value else f"{round(value, 4) + 0.0:.4f}"
