"""The memory of a rollout on a GPU: keys, values and tables at fixed addresses.

What a room holds is counted by `room_bytes`, which the memory explorer, the plans and the trainer
use as well.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, DynamicLayer

from rlnb.training.sampling.one_token import reading_once
from rlnb.training.sampling.room_size import WINDOW, rounded
from rlnb.training.sampling.sampler import Sampling, draw, is_end

__all__ = ["WINDOW", "GraphKey", "Room", "SlotLayer", "rounded"]

GraphKey = tuple[Sampling, int, int]  # how is drawn, number of rows, window


class SlotLayer(DynamicLayer):
    """One layer's keys and values (rows, key-value heads, window, head_dim), views of its memory.

    A new token is written at `slot`, a tensor (1,), and all of the window is handed out: the bias
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
    """The memory of rollouts of one model: up to N rows, `steps` new tokens, L places in all.

    memory: per layer, keys and values (N, heads, L, head_dim). In the order in which rows lie
    there: rows (N,) which completion a row writes, token (N,) its last one, position (N, 1),
    open (N,) whether it goes on, bias (N, 1, 1, L) what is added to the attention's scores: 0
    where a row may look, -inf elsewhere. By completion: tokens, written, logprobs, entropies
    (N, steps). slot and column (1,): where the next token's keys and the next token go. graphs:
    CUDA graphs by how tokens are drawn, number of rows and window; None where that one could not
    be captured. model is a weak reference: a room keeps no model alive.
    """

    model: weakref.ref[PreTrainedModel]
    ends: Tensor
    pad_id: int
    memory: list[tuple[Tensor, Tensor]]
    rows: Tensor
    token: Tensor
    position: Tensor
    open: Tensor
    bias: Tensor
    tokens: Tensor
    written: Tensor
    logprobs: Tensor
    entropies: Tensor
    slot: Tensor
    column: Tensor
    generator: torch.Generator
    graphs: dict[GraphKey, torch.cuda.CUDAGraph | None] = field(default_factory=dict)
    pool: tuple[int, int] | None = None  # the graphs run one after the other, in the same memory

    @classmethod
    def make(
        cls, model: PreTrainedModel, ends: Tensor, pad_id: int, layers: list[DynamicLayer],
        n: int, places: int, steps: int, gone: Callable[[object], object] | None = None,
    ) -> Room:  # fmt: skip
        """Room for n rows. gone: called when the model is no more."""
        device, like = model.device, layers[0].keys

        def zeros(*shape: int, dtype: torch.dtype = torch.long) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        # Zeros, not empty: what the bias hides must still be finite, 0 * nan is nan.
        memory = [
            (x.keys.new_zeros(n, x.keys.shape[1], places, x.keys.shape[3]),
             x.values.new_zeros(n, x.values.shape[1], places, x.values.shape[3]))
            for x in layers
        ]  # fmt: skip
        return cls(
            weakref.ref(model, gone), ends, pad_id, memory,
            rows=zeros(n), token=zeros(n), position=zeros(n, 1), open=zeros(n, dtype=torch.bool),
            bias=like.new_zeros(n, 1, 1, places), tokens=zeros(n, steps),
            written=zeros(n, steps, dtype=torch.bool),
            logprobs=zeros(n, steps, dtype=torch.float32),
            entropies=zeros(n, steps, dtype=torch.float32),
            slot=zeros(1), column=zeros(1), generator=torch.Generator(device),
        )  # fmt: skip

    @property
    def places(self) -> int:
        """L: tokens of prompt and answer that a row has place for."""
        return self.bias.shape[-1]

    @property
    def nbytes(self) -> int:
        """Bytes of all its tensors."""
        held = [x for pair in self.memory for x in pair]
        held += [x for x in vars(self).values() if torch.is_tensor(x) and x is not self.ends]
        return sum(x.nbytes for x in held)

    def holds(self, n: int, places: int) -> bool:
        """Whether n rows of so many places have room."""
        return n <= len(self.rows) and places <= self.places

    def fill(self, layers: list[DynamicLayer], mask: Tensor, position: Tensor, size: int) -> None:
        """Starts a rollout: each prompt's cache for its `size` rows. mask (prompts, P)."""
        prompts, seen = mask.shape
        n = prompts * size
        self.bias.fill_(-torch.inf)
        self.bias[:n, 0, 0, :seen].masked_fill_(mask.bool().repeat_interleave(size, 0), 0.0)
        self.position[:n].copy_(position.repeat_interleave(size, 0))
        for memory, old in zip(self.memory, layers, strict=True):
            for to, x in zip(memory, (old.keys, old.values), strict=True):
                to[:n, :, :seen].view(prompts, size, *x.shape[1:]).copy_(x[:, None])
                # An overflow of an earlier rollout would come back as 0 * nan, in every later one.
                to[:n, :, seen:].zero_()
        self.rows.copy_(torch.arange(len(self.rows), device=self.rows.device))
        self.open.fill_(True)
        self.slot.fill_(seen)
        self.column.zero_()
        self.tokens.fill_(self.pad_id)
        for table in (self.written, self.logprobs, self.entropies):
            table.zero_()

    def take(self, logits: Tensor, sampling: Sampling) -> None:
        """Draws the next token of the first len(logits) rows and writes it down."""
        n = len(logits)
        token, logprob, entropy = draw(logits, sampling, self.generator)
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

    def advance(self, sampling: Sampling, n: int, window: int) -> None:
        """One more token of the first n rows, looking at the first `window` places."""
        model = self.model()
        assert model is not None, "the caller holds it"
        self.bias[:n].index_fill_(3, self.slot, 0.0)
        self.position[:n].add_(1)
        layers = [
            SlotLayer(keys[:n, :, :window], values[:n, :, :window], self.slot)
            for keys, values in self.memory
        ]
        with reading_once(model):
            out = model(
                self.token[:n, None],
                attention_mask=self.bias[:n, :, :, :window],
                position_ids=self.position[:n],
                past_key_values=Cache(layers=layers),
                use_cache=True,
            )
        self.slot.add_(1)
        self.take(out.logits[:, -1], sampling)

    def compact(self, n: int, smaller: int, used: int) -> None:
        """Moves the open ones of the first n rows to the front, where `smaller` rows remain.

        Finished rows fill up the rest; what they go on writing is padding, in their own place.
        """
        index = self.open[:n].logical_not().long().argsort(stable=True)[:smaller]
        for keys, values in self.memory:
            for memory in (keys, values):
                memory[:smaller, :, :used] = memory[index, :, :used]
        for x in (self.rows, self.token, self.position, self.open, self.bias):
            x[:smaller] = x[index]
