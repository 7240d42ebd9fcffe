"""Sizes of the Qwen3 layout that are trained from scratch: 0.3 to 25 million parameters."""

from __future__ import annotations

from dataclasses import dataclass

from rlnb.training.errors import BadInput

__all__ = ["PRESETS", "SHIPPED", "Preset", "find_preset"]

SHIPPED = "data/model"  # what a run's header calls the model that ships with the course


@dataclass(frozen=True)
class Preset:
    """The shape of a model; the rest is the same for all of them (`small_model.build_model`).

    hidden: width of the residual stream. heads: query heads of `head_dim` each, `kv_heads` of them
    shared (they divide `heads`). intermediate: width of the gated MLP.
    """

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int

    def parameters(self, vocabulary: int = 32) -> int:
        """How many numbers are trained; the embedding is also the head, and counts once.

        vocabulary * h + layers * (2 h q + 2 h kv + 3 h m + 2 h + 2 head_dim) + h, with h hidden,
        m intermediate, q = heads * head_dim and kv = kv_heads * head_dim.

        >>> {name: preset.parameters() for name, preset in PRESETS.items()}
        {'tiny': 308016, 'small': 1777600, 'medium': 5910528, 'large': 25191936}
        """
        h, q, kv = self.hidden, self.heads * self.head_dim, self.kv_heads * self.head_dim
        layer = 2 * h * q + 2 * h * kv + 3 * h * self.intermediate + 2 * h + 2 * self.head_dim
        return vocabulary * h + self.layers * layer + h


# tiny is the shipped model: a minute of CPU. large is for a GPU.
PRESETS = {
    "tiny": Preset(96, 3, 4, 2, 24, 256),
    "small": Preset(192, 4, 6, 3, 32, 576),
    "medium": Preset(256, 6, 4, 2, 64, 1024),
    "large": Preset(512, 8, 8, 4, 64, 1536),
}


def find_preset(name: str) -> Preset:
    """The preset of this name. Raises BadInput for another one."""
    if name not in PRESETS:
        raise BadInput(f"preset: there is no {name!r}; known: {', '.join(PRESETS)}")
    return PRESETS[name]
