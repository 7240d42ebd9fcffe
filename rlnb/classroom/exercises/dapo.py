"""DAPO: the overlong penalty, a filter that looks at the wrong reward, and code to recognise."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, mistake
from rlnb.classroom.checking.name_this import NameThis
from rlnb.classroom.checking.silent_bug import SilentBug

__all__ = [
    "NAME_THIS_DAPO",
    "OVERLONG_PENALTY",
    "SILENT_BUG_DAPO",
    "mixed_groups",
    "overlong_penalty",
]


def overlong_penalty(
    lengths: torch.Tensor, max_length: int, cache: int, *, capped: bool = True
) -> torch.Tensor:
    """-clamp((T - (L - c)) / c, 0, 1): (B,) -> (B,). Without `capped` it falls on beyond L.

    DAPO, arXiv 2503.14476, eq. 13.
    """
    over = ((lengths - (max_length - cache)) / cache).clamp(min=0)
    return -(over.clamp(max=1) if capped else over)


@mistake(
    "the sign is flipped: this pays for length; it is added to the reward, so it must "
    "be 0 or negative"
)
def _paid(lengths, max_length, cache, *, capped=True):
    return -overlong_penalty(lengths, max_length, cache, capped=capped)


@mistake(
    "the ramp starts at max_length: it ends there; it starts `cache` tokens earlier, "
    "or generation stops before anyone pays"
)
def _starts_at_the_limit(lengths, max_length, cache, *, capped=True):
    return overlong_penalty(lengths, max_length + cache, cache, capped=capped)


@mistake(
    "divided by max_length: the ramp is `cache` tokens long, so it must reach -1 at max_length"
)
def _over_max_length(lengths, max_length, cache, *, capped=True):
    over = ((lengths - (max_length - cache)) / max_length).clamp(min=0)
    return -(over.clamp(max=1) if capped else over)


@mistake(
    "a step to -1 at the start of the cache (also what // gives): between there and "
    "max_length the penalty grows in a straight line"
)
def _step_at_the_start(lengths, max_length, cache):
    return torch.where(lengths > max_length - cache, -1.0, 0.0).to(lengths.dtype)


@mistake(
    "a step at max_length: that is the hard punishment of truncation; the soft one "
    "starts `cache` tokens earlier"
)
def _step_at_the_limit(lengths, max_length, cache):
    return torch.where(lengths > max_length, -1.0, 0.0).to(lengths.dtype)


@mistake("short answers get a bonus: below max_length - cache the penalty is 0, so clamp it there")
def _bonus_for_short(lengths, max_length, cache, *, capped=True):
    over = (lengths - (max_length - cache)) / cache
    return -(over.clamp(max=1) if capped else over)


@mistake("beyond max_length it is 0 again: the longest answers pay -1")
def _nothing_beyond(lengths, max_length, cache):
    return torch.where(lengths > max_length, 0.0, overlong_penalty(lengths, max_length, cache))


@mistake(
    "the ramp starts after `cache` tokens: the cache is the last stretch, so it starts "
    "at max_length - cache"
)
def _starts_after_cache(lengths, max_length, cache, *, capped=True):
    return overlong_penalty(lengths, max_length, max_length - cache, capped=capped)


@mistake("the ramp starts at the first token: up to max_length - cache an answer pays nothing")
def _from_the_first_token(lengths, max_length, cache, *, capped=True):
    over = lengths / max_length
    return -(over.clamp(max=1) if capped else over)


@mistake(
    "the ramp runs backwards, from -1 up to 0: measure from max_length - cache, where "
    "it starts, not from max_length"
)
def _backwards(lengths, max_length, cache):
    band = (lengths > max_length - cache) & (lengths <= max_length)
    ramp = torch.where(band, (lengths - max_length) / cache, 0.0)
    return torch.where(lengths > max_length, -1.0, ramp).to(lengths.dtype)


@mistake("the penalty is in tokens: divide by `cache`, so that it is -1 at max_length")
def _in_tokens(lengths, max_length, cache):
    return -(lengths - (max_length - cache)).clamp(min=0)


def _lengths(label: str, lengths: list[float], max_length: int, cache: int) -> Probe:
    return Probe(label, {"lengths": lengths, "max_length": max_length, "cache": cache})


OVERLONG_PENALTY = Exercise(
    name="overlong_penalty",
    reference=overlong_penalty,
    probes=(
        _lengths("one answer, inside the cache", [9], 10, 4),
        _lengths("around the cache", [2, 6, 7, 9, 10], 10, 4),
        _lengths("beyond the limit", [10, 11, 25], 10, 3),
        _lengths("DAPO's numbers", [12000, 16384, 17408, 18432, 20480, 20481], 20480, 4096),
    ),
    conventions=(
        Convention(
            "not capped at -1 beyond max_length (verl's form): the same wherever generation "
            "stops at max_length",
            {"capped": False},
        ),
    ),
    mistakes=(
        _paid,
        _starts_at_the_limit,
        _over_max_length,
        _step_at_the_start,
        _step_at_the_limit,
        _bonus_for_short,
        _nothing_beyond,
        _starts_after_cache,
        _from_the_first_token,
        _backwards,
        _in_tokens,
    ),
    hint="How many tokens past max_length - cache, as a share of cache? Clamp that share to "
    "[0, 1], then put the minus in front.",
)


def _mixed_groups(correct, lengths, num_generations, max_length, cache):
    penalty = overlong_penalty(lengths, max_length, cache)
    groups = correct.view(-1, num_generations)
    mixed = groups.amax(1) > groups.amin(1)
    return (correct + penalty).view(-1, num_generations)[mixed]


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def mixed_groups(correct, lengths, num_generations, max_length, cache):
    """correct, lengths (B,) -> rewards of the kept groups (K, G)"""
    over = (lengths - (max_length - cache)) / cache
    rewards = correct - over.clamp(0, 1)          # overlong penalty
    groups = rewards.view(-1, num_generations)    # (N, G)
    mixed = groups.amax(1) > groups.amin(1)       # dynamic sampling
    return groups[mixed]
# fmt: on


SILENT_BUG_DAPO = SilentBug(
    name="silent_bug_dapo",
    right=_mixed_groups,
    broken=mixed_groups,
    story="The filter looked at rewards that already held the penalty: an all-wrong group of "
    "unequal lengths passes as mixed, and the z-score turns its lengths into the lesson.",
    hint="Short answers pay nothing, and then the two agree. Which groups must never be kept, "
    "whatever the lengths of their answers?",
)

NAME_THIS_DAPO = NameThis(
    name="name_this_dapo",
    answer="dapo",
    near={
        "grpo": "its band ends at 1.2 and each answer is divided by its own length",
        "dr_grpo": "it divides neither by the std nor by a sum of lengths",
        "ppo": "a critic would give the advantage; here the group does",
        "cispo": "there the ratio is a weight without gradient; here the min ends the gradient "
        "of a token that has gone far enough",
        "gspo": "there is one ratio per answer, and a band 500 to 700 times narrower",
        "scalerl": "the divisor is the same, the surrogate is not: ScaleRL takes CISPO's",
    },
    story="the upper edge is 1.28, the std is there, and all tokens of a prompt share one divisor: "
    "DAPO as printed. Popular code has one divisor for the whole batch.",
)
