"""The head of a large vocabulary, a slice of places at a time: the logits are never all there.

With 151,936 tokens in the vocabulary the logits of 10,000 places take 6 GB in float32, and
autograd's way through log_softmax wants them several times. Here they are computed for some places,
read, and thrown away; the backward pass computes them again, and adds each slice's part of the
head's gradient to one tensor. (Checkpointing each slice would not do: autograd then holds several
gradients of the head's size at once, and they are larger than a slice.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["SlicedHead", "entropy", "log_softmax", "plain_head"]


@torch.no_grad()
def plain_head(model: PreTrainedModel) -> bool:
    """True where the logits are one matrix times the last hidden state, and nothing else.

    Asked of the model itself, with the head's output replaced by its input, because some models do
    more: Gemma 2 squashes its logits, Granite divides them, and a head applied by hand would
    silently leave that out.
    """
    found = getattr(model, "_rlnb_plain_head", None)
    if found is None:
        head = model.get_output_embeddings()
        found = type(head) is nn.Linear and head.bias is None
        ids = torch.arange(1, 9, device=model.device)[None] % len(head.weight)
        hidden = model.base_model(ids, use_cache=False).last_hidden_state
        hook = head.register_forward_hook(lambda module, inputs, output: inputs[0])
        try:
            out = model(ids, use_cache=False).logits
        finally:
            hook.remove()
        same = out.shape == hidden.shape and torch.allclose(out.to(hidden), hidden, rtol=1e-5)
        model._rlnb_plain_head = found = found and same
    return found


def log_softmax(logits: Tensor, temperature: float) -> Tensor:
    """log softmax(logits / temperature), in float32 or what is finer."""
    finer = torch.promote_types(logits.dtype, torch.float32)
    return (logits.to(finer) / temperature).log_softmax(-1)


def entropy(logprobs: Tensor) -> Tensor:
    """H = -sum_v p_v log p_v over the last axis, in nats."""
    return -(logprobs.exp() * logprobs).sum(-1)


class SlicedHead(torch.autograd.Function):
    """log softmax(W h / temperature) at chosen ids, and its entropy, `size` places at a time.

    apply(hidden (n, H), W (V, H), ids (n, K), temperature, size) -> (n, K), (n,). With incoming
    gradients a (n, K) and b (n,), the gradient of the logits z / temperature is

        sum_k a_k (onehot(ids_k) - p) - b p (log p + H)

    Products are taken in autocast's type where it is on; sums over places are in float32.
    """

    @staticmethod
    def forward(ctx, hidden, weight, ids, temperature, size):
        ctx.set_materialize_grads(False)  # an entropy that is only looked at costs nothing
        kind = hidden.device.type
        on = torch.is_autocast_enabled(kind)
        ctx.dtype = torch.get_autocast_dtype(kind) if on else weight.dtype
        ctx.temperature, ctx.size = temperature, size
        matrix, chosen, entropies = weight.to(ctx.dtype), [], []
        with torch.autocast(kind, enabled=False):
            for h, tokens in zip(hidden.split(size), ids.split(size), strict=True):
                every = log_softmax(h.to(ctx.dtype) @ matrix.T, temperature)
                chosen.append(every.gather(-1, tokens))
                entropies.append(entropy(every))
        chosen, entropies = torch.cat(chosen), torch.cat(entropies)
        ctx.save_for_backward(hidden, weight, ids, entropies)
        return chosen, entropies

    @staticmethod
    @once_differentiable
    def backward(ctx, from_chosen, from_entropy):
        hidden, weight, ids, entropies = ctx.saved_tensors
        matrix, parts = weight.to(ctx.dtype), []
        whole = torch.zeros_like(weight, dtype=entropies.dtype) if ctx.needs_input_grad[1] else None
        slices = [
            [None] * -(-len(hidden) // ctx.size) if x is None else x.split(ctx.size)
            for x in (hidden, ids, entropies, from_chosen, from_entropy)
        ]
        with torch.autocast(hidden.device.type, enabled=False):
            for h, tokens, total, a, b in zip(*slices, strict=True):
                h = h.to(ctx.dtype)
                every = log_softmax(h @ matrix.T, ctx.temperature)
                p, factor = every.exp(), 0.0
                if a is not None:
                    factor = -a.sum(-1, keepdim=True)
                if b is not None:
                    factor = factor - b[:, None] * (every + total[:, None])
                slope = p.mul_(factor)
                if a is not None:
                    slope.scatter_add_(-1, tokens, a)
                slope = slope.div_(ctx.temperature).to(ctx.dtype)
                parts.append(slope @ matrix)
                if whole is not None and ctx.dtype == whole.dtype:
                    whole.addmm_(slope.T, h)
                elif whole is not None:
                    whole += slope.T @ h
        whole = whole if whole is None else whole.to(weight.dtype)
        return torch.cat(parts).to(hidden.dtype), whole, None, None, None
