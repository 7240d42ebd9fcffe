"""The instrument: mean and variance of any estimator, exactly, by enumeration.

A group of G answers from a toy policy is a multiset of outcomes, and there are finitely many. Most
objectives see the *other* rows of a step only through their rewards and lengths, so outcomes that
share both can be summed inside one class: fewer multisets, the same exact answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import cast

import torch

from rlnb.objective import Batch, Objective, Part
from rlnb.toys.exact import true_gradient
from rlnb.toys.policies import Reward, _Enumerable, outcome_rewards

__all__ = ["Moments", "estimator_moments"]

LIMIT = 200_000  # configurations of a step that are still enumerated
SAMPLES = 20_000  # steps drawn beyond it
CHUNK = 4_000_000  # numbers held at once
SUPPLIED = {"ref_logprobs", "sampling_logprobs", "greedy_rewards", "entropies"}


@dataclass(frozen=True, eq=False)
class Moments:
    """What an estimator g of the policy gradient is worth.

    mean: E[g], shaped like the logits (several prompts with policies of their own: a flat vector).
    trace: E|g|^2 - |E g|^2, the sum of the variances of g's components.
    cosine: between mean and truth; nan when either is 0. truth: the true gradient.
    bias: mean - truth. exact: whether everything was enumerated. groups: over how many steps.
    standard_error: of the mean, as a norm; 0.0 when exact. trace_error: of the trace.
    """

    mean: torch.Tensor
    trace: float
    cosine: float
    truth: torch.Tensor
    exact: bool
    groups: int
    standard_error: float = 0.0
    trace_error: float = 0.0

    @property
    def bias(self) -> torch.Tensor:
        return self.mean - self.truth

    def __str__(self) -> str:
        how = (
            f"exact over {self.groups:,} steps"
            if self.exact
            else f"sampled, {self.groups:,} steps, standard error {self.standard_error:.1e}"
        )
        return (
            f"|mean| {float(self.mean.norm()):.4f}  cosine {self.cosine:.4f}  "
            f"variance {self.trace:.4f}  ({how})"
        )

    __repr__ = __str__


def estimator_moments(
    policy: _Enumerable | Sequence[_Enumerable],
    reward: Reward | Sequence[Reward],
    objective: Objective,
    num_generations: int,
    prompts: int = 1,
    old_policy: _Enumerable | None = None,
    ref_policy: _Enumerable | None = None,
    *,
    limit: int = LIMIT,
    seed: int = 0,
) -> Moments:
    """Moments of g = -grad loss over all steps of `prompts` groups of `num_generations` answers.

    policy: a toy policy, or one per prompt (then `reward` is one per prompt too). Answers come
    from `old_policy` when it is given and the ratio is pi / pi_old; otherwise the step is
    on-policy. ref_policy serves KL terms. Groups are counted without order, so an objective must
    not care in which order the answers of a group stand. Exact while at most `limit` configurations
    have to be enumerated, else 20,000 sampled steps with a standard error.

    Raises ValueError for an objective that needs what a toy cannot give (a critic's values, the
    top-k candidates), or that draws random numbers.

    >>> from rlnb.objective import ZOO
    >>> from rlnb.toys import Bandit
    >>> estimator_moments(Bandit([0.5, 0.0]), [1.0, 0.0], ZOO["rloo"], 2)
    |mean| 0.3323  cosine 1.0000  variance 0.1246  (exact over 3 steps)
    """
    shared = isinstance(policy, _Enumerable)
    if isinstance(policy, _Enumerable):
        policies, rewards = [policy] * prompts, [cast(Reward, reward)] * prompts
    else:
        policies, rewards = list(policy), list(cast(Sequence[Reward], reward))
    _refuse(objective, ref_policy, old_policy, shared)
    worlds = [_World(p, r, old_policy, ref_policy) for p, r in zip(policies, rewards, strict=True)]
    if shared:
        truth = true_gradient(policies[0], rewards[0])
    else:
        truth = torch.cat(
            [true_gradient(p, r).ravel() for p, r in zip(policies, rewards, strict=True)]
        ) / len(policies)
    for i, world in enumerate(worlds):
        world.place = 0 if shared else sum(p.logits.numel() for p in policies[:i])
    size = truth.numel()

    classes = [_classes(w, _couples_by_class(objective)) for w in worlds]
    counts = [math.comb(len(c) + num_generations - 1, num_generations) for c in classes]
    total = math.prod(counts)
    if total <= limit:
        mean, second = _enumerate(worlds, classes, objective, num_generations, size)
        trace, errors = float(second - mean @ mean), (0.0, 0.0)
    else:
        total = SAMPLES
        mean, trace, errors = _sample(worlds, objective, num_generations, size, seed)
    flat = truth.ravel()
    norm = float(mean.norm() * flat.norm())
    cosine = float(mean @ flat) / norm if norm > 1e-15 else math.nan
    return Moments(
        mean.view_as(truth), max(trace, 0.0), cosine, truth, errors == (0.0, 0.0), total, *errors
    )


def _refuse(objective: Objective, ref, old, shared: bool) -> None:
    missing = sorted(objective.needs - SUPPLIED)
    if missing:
        raise ValueError(
            f"this objective needs {', '.join(missing)}, which a toy policy does not "
            "have; give it another part for that."
        )
    if "ref_logprobs" in objective.needs and ref is None:
        raise ValueError(
            "this objective has a KL term: pass ref_policy=, or drop the term with "
            ".replace(terms=())."
        )
    if any(getattr(p, "random", False) for p in objective.parts):
        raise ValueError("this objective draws random numbers; its moments are not an enumeration.")
    if not shared and (ref is not None or old is not None):
        raise ValueError(
            "old_policy and ref_policy go with a single policy: pass prompts= instead "
            "of a list of policies."
        )


class _World:
    """One prompt: its policy's tables, ready to be indexed by outcome."""

    place = 0

    def __init__(self, policy, reward, old, ref) -> None:
        self.policy, self.rewards = policy, outcome_rewards(policy, reward)
        source = policy if old is None else old
        self.p = source.probabilities().detach()
        lp = policy.logprobs()
        rows = [
            torch.autograd.grad(x, policy.logits, retain_graph=True)[0].ravel() for x in lp.ravel()
        ]
        self.jacobian = torch.stack(rows).view(*lp.shape, -1)  # (N, T, D)
        greedy = self.rewards[self._greedy(policy)]
        self.tables = {
            "logprobs": lp.detach(),
            "completion_mask": policy.mask,
            "rewards": self.rewards,
            "entropies": policy.entropies().detach(),
            "greedy_rewards": greedy.expand(len(policy)),
        }
        if old is not None:
            self.tables["old_logprobs"] = old.logprobs().detach()
        self.tables["sampling_logprobs"] = source.logprobs().detach()
        if ref is not None:
            self.tables["ref_logprobs"] = ref.logprobs().detach()

    @staticmethod
    def _greedy(policy) -> int:
        """The outcome of taking the likeliest token at every step, first index on ties."""
        best = policy._table().argmax(1)
        steps = (best[policy._state] == policy._token) | ~policy.mask.bool()
        return int(steps.all(1).nonzero()[0, 0])


def _couples_by_class(objective: Objective) -> bool:
    """Whether a row meets the other rows only through their rewards and lengths."""
    known = all(
        isinstance(p, Part)
        and type(p).__module__.startswith("rlnb.objective")
        and not getattr(p, "batch_statistics", False)
        for p in objective.parts
    )
    return known and not objective.shape and not objective.credit


def _classes(world: _World, merge: bool) -> list[list[int]]:
    if not merge:
        return [[i] for i in range(len(world.p))]
    groups: dict[tuple[float, int], list[int]] = {}
    for i, (r, n) in enumerate(
        zip(world.rewards.tolist(), world.policy.lengths.tolist(), strict=True)
    ):
        groups.setdefault((r, n), []).append(i)
    return list(groups.values())


def _row_gradients(
    worlds, objective: Objective, index: torch.Tensor, num_generations: int, size: int
) -> torch.Tensor:
    """(M, B) outcome indices -> (M, B, D): each row's part of -grad loss."""
    width = max(w.tables["logprobs"].shape[1] for w in worlds)
    owner = [w for w in worlds for _ in range(num_generations)]
    names = list(worlds[0].tables)

    def column(name: str) -> torch.Tensor:
        taken = [w.tables[name][index[:, b]] for b, w in enumerate(owner)]
        if taken[0].ndim == 2:
            taken = [torch.nn.functional.pad(x, (0, width - x.shape[1])) for x in taken]
        return torch.stack(taken, 1)

    columns = {name: column(name) for name in names}

    def loss(logprobs: torch.Tensor, rest: dict[str, torch.Tensor]) -> torch.Tensor:
        mask, rewards = rest["completion_mask"], rest["rewards"]
        batch = Batch(logprobs, mask, rewards, num_generations, max_completion_length=width)
        batch = batch.replace(**rest)
        return objective.loss(objective.prepare(batch, check=False))

    slope = torch.func.vmap(torch.func.grad(loss))(columns.pop("logprobs"), columns)  # (M, B, T)
    out = torch.zeros(*index.shape, size, dtype=slope.dtype)
    for b, w in enumerate(owner):
        steps, numbers = w.jacobian.shape[1:]
        part = torch.einsum("mt,mtd->md", -slope[:, b, :steps], w.jacobian[index[:, b]])
        out[:, b, w.place : w.place + numbers] = part
    return out


def _enumerate(worlds, classes, objective, num_generations, size):
    """(mean (D,), E|g|^2) over all configurations."""
    choices = []
    for world, members in zip(worlds, classes, strict=True):
        mass = [float(world.p[m].sum()) for m in members]
        one = []
        for group in combinations_with_replacement(range(len(members)), num_generations):
            ways = math.factorial(num_generations)
            for repeats in Counter(group).values():
                ways //= math.factorial(repeats)
            one.append((group, ways * math.prod(mass[k] for k in group)))
        choices.append(one)
    layers = max(len(m) for c in classes for m in c)
    # member[w][k, s]: the s-th outcome of class k; share: its probability inside the class
    member, share = [], []
    for world, members in zip(worlds, classes, strict=True):
        m = torch.tensor([[c[s % len(c)] for s in range(layers)] for c in members])
        q = torch.tensor(
            [[float(world.p[c[s]]) if s < len(c) else 0.0 for s in range(layers)] for c in members],
            dtype=torch.float64,
        )
        member.append(m)
        share.append(q / q.sum(1, keepdim=True).clamp(min=1e-300))
    owner = [i for i in range(len(worlds)) for _ in range(num_generations)]
    mean, second = torch.zeros(size, dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    rows = len(owner)
    chunk = max(1, CHUNK // (rows * layers * size * worlds[0].jacobian.shape[1]))
    batch: list[tuple[tuple[int, ...], float]] = []

    def flush() -> None:
        nonlocal mean, second
        config = torch.tensor([c for c, _ in batch])  # (M, B)
        weight = torch.tensor([w for _, w in batch], dtype=torch.float64)  # (M,)
        index = torch.stack([member[o][config[:, b]] for b, o in enumerate(owner)], 1)  # (M, B, S)
        q = torch.stack([share[o][config[:, b]] for b, o in enumerate(owner)], 1)
        flat = index.permute(0, 2, 1).reshape(-1, rows)  # (M S, B)
        g = _row_gradients(worlds, objective, flat, num_generations, size)
        g = g.view(len(batch), layers, rows, size)
        q = q.permute(0, 2, 1)  # (M, S, B)
        row_mean = (q.unsqueeze(-1) * g).sum(1)  # (M, B, D)
        row_second = (q * g.square().sum(-1)).sum(1)  # (M, B)
        step = row_mean.sum(1)
        mean = mean + (weight[:, None] * step).sum(0)
        square = row_second.sum(1) + step.square().sum(1) - row_mean.square().sum((1, 2))
        second = second + (weight * square).sum()
        batch.clear()

    for combined in product(*choices):
        batch.append((sum((c for c, _ in combined), ()), math.prod(w for _, w in combined)))
        if len(batch) >= chunk:
            flush()
    if batch:
        flush()
    return mean, second


def _sample(worlds, objective, num_generations, size, seed):
    generator = torch.Generator().manual_seed(seed)
    index = torch.cat(
        [
            torch.multinomial(w.p, SAMPLES * num_generations, True, generator=generator).view(
                SAMPLES, num_generations
            )
            for w in worlds
        ],
        1,
    )
    g = torch.cat(
        [
            _row_gradients(worlds, objective, part, num_generations, size).sum(1)
            for part in index.split(2_000)
        ]
    )
    mean = g.mean(0)
    square = (g - mean).square().sum(1)
    trace = float(square.sum() / (SAMPLES - 1))
    return mean, trace, (math.sqrt(trace / SAMPLES), float(square.std() / math.sqrt(SAMPLES)))
