"""Teacher forcing: what a policy thinks of completions that were sampled before.

Where the logits would be many (`CHUNK`), the head is applied to a slice of places at a time: see
`sliced_head`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlnb.training.errors import BadInput
from rlnb.training.sampling.sampler import Rollout, Sampling
from rlnb.training.sampling.sliced_head import SlicedHead, entropy, log_softmax, plain_head

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = [
    "CHUNK",
    "additive",
    "candidate_logprobs",
    "likeliest",
    "refuse_mismatch",
    "takes_bias",
    "teacher_forced_logits",
    "token_logprobs",
]

CHUNK = 2**26  # logits held at once, 256 MB in float32; fewer in all, and nothing is sliced


def refuse_mismatch(drawn: Sampling, temperature: float) -> None:
    """Raises BadInput unless tokens were drawn from the whole softmax at this temperature.

    The importance ratio compares two probabilities of one token. If one of them is taken at
    another temperature, or from a truncated vocabulary, the ratio is not 1 on-policy.
    """
    if drawn.temperature != temperature:
        raise BadInput(
            f"temperature: the rollout was sampled at {drawn.temperature}, scoring asked for "
            f"{temperature}; score at the temperature of the sampler"
        )
    if temperature == 0:
        raise BadInput("temperature: a greedy rollout has no ratio; sample above 0 to train")
    if drawn.top_k or drawn.top_p < 1.0:
        raise BadInput(
            f"truncation: the rollout was sampled with top_k={drawn.top_k}, top_p={drawn.top_p}, "
            "scoring uses the whole vocabulary; sample with top_k=0 and top_p=1 to train"
        )


def takes_bias(model: PreTrainedModel) -> bool:
    """Whether the model takes `additive` in place of a mask: where the decoder has its bias."""
    from rlnb.training.sampling.graph_decoder import fits  # here: it brings transformers

    return fits(model)


def additive(model: PreTrainedModel, mask: Tensor) -> Tensor:
    """What is added to the attention's logits, (rows, 1, L, L), for padding masks (rows, L).

    Made once, as in the decoder: given a mask, every layer would make a float tensor of its own and
    keep it for the backward pass. A place of padding looks at itself, so that no row is all -inf.
    """
    kind = mask.device.type
    autocast = torch.is_autocast_enabled(kind)
    dtype = torch.get_autocast_dtype(kind) if autocast else model.dtype
    length = mask.shape[1]
    own = torch.eye(length, dtype=torch.bool, device=mask.device)
    seen = mask.bool()[:, None, None] & torch.ones_like(own).tril() | own
    bias = torch.zeros(seen.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill_(~seen, -torch.inf)


def _inputs(
    model: PreTrainedModel, rollout: Rollout, rows: Tensor
) -> tuple[int, dict[str, Tensor]]:
    """T', the longest completion of the rows, and what the model takes for these."""
    width = int(rollout.lengths[rows].max())
    ids = torch.cat([rollout.prompt_ids[rows], rollout.completion_ids[rows, :width]], 1)
    mask = torch.cat([rollout.prompt_mask[rows], rollout.completion_mask[rows, :width].long()], 1)
    first = int(mask.argmax(1).min())  # columns that are padding in every chosen row
    ids, mask = ids[:, first:], mask[:, first:]
    position = (mask.cumsum(1) - 1).clamp(min=0)
    if takes_bias(model):
        mask = additive(model, mask)
    return width, {"input_ids": ids, "attention_mask": mask, "position_ids": position}


def teacher_forced_logits(model: PreTrainedModel, rollout: Rollout, rows: Tensor) -> Tensor:
    """Logits (len(rows), T', V) of the chosen rows' tokens; T' is their longest completion."""
    width, inputs = _inputs(model, rollout, rows)
    return model(**inputs, use_cache=False, logits_to_keep=width + 1).logits[:, :-1]


def _hidden(model: PreTrainedModel, rollout: Rollout, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Last hidden states (n, H) at the n places that the rows wrote, and their mask (., T')."""
    width, inputs = _inputs(model, rollout, rows)
    hidden = model.base_model(**inputs, use_cache=False).last_hidden_state
    mask = rollout.completion_mask[rows, :width]
    return hidden[:, -width - 1 : -1][mask], mask


def _is_sliced(model: PreTrainedModel, rollout: Rollout, rows: Tensor, chunk: int) -> bool:
    """Whether the logits are more than `chunk`, and their head can be applied by hand."""
    places = len(rows) * int(rollout.lengths[rows].max())
    many = places * len(model.get_output_embeddings().weight) > chunk
    return many and plain_head(model)


def _size(model: PreTrainedModel, chunk: int) -> int:
    return max(1, chunk // len(model.get_output_embeddings().weight))


def _spread(values: Tensor, mask: Tensor) -> Tensor:
    """(n, ...) as (rows, T', ...): one after the other where the mask is True."""
    empty = values.new_zeros(*mask.shape, *values.shape[1:])
    return empty.index_put(mask.nonzero(as_tuple=True), values)


def _placed(values: Tensor, mask: Tensor, width: int) -> Tensor:
    """(rows, T', ...) as (rows, T, ...), T = width, with 0 where the mask is False."""
    more = values.dim() - mask.dim()
    values = torch.where(mask.view(*mask.shape, *[1] * more), values, 0)
    return pad(values, (0, 0) * more + (0, width - mask.shape[1]))


def _chosen(
    model: PreTrainedModel,
    rollout: Rollout,
    temperature: float,
    rows: Tensor,
    ids: Tensor,
    chunk: int,
    entropy_gradient: bool,
) -> tuple[Tensor, Tensor]:
    """Log-probabilities of `ids` (len(rows), T, K), and entropies (len(rows), T)."""
    refuse_mismatch(rollout.sampling, temperature)
    width = ids.shape[1]
    if _is_sliced(model, rollout, rows, chunk):
        hidden, mask = _hidden(model, rollout, rows)
        weight, ids = model.get_output_embeddings().weight, ids[:, : mask.shape[1]][mask]
        chosen, entropies = SlicedHead.apply(hidden, weight, ids, temperature, _size(model, chunk))
        entropies = entropies if entropy_gradient else entropies.detach()
        chosen, entropies = _spread(chosen, mask), _spread(entropies, mask)
    else:
        every = log_softmax(teacher_forced_logits(model, rollout, rows), temperature)
        mask = rollout.completion_mask[rows, : every.shape[1]]
        chosen = every.gather(-1, ids[:, : every.shape[1]])
        with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
            entropies = entropy(every)
    return _placed(chosen, mask, width), _placed(entropies, mask, width)


def token_logprobs(
    model: PreTrainedModel,
    rollout: Rollout,
    *,
    temperature: float,
    rows: Tensor | None = None,
    entropy_gradient: bool = False,
    chunk: int = CHUNK,
) -> tuple[Tensor, Tensor]:
    """Teacher-forced log-probabilities and entropies, each (len(rows), T), in nats.

    T is the rollout's width whatever rows are chosen; masked positions are 0. The entropies carry a
    gradient only when asked to. chunk: how many logits may be held at once; it changes memory and
    speed, not the result. Raises BadInput if the rollout was sampled at another temperature or from
    a truncated vocabulary.
    """
    if rows is None:
        rows = torch.arange(len(rollout.completion_ids), device=rollout.completion_ids.device)
    ids = rollout.completion_ids[rows][..., None]
    chosen, entropies = _chosen(model, rollout, temperature, rows, ids, chunk, entropy_gradient)
    return chosen[..., 0], entropies


def candidate_logprobs(
    model: PreTrainedModel, rollout: Rollout, *, temperature: float, rows: Tensor,
    chunk: int = CHUNK,
) -> Tensor:  # fmt: skip
    """Teacher-forced log-probabilities (len(rows), T, K) of `rollout.candidate_ids`, in nats."""
    ids = rollout.candidate_ids[rows]
    return _chosen(model, rollout, temperature, rows, ids, chunk, False)[0]


@torch.no_grad()
def likeliest(
    model: PreTrainedModel, rollout: Rollout, k: int, *, temperature: float, rows: Tensor,
    chunk: int = CHUNK,
) -> Tensor:  # fmt: skip
    """Ids (len(rows), T, k) of the likeliest tokens at each place, the likeliest first."""
    refuse_mismatch(rollout.sampling, temperature)
    width = rollout.completion_ids.shape[1]
    if _is_sliced(model, rollout, rows, chunk):
        hidden, mask = _hidden(model, rollout, rows)
        head, parts = model.get_output_embeddings(), hidden.split(_size(model, chunk))
        every = (log_softmax(head(part), temperature) for part in parts)
        ids = _spread(torch.cat([x.topk(k).indices for x in every]), mask)
    else:
        every = log_softmax(teacher_forced_logits(model, rollout, rows), temperature)
        mask = rollout.completion_mask[rows, : every.shape[1]]
        ids = every.topk(k).indices
    return _placed(ids, mask, width)
