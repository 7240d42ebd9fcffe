"""Two policies small enough to enumerate: a softmax bandit, and an autoregressive one that stops.

Both have the same face, so that whatever is computed for one is computed for the other:

    logits                    the parameters, a leaf tensor that requires grad
    outcomes                  every completion the policy can produce, as tuples of token ids
    lengths (N,), mask (N, T) how long each is
    logprobs() (N, T)         log pi of each token of each outcome, with gradient, 0 where masked
    probabilities() (N,)      of the outcomes; they sum to 1
    sample(n, generator)      outcome indices (n,)
    batch(indices, reward, num_generations, old=, ref=)   a Batch of sampled rows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from rlnb.objective import Batch

__all__ = ["Bandit", "Reward", "SequencePolicy", "outcome_rewards"]

Reward = Callable[[tuple[int, ...]], float] | Sequence[float] | torch.Tensor


class _Enumerable:
    logits: torch.Tensor
    outcomes: list[tuple[int, ...]]
    mask: torch.Tensor
    _state: torch.Tensor  # (N, T) row of the logits table that each token was drawn from
    _token: torch.Tensor  # (N, T) column

    def _lay_out(
        self, states: list[list[int]], rows: int, columns: int, logits: torch.Tensor | None
    ) -> None:
        width = max(len(o) for o in self.outcomes)
        pad = [o + (0,) * (width - len(o)) for o in self.outcomes]
        self._token = torch.tensor(pad)
        self._state = torch.tensor([s + [0] * (width - len(s)) for s in states])
        lengths = torch.tensor([len(o) for o in self.outcomes])
        self.lengths = lengths
        self.mask = (torch.arange(width) < lengths[:, None]).to(torch.float64)
        if logits is None:
            logits = torch.zeros(rows, columns)
        table = torch.as_tensor(logits, dtype=torch.float64).detach().clone()
        if table.numel() != rows * columns:
            raise ValueError(
                f"logits must hold {rows} x {columns} numbers, one row per state and "
                f"one column per token; got shape {tuple(table.shape)}."
            )
        self.logits = table.requires_grad_()

    def __len__(self) -> int:
        return len(self.outcomes)

    def _table(self) -> torch.Tensor:
        return self.logits if self.logits.ndim == 2 else self.logits.unsqueeze(0)

    def logprobs(self) -> torch.Tensor:
        """(N, T) log pi of every token of every outcome, 0 where masked."""
        scores = self._table().log_softmax(1)[self._state, self._token]
        return torch.where(self.mask.bool(), scores, 0.0)

    def entropies(self) -> torch.Tensor:
        """(N, T) entropy in nats of the distribution each token was drawn from, 0 where masked."""
        scores = self._table().log_softmax(1)
        entropy = -(scores.exp() * scores).sum(1)[self._state]
        return torch.where(self.mask.bool(), entropy, 0.0)

    def probabilities(self) -> torch.Tensor:
        """(N,) of the outcomes."""
        return self.logprobs().sum(1).exp()

    def sample(self, n: int, generator: torch.Generator | None = None) -> torch.Tensor:
        """(n,) outcome indices, independent."""
        with torch.no_grad():
            return torch.multinomial(self.probabilities(), n, replacement=True, generator=generator)

    def copy(self):
        """A policy of the same shape and logits that shares nothing with this one."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.logits = self.logits.detach().clone().requires_grad_()
        return twin

    def batch(
        self,
        indices: torch.Tensor | Sequence[int],
        reward: Reward,
        num_generations: int,
        old=None,
        ref=None,
        **fields,
    ) -> Batch:
        """The sampled outcomes as a Batch; `old` and `ref` are policies of the same shape."""
        index = torch.as_tensor(indices)
        frozen = {
            name: p.logprobs().detach()[index]
            for name, p in (("old_logprobs", old), ("ref_logprobs", ref))
            if p is not None
        }
        fields.setdefault("max_completion_length", self.mask.shape[1])
        return Batch(
            self.logprobs()[index],
            self.mask[index],
            outcome_rewards(self, reward)[index],
            num_generations,
            **frozen,
            **fields,
        )


class Bandit(_Enumerable):
    """A softmax over K arms: pi(a) = exp(logits_a) / sum. One state, one token, no stop.

    logits: (K,) numbers, or the number of arms for a uniform start.

    >>> Bandit([0.0, 0.0]).probabilities().tolist()
    [0.5, 0.5]
    """

    def __init__(self, logits: int | Sequence[float] | torch.Tensor) -> None:
        start = torch.zeros(logits) if isinstance(logits, int) else torch.as_tensor(logits)
        if start.ndim != 1 or len(start) < 2:
            raise ValueError(
                f"a bandit needs at least 2 arms in a flat list, got shape {tuple(start.shape)}."
            )
        self.outcomes = [(a,) for a in range(len(start))]
        self._lay_out([[0] for _ in self.outcomes], 1, len(start), start)


class SequencePolicy(_Enumerable):
    """An autoregressive policy over `vocab` words and a stop token, up to `max_length` tokens.

    Token ids 0 ... vocab-1 are words, `vocab` is stop. Every prefix has its own row of logits, so
    nothing is approximated. The stop token counts in the length and carries gradient, as in a
    language model; an answer that reaches max_length without it ends there (truncated).

    logits: (states, vocab + 1), states = sum over t < max_length of vocab^t; zeros when None.

    >>> policy = SequencePolicy(vocab=2, max_length=3)
    >>> len(policy), round(policy.probabilities().sum().item(), 12)
    (15, 1.0)
    """

    def __init__(
        self, vocab: int = 2, max_length: int = 3, logits: torch.Tensor | None = None
    ) -> None:
        if vocab < 1 or max_length < 1:
            raise ValueError(
                f"vocab and max_length must be at least 1, got {vocab} and {max_length}."
            )
        count = sum(vocab**t for t in range(max_length + 1)) * 2
        if count > 200_000:
            raise ValueError(
                f"vocab={vocab} and max_length={max_length} make about {count:,} "
                "outcomes: too many to enumerate. Take smaller numbers."
            )
        self.vocab, self.max_length, self.stop = vocab, max_length, vocab
        prefixes: list[tuple[int, ...]] = [()]
        for p in prefixes:
            if len(p) + 1 < max_length:
                prefixes.extend((*p, w) for w in range(vocab))
        self.states = {p: i for i, p in enumerate(prefixes)}
        self.outcomes = [(*p, self.stop) for p in prefixes]
        self.outcomes += [
            (*p, w) for p in prefixes if len(p) == max_length - 1 for w in range(vocab)
        ]
        states = [[self.states[o[:t]] for t in range(len(o))] for o in self.outcomes]
        self._lay_out(states, len(prefixes), vocab + 1, logits)

    def truncated(self, outcome: tuple[int, ...]) -> bool:
        """Whether the answer ran into max_length without the stop token."""
        return outcome[-1] != self.stop


def outcome_rewards(policy: _Enumerable, reward: Reward) -> torch.Tensor:
    """(N,) rewards of all outcomes, from a function of the token tuple or N numbers."""
    if callable(reward):
        reward = [float(reward(o)) for o in policy.outcomes]
    values = torch.as_tensor(reward, dtype=torch.float64)
    if values.shape != (len(policy),):
        raise ValueError(
            f"the reward must be a function of an outcome, or {len(policy)} numbers; "
            f"got shape {tuple(values.shape)}."
        )
    return values
