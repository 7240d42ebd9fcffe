"""Long answers of the small mixture: drawn quickly, and all of them at once.

Its next token depends on the last four (`router`), so a table of all contexts holds everything. An
answer is drawn by looking up. A mean over *all* answers of T tokens needs no sample either: with
w = prod_t pi_t / mu_t, go back from the end over the contexts c,

    v_T(c) = 1,    v_t-1(c) = sum_y mu(y|c) (pi(y|c) / mu(y|c))^2 v_t(c followed by y),

and v_0(start) = E_mu[w^2]. E_mu[w] is 1, so the share of the answers that count is 1 / E_mu[w^2].
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

from rlnb.toys.router import CONTEXT

__all__ = ["chance_without", "draw_places", "exact_share"]


def exact_share(
    log_pi: torch.Tensor, log_mu: torch.Tensor, lengths: Iterable[int]
) -> dict[int, float]:
    """Tokens of an answer -> E[w]^2 / E[w^2] over all answers that mu may write, w = pi / mu.

    log_pi, log_mu: `RouterPolicy.table` of both.

    >>> from rlnb.toys.router import RouterPolicy
    >>> log_pi = RouterPolicy(vocab=2, seed=0).table()
    >>> round(exact_share(log_pi, log_pi, [3])[3], 9)
    1.0
    """
    wanted = sorted(set(lengths))
    if not wanted or wanted[0] < 1:
        raise ValueError(f"lengths must be 1 or more, and at least one; got {wanted}.")
    vocab = log_mu.shape[-1]
    squared = (2 * log_pi - log_mu).exp()  # mu (pi / mu)^2
    v, log_scale, start = squared.new_ones(squared.shape[:-1]), 0.0, (vocab,) * CONTEXT
    found: dict[int, float] = {}
    for t in range(1, wanted[-1] + 1):
        before = v
        v = torch.einsum("abcdy,yabc->abcd", squared, v[:vocab])  # y becomes the last token
        growth = math.log(float(v.max()))
        v, log_scale = v / v.max(), log_scale + growth
        here = log_scale + math.log(float(v[start]))
        found[t] = math.exp(-here)
        if float((v - before).abs().max()) < 1e-13:  # from here on it only grows
            found |= {n: math.exp(-here - (n - t) * growth) for n in wanted if n > t}
            break
    return {n: found[n] for n in wanted}


def chance_without(log_p: torch.Tensor, rare: torch.Tensor, length: int) -> float:
    """The chance that an answer of `length` tokens holds none that `rare` marks, in its context.

    log_p: `RouterPolicy.table` of who writes; rare: True or False, of its shape. It is E_p[w^2] of
    the policy that is p but never writes a rare token, w being 1 or 0.

    >>> from rlnb.toys.router import RouterPolicy
    >>> log_p = RouterPolicy(vocab=2, seed=0).table()
    >>> round(chance_without(log_p, log_p > 0, 5), 9)
    1.0
    """
    without = log_p.masked_fill(rare, -torch.inf)
    return 1 / exact_share(without, log_p, [length])[length]


@torch.no_grad()
def draw_places(
    log_mu: torch.Tensor, n: int, length: int, generator: torch.Generator
) -> torch.Tensor:
    """(n, length) where in a flattened table the tokens of n answers stand that mu writes.

    So `(log_pi - log_mu).flatten()[places]` are their gaps. log_mu: `RouterPolicy.table`.
    """
    vocab = log_mu.shape[-1]
    p = log_mu.exp().view(-1, vocab)  # a row for each context, the start is the last
    at, places = torch.full((n,), len(p) - 1), []
    for _ in range(length):
        y = torch.multinomial(p[at], 1, generator=generator)[:, 0]
        places.append(at * vocab + y)
        at = y * (vocab + 1) ** (CONTEXT - 1) + at // (vocab + 1)
    return torch.stack(places, 1)
