"""One run in a small world: rollouts, exact advantages, and optimizer steps like the real loop's.

A rollout is 8 prompts with 8 answers each. `passes` times the batch is cut into `minibatches`
(whole groups, shuffled), each an optimizer step of its own. With `stale` = k the answers come from
the weights of k optimizer steps ago, fewer at the start, and the ratio is taken to those.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlnb.objective import Batch, Objective
from rlnb.training.studies.race.world import (
    Answers,
    Net,
    World,
    base,
    coarse,
    measures,
    sample,
    score,
)

__all__ = ["Arm", "run"]

GROUPS, SIZE, ROUNDS, TOP = 8, 8, 6, 3


@dataclass(frozen=True)
class Arm:
    """One thing that is raced. answers: the budget, dropped ones included.

    refill: draw further prompts until 8 groups are mixed, at most 6 rounds. bits: mantissa of the
    sampler's weights, 0 is exact. replay: the experts of the rollout are used again. pay: "right",
    "scales" (odd prompts pay 10) or "graded" (0.01 more for every word 0). engine_is_old: the
    sampler's log-probs stand in for the old policy's.
    """

    objective: Objective
    world: World = World()
    answers: int = 64 * 60
    minibatches: int = 1
    passes: int = 1
    stale: int = 0
    optimizer: str = "Adam"
    refill: bool = False
    bits: int = 0
    replay: bool = False
    pay: str = "right"
    ladder: str = "Adam"  # which of the row's rates it is tuned on, or takes

    @property
    def updates(self) -> int:
        """Optimizer steps per rollout."""
        return self.minibatches * self.passes


def _pay(arm: Arm, answers: Answers) -> Tensor:
    if arm.pay == "scales":
        return answers.right * torch.where(answers.prompts % 2 == 1, 10.0, 1.0).double()
    if arm.pay == "graded":
        return answers.right + 0.01 * (answers.words == 0).double().sum(1)
    return answers.right


def _joined(parts: list[Answers]) -> Answers:
    names = ("prompts", "words", "memory", "mask", "right")
    return Answers(*(torch.cat([getattr(p, n) for p in parts]) for n in names))


def _rows(answers: Answers, index: Tensor) -> Answers:
    return Answers(
        answers.prompts[index],
        answers.words[index],
        answers.memory[index],
        answers.mask[index],
        answers.right[index],
    )


def _rollout(arm: Arm, table: Tensor, gen: torch.Generator) -> tuple[Answers, int, float]:
    """Answers to train on, how many were generated, and the share of mixed groups among those."""
    kept: list[Answers] = []
    mixed_groups, count, rounds = 0, 0, 0
    while True:
        prompts = torch.randperm(arm.world.prompts, generator=gen)[:GROUPS]
        drawn = sample(arm.world, table, prompts.repeat_interleave(SIZE), gen)
        rounds, count = rounds + 1, count + GROUPS * SIZE
        rate = drawn.right.view(GROUPS, SIZE).mean(1)
        mixed = ((rate > 0) & (rate < 1)).nonzero()[:, 0]
        mixed_groups += len(mixed)
        if not arm.refill:
            return drawn, count, mixed_groups / GROUPS
        rows = (mixed[:, None] * SIZE + torch.arange(SIZE)).flatten()
        kept.append(_rows(drawn, rows))
        have = sum(len(k.right) for k in kept)
        if have >= GROUPS * SIZE or rounds == ROUNDS:
            full = _rows(_joined(kept), torch.arange(min(have, GROUPS * SIZE)))
            return full, count, mixed_groups / (GROUPS * rounds)


def _now(arm: Arm, table: Tensor, a: Answers, top: Tensor | None) -> dict[str, Tensor]:
    """What a batch needs of the present policy, with gradient."""
    found = {"logprobs": score(table, a.prompts, a.memory, a.words)}
    places = torch.arange(a.words.shape[1])
    if "entropies" in arm.objective.needs:
        rows = table[a.prompts[:, None], places, a.memory]  # (B, T, V)
        found["entropies"] = torch.special.entr(rows.exp()).sum(-1)
        if top is not None:
            found["topk_logprobs"] = rows.gather(-1, top)
    return found


def _batch(arm: Arm, a: Answers, old: Tensor, seen: Tensor, ref: Tensor, net: Net, routes: Any):
    table = net.table(routes)[0].detach()
    then = score(old, a.prompts, a.memory, a.words)
    fields: dict[str, Any] = {
        "old_logprobs": then,
        "sampling_logprobs": score(seen, a.prompts, a.memory, a.words),
        "ref_logprobs": score(ref, a.prompts, a.memory, a.words),
        "max_completion_length": arm.world.length,
    }
    top = None
    if "topk_logprobs" in arm.objective.needs:
        places = torch.arange(a.words.shape[1])
        rows = old[a.prompts[:, None], places, a.memory]
        order = rows.argsort(-1, descending=True)
        top = order[..., :TOP]
        fields["old_topk_logprobs"] = rows.gather(-1, top)
        fields["sampled_rank"] = (order == a.words[..., None]).long().argmax(-1)
    now = _now(arm, table, a, top)
    lp = now.pop("logprobs")
    return Batch(lp, a.mask, _pay(arm, a), SIZE, **now, **fields), top


def run(arm: Arm, seed: int, rate: float, points: int = 6) -> dict[str, Any]:
    """Trains one net and measures it. The same arguments give the same record, up to `cpu`.

    Returns "measures" (at the end), "start", "curve" (`points` lists of answers, updates and
    pass@1, or the tail's length gap), "seen" (means over the run: mixed groups, tokens outside
    [0.8, 1.2], tokens cut at the edge, largest ratio, spread of the engine's log-ratio), "updates",
    "cpu" in seconds.
    """
    began = time.process_time()
    world, first = arm.world, base(arm.world, seed % 3)
    net, gen = first.copy(), torch.Generator().manual_seed(10_000 + seed)
    ref, start = first.table()[0].detach(), measures(world, first)
    main = next(iter(start))
    optimizer: torch.optim.Optimizer = (
        torch.optim.SGD(net.parameters(), lr=rate)
        if arm.optimizer == "SGD"
        else torch.optim.Adam(net.parameters(), lr=rate, betas=(0.9, 0.95))
    )
    past: deque[Net] = deque([net.copy()], maxlen=arm.stale + 1)
    spent, steps, curve, logs = 0, 0, [], []
    while spent < arm.answers:
        behind = past[0] if arm.stale else net
        sampler = coarse(behind, arm.bits) if arm.bits else behind
        seen = sampler.table()[0].detach()
        old, routes = (x if x is None else x.detach() for x in behind.table())
        answers, count, mixed = _rollout(arm, seen, gen)
        spent += count
        if len(answers.right):
            replayed = routes if arm.replay else None
            batch, top = _batch(arm, answers, old, seen, ref, net, replayed)
            logs.append([mixed, *_steps(arm, net, optimizer, batch, answers, top, replayed, gen)])
            steps += arm.updates
        if arm.stale:
            past.append(net.copy())
        if spent >= arm.answers * (len(curve) + 1) / points:
            curve.append([spent, steps, round(measures(world, net)[main], 4)])
    seen_mean = torch.tensor(logs, dtype=torch.float64)
    names = ("mixed", "outside", "cut", "engine")
    return {
        "measures": {k: round(v, 5) for k, v in measures(world, net).items()},
        "start": {k: round(v, 5) for k, v in start.items()},
        "curve": curve,
        "seen": {
            **{n: float(f"{seen_mean[:, i].mean():.3g}") for i, n in enumerate(names)},
            "largest": float(f"{seen_mean[:, 4].max():.3g}"),
        },
        "updates": steps,
        "cpu": round(time.process_time() - began, 2),
    }


def _steps(arm, net, optimizer, batch, answers, top, routes, gen) -> list[float]:
    """The optimizer steps of one rollout; returns what was seen on the way."""
    groups = len(answers.right) // SIZE
    whole = arm.objective.prepare(batch, check=False)
    outside = cut = 0.0
    largest, tokens = 0.0, 0.0
    for _ in range(arm.passes):
        order = torch.randperm(groups, generator=gen)
        for part in order.tensor_split(min(arm.minibatches, groups)):
            rows = (part[:, None] * SIZE + torch.arange(SIZE)).flatten()
            some = _rows(answers, rows)
            now = _now(arm, net.table(routes)[0], some, None if top is None else top[rows])
            step = whole.minibatch(rows).replace(**now)
            loss = arm.objective.loss(step)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            with torch.no_grad():
                rho = (now["logprobs"] - step.batch.old_logprobs).exp()[some.mask > 0]
                A = step.advantages[some.mask > 0]
                outside += ((rho - 1).abs() > 0.2).double().sum().item()
                cut += (((rho > 1.2) & (A > 0)) | ((rho < 0.8) & (A < 0))).double().sum().item()
                largest, tokens = max(largest, rho.max().item()), tokens + len(rho)
    gap = (batch.old_logprobs - batch.sampling_logprobs)[batch.mask]
    return [outside / tokens, cut / tokens, gap.std().item(), largest]
