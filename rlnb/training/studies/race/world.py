"""The small worlds of the race: a policy of a few thousand weights, and measures without sampling.

`code`: 32 prompts, answers of four words out of four. Two answers to a prompt are right; all others
are wrong. `tail`: the first word guesses a hidden number that is drawn anew for every answer, so
nobody can learn it; the policy then reads hit or miss and goes on until it says stop.

The policy sees the prompt, the place and one memory (the word before, or hit and miss):

    h = tanh(prompt + place + memory),  h <- h + tanh(h U) D,  log pi = log softmax(h H)

With experts, U and D belong to the expert that a router chooses: e = argmax(h R), times its
probability. All (prompt, place, memory) are so few that a policy is one table, log pi (P, T, M, V),
and pass rates, entropies and lengths are sums over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

__all__ = ["Answers", "Net", "World", "base", "codes", "coarse", "measures", "sample", "score"]


@dataclass(frozen=True)
class World:
    """What is fixed in a row of the race. low, high: the base's pass rates, evenly in the log."""

    kind: str = "code"
    prompts: int = 32
    length: int = 4
    words: int = 4
    width: int = 24
    experts: int = 0
    low: float = 0.02
    high: float = 0.6

    @property
    def memories(self) -> int:
        """code: the word before, or none; tail: nothing yet, hit, miss."""
        return self.words + 1 if self.kind == "code" else 3


class Net:
    """The policy's weights, leaves that require grad, float64."""

    def __init__(self, world: World, seed: int) -> None:
        gen = torch.Generator().manual_seed(seed)
        d, e = world.width, max(world.experts, 1)

        def normal(*shape: int, scale: float) -> Tensor:
            drawn = torch.randn(*shape, generator=gen, dtype=torch.float64)
            return (scale * drawn).requires_grad_()

        self.world = world
        self.weights = {
            "prompt": normal(world.prompts, d, scale=0.6),
            "place": normal(world.length, d, scale=0.6),
            "memory": normal(world.memories, d, scale=0.6),
            "up": normal(e, d, 2 * d, scale=d**-0.5),
            "down": normal(e, 2 * d, d, scale=d**-0.5),
            "head": normal(d, world.words, scale=d**-0.5),
        }
        if world.experts:
            self.weights["router"] = normal(d, world.experts, scale=2 * d**-0.5)

    def parameters(self) -> list[Tensor]:
        """The weights, for an optimizer."""
        return list(self.weights.values())

    def copy(self) -> Net:
        """A net with the same numbers that shares nothing with this one."""
        twin = object.__new__(Net)
        twin.world = self.world
        twin.weights = {k: w.detach().clone().requires_grad_() for k, w in self.weights.items()}
        return twin

    def table(self, routes: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """log pi (P, T, M, V) with gradient, and the experts used (P, T, M); None without any.

        routes: experts to use instead of the router's choice (routing replay).
        """
        w = self.weights
        h = w["prompt"][:, None, None] + w["place"][:, None] + w["memory"]
        h = h.tanh()
        if not self.world.experts:
            h = h + (h @ w["up"][0]).tanh() @ w["down"][0]
            return (h @ w["head"]).log_softmax(-1), None
        scores = h @ w["router"]
        used = scores.argmax(-1) if routes is None else routes
        gate = scores.softmax(-1).gather(-1, used[..., None])
        every = torch.einsum("ptmd,edf->ptmef", h, w["up"]).tanh()
        chosen = every.gather(-2, used[..., None, None].expand(*used.shape, 1, every.shape[-1]))
        back = w["down"][used]
        h = h + gate * torch.einsum("ptmf,ptmfd->ptmd", chosen[..., 0, :], back)
        return (h @ w["head"]).log_softmax(-1), used


def coarse(net: Net, bits: int) -> Net:
    """The net with its weights rounded to `bits` bits of mantissa; 7 are bfloat16's.

    >>> x = Net(World(), 0)
    >>> x.weights["head"] = torch.tensor([1.0, 1.3, -5.3], dtype=torch.float64)
    >>> coarse(x, 2).weights["head"].tolist()
    [1.0, 1.25, -5.0]
    """
    twin = net.copy()
    for name, w in net.weights.items():
        part, exponent = torch.frexp(w.detach())  # w = part 2^exponent, 1/2 <= |part| < 1
        step = 2.0 ** (bits + 1)
        twin.weights[name] = torch.ldexp((part * step).round() / step, exponent)
    return twin


@cache
def codes(world: World) -> Tensor:
    """(P, 2, T) the two right answers to each prompt; the same in every base."""
    gen = torch.Generator().manual_seed(7)
    shape = (world.prompts, 2, world.length)
    drawn = torch.randint(world.words, shape, generator=gen)
    twins = (drawn[:, 0] == drawn[:, 1]).all(-1)
    drawn[twins, 1, 0] = (drawn[twins, 1, 0] + 1) % world.words
    return drawn


def _examples(world: World, share: Tensor, n: int, gen: torch.Generator):
    """(n,) prompts and (n, T) words a base learns from: right by `share`, else at random."""
    prompts = torch.randint(world.prompts, (n,), generator=gen)
    noise = torch.randint(world.words, (n, world.length), generator=gen)
    # of wrong answers, two in three begin as a right one: a policy that half knows
    which = (torch.rand(n, generator=gen) > 0.75).long()
    right = codes(world)[prompts, which]
    cut = torch.randint(world.length, (n,), generator=gen)
    half = torch.arange(world.length) < cut[:, None]
    wrong = torch.where(half, right, noise)
    good = torch.rand(n, generator=gen) < share[prompts]
    return prompts, torch.where(good[:, None], right, wrong)


@cache
def base(world: World, index: int) -> Net:
    """The base of that number: a net trained on examples for 400 steps. Do not change it: copy."""
    gen = torch.Generator().manual_seed(1000 + index)
    net = Net(world, 100 + index)
    if world.kind == "tail":
        return _tail_base(net)
    order = torch.randperm(world.prompts, generator=gen)
    spread = torch.linspace(0, 1, world.prompts, dtype=torch.float64)[order]
    share = world.low * (world.high / world.low) ** spread
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(400):
        prompts, words = _examples(world, share, 512, gen)
        loss = -score(net.table()[0], prompts, _before(world, words), words).mean()
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * (1 - step / 400)
        optimizer.step()
    return net


def _tail_base(net: Net) -> Net:
    """Fits the tail's base to its distribution: even guesses, then stop with 15 %."""
    target = torch.full(net.table()[0].shape, 1 / 3, dtype=torch.float64)
    target[:, 1:] = torch.tensor([0.425, 0.425, 0.15], dtype=torch.float64)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(300):
        loss = -(target * net.table()[0]).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


def _before(world: World, words: Tensor) -> Tensor:
    """(B, T) the word before each, `words` at the start."""
    start = torch.full((len(words), 1), world.words)
    return torch.cat([start, words[:, :-1]], 1)


@dataclass(frozen=True)
class Answers:
    """prompts (B,), words, memory and mask (B, T), right (B,) as 0 and 1."""

    prompts: Tensor
    words: Tensor
    memory: Tensor
    mask: Tensor
    right: Tensor


@torch.no_grad()
def sample(world: World, table: Tensor, prompts: Tensor, gen: torch.Generator) -> Answers:
    """One answer to each of the prompts (B,)."""
    n, T, tail = len(prompts), world.length, world.kind == "tail"
    memory = torch.full((n,), 0 if tail else world.words)
    alive = torch.ones(n, dtype=torch.bool)
    hidden = torch.randint(world.words, (n,), generator=gen)
    words, seen, mask = [], [], []
    hit = torch.zeros(n, dtype=torch.bool)
    for t in range(T):
        p = table[prompts, t, memory].exp()
        drawn = torch.multinomial(p, 1, generator=gen)[:, 0]
        words.append(drawn)
        seen.append(memory)
        mask.append(alive)
        if not tail:
            memory = drawn
        elif t == 0:
            hit = drawn == hidden
            memory = torch.where(hit, 1, 2)
        else:
            alive = alive & (drawn != world.words - 1)
    said = torch.stack(words, 1)
    right = hit if tail else (said[:, None] == codes(world)[prompts]).all(-1).any(-1)
    return Answers(
        prompts, said, torch.stack(seen, 1), torch.stack(mask, 1).double(), right.double()
    )


def score(table: Tensor, prompts: Tensor, memory: Tensor, words: Tensor) -> Tensor:
    """(B, T) log pi of the words, with gradient."""
    places = torch.arange(words.shape[1])
    return table[prompts[:, None], places, memory, words]


@torch.no_grad()
def measures(world: World, net: Net) -> dict[str, float]:
    """Exact, from the table.

    code: pass@1, pass@16 (mean over prompts of 1 - (1 - p)^16), entropy in nats per word, words 0
    per answer, solved (share of prompts with p > 1/2). tail: wrong minus right length, entropy.
    """
    table = net.table()[0]
    p = table.exp()
    if world.kind == "tail":
        go = 1 - p[:, 1:, 1:, -1]  # (P, T - 1, 2) hit, miss
        alive = torch.cat([torch.ones_like(go[:, :1]), go[:, :-1]], 1).cumprod(1)
        length = 1 + alive.sum(1).mean(0)
        return {
            "wrong minus right length": (length[1] - length[0]).item(),
            "right length": length[0].item(),
            "wrong length": length[1].item(),
        }
    right = codes(world)
    rows = torch.arange(world.prompts)
    rate = sum(
        score(table, rows, _before(world, right[:, j]), right[:, j]).sum(1).exp() for j in (0, 1)
    )
    assert isinstance(rate, Tensor)
    here = torch.zeros(world.prompts, world.memories, dtype=torch.float64)
    here[:, world.words] = 1.0  # chance of each memory at the place
    entropy, zeros = 0.0, 0.0
    for t in range(world.length):
        entropy += (here * torch.special.entr(p[:, t]).sum(-1)).sum(-1).mean().item()
        said = torch.einsum("pm,pmv->pv", here, p[:, t])
        zeros += said[:, 0].mean().item()
        here = torch.cat([said, torch.zeros_like(here[:, :1])], 1)
    return {
        "pass@1": rate.mean().item(),
        "pass@16": (1 - (1 - rate) ** 16).mean().item(),
        "solved": (rate > 0.5).double().mean().item(),
        "entropy": entropy / world.length,
        "words 0": zeros,
    }
