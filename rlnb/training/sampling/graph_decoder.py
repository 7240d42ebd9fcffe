"""Decoding for a GPU: fixed buffers, few kernel launches, few waits for the device.

On an H100 the graphs write what the eager form and `sampler.sample` write: 8,192 answers of a 25M
model in 0.75 s, at 22 % of the memory's bandwidth; transformers' `generate` took 1.2 to 3.2 s
(tests/benchmarks/README.md). On a CPU the tests compare the eager form, all but the graphs
themselves, with `sampler.sample`, which is faster there; failures of capturing are played by
stand-ins.

One token of a small model costs hundreds of kernel launches, more time than its arithmetic. So:

* Prompts are prefilled once each, and their keys and values are copied into memory for the whole
  answers (`rooms`). The attention (`one_token`) reads a window of it that grows by `window` tokens.
* All that changes from token to token is a tensor on the device, so one CUDA graph per number of
  rows and window replays a token: model, draw, bookkeeping (`capture`). A rollout that meets new
  pairs runs its second token eagerly, then captures all pairs it can meet, after one wait for the
  device; later rollouts replay them.
* Every `check_every` tokens the host asks how many rows are still open; when half or fewer are,
  these move to the front and the number of rows falls to the next power of two.
* A room serves every rollout of its model that is no larger: sampled or greedy, training or
  evaluation. Longer prompts make it grow, to the longest that was announced (`expect`). Rooms are
  given up by bytes, oldest first, when their model is gone, or when training needs the bytes
  (`make_way`).

Where a CUDA graph cannot be captured, a warning says so and the same code runs without it.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection
from functools import cache

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from rlnb.training.errors import BadInput
from rlnb.training.sampling.capture import capture_all
from rlnb.training.sampling.room_size import WINDOW, room_bytes, rounded
from rlnb.training.sampling.rooms import GraphKey, Room
from rlnb.training.sampling.sampler import (
    Rollout,
    Sampling,
    cut_to_longest,
    end_tokens,
    prefill,
    sample,
)

__all__ = ["Decoder", "fits", "free_bytes", "make_way", "sampler_for"]


def sampler_for(device: torch.device | str) -> Callable[..., Rollout]:
    """The sampler for a device: this process's `Decoder` on CUDA, `sample` elsewhere."""
    return _decoder() if torch.device(device).type == "cuda" else sample


@cache
def _decoder() -> Decoder:
    return Decoder()


def free_bytes(device: torch.device | str) -> float:
    """Bytes that torch can still take on a CUDA device: free there, or held by torch unused."""
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused


def make_way(device: torch.device | str, wanted: float) -> int:
    """Gives up rooms of this process's decoder until `wanted` bytes are free on a CUDA device.

    Returns the bytes given up. Rooms that may stay keep their graphs, which a rollout would
    otherwise have to capture again. On a CPU there is nothing to give up.
    """
    if torch.device(device).type != "cuda":
        return 0
    return _decoder().make_way(wanted, lambda: free_bytes(device))


class Decoder:
    """`sampler.sample` with fixed buffers and CUDA graphs: same arguments, same result.

    graphs: None uses them on CUDA. check_every: tokens between two looks at how many rows are
    open. window: places by which the attention's reach grows. smallest: no fewer rows than this.
    limit: bytes that rooms may hold between two calls, a third of the device's memory when None;
    the room of the last call always stays.

    The random numbers a row meets depend on the rows beside it, as they do in `sample`; the
    two draw from the same distribution, not the same tokens.
    """

    def __init__(
        self, *, graphs: bool | None = None, check_every: int = 16, window: int = WINDOW,
        smallest: int = 8, limit: float | None = None,
    ):  # fmt: skip
        for name, value in (("check_every", check_every), ("window", window),
                            ("smallest", smallest)):  # fmt: skip
            if value < 1:
                raise BadInput(f"{name}: got {value}, expected 1 or more")
        if limit is not None and limit < 0:
            raise BadInput(f"limit: got {limit}, expected 0 bytes or more")
        self.graphs, self.check_every, self.window = graphs, check_every, window
        self.smallest, self.limit, self.longest = smallest, limit, 0
        self.rooms: OrderedDict[tuple, Room] = OrderedDict()

    def expect(self, prompt_tokens: int) -> None:
        """Prompts will have up to so many tokens: rooms are made for these from the start."""
        self.longest = max(self.longest, prompt_tokens)

    def release(self) -> int:
        """Gives up all rooms and their graphs; the bytes they held."""
        return self.make_way(float("inf"), lambda: 0.0)

    def make_way(self, wanted: float, free: Callable[[], float]) -> int:
        """Gives up rooms, those used longest ago first, until `free()` is `wanted` or none is left.

        Returns the bytes given up.
        """
        given = 0
        while self.rooms and free() < wanted:
            given += self.rooms.popitem(last=False)[1].nbytes
            if torch.cuda.is_available():
                torch.cuda.empty_cache()  # or the bytes stay with blocks of the rooms' sizes
        return given

    @torch.no_grad()
    def __call__(
        self,
        model: PreTrainedModel,
        prompts: list[list[int]],
        num_generations: int,
        sampling: Sampling,
        *,
        eos_id: int | Collection[int],
        pad_id: int,
        generator: torch.Generator | None = None,
    ) -> Rollout:
        if num_generations < 1:
            raise BadInput(f"num_generations: got {num_generations}, expected 1 or more")
        if not fits(model):
            return sample(
                model, prompts, num_generations, sampling,
                eos_id=eos_id, pad_id=pad_id, generator=generator,
            )  # fmt: skip
        ids, mask, position, cache, logits = prefill(model, prompts, pad_id)
        layers, n = cache.layers, len(prompts) * num_generations
        room = self._room(model, sampling, eos_id, pad_id, layers, n, ids.shape[1])
        room.fill(layers, mask, position[:, -1:], num_generations)
        if generator is not None:
            room.generator.set_state(generator.get_state())
        else:
            room.generator.manual_seed(int(torch.randint(2**62, ())))
        room.take(logits.repeat_interleave(num_generations, 0), sampling)
        del cache, layers, logits
        self._write(room, sampling, n, ids.shape[1])
        if generator is not None:
            generator.set_state(room.generator.get_state())
        ids, mask = (x.repeat_interleave(num_generations, 0) for x in (ids, mask))
        steps = sampling.max_new_tokens
        tables = (room.tokens, room.written, room.logprobs, room.entropies)
        return cut_to_longest(
            ids, mask, *(table[:n, :steps] for table in tables), room.ends,
            num_generations, sampling,
        )  # fmt: skip

    def _room(
        self, model: PreTrainedModel, sampling: Sampling, eos_id: int | Collection[int],
        pad_id: int, layers: list[DynamicLayer], n: int, seen: int,
    ) -> Room:  # fmt: skip
        """The memory for this rollout, of an earlier one where it is large enough."""
        ends, steps = end_tokens(eos_id, model.device), sampling.max_new_tokens
        # Graphs hold addresses: weights may change in place, but not move.
        where = tuple(p.data_ptr() for p in model.parameters())
        key = (id(model), hash(where), steps, tuple(ends.tolist()), pad_id)
        room, places = self.rooms.get(key), rounded(seen + steps, self.window)
        if room is not None and room.model() is model and room.holds(n, places):
            self.rooms.move_to_end(key)
        else:
            places = max(places, rounded(self.longest + steps, self.window))
            if room is not None:  # it grows in both directions, or two callers would take turns
                n, places = max(n, len(room.rows)), max(places, room.places)
                del self.rooms[key], room
            numbers = sum(x.shape[1] * x.shape[3] for old in layers for x in (old.keys, old.values))
            self._shrink(
                room_bytes(n, places, steps, numbers, layers[0].keys.itemsize), ends.device
            )
            rooms = weakref.ref(self.rooms)
            room = self._make(
                model, ends, pad_id, layers, n, places, steps, lambda _: _forget(rooms, key)
            )
            self.rooms[key] = room
        return room

    def _shrink(self, more: int, device: torch.device) -> None:
        """Gives up rooms until one of `more` bytes can be added within the limit."""
        limit = self.limit
        if limit is None:
            total = torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else float("inf")
            limit = total / 3
        while self.rooms and sum(room.nbytes for room in self.rooms.values()) + more > limit:
            self.rooms.popitem(last=False)

    def _make(self, *args) -> Room:
        """A new room; where the device has no bytes left for it, after giving up all others."""
        try:
            return Room.make(*args)
        except torch.OutOfMemoryError:
            if not self.release():
                raise
        return Room.make(*args)

    def _write(self, room: Room, sampling: Sampling, n: int, seen: int) -> None:
        """All tokens after the first."""
        wanted = room.slot.is_cuda if self.graphs is None else self.graphs
        missing = self._pairs(room, sampling, n, seen) if wanted else []
        for t in range(1, sampling.max_new_tokens):
            if t % self.check_every == 0:  # the host waits for the device here, and only here
                left = int(room.open[:n].sum())
                if left == 0:
                    return
                smaller = self._smaller(left)
                if 2 * left <= n and smaller < n:
                    room.compact(n, smaller, seen + t - 1)
                    n = smaller
            work = sampling, n, rounded(seen + t, self.window)
            graph = room.graphs.get(work)
            if graph is None:
                room.advance(*work)
            else:
                graph.replay()
            if missing:  # this token has warmed up what must not be set up while capturing
                capture_all(room, missing, self.rooms.values())
                missing = []

    def _smaller(self, left: int) -> int:
        """How many rows are kept where so many are open."""
        return max(self.smallest, 1 << max(left - 1, 0).bit_length())

    def _pairs(self, room: Room, sampling: Sampling, n: int, seen: int) -> list[GraphKey]:
        """Numbers of rows and windows that a rollout can meet and that were never captured."""
        steps, sizes = sampling.max_new_tokens, [n]
        while (half := self._smaller(sizes[-1] // 2)) < sizes[-1]:
            sizes.append(half)
        windows = sorted({rounded(seen + t, self.window) for t in range(1, steps)})
        pairs = [(sampling, size, window) for window in windows for size in sizes]
        return [pair for pair in pairs if pair not in room.graphs]


def _forget(rooms: Callable[[], OrderedDict[tuple, Room] | None], key: tuple) -> None:
    """The model of a room is gone: so is the room."""
    found = rooms()
    if found is not None:
        found.pop(key, None)


def fits(model: PreTrainedModel) -> bool:
    """Whether the model's attention takes a bias (rows, 1, 1, places) of what may be looked at.

    It does with torch's own attention and layers that look at all tokens; not with sliding windows.
    """
    layers = DynamicCache(config=model.config).layers
    plain = bool(layers) and all(type(layer) is DynamicLayer for layer in layers)
    return plain and model.config._attn_implementation == "sdpa"
