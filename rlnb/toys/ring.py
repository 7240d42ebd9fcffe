"""What every card sends in one training step, by stage of ZeRO: counted on a ring, not timed.

The cards stand in a ring, and each sends to its right neighbour only. A model of P numbers is cut
into as many pieces as there are cards. `reduce_scatter` leaves every card with one piece summed
over all cards, `gather` hands all pieces to everybody; each makes a card send (N - 1) / N times P
numbers. ZeRO: Rajbhandari et al. 2020, arXiv 1910.02054, section 7.
"""

from __future__ import annotations

import numpy as np

__all__ = ["Ring", "step"]


class Ring:
    """N cards; `sent` counts the numbers that each of them has sent.

    >>> ring = Ring(3)
    >>> ring.gather(ring.reduce_scatter(np.ones((3, 3, 1))))[:, 0]      # 1 + 1 + 1
    array([3., 3., 3.])
    >>> ring.sent
    4
    """

    def __init__(self, cards: int) -> None:
        if cards < 2:
            raise ValueError(f"a ring has 2 cards or more, got {cards}.")
        self.cards, self.sent = cards, 0

    def reduce_scatter(self, held: np.ndarray) -> np.ndarray:
        """(card, piece, size) -> (piece, size): piece k is summed on its way round, and stays at
        the card before k."""
        at = held.copy()
        for turn in range(self.cards - 1):
            for card in range(self.cards):
                piece = (card - turn) % self.cards
                at[(card + 1) % self.cards, piece] += at[card, piece]
            self.sent += held.shape[2]
        return np.stack([at[(piece - 1) % self.cards, piece] for piece in range(self.cards)])

    def gather(self, pieces: np.ndarray) -> np.ndarray:
        """(piece, size) -> the same on every card: a piece is passed on until all have it."""
        has = np.eye(self.cards, dtype=bool)
        for turn in range(self.cards - 1):
            for card in range(self.cards):
                has[(card + 1) % self.cards, (card - turn) % self.cards] = True
            self.sent += pieces.shape[1]
        if not has.all():
            raise RuntimeError("a card lacks a piece")
        return pieces


def step(
    stage: int, cards: int, size: int = 5, rate: float = 0.1, micro: int = 1
) -> tuple[np.ndarray, float]:
    """A gradient step on the sum of |weights - data|^2 / 2, each card with `micro` micro-batches of
    its own: the new weights (cards, size), and what each card sent, in sizes of the model.

    >>> [round(step(stage, 4)[1] * 4 / 3, 9) for stage in range(4)]
    [2.0, 2.0, 2.0, 3.0]
    >>> [round(step(stage, 4, micro=10)[1] * 4 / 3, 9) for stage in range(4)]
    [2.0, 2.0, 11.0, 30.0]
    """
    if stage not in (0, 1, 2, 3):
        raise ValueError(f"stage is 0, 1, 2 or 3, got {stage}.")
    if micro < 1:
        raise ValueError(f"micro is a number of micro-batches, 1 or more, got {micro}.")
    ring, gen = Ring(cards), np.random.default_rng(0)
    weights = gen.normal(size=(cards, size))
    data = gen.normal(size=(micro, cards, cards, size))
    held, summed = np.zeros((cards, cards, size)), np.zeros((cards, size))
    for batch in data:
        whole = weights
        if stage == 3:  # each card holds one piece: the others are fetched, used, dropped, fetched
            ring.gather(weights)  # for the forward pass
            whole = ring.gather(weights)  # and for the backward pass
        if stage < 2:  # a card keeps the gradient of all pieces, and adds up its micro-batches
            held += whole - batch
        else:  # a card keeps that of its own piece: the rest must leave before the next one
            summed += ring.reduce_scatter(whole - batch)
    if stage < 2:
        summed = ring.reduce_scatter(held)
    if stage == 0:
        summed = ring.gather(summed)  # everybody updates everything
    new = weights - rate * summed / (cards * micro)
    if stage in (1, 2):
        new = ring.gather(new)  # a card has updated its own piece
    return new, ring.sent / new.size
