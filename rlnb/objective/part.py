"""What a part is: a small frozen callable whose repr is the call that made it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from rlnb.objective.batch import Batch

__all__ = ["Part", "canonical", "spell"]


class Part:
    """Base of all parts. Subclasses are frozen dataclasses with a lower-case name.

    needs: Batch fields that must not be None.
    conventions: dataclass fields in which code bases differ and papers are silent; `name_of`
        ignores them.
    silent: a surrogate is 0 with slope 0 wherever the advantage is 0, so that the trainer may skip
        such rows.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    conventions: ClassVar[tuple[str, ...]] = ()
    silent: ClassVar[bool] = True
    bare: ClassVar[bool] = False  # spelled without parentheses when all fields are default

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


def canonical(part: object) -> object:
    """The part with every convention at its default."""
    if not isinstance(part, Part):
        return part
    return replace(part, **{f.name: f.default for f in fields(part) if f.name in part.conventions})


def spell(part: object) -> str:
    """A part, or a tuple of them, as code."""
    if isinstance(part, tuple):
        return "none" if not part else ", ".join(spell(p) for p in part)
    return repr(part) if isinstance(part, Part) else getattr(part, "__name__", repr(part))
