"""How many bytes a GPU rollout's memory takes: `rooms.Room`, counted without making one."""

from __future__ import annotations

from rlnb.training.errors import BadInput

__all__ = ["WINDOW", "room_bytes", "rounded"]

WINDOW = 64  # places by which the attention's reach grows, and to whose multiples a room is rounded


def rounded(places: int, window: int = WINDOW) -> int:
    """`places` up to the next multiple of the window.

    >>> [rounded(n) for n in (1, 64, 92)]
    [64, 64, 128]
    """
    return -(-places // window) * window


def room_bytes(rows: int, places: int, steps: int, numbers: int, size: int) -> int:
    """Bytes of a room: rows * (places * (numbers + 1) * size + 17 * steps + 25) + 16.

    places: tokens of prompt and answer, rounded up here to whole windows. steps: new tokens.
    numbers: keys and values of one token in all layers, 2 * layers * kv_heads * head_dim. size:
    bytes of one of them. The 1 is the attention's bias; 17 bytes a new token are its id,
    log-probability, entropy and whether it was written; 25 a row's place, position and last token.
    Raises BadInput for a number below 1.

    25 million parameters in float32, 8192 answers of 20 + 72 tokens, which round up to 128:

    >>> room_bytes(8192, 92, 72, 2 * 8 * 4 * 64, 4)
    17194295312
    """
    given = {"rows": rows, "places": places, "steps": steps, "numbers": numbers, "size": size}
    for name, value in given.items():
        if value < 1:
            raise BadInput(f"{name}: got {value}, expected 1 or more")
    return rows * (rounded(places) * (numbers + 1) * size + 17 * steps + 25) + 16
