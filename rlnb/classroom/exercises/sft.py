"""Supervised fine-tuning as it is shipped: raw logits, a shift, a mask; and a silent bug in it."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake
from rlnb.classroom.checking.silent_bug import SilentBug

__all__ = ["SFT_LOSS", "SILENT_BUG_ONE_SCALAR_LOSS", "mean_nll", "sft_loss"]


def sft_loss(logits: torch.Tensor, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of -log pi(token) over the tokens with mask 1; logits[:, t] predict tokens[:, t + 1].

    logits (B, T, V), tokens (B, T), mask (B, T), never 1 in the first column.
    """
    return _mean(_nll(logits, tokens), mask[:, 1:])


def _nll(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """(B, T - 1): what each token but the first costs."""
    scores = logits[:, :-1].log_softmax(-1)
    return -scores.gather(-1, tokens[:, 1:, None]).squeeze(-1)


def _mean(nll: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.where(mask.bool(), nll, 0.0).sum() / mask.sum()


@mistake("you scored tokens[:, t] with logits[:, t]: those have seen it already and predict t + 1")
def _unshifted(logits, tokens, mask):
    scores = logits.log_softmax(-1).gather(-1, tokens[..., None]).squeeze(-1)
    return _mean(-scores, mask)


@mistake("you shifted the wrong way: logits[:, t] predict tokens[:, t + 1], not tokens[:, t - 1]")
def _shifted_back(logits, tokens, mask):
    scores = logits[:, 1:].log_softmax(-1).gather(-1, tokens[:, :-1, None]).squeeze(-1)
    return _mean(-scores, mask[:, 1:])


@mistake("the mask was not shifted along with the tokens: token t + 1 has mask[:, t + 1]")
def _mask_unshifted(logits, tokens, mask):
    return _mean(_nll(logits, tokens), mask[:, :-1])


@mistake("prompt and padding are trained on too: only tokens with mask 1 count")
def _no_mask(logits, tokens, mask):
    return _nll(logits, tokens).mean()


@mistake("you divided by all places: a longer padding would shrink the loss; divide by mask.sum()")
def _all_places(logits, tokens, mask):
    return torch.where(mask[:, 1:].bool(), _nll(logits, tokens), 0.0).mean()


@mistake("this is each answer's mean, then their mean: here every token counts alike, not answers")
def _mean_of_means(logits, tokens, mask):
    kept = torch.where(mask[:, 1:].bool(), _nll(logits, tokens), 0.0)
    return (kept.sum(1) / mask[:, 1:].sum(1)).mean()


@mistake("this is the sum: divide by the number of tokens with mask 1")
def _summed(logits, tokens, mask):
    return torch.where(mask[:, 1:].bool(), _nll(logits, tokens), 0.0).sum()


@mistake("the minus is missing: a loss is to be made small, and log pi is to be made large")
def _no_minus(logits, tokens, mask):
    return -sft_loss(logits, tokens, mask)


@mistake("you took 1 minus the probability, not minus its logarithm")
def _one_minus(logits, tokens, mask):
    return _mean(1 - (-_nll(logits, tokens)).exp(), mask[:, 1:])


@mistake("log_softmax ran over the places (dim 1); probabilities sum to 1 over the vocabulary")
def _over_places(logits, tokens, mask):
    scores = logits[:, :-1].log_softmax(1).gather(-1, tokens[:, 1:, None]).squeeze(-1)
    return _mean(-scores, mask[:, 1:])


@mistake("the probabilities went through a softmax again: F.cross_entropy wants the raw logits")
def _twice(logits, tokens, mask):
    return sft_loss(logits.softmax(-1), tokens, mask)


LOGITS = [
    [[0.3, -0.5, 1.1], [2.0, 0.1, -0.4], [0.2, 0.9, -1.3], [-0.7, 0.4, 0.6]],
    [[-0.6, 0.8, 0.5], [0.0, -2.0, 1.2], [1.4, 0.3, -0.9], [0.5, 1.5, 0.1]],
]

SFT_LOSS = Exercise(
    name="sft_loss",
    reference=sft_loss,
    probes=(
        Probe(
            "a prompt token and two answer tokens",
            {
                "logits": [LOGITS[0][:3]],
                "tokens": torch.tensor([[0, 2, 1]]),
                "mask": torch.tensor([[0, 1, 1]]),
            },
        ),
        Probe(
            "two rows, a longer prompt, padding",
            {
                "logits": LOGITS,
                "tokens": torch.tensor([[2, 0, 1, 1], [1, 2, 0, 0]]),
                "mask": torch.tensor([[0, 1, 1, 1], [0, 0, 1, 0]]),
            },
        ),
    ),
    mistakes=(
        _unshifted,
        _shifted_back,
        _mask_unshifted,
        _no_mask,
        _all_places,
        _mean_of_means,
        _summed,
        _no_minus,
        _one_minus,
        _over_places,
        _twice,
    ),
    differentiate=("logits",),
    hint="Cut the last place of the logits, the first of tokens and mask. Then log_softmax over "
    "the vocabulary, gather, minus, where the mask is 1, sum, divide by how many.",
)


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def mean_nll(logits, tokens, mask):
    """Mean of -log pi over the real tokens; logits[:, t] score
    tokens[:, t]. Shapes (B, T, V), (B, T), (B, T)."""
    pi = logits.softmax(-1)
    nll = F.cross_entropy(pi.flatten(0, 1), tokens.flatten(),
                          reduction="none").view(tokens.shape)
    return torch.where(mask.bool(), nll, 0.0).sum() / mask.sum()
# fmt: on


def _right(logits, tokens, mask):
    nll = F.cross_entropy(logits.flatten(0, 1), tokens.flatten(), reduction="none")
    return torch.where(mask.bool(), nll.view(tokens.shape), 0.0).sum() / mask.sum()


SILENT_BUG_ONE_SCALAR_LOSS = SilentBug(
    name="silent_bug_one_scalar_loss",
    right=_right,
    broken=mean_nll,
    story="F.cross_entropy takes logits; here it got probabilities and put them through a softmax "
    "again. Equal logits still give log V, and training still helps, but the loss cannot near 0.",
    hint="Equal logits show nothing. What must the loss be when the model is certain, and right? "
    "What must its gradient on the logits be?",
)
