"""What a part is: a small frozen callable whose repr is the call that made it.

An objective has eight seams; the aliases below are their signatures, and any callable of the
signature is a part. Shapes: B rows, T tokens; every tensor here is (B, T) unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, fields, replace
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import torch

from rlnb.objective.batch import Batch, Totals

__all__ = [
    "Advantage",
    "Credit",
    "Gate",
    "Part",
    "Ratio",
    "Seam",
    "Shape",
    "Surrogate",
    "Term",
    "Weights",
    "canonical",
    "spell",
]

Seam = Literal["advantage", "surrogate", "weights", "ratio", "shape", "credit", "gates", "terms"]

# (batch, token rewards) -> token rewards
Shape = Callable[[Batch, "torch.Tensor"], "torch.Tensor"]
# (batch, token rewards) -> A, on whole groups, no gradient
Advantage = Callable[[Batch, "torch.Tensor"], "torch.Tensor"]
# (batch, A) -> A
Credit = Callable[[Batch, "torch.Tensor"], "torch.Tensor"]
# (batch, A) -> log-ratio, with gradient
Ratio = Callable[[Batch, "torch.Tensor"], "torch.Tensor"]
# (batch, A, log-ratio) -> value, maximised
Surrogate = Callable[[Batch, "torch.Tensor", "torch.Tensor"], "torch.Tensor"]
# (batch, A, log-ratio) -> factor, detached
Gate = Callable[[Batch, "torch.Tensor", "torch.Tensor"], "torch.Tensor"]
# (batch, totals of the step) -> weight of each token
Weights = Callable[[Batch, Totals], "torch.Tensor"]


class Term(Protocol):
    """coefficient times a per-token quantity, minimised; weights None: the objective's own."""

    @property
    def coefficient(self) -> float: ...

    @property
    def weights(self) -> Weights | None: ...

    def __call__(self, batch: Batch, /) -> torch.Tensor: ...


class Part:
    """Base of all parts. Subclasses are frozen dataclasses with a lower-case name.

    fits: the seam it belongs to; None: any. beside: what must stand in another seam for this part
        to mean what its name says.
    needs: Batch fields that must not be None.
    conventions: dataclass fields in which code bases differ and papers are silent; `name_of`
        ignores them.
    silent: a surrogate is 0 with slope 0 wherever the advantage is 0, so that the trainer may skip
        such rows.
    random: it draws numbers. batch_statistics: a row meets the others of the batch in it.
    """

    fits: ClassVar[Seam | None] = None
    beside: ClassVar[Mapping[Seam, tuple[type, ...]]] = {}
    conventions: ClassVar[tuple[str, ...]] = ()
    silent: ClassVar[bool] = True
    random: ClassVar[bool] = False
    batch_statistics: ClassVar[bool] = False
    bare: ClassVar[bool] = False  # spelled without parentheses when all fields are default
    # every part is a dataclass; declared here so that `fields` and `replace` take it
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def check(self, batch: Batch) -> None:
        """Raise ValueError, in one sentence, when this part cannot work on the batch."""

    def __repr__(self) -> str:
        words = []
        for place, f in enumerate(fields(self)):
            value = getattr(self, f.name)
            if f.metadata.get("always") or value != f.default:
                first = place == 0 and not f.metadata.get("named") and not isinstance(value, bool)
                words.append(f"{value!r}" if first else f"{f.name}={value!r}")
        name = type(self).__name__
        return name if self.bare and not words else f"{name}({', '.join(words)})"


P = TypeVar("P")


def canonical(part: P) -> P:
    """The part with every convention at its default."""
    if not isinstance(part, Part):
        return part
    return replace(part, **{f.name: f.default for f in fields(part) if f.name in part.conventions})


def spell(part: object) -> str:
    """A part, or a tuple of them, as code."""
    if isinstance(part, tuple):
        return "none" if not part else ", ".join(spell(p) for p in part)
    return repr(part) if isinstance(part, Part) else getattr(part, "__name__", repr(part))
