"""What an engine does with its memory and its slots, in small: batches, pages, shared prefixes.

Time is in tokens: one step of the engine writes one token of every answer in flight. Continuous
batching: Orca (Yu et al., OSDI 2022). Pages: vLLM, arXiv 2309.06180. Shared prefixes: SGLang's
radix tree, arXiv 2312.07104.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Served", "in_batches", "serve", "tree_tokens"]


def in_batches(lengths: Sequence[int], slots: int) -> int:
    """Steps when `slots` answers begin together and the next ones wait until all are done.

    >>> in_batches([1, 5, 2, 2], 2)
    7
    """
    return sum(max(lengths[k : k + slots]) for k in range(0, len(lengths), slots))


@dataclass(frozen=True)
class Served:
    """steps: until all answers were written. in_flight: mean number of answers per step. used: mean
    share of the memory that held a token. recomputed: tokens written again after an answer had to
    give its memory up."""

    steps: int
    in_flight: float
    used: float
    recomputed: int


def serve(
    lengths: Sequence[int], memory: int, *, page: int = 0, longest: int = 0, slots: int = 10**9
) -> Served:
    """All answers through an engine with room for `memory` tokens; free slots are refilled.

    page > 0: an answer takes pages of so many tokens as it grows; when none is free the youngest
    answer gives its pages back and begins again later. page = 0: every answer reserves `longest`
    tokens when it begins, since nobody knows how long it will be. Raises ValueError where the
    longest answer does not fit.

    >>> serve([4, 4], memory=8, longest=8).steps, serve([4, 4], memory=8, page=2).steps
    (8, 4)
    """
    reserve = longest or max(lengths)
    if max(lengths) > memory - memory % (page or 1) or (not page and reserve > memory):
        raise ValueError(f"memory has room for {memory} tokens, the longest answer needs more.")
    if not page and max(lengths) > reserve:
        raise ValueError(f"longest is {reserve}, but an answer has {max(lengths)} tokens.")
    waiting = list(range(len(lengths)))[::-1]
    running: dict[int, int] = {}  # answer -> tokens written
    steps = flights = held = again = 0

    def pages() -> int:
        return sum(-(-max(n, 1) // page) for n in running.values())

    while waiting or running:
        if page:
            while waiting and len(running) < slots and (pages() + 1) * page <= memory:
                running[waiting.pop()] = 0
        else:
            while waiting and len(running) < slots and (len(running) + 1) * reserve <= memory:
                running[waiting.pop()] = 0
        for answer in running:
            running[answer] += 1
        while page and pages() * page > memory:  # somebody has to go: the youngest
            answer, written = running.popitem()
            waiting.append(answer)
            again += written - 1
        steps += 1
        flights += len(running)
        held += sum(running.values())
        for answer in [a for a, n in running.items() if n >= lengths[a]]:
            del running[answer]
    return Served(steps, flights / steps, held / steps / memory, again)


def tree_tokens(sequences: Iterable[Sequence[int]]) -> int:
    """Tokens that a prefix tree stores: one per different prefix.

    >>> tree_tokens([[1, 2, 3], [1, 2, 4], [5]])
    5
    """
    return len({tuple(s[:k]) for s in sequences for k in range(1, len(s) + 1)})
