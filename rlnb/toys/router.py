"""A small mixture of experts whose router can be disturbed, replayed and overruled.

A token is drawn from the last four. Their embeddings are added up, pass `layers` layers, and become
logits. In each layer a router scores the experts, the best `top` of them work, and the result is
added to what came in:

    n = h / rms(h),  score = n R + b,  h <- h + sum over the chosen e of softmax(score)_e f_e(n)

So the choice of an expert is a jump: a score that moves by a hair can replace the expert.
"""

from __future__ import annotations

import torch

__all__ = ["RouterPolicy", "flipped"]

CONTEXT = 4  # tokens that the next one depends on
FEW = 256  # up to so many tokens, every expert computes every token


def _normed(h: torch.Tensor) -> torch.Tensor:
    return h / h.square().mean(-1, keepdim=True).sqrt()


def flipped(routes: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """(B, T) True where two routings of the same tokens use another expert in some layer."""
    if routes.shape != other.shape:
        raise ValueError(
            f"two routings of the same tokens have one shape; got "
            f"{tuple(routes.shape)} and {tuple(other.shape)}."
        )
    return (routes.sort(-1).values != other.sort(-1).values).any(-1).any(-1)


class RouterPolicy:
    """A language model with `experts` experts in each of `layers` layers, `top` at work at once.

    vocab    tokens; an answer has a fixed length, there is no stop token
    width    of the hidden state, and of an expert's hidden layer
    seed     of the weights, float64

    The weights, all leaves that require grad: embed (4, vocab + 1, width), router (L, width, E),
    bias (L, E), up and down (L, E, width, width), head (width, vocab).

    >>> policy = RouterPolicy(seed=0)
    >>> tokens = policy.sample(2, 5, torch.Generator().manual_seed(0))
    >>> logprobs, routes = policy.logprobs(tokens)
    >>> tuple(logprobs.shape), tuple(routes.shape)      # (B, T), (B, T, layers, top)
    ((2, 5), (2, 5, 4, 1))
    """

    names = ("embed", "router", "bias", "up", "down", "head")

    def __init__(
        self,
        layers: int = 4,
        experts: int = 8,
        top: int = 1,
        vocab: int = 16,
        width: int = 16,
        seed: int = 0,
    ) -> None:
        if not 1 <= top < experts:
            raise ValueError(
                f"top must lie in 1 ... experts - 1 = {experts - 1}, or there is "
                f"nothing to route; got {top}."
            )
        if min(layers, vocab - 1, width) < 1:
            raise ValueError(
                f"layers and width must be at least 1 and vocab at least 2, got "
                f"{layers}, {width} and {vocab}."
            )
        self.layers, self.experts, self.top, self.vocab = layers, experts, top, vocab
        gen = torch.Generator().manual_seed(seed)

        def normal(*shape: int, scale: float) -> torch.Tensor:
            drawn = torch.randn(*shape, generator=gen, dtype=torch.float64)
            return (scale * drawn).requires_grad_()

        deep = 1 / width**0.5
        self.embed = normal(CONTEXT, vocab + 1, width, scale=0.5)  # row `vocab`: before the start
        self.router = normal(layers, width, experts, scale=1.5 * deep)
        self.bias = torch.zeros(layers, experts, dtype=torch.float64, requires_grad=True)
        self.up = normal(layers, experts, width, width, scale=deep)
        self.down = normal(layers, experts, width, width, scale=0.8 * deep)
        self.head = normal(width, vocab, scale=3 * deep)

    def parameters(self) -> list[torch.Tensor]:
        """The weights, for an optimizer."""
        return [getattr(self, name) for name in self.names]

    def copy(self) -> RouterPolicy:
        """A policy with the same weights that shares nothing with this one."""
        twin = object.__new__(RouterPolicy)
        twin.__dict__.update(self.__dict__)
        for name in self.names:
            setattr(twin, name, getattr(self, name).detach().clone().requires_grad_())
        return twin

    def rounded(self) -> RouterPolicy:
        """A copy whose weights went through bfloat16: the sampler of an engine.

        >>> policy = RouterPolicy(seed=0)
        >>> gaps = [(a - b).abs().max().item() for a, b in zip(
        ...     policy.parameters(), policy.rounded().parameters(), strict=True)]
        >>> 0 < max(gaps) < 0.02
        True
        """
        twin = self.copy()
        with torch.no_grad():
            for weight in twin.parameters():
                weight.copy_(weight.bfloat16())
        return twin

    def logprobs(
        self,
        tokens: torch.Tensor,
        routes: torch.Tensor | None = None,
        router_noise: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """log pi of each token (B, T), with gradient, and the experts used (B, T, layers, top).

        tokens         (B, T) ids
        routes         experts to use instead of the router's own: routing replay. The gate of an
                       expert is still the present router's probability.
        router_noise   (B, T, layers, experts) added to the router's scores
        """
        scores, used = self._scores(self._context(tokens), routes, router_noise)
        return scores.log_softmax(-1).gather(-1, tokens[..., None])[..., 0], used

    def distributions(
        self,
        tokens: torch.Tensor,
        routes: torch.Tensor | None = None,
        router_noise: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """log pi of every token of the vocabulary at every place, (B, T, vocab)."""
        return self._scores(self._context(tokens), routes, router_noise)[0].log_softmax(-1)

    @torch.no_grad()
    def table(self, routes_of: RouterPolicy | None = None) -> torch.Tensor:
        """log pi of every token after every context, (vocab + 1,) * 4 + (vocab,).

        The context's indices are the last token first; `vocab` stands before the start.

        routes_of    use this policy's experts instead of the router's own: routing replay

        >>> policy = RouterPolicy(vocab=2, seed=0)
        >>> tuple(policy.table().shape)
        (3, 3, 3, 3, 2)
        """
        sizes = [self.vocab + 1] * CONTEXT
        contexts = torch.cartesian_prod(*map(torch.arange, sizes))[:, None]
        routes = None if routes_of is None else routes_of._scores(contexts, None, None)[1]
        scores = self._scores(contexts, routes, None)[0][:, 0]
        return scores.log_softmax(-1).view(*sizes, self.vocab)

    def ranking(self, tokens: torch.Tensor, routes: torch.Tensor | None = None) -> torch.Tensor:
        """(B, T, layers, experts) experts from the best score to the worst, along `routes`."""
        return self._run(self._context(tokens), routes, None)[2]

    @torch.no_grad()
    def sample(self, n: int, length: int, generator: torch.Generator | None = None):
        """(n, length) token ids, drawn one after the other."""
        seen = torch.full((n, CONTEXT + length), self.vocab)
        for t in range(CONTEXT, CONTEXT + length):
            last = torch.stack([seen[:, t - 1 - k] for k in range(CONTEXT)], -1)
            p = self._scores(last[:, None], None, None)[0][:, 0].softmax(-1)
            seen[:, t] = torch.multinomial(p, 1, generator=generator)[:, 0]
        return seen[:, CONTEXT:]

    def _context(self, tokens: torch.Tensor) -> torch.Tensor:
        """(B, T, 4) the four tokens before each, the nearest first."""
        if tokens.ndim != 2:
            raise ValueError(f"tokens must be (B, T) ids, got shape {tuple(tokens.shape)}.")
        start = torch.full((len(tokens), CONTEXT), self.vocab)
        seen = torch.cat([start, tokens], 1)
        T = tokens.shape[1]
        return torch.stack(
            [seen[:, CONTEXT - 1 - k : CONTEXT - 1 - k + T] for k in range(CONTEXT)], -1
        )

    def _scores(self, context, routes, noise):
        h, used, _ = self._run(context, routes, noise)
        return _normed(h) @ self.head, used

    def _run(self, context, routes, noise):
        shape = (*context.shape[:2], self.layers, self.top)
        if routes is not None and tuple(routes.shape) != shape:
            raise ValueError(
                f"routes must be {shape} = (B, T, layers, top), as logprobs returns "
                f"them; got {tuple(routes.shape)}."
            )
        if noise is not None and tuple(noise.shape) != (*shape[:3], self.experts):
            raise ValueError(
                f"router_noise must be {(*shape[:3], self.experts)} = (B, T, layers, "
                f"experts); got {tuple(noise.shape)}."
            )
        h = self.embed[0][context[..., 0]]
        for k in range(1, CONTEXT):
            h = h + self.embed[k][context[..., k]]
        used, order = [], []
        for layer in range(self.layers):
            n = _normed(h)
            score = n @ self.router[layer] + self.bias[layer]
            if noise is not None:
                score = score + noise[:, :, layer]
            ranked = score.argsort(-1, descending=True)
            chosen = ranked[..., : self.top] if routes is None else routes[:, :, layer]
            gate = score.softmax(-1).gather(-1, chosen)
            h = h + self._experts(layer, n, chosen, gate)
            used.append(chosen)
            order.append(ranked)
        return h, torch.stack(used, 2), torch.stack(order, 2)

    def _experts(self, layer, n, chosen, gate):
        """(B, T, width) what the chosen experts add."""
        flat, gate, chosen = n.flatten(0, 1), gate.flatten(0, 1), chosen.flatten(0, 1)
        up, down = self.up[layer], self.down[layer]
        if len(flat) <= FEW:  # while sampling: all experts at once is quicker than one by one
            share = flat.new_zeros(len(flat), self.experts).scatter(1, chosen, gate)
            inner = (flat @ up).tanh() * share.T[..., None]
            return (inner @ down).sum(0).view_as(n)
        out = torch.zeros_like(flat)
        for e in range(self.experts):  # each expert sees its own tokens only
            rows, slot = (chosen == e).nonzero(as_tuple=True)
            inner = (flat[rows] @ up[e]).tanh()
            out = out.index_add(0, rows, gate[rows, slot, None] * (inner @ down[e]))
        return out.view_as(n)
