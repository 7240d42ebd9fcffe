"""Training on mixed groups only: what the log then says, and which groups a refill uses."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake

__all__ = ["KEPT_REWARD", "REFILL_FATES", "kept_reward", "refill_fates"]


def kept_reward(p: torch.Tensor, G: int) -> torch.Tensor:
    """(p - p^G) / (1 - p^G - (1 - p)^G), the mean reward of a mixed group: (n,), int -> (n,)."""
    return (p - p**G) / (1 - p**G - (1 - p) ** G)


@mistake("this is p, the mean before the filter: all-right and all-wrong groups are still in it")
def _before(p, G):
    return p.clone()


@mistake("the mixed part of p, right; but it is a share of all groups: divide by P, the kept ones")
def _undivided(p, G):
    return p - p**G


@mistake("p times P: that is as if a mixed group had the mean p; it does not, all right is cut off")
def _times_share(p, G):
    return p * (1 - p**G - (1 - p) ** G)


@mistake("only the all-wrong groups are dropped here: those that are all right have no signal too")
def _wrong_dropped(p, G):
    return p / (1 - (1 - p) ** G)


@mistake("an all-wrong group contributes nothing to the mean reward: do not subtract its chance")
def _both_subtracted(p, G):
    return (p - p**G - (1 - p) ** G) / (1 - p**G - (1 - p) ** G)


@mistake("only the all-right groups are dropped here: those that are all wrong are not kept either")
def _right_dropped(p, G):
    return (p - p**G) / (1 - p**G)


KEPT_REWARD = Exercise(
    name="kept_reward",
    reference=kept_reward,
    probes=(
        Probe("one prompt", {"p": [0.9], "G": 4}),
        Probe("four prompts", {"p": [0.01, 0.3, 0.5, 0.95], "G": 8}),
    ),
    mistakes=(_before, _undivided, _times_share, _wrong_dropped, _both_subtracted, _right_dropped),
    hint="p = 1 * Pr(all right) + 0 * Pr(all wrong) + m * P, where m is what you look for.",
)


def _mixed(rewards: torch.Tensor) -> torch.Tensor:
    return rewards.amax(2) > rewards.amin(2)


def _generated(mixed: torch.Tensor, wanted: int) -> torch.Tensor:
    before = mixed.sum(1).cumsum(0) - mixed.sum(1)
    return (before < wanted)[:, None].expand_as(mixed)


def _fates(made: torch.Tensor, trained: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return made.to(dtype) + trained.to(dtype)


def refill_fates(rewards: torch.Tensor, wanted: int) -> torch.Tensor:
    """0 never generated, 1 generated in vain, 2 trained on: (rounds, N, G), int -> (rounds, N)."""
    mixed = _mixed(rewards)
    first = mixed.flatten().cumsum(0).view(mixed.shape) <= wanted
    return _fates(_generated(mixed, wanted), mixed & first, rewards.dtype)


@mistake(
    "every mixed group of the last round is trained on: the batch holds `wanted`, drop what is over"
)
def _surplus_kept(rewards, wanted):
    mixed = _mixed(rewards)
    made = _generated(mixed, wanted)
    return _fates(made, mixed & made, rewards.dtype)


@mistake("all rounds are generated: stop once `wanted` mixed groups are together")
def _never_stops(rewards, wanted):
    mixed = _mixed(rewards)
    first = mixed.flatten().cumsum(0).view(mixed.shape) <= wanted
    return _fates(torch.ones_like(mixed), mixed & first, rewards.dtype)


@mistake("the rest of the last round is not generated here: a round is written at once")
def _stops_inside_a_round(rewards, wanted):
    mixed = _mixed(rewards)
    so_far = mixed.flatten().cumsum(0).view(mixed.shape)
    made = so_far - mixed.long() < wanted
    return _fates(made, mixed & made, rewards.dtype)


@mistake("a group with any right answer counts as mixed here: all right is silent too")
def _any_right(rewards, wanted):
    return refill_fates(_pretend(rewards, rewards.amax(2) > 0), wanted)


@mistake("a group with any wrong answer counts as mixed here: all wrong is silent too")
def _any_wrong(rewards, wanted):
    return refill_fates(_pretend(rewards, rewards.amin(2) < 1), wanted)


@mistake("this fills the batch with any groups, silent ones too: only mixed ones count and train")
def _all_count(rewards, wanted):
    return refill_fates(_pretend(rewards, torch.ones_like(_mixed(rewards))), wanted)


@mistake("the fates are upside down: 1 is generated in vain, 2 is trained on")
def _swapped(rewards, wanted):
    fates = refill_fates(rewards, wanted)
    return torch.where(fates > 0, 3 - fates, fates)


def _pretend(rewards: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
    """Rewards whose mixed groups are exactly those."""
    out = torch.zeros_like(rewards)
    out[:, :, 0] = mixed.to(rewards.dtype)
    return out


def _rounds(label: str, right: list[list[int]], wanted: int) -> Probe:
    """Groups of four; each number says how many answers of a group are right."""
    rewards = [[[1.0] * k + [0.0] * (4 - k) for k in one] for one in right]
    return Probe(label, {"rewards": rewards, "wanted": wanted})


REFILL_FATES = Exercise(
    name="refill_fates",
    reference=refill_fates,
    probes=(
        _rounds("two rounds", [[0, 2, 4], [1, 3, 2]], 2),
        _rounds("the first round is enough", [[1, 2, 0, 3], [2, 2, 4, 1]], 2),
        _rounds("a round in vain", [[0, 4], [0, 0], [3, 2], [1, 1]], 2),
        _rounds("never enough", [[0, 1, 4], [4, 4, 2]], 5),
    ),
    mistakes=(
        _surplus_kept,
        _never_stops,
        _stops_inside_a_round,
        _any_right,
        _any_wrong,
        _all_count,
        _swapped,
    ),
    hint="mixed (rounds, N) first. Its running count over all groups decides who trains; the count "
    "before a round decides whether the round is generated.",
)
