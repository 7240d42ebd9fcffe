"""From tokens to one number, each rule with the bugs it was written with."""

from __future__ import annotations

import torch

from rlnb.classroom.breaking.bench import bench

__all__ = ["BENCHES"]

HABIT = "a habit of learners"


def token_mean(values, mask):
    """DAPO: the mean over all real tokens of the batch. (B, T) -> scalar"""
    total = torch.where(mask, values, 0.0).sum()
    return total / mask.sum().clamp(min=1)


def sequence_mean(values, mask):
    """GRPO: the mean over an answer's own tokens, then over answers. (B, T) -> scalar"""
    per_answer = torch.where(mask, values, 0.0).sum(1) / mask.sum(1).clamp(min=1)
    return per_answer.mean()


def constant_mean(values, mask, longest):
    """Dr.GRPO: the sum over all tokens, divided by answers times a constant. (B, T) -> scalar"""
    return torch.where(mask, values, 0.0).sum() / (len(values) * longest)


def accumulated(values, mask, pieces):
    """The token mean of a whole step, summed up over its micro-batches."""
    tokens = mask.sum()
    loss = 0.0
    for v, m in zip(values.chunk(pieces), mask.chunk(pieces), strict=True):
        loss = loss + torch.where(m, v, 0.0).sum() / tokens
    return loss


def without_truncated(values, mask, truncated):
    """The token mean over the answers that came to an end. truncated: bool (B,)"""
    mask = mask & ~truncated[:, None]
    return torch.where(mask, values, 0.0).sum() / mask.sum()


BENCHES = (
    bench(
        token_mean,
        ("padding counts as tokens", HABIT, "mask.sum().clamp(min=1)", "mask.numel()"),
        (
            "NaN under the mask gets through: 0 times NaN",
            "multiplying by the mask in place of choosing",
            "torch.where(mask, values, 0.0)",
            "(values * mask)",
        ),
        (
            "a mean of answers' means: a token of a short answer weighs more",
            "a token_level_loss flag that nothing read, autonomous-dev #413",
            "return total / mask.sum().clamp(min=1)",
            "rows = torch.where(mask, values, 0.0).sum(1) / mask.sum(1).clamp(min=1)\n"
            "    return rows.mean() + 0 * total",
        ),
        ("0/0 in a batch without a token", HABIT, "mask.sum().clamp(min=1)", "mask.sum()"),
        ("divides by the number of answers", HABIT, "mask.sum().clamp(min=1)", "len(mask)"),
    ),
    bench(
        sequence_mean,
        ("0/0 in an answer without a token", HABIT, "mask.sum(1).clamp(min=1)", "mask.sum(1)"),
        ("the padded width for the length", HABIT, "mask.sum(1).clamp(min=1)", "mask.shape[1]"),
        (
            "leaves empty answers out of the count",
            "TRL counts a fully masked row, others do not",
            "return per_answer.mean()",
            "return per_answer.sum() / (mask.sum(1) > 0).sum()",
        ),
        ("the sum over answers", HABIT, "return per_answer.mean()", "return per_answer.sum()"),
    ),
    bench(
        constant_mean,
        (
            "each answer by its own length: only the std is gone",
            "the RLHF book's code, where drgrpo uses GRPO's loss",
            "torch.where(mask, values, 0.0).sum() / (len(values) * longest)",
            "(torch.where(mask, values, 0.0).sum(1) / mask.sum(1)).mean() + 0 * longest",
        ),
        (
            "the longest answer of this batch for the constant",
            HABIT,
            "(len(values) * longest)",
            "(len(values) * mask.sum(1).max())",
        ),
        ("the padded width for the constant", HABIT, "len(values) * longest", "values.numel()"),
        ("the token mean under the other's name", HABIT, "(len(values) * longest)", "mask.sum()"),
        ("forgets the number of answers", HABIT, "(len(values) * longest)", "longest"),
    ),
    bench(
        accumulated,
        (
            "each micro-batch by its own tokens: a token's weight hangs on how the step was cut",
            "nanochat's chat_rl.py, trl #3021, open-instruct #636",
            "torch.where(m, v, 0.0).sum() / tokens",
            "torch.where(m, v, 0.0).sum() / m.sum() / pieces",
        ),
        (
            "divided once more by the number of micro-batches",
            "ms-swift #10117",
            ".sum() / tokens",
            ".sum() / tokens / pieces",
        ),
        (
            "keeps the last micro-batch only",
            "GRPO-Zero's logged loss",
            "loss = loss + torch",
            "loss = torch",
        ),
        (
            "the tokens of the generation batch, two steps' worth, for one step's",
            "trl #5619, mended in #6024",
            "tokens = mask.sum()",
            "tokens = 2 * mask.sum()",
        ),
    ),
    bench(
        without_truncated,
        (
            "truncated tokens leave the sum and stay in the divisor",
            "trl #6439",
            "mask = mask & ~truncated[:, None]\n    return torch.where(mask, values, 0.0).sum()",
            "kept = mask & ~truncated[:, None]\n    return torch.where(kept, values, 0.0).sum()",
        ),
        ("keeps only what was cut off", HABIT, "~truncated", "truncated"),
        (
            "padding comes back where an answer ended",
            HABIT,
            "mask & ~truncated[:, None]",
            "(~truncated[:, None]).expand_as(mask)",
        ),
    ),
)
