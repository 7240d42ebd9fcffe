"""The board "grpo": from the group's baseline to GRPO's loss, its two biases, and Dr. GRPO's loss.

An answer's number has shape (G, 1), so that it meets its tokens (G, T) by itself.
"""

from __future__ import annotations

from functools import cache

import torch

from rlnb.classroom.interview.board_text import Line, Numbers
from rlnb.objective import Objective
from rlnb.objective.advantages import group_center, group_zscore
from rlnb.objective.batch import Batch, Totals
from rlnb.objective.ratios import token
from rlnb.objective.surrogates import clip
from rlnb.objective.terms import k3
from rlnb.objective.weights import constant_length, sequence_mean
from rlnb.toys import running_batch, running_group

__all__ = ["GRPO", "group_cases"]

TINY = 1e-6

GRPO = (
    Line("D", "an answer's reward over the group's baseline", ("R", "mean"), "R - mean(R)",
         (("mean(R) - R", "the sign: better than the group is to become likelier"),
          ("R", "the baseline is missing")), number=True),
    Line("s", "the group's std, from all G answers", ("D", "mean"), "mean(D ** 2) ** 0.5",
         (("mean(D ** 2)", "that is the variance"),
          ("mean(abs(D))", "the mean distance; the std squares first")), number=True),
    Line("A", "GRPO's advantage; 0 where all rewards are equal", ("D", "s", "tiny"),
         "D / (s + tiny)",
         (("D / s", "0 / 0 where all rewards are equal: tiny is for that group"),
          ("D", "the std is missing: this is Dr. GRPO's advantage"),
          ("D * (s + tiny)", "the std divides")), number=True),
    Line("surrogate", "a token's objective, with PPO's clip", ("ratio", "A", "eps"),
         "minimum(ratio * A, clamp(ratio, 1 - eps, 1 + eps) * A)",
         (("ratio * A", "the clip is missing"),
          ("clamp(ratio, 1 - eps, 1 + eps) * A",
           "the clip alone cannot pull back a token that went the wrong way"),
          ("maximum(ratio * A, clamp(ratio, 1 - eps, 1 + eps) * A)",
           "the larger of the two: the clip would stop the wrong side"))),
    Line("kl", "k3: a token's estimate of the KL to the reference", ("logp", "ref"),
         "exp(ref - logp) - (ref - logp) - 1",
         (("exp(logp - ref) - (logp - ref) - 1",
           "upside down: answers come from the policy, so ref / policy is what k3 holds"),
          ("logp - ref", "that is k1: as a loss it pulls nowhere on average"))),
    Line("answer", "an answer's objective, from its tokens', with the KL",
         ("surrogate", "kl", "beta", "n", "tokens"), "tokens(surrogate - beta * kl) / n",
         (("tokens(surrogate - beta * kl)", "that is the sum over its tokens"),
          ("tokens(surrogate + beta * kl) / n", "the KL's sign: it is a penalty"),
          ("tokens(surrogate) / n", "the KL is missing"))),
    Line("grpo", "GRPO's loss, minimised", ("answer", "mean"), "-mean(answer)",
         (("mean(answer)", "the sign: an objective is maximised, a loss minimised"),)),
    Line("by_std", "first bias: what the std multiplies a prompt's push by", ("s", "tiny"),
         "1 / (s + tiny)",
         (("s + tiny", "upside down: where nearly all answers agree the push grows"),),
         number=True),
    Line("by_length", "second bias: what GRPO's two means multiply a token's surrogate by",
         ("n", "G"), "1 / (G * n)",
         (("1 / n", "the mean over the G answers is missing"),
          ("G * n", "upside down: a token of a long answer counts less")), number=True),
    Line("plain", "Dr. GRPO's objective of a token: no std", ("ratio", "D", "eps"),
         "minimum(ratio * D, clamp(ratio, 1 - eps, 1 + eps) * D)",
         (("ratio * D", "the clip stays"),)),
    Line("drgrpo", "Dr. GRPO's loss, without a KL",
         ("plain", "n", "L", "tokens", "mean"), "-mean(tokens(plain)) / L",
         (("-mean(tokens(plain) / n)", "the answer's own length still divides"),
          ("-mean(tokens(plain)) / mean(n)",
           "one mean over the tokens: it divides by this batch's lengths, L is always the same"),
          ("mean(tokens(plain)) / L", "the sign: an objective is maximised, a loss minimised"),
          ("-mean(tokens(plain))", "right but for the constant"))),
)  # fmt: skip


@cache
def group_cases() -> tuple[Numbers, ...]:
    """Two right of four; rewards between 0 and 1 and other lengths; a group of equal rewards."""
    first, both = running_group(), running_batch()
    other = both.replace(
        logprobs=both.logprobs.detach()[4:].clone().requires_grad_(),
        completion_mask=both.completion_mask[4:],
        rewards=torch.tensor([1.0, 0.0, 0.2, 0.5], dtype=torch.float64),
        old_logprobs=both.old_logprobs[4:],
        ref_logprobs=both.ref_logprobs[4:],
    )
    equal = first.replace(rewards=torch.ones_like(first.rewards))
    return (
        _numbers(first, 0.2, 0.04, 8),
        _numbers(other, 0.1, 0.1, 16),
        _numbers(equal, 0.2, 0.04, 8),
    )


def _numbers(batch: Batch, epsilon: float, beta: float, longest: int) -> Numbers:
    """One group's values, the right ones by the package's own parts."""
    on, size = batch.mask, len(batch.rewards)

    def tokens(x: torch.Tensor) -> torch.Tensor:
        return torch.where(on, x, 0.0).sum(1, keepdim=True)

    def mean(x: torch.Tensor) -> torch.Tensor:
        if x.shape != (size, 1):
            raise ValueError("mean is over answers, a number each; tokens(x) makes one of tokens")
        return x.mean()

    rewards = torch.zeros_like(batch.logprobs.detach())
    rewards[:, 0] = batch.rewards
    centred = group_center()(batch, rewards)
    scaled = group_zscore(eps=TINY)(batch, rewards)
    log_ratio = token()(batch, scaled)
    grpo = Objective(group_zscore(eps=TINY), clip(epsilon), sequence_mean(), terms=k3(beta))
    drgrpo = Objective(group_center(), clip(epsilon), constant_length(longest))
    std = batch.rewards.std(correction=0)
    surrogate, kl = clip(epsilon)(batch, scaled, log_ratio), k3(beta)(batch)
    n = batch.lengths[:, None].to(batch.rewards.dtype)
    given = {
        "R": batch.rewards[:, None], "n": n, "G": size, "L": longest, "ratio": log_ratio.exp(),
        "logp": batch.logprobs, "ref": batch.ref_logprobs, "tiny": TINY, "eps": epsilon,
        "beta": beta, "tokens": tokens, "mean": mean,
    }  # fmt: skip
    right = {
        "D": centred[:, :1],
        "s": std,
        "A": scaled[:, :1],
        "surrogate": surrogate,
        "kl": kl,
        "answer": tokens(surrogate - beta * kl) / n,
        "grpo": grpo(batch).loss,
        "by_std": 1 / (std + TINY),
        "by_length": sequence_mean()(batch, Totals.of_groups(batch))[:, :1],
        "plain": clip(epsilon)(batch, centred, log_ratio),
        "drgrpo": drgrpo(batch).loss,
    }
    return Numbers(given, right, (batch.logprobs,), on)
