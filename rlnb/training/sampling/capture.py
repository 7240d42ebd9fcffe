"""CUDA graphs of one token, captured ahead; and what is mended when a capture fails.

A failed capture leaves more behind than no graph: `torch.cuda.graph` does not leave its stream when
ending the capture raises, and the states of the generators go on believing that they are being
captured. So the stream is left whatever happens, the generators get back the states that they had
before, and the graphs that share the spoiled states are forgotten.

The tests play failures with stand-ins, and where there is a GPU with one that really fails.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterable

import torch

from rlnb.training.sampling.rooms import GraphKey, Room

__all__ = ["capture", "capture_all"]

TRIES = 2  # the second one with the cache emptied


def capture(
    work: Callable[[], object], pool: tuple[int, int] | None, generator: torch.Generator
) -> torch.cuda.CUDAGraph:
    """A graph of `work`, which draws from `generator`; capturing does not run it.

    Raises RuntimeError where it cannot be had (out of memory as well), with the current stream, the
    generator and the default one, which every graph registers by itself, as they were.
    """
    graph = torch.cuda.CUDAGraph()  # a RuntimeError where torch has no CUDA
    default = torch.cuda.default_generators[torch.cuda.current_device()]
    before = [(g, g.clone_state()) for g in (generator, default)]
    here, side = torch.cuda.current_stream(), torch.cuda.Stream()
    side.wait_stream(here)
    try:
        graph.register_generator_state(generator)
        with torch.cuda.stream(side):  # left again, however the capture ends
            # thread_local: a thread that pins memory or reads a file does not end the capture.
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                work()
            finally:
                graph.capture_end()
    except RuntimeError:
        for spoiled, state in before:
            spoiled.graphsafe_set_state(state)
        raise
    here.wait_stream(side)
    return graph


def capture_all(room: Room, wanted: list[GraphKey], rooms: Iterable[Room]) -> None:
    """Captures one token of `room` for each key, after a single wait for the device.

    A key that fails twice, the second time with the cache emptied, is None from then on: such
    tokens are launched kernel by kernel, all others replayed. A failure costs the graphs of all
    `rooms` that were captured before it, because they share the default generator: those of this
    room are captured again at once, those of others when they are needed.
    """
    tries: dict[GraphKey, int] = {}
    reason: RuntimeError | None = None
    _settle()
    todo = list(wanted)
    while todo:
        key = todo[0]
        try:
            graph = _one(room, key)
        except RuntimeError as error:
            reason, graph = reason or error, None
            tries[key] = tries.get(key, 0) + 1
            lost = [k for k, found in room.graphs.items() if found is not None]
            for other in (room, *rooms):
                other.graphs = {k: None for k, found in other.graphs.items() if found is None}
                other.pool = None
            todo = lost + todo
            _settle()
            if tries[key] < TRIES:
                continue
        room.graphs[key] = graph
        todo.remove(key)
    if tries:
        _warn(reason, sum(room.graphs[key] is None for key in tries), len(wanted))


def _one(room: Room, key: GraphKey) -> torch.cuda.CUDAGraph:
    graph = capture(lambda: room.advance(*key), room.pool, room.generator)
    room.pool = room.pool or graph.pool()  # the first one makes it, the others share it
    return graph


def _settle() -> None:
    """Nothing runs, and no unused block is held: once for all captures, not for each."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.empty_cache()


def _warn(reason: RuntimeError | None, lost: int, wanted: int) -> None:
    if not lost:
        return
    cause = reason.__context__ or reason if reason is not None else ""
    first = str(cause).strip().partition("\n")[0]
    warnings.warn(
        f"decode: {lost} of {wanted} CUDA graphs cannot be captured here ({first}); such tokens "
        "are launched kernel by kernel instead, with the same result, but more slowly",
        stacklevel=5,
    )
