"""Scoring tokens: from logits to the log-probability of each token that was written."""

from __future__ import annotations

import math

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake

__all__ = ["TOKEN_LOGPROBS", "token_logprobs"]

UNDERFLOW = (
    "log(softmax(x)) is -inf or nan once a logit lies far below the largest: "
    "log_softmax subtracts the largest first"
)


def token_logprobs(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """log pi(token): (B, T, V) logits and (B, T) token ids -> (B, T). logits[:, t] score
    tokens[:, t]."""
    return logits.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def _pick(scores: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return scores.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


@mistake(
    "you shifted by one: logits[:, t] already score tokens[:, t] here; the shift "
    "belongs where the model's output is cut"
)
def _shifted(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return token_logprobs(logits[:, :-1], tokens[:, 1:])


@mistake("you shifted the wrong way: logits[:, t + 1] have already seen tokens[:, t]")
def _shifted_back(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return token_logprobs(logits[:, 1:], tokens[:, :-1])


@mistake("these are probabilities: take log_softmax, not softmax")
def _probabilities(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return _pick(logits.softmax(-1), tokens)


@mistake(
    "these are raw logits: they become log-probabilities by subtracting logsumexp "
    "over the vocabulary"
)
def _unnormalised(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return _pick(logits, tokens)


@mistake(
    "you normalised over the tokens of the answer (dim 1); probabilities sum to 1 "
    "over the vocabulary, dim -1"
)
def _over_time(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return _pick(logits.log_softmax(1), tokens)


@mistake("this is -log p, the cross-entropy; the log-probability itself was asked for")
def _negated(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return -token_logprobs(logits, tokens)


@mistake("you scored the likeliest token, not the one that was written: gather with tokens")
def _likeliest(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return logits.log_softmax(-1).max(-1).values


@mistake("all V log-probabilities of each place came: gather the one of the token that was written")
def _not_gathered(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return logits.log_softmax(-1)


@mistake("these are bits, log base 2: the log-probability is in nats, the natural logarithm")
def _bits(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return token_logprobs(logits, tokens) / math.log(2)


@mistake("log base 10: the log-probability is in nats, the natural logarithm")
def _tens(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return token_logprobs(logits, tokens) / math.log(10)


@mistake("logits[:, tokens] picks every token at every place: gather along dim -1, one per place")
def _indexed(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return logits.log_softmax(-1)[:, :, tokens]


@mistake(
    "summed over the answer: one number per token was asked for, (B, T); the sum comes in the loss"
)
def _summed(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return token_logprobs(logits, tokens).sum(-1)


@mistake(UNDERFLOW)
def _log_of_softmax(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return _pick(logits.softmax(-1).log(), tokens)


TOKEN_LOGPROBS = Exercise(
    name="token_logprobs",
    reference=token_logprobs,
    probes=(
        Probe("one token", {"logits": [[[1.0, 2.0, 0.0]]], "tokens": torch.tensor([[0]])}),
        Probe(
            "two tokens", {"logits": [[[1.0, 2.0], [0.5, -1.0]]], "tokens": torch.tensor([[0, 1]])}
        ),
        Probe(
            "two rows",
            {
                "logits": [
                    [[0.3, -0.5, 1.1, 0.0], [2.0, 0.1, -0.4, 0.7], [0.2, 0.9, -1.3, 0.4]],
                    [[-0.6, 0.8, 0.5, 1.5], [0.0, -2.0, 1.2, 0.6], [1.4, 0.3, 0.3, -0.9]],
                ],
                "tokens": torch.tensor([[2, 0, 3], [1, 1, 0]]),
            },
        ),
        Probe(
            "a logit of 1000",
            {"logits": [[[0.0, 1000.0], [1.0, 0.0]]], "tokens": torch.tensor([[0, 1]])},
            catches=UNDERFLOW,
        ),
    ),
    mistakes=(
        _shifted,
        _shifted_back,
        _probabilities,
        _unnormalised,
        _over_time,
        _negated,
        _likeliest,
        _not_gathered,
        _bits,
        _tens,
        _indexed,
        _summed,
        _log_of_softmax,
    ),
    differentiate=("logits",),
    hint="log_softmax over the vocabulary (dim -1), then gather the entry of each token. gather "
    "wants an index with as many dimensions as its input: tokens.unsqueeze(-1).",
)
