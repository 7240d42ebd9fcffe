"""Decoding for a GPU: fixed buffers, few kernel launches, few waits for the device.

Not yet run on a GPU. On a CPU the tests compare its eager form, everything but the graphs
themselves, with `sampler.sample`, which is faster there.

One token of a small model costs hundreds of kernel launches, more time than its arithmetic. So:

* Prompts are prefilled once each, and their keys and values are copied into memory for the whole
  answers. The attention reads a window of it that grows by `window` tokens.
* All that changes from token to token is a tensor on the device, so one CUDA graph per number of
  rows and window replays a token: model, draw, bookkeeping. The first token of such a pair runs
  eagerly, the second is captured, all later ones are replayed, in later rollouts too.
* Every `check_every` tokens the host asks how many rows are still open; when half or fewer are,
  these move to the front and the number of rows falls to the next power of two.

Where CUDA graphs cannot be captured, a warning says so and the same code runs without them.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import Cache, DynamicLayer

from rlnb.training.errors import BadInput
from rlnb.training.sampling.sampler import (
    Rollout,
    Sampling,
    cut_to_longest,
    draw,
    end_tokens,
    is_end,
    prefill,
    sample,
)

__all__ = ["Decoder", "Room", "SlotLayer", "fits", "sampler_for"]


def sampler_for(device: torch.device | str) -> Callable[..., Rollout]:
    """The sampler for a device: this process's `Decoder` on CUDA, `sample` elsewhere."""
    return _decoder() if torch.device(device).type == "cuda" else sample


@cache
def _decoder() -> Decoder:
    return Decoder()


class SlotLayer(DynamicLayer):
    """One layer's keys and values (rows, key-value heads, window, head_dim), views of its memory.

    A new token is written at `slot`, a tensor (1,), and all of the window is handed out: the mask
    says what of it counts.
    """

    def __init__(self, keys: Tensor, values: Tensor, slot: Tensor):
        super().__init__()
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
        self.keys, self.values, self.slot = keys, values, slot

    def update(
        self, key_states: Tensor, value_states: Tensor, *args, **kwargs
    ) -> tuple[Tensor, Tensor]:
        self.keys.index_copy_(2, self.slot, key_states)
        self.values.index_copy_(2, self.slot, value_states)
        return self.keys, self.values


@dataclass
class Room:
    """The memory of one shape of rollout: N rows, at most `steps` new tokens, L places in all.

    memory: per layer, keys and values (N, heads, L, head_dim). In the order in which rows lie
    there: rows (N,) which completion a row writes, token (N,) its last one, position (N, 1),
    open (N,) whether it goes on, mask (N, 1, 1, L) which places it may look at. By completion:
    tokens, written, logprobs, entropies (N, steps). slot and column (1,): where the next token's
    keys and the next token go. graphs: CUDA graphs by number of rows and window, None where that
    pair has run once.
    """

    model: PreTrainedModel
    sampling: Sampling
    ends: Tensor
    pad_id: int
    memory: list[tuple[Tensor, Tensor]]
    rows: Tensor
    token: Tensor
    position: Tensor
    open: Tensor
    mask: Tensor
    tokens: Tensor
    written: Tensor
    logprobs: Tensor
    entropies: Tensor
    slot: Tensor
    column: Tensor
    generator: torch.Generator
    graphs: dict[tuple[int, int], torch.cuda.CUDAGraph | None] = field(default_factory=dict)
    pool: tuple[int, int] | None = None  # the graphs run one after the other, in the same memory

    @classmethod
    def make(
        cls, model: PreTrainedModel, sampling: Sampling, ends: Tensor, pad_id: int,
        layers: list[DynamicLayer], n: int, places: int,
    ) -> Room:  # fmt: skip
        device, steps = model.device, sampling.max_new_tokens

        def zeros(*shape: int, dtype: torch.dtype = torch.long) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        # Zeros, not empty: what the mask hides must still be finite, 0 * nan is nan.
        memory = [
            tuple(x.new_zeros(n, x.shape[1], places, x.shape[3]) for x in (old.keys, old.values))
            for old in layers
        ]
        return cls(
            model, sampling, ends, pad_id, memory,
            rows=zeros(n), token=zeros(n), position=zeros(n, 1), open=zeros(n, dtype=torch.bool),
            mask=zeros(n, 1, 1, places, dtype=torch.bool), tokens=zeros(n, steps),
            written=zeros(n, steps, dtype=torch.bool),
            logprobs=zeros(n, steps, dtype=torch.float32),
            entropies=zeros(n, steps, dtype=torch.float32),
            slot=zeros(1), column=zeros(1), generator=torch.Generator(device),
        )  # fmt: skip

    def fill(self, layers: list[DynamicLayer], mask: Tensor, position: Tensor, size: int) -> None:
        """Starts a rollout: each prompt's cache for its `size` rows. mask (prompts, P)."""
        prompts, seen = mask.shape
        self.mask.zero_()
        self.mask[:, 0, 0, :seen] = mask.repeat_interleave(size, 0)
        self.position.copy_(position.repeat_interleave(size, 0))
        for memory, old in zip(self.memory, layers, strict=True):
            for to, x in zip(memory, (old.keys, old.values), strict=True):
                to[:, :, :seen].view(prompts, size, *x.shape[1:]).copy_(x[:, None])
        self.rows.copy_(torch.arange(len(self.rows), device=self.rows.device))
        self.open.fill_(True)
        self.slot.fill_(seen)
        self.column.zero_()
        self.tokens.fill_(self.pad_id)
        for table in (self.written, self.logprobs, self.entropies):
            table.zero_()

    def take(self, logits: Tensor) -> None:
        """Draws the next token of the first len(logits) rows and writes it down."""
        n = len(logits)
        token, logprob, entropy = draw(logits, self.sampling, self.generator)
        open_ = self.open[:n]
        token = torch.where(open_, token, self.pad_id)
        place = (self.rows[:n], self.column.expand(n))
        self.tokens.index_put_(place, token)
        self.written.index_put_(place, open_)
        self.logprobs.index_put_(place, torch.where(open_, logprob, 0.0))
        self.entropies.index_put_(place, torch.where(open_, entropy, 0.0))
        self.token[:n].copy_(token)
        self.open[:n].copy_(open_ & ~is_end(token, self.ends))
        self.column.add_(1)

    def advance(self, n: int, window: int) -> None:
        """One more token of the first n rows, looking at the first `window` places."""
        self.mask[:n].index_fill_(3, self.slot, True)
        self.position[:n].add_(1)
        layers = [
            SlotLayer(keys[:n, :, :window], values[:n, :, :window], self.slot)
            for keys, values in self.memory
        ]
        out = self.model(
            self.token[:n, None],
            attention_mask=self.mask[:n, :, :, :window],
            position_ids=self.position[:n],
            past_key_values=Cache(layers=layers),
            use_cache=True,
        )
        self.slot.add_(1)
        self.take(out.logits[:, -1])

    def compact(self, n: int, smaller: int, used: int) -> None:
        """Moves the open ones of the first n rows to the front, where `smaller` rows remain.

        Finished rows fill up the rest; what they go on writing is padding, in their own place.
        """
        index = self.open[:n].logical_not().long().argsort(stable=True)[:smaller]
        for keys, values in self.memory:
            for memory in (keys, values):
                memory[:smaller, :, :used] = memory[index, :, :used]
        for x in (self.rows, self.token, self.position, self.open, self.mask):
            x[:smaller] = x[index]


class Decoder:
    """`sampler.sample` with fixed buffers and CUDA graphs: same arguments, same result.

    graphs: None uses them on CUDA. check_every: tokens between two looks at how many rows are
    open. window: places by which the attention's reach grows. smallest: no fewer rows than this.
    keep: so many shapes of rollout keep their memory and their graphs for the next call; training
    has one, and an evaluation two (sampled and greedy).

    The random numbers a row meets depend on the rows beside it, as they do in `sample`; the
    two draw from the same distribution, not the same tokens.
    """

    def __init__(
        self, *, graphs: bool | None = None, check_every: int = 16, window: int = 64,
        smallest: int = 8, keep: int = 3,
    ):  # fmt: skip
        for name, value in (("check_every", check_every), ("window", window),
                            ("smallest", smallest), ("keep", keep)):  # fmt: skip
            if value < 1:
                raise BadInput(f"{name}: got {value}, expected 1 or more")
        self.graphs, self.check_every, self.window = graphs, check_every, window
        self.smallest, self.keep = smallest, keep
        self.rooms: OrderedDict[tuple, Room] = OrderedDict()

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
        room.take(logits.repeat_interleave(num_generations, 0))
        del cache, layers, logits
        self._write(room, n, ids.shape[1])
        if generator is not None:
            generator.set_state(room.generator.get_state())
        ids, mask = (x.repeat_interleave(num_generations, 0) for x in (ids, mask))
        return cut_to_longest(
            ids, mask, room.tokens, room.written, room.logprobs, room.entropies, room.ends,
            num_generations, sampling,
        )  # fmt: skip

    def _room(
        self, model: PreTrainedModel, sampling: Sampling, eos_id: int | Collection[int],
        pad_id: int, layers: list[DynamicLayer], n: int, seen: int,
    ) -> Room:  # fmt: skip
        """The memory for this rollout, of an earlier one where shapes and weights agree."""
        ends = end_tokens(eos_id, model.device)
        places = -(-(seen + sampling.max_new_tokens) // self.window) * self.window
        # Graphs hold addresses: weights may change in place, but not move.
        where = tuple(p.data_ptr() for p in model.parameters())
        key = (id(model), hash(where), n, places, sampling, tuple(ends.tolist()), pad_id)
        if key not in self.rooms:
            while len(self.rooms) >= self.keep:
                self.rooms.popitem(last=False)
            self.rooms[key] = Room.make(model, sampling, ends, pad_id, layers, n, places)
        self.rooms.move_to_end(key)
        return self.rooms[key]

    def _write(self, room: Room, n: int, seen: int) -> None:
        """All tokens after the first."""
        for t in range(1, room.sampling.max_new_tokens):
            if t % self.check_every == 0:  # the host waits for the device here, and only here
                left = int(room.open[:n].sum())
                if left == 0:
                    return
                smaller = max(self.smallest, 1 << (left - 1).bit_length())
                if 2 * left <= n and smaller < n:
                    room.compact(n, smaller, seen + t - 1)
                    n = smaller
            window = -(-(seen + t) // self.window) * self.window
            self._advance(room, n, window)

    def _advance(self, room: Room, n: int, window: int) -> None:
        wanted = room.slot.is_cuda if self.graphs is None else self.graphs
        key = (n, window)
        if wanted and key in room.graphs:
            if room.graphs[key] is None:
                room.graphs[key] = self._capture(room, n, window)
            if room.graphs[key] is not None:
                room.graphs[key].replay()
                return
        room.graphs[key] = None
        room.advance(n, window)

    def _capture(self, room: Room, n: int, window: int) -> torch.cuda.CUDAGraph | None:
        """A graph of one token, which capturing does not run; None, once and for all, if none."""
        state = room.generator.get_state()
        try:
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(room.generator)
            room.pool = room.pool or torch.cuda.graph_pool_handle()
            with torch.cuda.graph(graph, pool=room.pool):
                room.advance(n, window)
            return graph
        except RuntimeError as error:  # out of memory as well
            self.graphs = False
            room.generator = torch.Generator(room.slot.device)
            room.generator.set_state(state)
            first = str(error).strip().partition("\n")[0]
            warnings.warn(
                f"decode: CUDA graphs cannot be captured here ({first}); every token is launched "
                "kernel by kernel instead, with the same result, but more slowly",
                stacklevel=2,
            )
            return None


def fits(model: PreTrainedModel) -> bool:
    """Whether the model's attention takes a mask (rows, 1, 1, places) of what may be looked at.

    It does with torch's own attention and layers that look at all tokens; not with sliding windows.
    """
    layers = DynamicCache(config=model.config).layers
    plain = bool(layers) and all(type(layer) is DynamicLayer for layer in layers)
    return plain and model.config._attn_implementation == "sdpa"
