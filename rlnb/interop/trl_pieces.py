"""A loss that TRL computes in pieces: what travels with the rows, and local means as pieces.

Needs no TRL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, cast

import torch

from rlnb.objective.batch import Batch, Prepared, Totals
from rlnb.objective.composition import Objective
from rlnb.objective.gates import top_entropy
from rlnb.objective.part import Part, Weights
from rlnb.objective.weights import local_token_mean

__all__ = ["as_tensors", "from_tensors", "in_pieces", "piece"]


@dataclass(frozen=True)
class piece(Part):
    """Weights that are a mean over the rows at hand, as one of `pieces` that are added up."""

    local: Weights
    pieces: int

    def __call__(self, batch: Batch, totals: Totals) -> torch.Tensor:
        return self.local(batch, totals) / self.pieces


def in_pieces(objective: Objective, pieces: int, gate: Callable[[top_entropy], Any]) -> Objective:
    """The objective whose losses over `pieces` micro-batches add up: local means become the mean
    of their means. `gate` makes what stands for `top_entropy`."""

    def whole(weights: Any) -> Any:
        return piece(weights, pieces) if isinstance(weights, local_token_mean) else weights

    terms = tuple(
        replace(cast(Any, part), weights=whole(part.weights))
        if is_dataclass(part) and part.weights is not None
        else part
        for part in objective.terms
    )
    gates = tuple(gate(g) if isinstance(g, top_entropy) else g for g in objective.gates)
    return objective.replace(weights=whole(objective.weights), terms=terms, gates=gates)


def as_tensors(prepared: Prepared) -> dict[str, torch.Tensor]:
    """What `from_tensors` takes back: per row, or 0-d, which TRL's shuffle and split leave alone.

    Whole numbers stay on the CPU, where reading them does not wait for a GPU.
    """
    totals = prepared.totals
    return {
        "row_rewards": prepared.batch.rewards,
        "row_group": prepared.group,
        "row_group_tokens": totals.row_group_tokens,
        "total_rows": torch.tensor(totals.rows),
        "total_prompts": torch.tensor(totals.prompts),
        "total_nonempty_rows": totals.nonempty_rows,
        "total_tokens": totals.tokens,
    }


def from_tensors(inputs: dict[str, Any], batch: Batch) -> Prepared:
    """The rows of `batch` as a prepared micro-batch, from what `as_tensors` sent along with them
    and the `advantages` (B, T)."""
    totals = Totals(
        int(inputs["total_rows"]),
        inputs["total_nonempty_rows"],
        int(inputs["total_prompts"]),
        inputs["total_tokens"],
        inputs["row_group_tokens"],
    )
    return Prepared(batch, inputs["advantages"], inputs["row_group"], totals)
