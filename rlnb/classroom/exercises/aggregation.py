"""Aggregation: one number from per-token losses, by token, by a constant, by prompt."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Mistake, Probe, habit, mistake
from rlnb.classroom.checking.name_this import NameThis
from rlnb.classroom.checking.silent_bug import SilentBug
from rlnb.classroom.exercises.reinforce import PADDING

__all__ = [
    "CONSTANT_LENGTH",
    "NAME_THIS_DR_GRPO",
    "PROMPT_MEAN",
    "SILENT_BUG_DR_GRPO",
    "TOKEN_MEAN",
    "constant_length",
    "prompt_mean",
    "token_mean",
]

NOT_COUNTED = (
    "an answer without tokens is not counted in the mean: verl's rule when it has no "
    "global batch size; this page counts it, as TRL does"
)


def _clean(per_token: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.where(mask, per_token, 0)


def _answers(mask: torch.Tensor, count_empty: bool) -> int | torch.Tensor:
    return len(mask) if count_empty else mask.any(1).sum()


def token_mean(per_token: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """sum over real tokens / number of real tokens: (B, T), (B, T) -> ()."""
    return _clean(per_token, mask).sum() / mask.sum()


def constant_length(
    per_token: torch.Tensor, mask: torch.Tensor, max_length: int, *, count_empty: bool = True
) -> torch.Tensor:
    """sum over real tokens / (B L): (B, T), (B, T), int -> ()."""
    return _clean(per_token, mask).sum() / (_answers(mask, count_empty) * max_length)


def prompt_mean(
    per_token: torch.Tensor, mask: torch.Tensor, num_generations: int, *, count_empty: bool = True
) -> torch.Tensor:
    """Token mean inside each prompt's answers, then the mean over prompts -> ()."""
    tokens = mask.view(-1, num_generations * mask.shape[1]).sum(1)  # (P,)
    sums = _clean(per_token, mask).view(len(tokens), -1).sum(1)
    prompts = len(tokens) if count_empty else (tokens > 0).sum()
    return (sums / tokens.clamp(min=1)).sum() / prompts


# wrong in the same way for all three; `_` swallows max_length or num_generations
def _sequence_mean(per_token, mask, *_, count_empty=True):
    rows = _clean(per_token, mask).sum(1) / mask.sum(1).clamp(min=1)
    return rows.sum() / _answers(mask, count_empty)


@mistake("each answer by its own length, then summed: divide once, by all real tokens of the step")
def _sum_of_sequence_means(per_token, mask, *_):
    return (_clean(per_token, mask).sum(1) / mask.sum(1).clamp(min=1)).sum()


def _padded_mean(per_token, mask, *_):
    return _clean(per_token, mask).mean()


@mistake("a mean over each padded row, then summed: divide once, by mask.sum()")
def _padded_rows(per_token, mask, *_):
    return _clean(per_token, mask).mean(1).sum()


def _rows_only(per_token, mask, *_, count_empty=True):
    return _clean(per_token, mask).sum() / _answers(mask, count_empty)


def _plain_sum(per_token, mask, *_):
    return _clean(per_token, mask).sum()


def _longest_row(per_token, mask, *_, count_empty=True):
    rows = _answers(mask, count_empty)
    return _clean(per_token, mask).sum() / (rows * mask.sum(1).max())


@mistake("the mask is missing above: what stands on padding was added up")
def _no_mask_above(per_token, mask, *_):
    return per_token.sum() / mask.sum()


def _no_mask(per_token, mask, *_):
    return per_token.mean()


def _token_mean_instead(per_token, mask, *_):
    return token_mean(per_token, mask)


# token mean
@habit(PADDING)
def _padding_times_zero(per_token, mask):
    return (per_token * mask).sum() / mask.sum()


@mistake("divided by the answer's length and by all tokens: only the second is asked for")
def _rows_then_token_count(per_token, mask):
    return (_clean(per_token, mask).sum(1) / mask.sum(1).clamp(min=1)).sum() / mask.sum()


@mistake(
    "a mean per position, then over positions: late tokens, which few answers have, count too much"
)
def _columns_then_mean(per_token, mask):
    return (_clean(per_token, mask).sum(0) / mask.sum(0).clamp(min=1)).mean()


# constant length
@mistake("L alone: divide by the number of answers too, or the step grows with the batch")
def _rows_forgotten(per_token, mask, max_length):
    return _clean(per_token, mask).sum() / max_length


@mistake("divided by each answer's own length and then by L: only L is left in Dr. GRPO")
def _both_divisors(per_token, mask, max_length, *, count_empty=True):
    return _sequence_mean(per_token, mask, count_empty=count_empty) / max_length


@mistake("a token mean divided by L: the count of tokens should be gone")
def _token_mean_over_constant(per_token, mask, max_length):
    return token_mean(per_token, mask) / max_length


@mistake("the last token at L is cut off: L is a divisor, it selects nothing")
def _cut_at_the_constant(per_token, mask, max_length):
    return constant_length(per_token[:, : max_length - 1], mask[:, : max_length - 1], max_length)


@mistake("L stands above: it divides")
def _tokens_times_constant(per_token, mask, max_length):
    return _clean(per_token, mask).sum() * max_length / mask.sum() / len(mask)


@mistake("the mask is missing: what stands on padding was added up")
def _no_mask_constant(per_token, mask, max_length):
    return per_token.sum() / (len(mask) * max_length)


@habit(PADDING)
def _constant_padding_times_zero(per_token, mask, max_length, *, count_empty=True):
    return (per_token * mask).sum() / (_answers(mask, count_empty) * max_length)


# prompt mean
@mistake("the prompts are summed: divide by their number, B / num_generations")
def _prompts_forgotten(per_token, mask, num_generations):
    return prompt_mean(per_token, mask, num_generations) * (len(mask) // num_generations)


@mistake("divided by the number of answers: it is the number of prompts, B / num_generations")
def _over_the_answers(per_token, mask, num_generations):
    return prompt_mean(per_token, mask, num_generations) / num_generations


@mistake("a mean over each prompt's padded block: padding is no token")
def _tokens_per_padded_prompt(per_token, mask, num_generations):
    return _clean(per_token, mask).view(-1, num_generations, mask.shape[1]).mean((1, 2)).sum()


@mistake("rows i, i + P, ... were taken for one prompt: rows kG ... kG+G-1 are")
def _interleaved(per_token, mask, num_generations):
    def restored(x):
        return x.view(num_generations, -1, x.shape[1]).transpose(0, 1).reshape(x.shape)

    return prompt_mean(restored(per_token), restored(mask), num_generations)


@mistake(
    "groups of P rows: num_generations rows answer a prompt, there are B / num_generations prompts"
)
def _per_answer_position(per_token, mask, num_generations):
    return prompt_mean(per_token, mask, len(mask) // num_generations)


@habit(PADDING)
def _prompt_padding_times_zero(per_token, mask, num_generations, *, count_empty=True):
    tokens = mask.view(-1, num_generations * mask.shape[1]).sum(1)
    sums = (per_token * mask).view(len(tokens), -1).sum(1)
    prompts = len(tokens) if count_empty else (tokens > 0).sum()
    return (sums / tokens.clamp(min=1)).sum() / prompts


NO_TOKENS = (
    "0/0 = nan where a prompt has no token at all: it contributes 0, so keep its count at "
    "1 or more, .clamp(min=1)"
)


@habit(NO_TOKENS)
def _prompt_without_tokens(per_token, mask, num_generations, *, count_empty=True):
    tokens = mask.view(-1, num_generations * mask.shape[1]).sum(1)
    sums = _clean(per_token, mask).view(len(tokens), -1).sum(1)
    return (sums / tokens).sum() / (len(tokens) if count_empty else (tokens > 0).sum())


NAN, INF = float("nan"), float("inf")


def _table(rows: list) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def _mask(lengths: list[int], width: int) -> torch.Tensor:
    return torch.arange(width) < torch.tensor(lengths)[:, None]


# losses, mask; what stands under the mask is not 0, and the width exceeds the longest answer
_TWO = (_table([[1.0, 2.0, 9.0], [4.0, -7.0, 3.0]]), _mask([2, 1], 3))
_FOUR = (
    _table(
        [
            [0.5, 1.5, -2.0, 0.25, 3.0, -1.0, 8.0],
            [2.0, 0.75, 1.0, -0.5, 6.0, 7.0, -3.0],
            [-1.0, 2.5, 0.5, 4.0, 1.25, -0.75, 5.0],
            [3.0, -2.0, 1.0, 0.5, -6.0, 2.0, 11.0],
        ]
    ),
    _mask([5, 2, 6, 1], 7),
)
_SIX = (
    _table(
        [
            [1.0, 3.0, -2.0, 5.0],
            [0.5, 2.0, 4.0, -1.0],
            [-3.0, 1.5, 2.5, 0.75],
            [2.0, -1.0, 6.0, 3.5],
            [1.25, 0.5, -0.5, 2.0],
            [-2.0, 4.0, 7.0, 1.0],
        ]
    ),
    _mask([3, 1, 2, 1, 3, 2], 4),
)
_EMPTY_ROW = (
    _table([[1.0, 2.0, -1.5], [5.0, 6.0, 7.0], [0.5, -2.0, 4.0], [3.0, 1.0, 2.0]]),
    _mask([2, 0, 1, 2], 3),
)
_EMPTY_PROMPT = (
    _table([[1.0, 2.0, -1.5], [0.5, -2.0, 4.0], [5.0, 6.0, 7.0], [3.0, 1.0, 2.0]]),
    _mask([2, 1, 0, 0], 3),
)
_GARBAGE = (
    _table([[1.0, 2.0, NAN], [0.5, -INF, NAN], [3.0, -1.0, 2.0], [1.5, INF, -INF]]),
    _mask([2, 1, 3, 1], 3),
)


def _probe(
    label: str, data: tuple[torch.Tensor, torch.Tensor], catches: str = "", **more: int
) -> Probe:
    return Probe(label, {"per_token": data[0], "mask": data[1], **more}, catches, bool(catches))


TOKEN_MEAN = Exercise(
    name="token_mean",
    reference=token_mean,
    differentiate=("per_token",),
    probes=(
        _probe("two answers", _TWO),
        _probe("four answers", _FOUR),
        _probe("six answers", _SIX),
        _probe("an answer without tokens", _EMPTY_ROW),
        _probe("inf and nan under the mask", _GARBAGE, PADDING),
    ),
    mistakes=(
        Mistake(
            "a mean inside each answer, then over answers: that is GRPO's sequence mean; here "
            "every token of the step counts the same",
            _sequence_mean,
        ),
        _sum_of_sequence_means,
        Mistake(
            "divided by the padded size, B times T: padding is no token, divide by mask.sum()",
            _padded_mean,
        ),
        _padded_rows,
        Mistake(
            "divided by the number of answers: that is the sequence sum; divide by the number "
            "of real tokens",
            _rows_only,
        ),
        Mistake("a sum: it grows with the batch; divide by the number of real tokens", _plain_sum),
        Mistake(
            "every answer counted as long as the longest one: short answers have fewer tokens",
            _longest_row,
        ),
        _no_mask_above,
        Mistake("the mask is not used at all: padding is no token", _no_mask),
        _rows_then_token_count,
        _columns_then_mean,
        _padding_times_zero,
    ),
    hint="Clean first: torch.where(mask, per_token, 0). One sum above, one count below, and no "
    "axis anywhere.",
)

CONSTANT_LENGTH = Exercise(
    name="constant_length",
    reference=constant_length,
    differentiate=("per_token",),
    probes=(
        _probe("two answers", _TWO, max_length=5),
        _probe("four answers, L below the width", _FOUR, max_length=6),
        _probe("six answers", _SIX, max_length=16),
        _probe("an answer without tokens", _EMPTY_ROW, max_length=8),
        _probe("inf and nan under the mask", _GARBAGE, PADDING, max_length=8),
    ),
    conventions=(Convention(NOT_COUNTED, {"count_empty": False}),),
    mistakes=(
        Mistake(
            "divided by the padded width: it is another number in every batch; L is fixed for "
            "the whole run",
            _padded_mean,
        ),
        Mistake(
            "divided by the longest answer here: that is a random number; L is fixed for the "
            "whole run",
            _longest_row,
        ),
        Mistake("each answer by its own length: this is what Dr. GRPO takes out", _sequence_mean),
        Mistake(
            "one mean over all tokens: its divisor changes with the batch, L does not",
            _token_mean_instead,
        ),
        _rows_forgotten,
        Mistake("max_length is not used: divided by the number of answers only", _rows_only),
        Mistake("a sum: divide by the number of answers times L", _plain_sum),
        _both_divisors,
        _token_mean_over_constant,
        _cut_at_the_constant,
        _tokens_times_constant,
        _no_mask_constant,
        _constant_padding_times_zero,
    ),
    hint="Clean, sum everything, divide by two numbers known before anything was sampled: how many "
    "answers there are, and max_length.",
)

PROMPT_MEAN = Exercise(
    name="prompt_mean",
    reference=prompt_mean,
    differentiate=("per_token",),
    probes=(
        _probe("one prompt", _TWO, num_generations=2),
        _probe("two prompts", _FOUR, num_generations=2),
        _probe("two prompts of three", _SIX, num_generations=3),
        _probe("a prompt without tokens", _EMPTY_PROMPT, num_generations=2),
        _probe("an answer without tokens", _EMPTY_ROW, num_generations=2),
        _probe("inf and nan under the mask", _GARBAGE, PADDING, num_generations=2),
    ),
    conventions=(
        Convention(
            "a prompt without any token is not counted in the mean over prompts; this page "
            "counts it",
            {"count_empty": False},
        ),
    ),
    mistakes=(
        Mistake(
            "one mean over all tokens: a prompt with long answers then counts more; average "
            "inside each prompt first",
            _token_mean_instead,
        ),
        Mistake(
            "a mean inside each answer, then over answers: inside a prompt all tokens count "
            "the same",
            _sequence_mean,
        ),
        _prompts_forgotten,
        _over_the_answers,
        _tokens_per_padded_prompt,
        _interleaved,
        _per_answer_position,
        Mistake(
            "divided by the number of answers (all at once, or prompt by prompt): divide each "
            "prompt's sum by its number of tokens",
            _rows_only,
        ),
        Mistake("divided by the padded size: padding is no token", _padded_mean),
        Mistake("the mask is not used at all: padding is no token", _no_mask),
        _prompt_padding_times_zero,
        _prompt_without_tokens,
    ),
    hint="A prompt's answers are num_generations rows in a row: view(-1, num_generations, T) puts "
    "them in one block. Token mean in each block, then the mean over blocks.",
)


def _right_aggregate(per_token, mask, max_length):
    return constant_length(per_token, mask, max_length)


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def dr_grpo_aggregate(per_token, mask, max_length):
    """Dr. GRPO: sum over tokens by a constant, mean over answers."""
    per_token = per_token[:, :max_length]        # nothing beyond the limit
    mask = mask[:, :max_length]
    kept = torch.where(mask, per_token, 0.0)
    return (kept.sum(1) / kept.shape[1]).mean()
# fmt: on


SILENT_BUG_DR_GRPO = SilentBug(
    name="silent_bug_dr_grpo",
    right=_right_aggregate,
    broken=dr_grpo_aggregate,
    story="It divides by the padded width, the longest answer at hand. The author's test was as "
    "wide as max_length; in training a single long neighbour shrinks everybody's step.",
    hint="Two batches with the same tokens and more or less padding must have the same loss.",
)

NAME_THIS_DR_GRPO = NameThis(
    name="name_this_dr_grpo",
    answer="grpo",
    near={
        "bnpo": "that is the word in the config; what does it divide by when a micro-batch holds "
        "one answer?",
        "dapo": "the token mean runs over one micro-batch, which is one answer here; and the upper "
        "edge is not raised, the KL not dropped",
        "dr_grpo": "the std is divided by, and each answer by its own length: both divisors are in",
        "ppo": "the advantage is the group's z-score; there is no critic",
        "gspo": "the ratio is per token",
        "cispo": "the ratio is clipped with PPO's band, not capped and detached",
        "rloo": "the advantage is divided by the group's std, and there is a clip",
    },
    story="A micro-batch of one answer makes its token mean the answer's own mean: 1/T. With the "
    "group's std and beta 0.04 that is GRPO as published.",
    also=("deepseekmath grpo", "vanilla grpo", "original grpo"),
)
