"""Teacher forcing: what a policy thinks of completions that were sampled before."""

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rlnb.training.errors import BadInput
from rlnb.training.sampler import Rollout, Sampling


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


def teacher_forced_logits(model: PreTrainedModel, rollout: Rollout, rows: Tensor) -> Tensor:
    """Logits (len(rows), T', V) of the chosen rows' tokens; T' is their longest completion."""
    width = int(rollout.lengths[rows].max())
    ids = torch.cat([rollout.prompt_ids[rows], rollout.completion_ids[rows, :width]], 1)
    mask = torch.cat([rollout.prompt_mask[rows], rollout.completion_mask[rows, :width].long()], 1)
    first = int(mask.argmax(1).min())  # columns that are padding in every chosen row
    ids, mask = ids[:, first:], mask[:, first:]
    return model(
        ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(1) - 1).clamp(min=0),
        use_cache=False,
        logits_to_keep=width + 1,
    ).logits[:, :-1]


def _every(model: PreTrainedModel, rollout: Rollout, temperature: float, rows: Tensor) -> Tensor:
    """Log-probabilities (len(rows), T', V) of all tokens; T' as in `teacher_forced_logits`."""
    refuse_mismatch(rollout.sampling, temperature)
    logits = teacher_forced_logits(model, rollout, rows).float() / temperature
    return logits.log_softmax(-1)


def token_logprobs(
    model: PreTrainedModel,
    rollout: Rollout,
    *,
    temperature: float,
    rows: Tensor | None = None,
    entropy_gradient: bool = False,
) -> tuple[Tensor, Tensor]:
    """Teacher-forced log-probabilities and entropies, each (len(rows), T), in nats.

    T is the rollout's width whatever rows are chosen; masked positions are 0. The entropies carry a
    gradient only when asked to. Raises BadInput if the rollout was sampled at another temperature
    or from a truncated vocabulary.
    """
    if rows is None:
        rows = torch.arange(len(rollout.completion_ids), device=rollout.completion_ids.device)
    every = _every(model, rollout, temperature, rows)
    width = every.shape[1]
    mask = rollout.completion_mask[rows, :width]
    chosen = every.gather(2, rollout.completion_ids[rows, :width, None])[..., 0]
    with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
        entropies = torch.where(mask, -(every.exp() * every).sum(-1), 0.0)
    pad = (0, rollout.completion_ids.shape[1] - width)
    return (
        torch.nn.functional.pad(torch.where(mask, chosen, 0.0), pad),
        torch.nn.functional.pad(entropies, pad),
    )


@torch.no_grad()
def likeliest(
    model: PreTrainedModel, rollout: Rollout, k: int, *, temperature: float, rows: Tensor
) -> Tensor:
    """Ids (len(rows), T, k) of the likeliest tokens at each place, the likeliest first."""
    ids = _every(model, rollout, temperature, rows).topk(k).indices
    return torch.nn.functional.pad(ids, (0, 0, 0, rollout.completion_ids.shape[1] - ids.shape[1]))


def candidate_logprobs(
    model: PreTrainedModel, rollout: Rollout, *, temperature: float, rows: Tensor
) -> Tensor:
    """Teacher-forced log-probabilities (len(rows), T, K) of `rollout.candidate_ids`, in nats."""
    every = _every(model, rollout, temperature, rows)
    width = every.shape[1]
    chosen = every.gather(2, rollout.candidate_ids[rows, :width])
    chosen = torch.where(rollout.completion_mask[rows, :width, None], chosen, 0.0)
    return torch.nn.functional.pad(chosen, (0, 0, 0, rollout.completion_ids.shape[1] - width))
