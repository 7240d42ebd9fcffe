"""Ratios, surrogates and penalties, each with the bugs it was written with."""

from __future__ import annotations

import torch

from rlnb.classroom.breaking.bench import bench

__all__ = ["BENCHES"]

HABIT = "a habit of learners"


def token_logprobs(logits, tokens, temperature):
    """Log-probabilities of tokens[1:] under what sampled them. logits (T, V), tokens (T,)"""
    scores = logits[:-1] / temperature
    return scores.log_softmax(-1).gather(-1, tokens[1:, None])[:, 0]


def clipped_surrogate(ratio, advantages, epsilon):
    """PPO's term, to be maximised: min(ratio A, clip(ratio, 1 - epsilon, 1 + epsilon) A)."""
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
    return torch.minimum(ratio * advantages, clipped * advantages)


def sequence_ratio(logprobs, old_logprobs, mask):
    """GSPO: the geometric mean of an answer's token ratios. (B, T) -> (B,)"""
    gap = torch.where(mask, logprobs - old_logprobs.detach(), 0.0)
    return (gap.sum(1) / mask.sum(1)).exp()


def cispo(logprobs, old_logprobs, advantages, cap):
    """CISPO's term, to be maximised: sg[min(ratio, cap)] A log pi, per token."""
    ratio = (logprobs - old_logprobs).exp()
    weight = ratio.clamp(max=cap).detach()
    return weight * advantages * logprobs


def clip_fraction(ratio, advantages, mask, epsilon):
    """The share of real tokens that PPO's min silences."""
    silent = ((advantages > 0) & (ratio > 1 + epsilon)) | ((advantages < 0) & (ratio < 1 - epsilon))
    return (silent & mask).sum() / mask.sum()


def k3(logprobs, ref_logprobs):
    """The estimate of KL(pi || ref) at a sampled token: ref/pi - 1 - log(ref/pi)."""
    d = ref_logprobs - logprobs
    return torch.expm1(d) - d


def mean_entropy(logits, mask):
    """The mean over real tokens of the entropy of the next token, in nats. (B, T, V) -> scalar"""
    logp = logits.log_softmax(-1)
    entropy = -(logp.exp() * logp).sum(-1)
    return torch.where(mask, entropy, 0.0).sum() / mask.sum()


def dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta):
    """DPO: -log sigmoid(beta ((chosen - ref) - (rejected - ref))), of summed log-probs. (B,)"""
    margin = (chosen - ref_chosen) - (rejected - ref_rejected)
    return -torch.nn.functional.logsigmoid(beta * margin)


BENCHES = (
    bench(
        token_logprobs,
        (
            "scores at temperature 1 what was sampled at another",
            "reasoning-from-scratch, and the RLHF book's configurations",
            "logits[:-1] / temperature",
            "logits[:-1]",
        ),
        ("multiplies by the temperature", HABIT, "/ temperature", "* temperature"),
        (
            "off by one: a position scores the token it has just read",
            HABIT,
            "tokens[1:, None]",
            "tokens[:-1, None]",
        ),
        ("normalises over positions", HABIT, "log_softmax(-1)", "log_softmax(0)"),
        ("probabilities, no logs", HABIT, "log_softmax(-1)", "softmax(-1)"),
    ),
    bench(
        clipped_surrogate,
        (
            "the larger of the two where A < 0: just the wrong side goes silent",
            "reasoning-from-scratch, chapter 7, until its PR #240",
            "return torch.minimum(ratio * advantages, clipped * advantages)",
            "low = torch.minimum(ratio * advantages, clipped * advantages)\n"
            "    high = torch.maximum(ratio * advantages, clipped * advantages)\n"
            "    return torch.where(advantages >= 0, low, high)",
        ),
        (
            "the clip without the min: a token that went the wrong way is silent for ever",
            "the Hugging Face course's worked case, 0.4 to 0.8",
            "torch.minimum(ratio * advantages, clipped * advantages)",
            "clipped * advantages",
        ),
        (
            "the min of the ratios, then times A",
            HABIT,
            "torch.minimum(ratio * advantages, clipped * advantages)",
            "torch.minimum(ratio, clipped) * advantages",
        ),
        (
            "no lower edge: bad tokens fall without end",
            "CISPO's one-sided clamp, carried over",
            "ratio.clamp(1 - epsilon, 1 + epsilon)",
            "ratio.clamp(max=1 + epsilon)",
        ),
        (
            "a band that is even in the log",
            HABIT,
            "ratio.clamp(1 - epsilon, 1 + epsilon)",
            "ratio.clamp(1 / (1 + epsilon), 1 + epsilon)",
        ),
    ),
    bench(
        sequence_ratio,
        (
            "the product of the ratios: the sum is not divided by the length",
            "reasoning-from-scratch #243, hands-on-modern-rl #75",
            "(gap.sum(1) / mask.sum(1))",
            "gap.sum(1)",
        ),
        ("the mean over the padded width", HABIT, "(gap.sum(1) / mask.sum(1))", "gap.mean(1)"),
        (
            "NaN under the mask gets through: 0 times NaN",
            "multiplying by the mask in place of choosing",
            "torch.where(mask, logprobs - old_logprobs.detach(), 0.0)",
            "(logprobs - old_logprobs.detach()) * mask",
        ),
        (
            "the old policy gets a gradient too",
            "a detach forgotten where old and new are one pass",
            "old_logprobs.detach()",
            "old_logprobs",
        ),
        (
            "the plain mean of the token ratios",
            HABIT,
            "(gap.sum(1) / mask.sum(1)).exp()",
            "torch.where(mask, gap.exp(), 0.0).sum(1) / mask.sum(1)",
        ),
    ),
    bench(
        cispo,
        (
            "the weight has a gradient of its own",
            HABIT,
            "ratio.clamp(max=cap).detach()",
            "ratio.clamp(max=cap)",
        ),
        (
            "the cap is read as an edge above 1",
            "TRL and verl mean different things by epsilon_high",
            "ratio.clamp(max=cap)",
            "ratio.clamp(max=1 + cap)",
        ),
        (
            "a lower edge that the method does not have",
            "verl's band around 1",
            "ratio.clamp(max=cap)",
            "ratio.clamp(min=2 - cap, max=cap)",
        ),
        (
            "capped tokens drop out, as under PPO's clip",
            "the mistake CISPO was made against",
            "return weight * advantages * logprobs",
            "return torch.where(ratio < cap, weight, 0.0) * advantages * logprobs",
        ),
    ),
    bench(
        clip_fraction,
        (
            "counts every token outside the band, those that still learn too",
            "a logged clip fraction of |ratio - 1| > epsilon",
            "((advantages > 0) & (ratio > 1 + epsilon)) | "
            "((advantages < 0) & (ratio < 1 - epsilon))",
            "(ratio - 1).abs() > epsilon",
        ),
        ("padding counts as tokens", HABIT, "/ mask.sum()", "/ mask.numel()"),
        ("padding is counted as silent", HABIT, "(silent & mask).sum()", "silent.sum()"),
        (
            "the two sides exchanged",
            "the quadrants, from memory",
            "((advantages > 0) & (ratio > 1 + epsilon)) | "
            "((advantages < 0) & (ratio < 1 - epsilon))",
            "((advantages < 0) & (ratio > 1 + epsilon)) | "
            "((advantages > 0) & (ratio < 1 - epsilon))",
        ),
    ),
    bench(
        k3,
        (
            "the log-ratio upside down: the other direction's estimate",
            HABIT,
            "ref_logprobs - logprobs",
            "logprobs - ref_logprobs",
        ),
        (
            "the mean log-ratio as a penalty: on its own samples no pull at all",
            "reasoning-from-scratch, the bonus script with KL",
            "torch.expm1(d) - d",
            "-d",
        ),
        ("k2 under k3's name", HABIT, "torch.expm1(d) - d", "d.square() / 2"),
        ("forgets the 1", HABIT, "torch.expm1(d) - d", "torch.exp(d) - d"),
        (
            "exp(d) - 1 - d: in float32 nothing is left of a small one",
            "TRL's own line, exp(d) - d - 1",
            "torch.expm1(d) - d",
            "torch.exp(d) - 1 - d",
        ),
        (
            "a softmax over the tokens of the answer, and the KL of that",
            "the Hugging Face course, chapter 12",
            "torch.expm1(d) - d",
            "torch.nn.functional.kl_div(\n"
            '        logprobs.log_softmax(-1), ref_logprobs.softmax(-1), reduction="none")',
        ),
    ),
    bench(
        mean_entropy,
        (
            "divides by the number of tokens twice",
            "nano-aha-moment's logged entropy",
            ".sum() / mask.sum()",
            ".sum() / mask.sum() / mask.sum()",
        ),
        ("padding counts as tokens", HABIT, ".sum() / mask.sum()", ".mean()"),
        (
            "the surprise of the likeliest token",
            "minus log-prob, taken for an entropy",
            "-(logp.exp() * logp).sum(-1)",
            "-logp.max(-1).values",
        ),
        ("bits", HABIT, "-(logp.exp() * logp).sum(-1)", "-(logp.exp() * logp).sum(-1) / 0.6931"),
        ("the wrong sign", HABIT, "-(logp.exp() * logp)", "(logp.exp() * logp)"),
    ),
    bench(
        dpo_loss,
        (
            "no reference",
            HABIT,
            "(chosen - ref_chosen) - (rejected - ref_rejected)",
            "chosen - rejected",
        ),
        (
            "the reference's two answers exchanged",
            HABIT,
            "(chosen - ref_chosen) - (rejected - ref_rejected)",
            "(chosen - ref_rejected) - (rejected - ref_chosen)",
        ),
        (
            "beta outside the sigmoid: a learning rate, no leash",
            HABIT,
            "-torch.nn.functional.logsigmoid(beta * margin)",
            "-beta * torch.nn.functional.logsigmoid(margin)",
        ),
        (
            "the sigmoid without the log",
            HABIT,
            "-torch.nn.functional.logsigmoid(beta * margin)",
            "-torch.sigmoid(beta * margin)",
        ),
    ),
)
