"""Baselines from a group: leave-one-out, and GRPO's z-score. Rewards are flat, (B,)."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Family, Mistake, Probe, mistake

__all__ = [
    "BASELINE_LEAVE_ONE_OUT",
    "GROUP_ADVANTAGES",
    "NORMALISER_FAMILIES",
    "NORMALISERS",
    "NO_EPS",
    "baseline_leave_one_out",
    "group_advantages",
    "interleaved_advantages",
    "rewards_probe",
]

NO_EPS = (
    "nan: 0/0 in the group whose rewards are all equal; add a small eps to the std, so that "
    "it gets 0"
)

# keywords of group_advantages -> whose convention it is; the default, population 1e-6, is left out
NORMALISERS = (
    ("population", 1e-4, "population std with eps 1e-4: GRPO-Zero's"),
    ("population", 1e-5, "population std with eps 1e-5"),
    ("population", 1e-8, "population std with eps 1e-8: open-instruct's"),
    ("population", 0.0, "population std, no eps, equal groups set to 0"),
    ("bessel", 1e-4, "Bessel std with eps 1e-4: TRL's"),
    ("bessel", 1e-5, "Bessel std with eps 1e-5"),
    ("bessel", 1e-6, "Bessel std with eps 1e-6: verl's"),
    ("bessel", 1e-8, "Bessel std with eps 1e-8: the RLHF book's"),
    ("bessel", 1e-9, "Bessel std with eps 1e-9: OpenRLHF's"),
    ("bessel", 0.0, "Bessel std, no eps, equal groups set to 0"),
)

# the same with any other eps: no paper states it, so the number is found and said
NORMALISER_FAMILIES = tuple(
    Family(
        f"{name} std with eps about {{value}}{where}; this page uses the population std with "
        "eps 1e-6",
        keyword,
        1e-12,
        0.2,
        {"std": std} | others,
    )
    for std, name in (("population", "population"), ("bessel", "Bessel"))
    for keyword, where, others in (
        ("eps", "", {}),
        ("inside", " under the root, beside the variance", {"eps": 0.0}),
    )
)


def baseline_leave_one_out(rewards: torch.Tensor, num_generations: int) -> torch.Tensor:
    """b_i = (sum of the group - r_i) / (G - 1): (B,) -> (B,)."""
    groups = rewards.view(-1, num_generations)
    others = groups.sum(1, keepdim=True) - groups
    return (others / (num_generations - 1)).view(-1)


def group_advantages(
    rewards: torch.Tensor,
    num_generations: int,
    *,
    std: str = "population",
    eps: float = 1e-6,
    inside: float = 0.0,
) -> torch.Tensor:
    """A_i = (r_i - mean of the group) / (std of the group + eps): (B,) -> (B,).

    `std` divides by G ("population") or by G - 1 ("bessel"). eps=0.0 sets equal groups to 0.
    inside > 0 is added to the variance under the root instead, as batch norm does.
    """
    groups = rewards.view(-1, num_generations)
    centred = groups - groups.mean(1, keepdim=True)
    if inside:
        variance = groups.var(1, keepdim=True, correction=int(std == "bessel"))
        return (centred * torch.rsqrt(variance + inside)).view(-1)
    spread = groups.std(1, keepdim=True, correction=int(std == "bessel"))
    if eps == 0:
        spread = torch.where(spread == 0, 1, spread)
    return (centred / (spread + eps)).view(-1)


def interleaved_advantages(
    rewards: torch.Tensor, num_generations: int, *, std: str = "population", eps: float = 1e-6
) -> torch.Tensor:
    """The z-score as if row i belonged to prompt i % P: among the wrong neighbours."""
    z = group_advantages(_interleave(rewards, num_generations), num_generations, std=std, eps=eps)
    return _restore(z, num_generations)


def _interleave(rewards: torch.Tensor, num_generations: int) -> torch.Tensor:
    return rewards.view(num_generations, -1).T.reshape(-1)


def _restore(grouped: torch.Tensor, num_generations: int) -> torch.Tensor:
    return grouped.view(-1, num_generations).T.reshape(-1)


@mistake("this is the group's mean, your own reward included: take it out, (sum - r) / (G - 1)")
def _group_mean(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    return groups.mean(1, keepdim=True).expand_as(groups).reshape(-1)


@mistake(
    "the others must answer the same prompt: leave one out inside each group, not in "
    "the whole batch"
)
def _batch_leave_one_out(rewards, num_generations):
    return baseline_leave_one_out(rewards, len(rewards))


@mistake(
    "this is the mean of the whole batch: the baseline is the mean of the others in the same group"
)
def _batch_mean(rewards, num_generations):
    return rewards.mean().expand_as(rewards)


@mistake("this is the advantage, r - b; the baseline b was asked for")
def _advantage_instead(rewards, num_generations):
    return rewards - baseline_leave_one_out(rewards, num_generations)


@mistake("divided by G: the others are G - 1")
def _divided_by_all(rewards, num_generations):
    return (
        baseline_leave_one_out(rewards, num_generations) * (num_generations - 1) / num_generations
    )


@mistake("divided by G - 1 with your own reward still in the sum: subtract it first")
def _own_not_removed(rewards, num_generations):
    return _group_mean(rewards, num_generations) * num_generations / (num_generations - 1)


@mistake("this is the sum of the others: divide by G - 1")
def _sum_of_others(rewards, num_generations):
    return baseline_leave_one_out(rewards, num_generations) * (num_generations - 1)


@mistake("wrong neighbours: rows kG ... kG+G-1 answer one prompt, so view(-1, G), not view(G, -1)")
def _leave_one_out_interleaved(rewards, num_generations):
    grouped = _interleave(rewards, num_generations)
    return _restore(baseline_leave_one_out(grouped, num_generations), num_generations)


@mistake("you did not divide by the std: r - mean is Dr. GRPO's advantage, GRPO's is the z-score")
def _without_std(rewards, num_generations):
    return rewards - _group_mean(rewards, num_generations)


@mistake("mean and std over the whole batch: each prompt is its own group")
def _over_the_batch(rewards, num_generations, *, std="population", eps=1e-6):
    return group_advantages(rewards, len(rewards), std=std, eps=eps)


@mistake(
    "the mean is the group's and the std is the batch's (TRL's scale_rewards="
    '"batch"): here both are the group\'s'
)
def _batch_std(rewards, num_generations, *, std="population", eps=1e-6):
    spread = rewards.std(correction=int(std == "bessel"))
    if eps == 0:
        spread = torch.where(spread == 0, 1, spread)
    return _without_std(rewards, num_generations) / (spread + eps)


@mistake("you divided by the variance: the std is its root")
def _variance(rewards, num_generations, *, std="population", eps=1e-6):
    groups = rewards.view(-1, num_generations)
    variance = groups.var(1, keepdim=True, correction=int(std == "bessel"))
    if eps == 0:
        variance = torch.where(variance == 0, 1, variance)
    return ((groups - groups.mean(1, keepdim=True)) / (variance + eps)).view(-1)


@mistake("you divided by the std without subtracting the group's mean first")
def _not_centred(rewards, num_generations, *, std="population", eps=1e-6):
    groups = rewards.view(-1, num_generations)
    spread = groups.std(1, keepdim=True, correction=int(std == "bessel"))
    if eps == 0:
        spread = torch.where(spread == 0, 1, spread)
    return (groups / (spread + eps)).view(-1)


@mistake(
    "rewards (B,) minus means (P, 1) is a table (P, B): view the rewards as (P, G) first, flatten "
    "last"
)
def _every_mean_from_every_reward(rewards, num_generations, *, std="population", eps=1e-6):
    groups = rewards.view(-1, num_generations)
    spread = groups.std(1, keepdim=True, correction=int(std == "bessel"))
    return (rewards - groups.mean(1, keepdim=True)) / (spread + max(eps, 1e-9))


@mistake(
    ".repeat puts the means in the order 0 1 0 1; a row's own mean is there with "
    "repeat_interleave: 0 0 1 1"
)
def _repeated(rewards, num_generations, *, std="population", eps=1e-6):
    groups = rewards.view(-1, num_generations)
    spread = groups.std(1, correction=int(std == "bessel"))
    if eps == 0:
        spread = torch.where(spread == 0, 1, spread)
    means = groups.mean(1).repeat(num_generations)
    return (rewards - means) / (spread.repeat(num_generations) + eps)


@mistake("you divided by the group's mean: that is MaxRL's advantage; GRPO divides by the std")
def _over_the_mean(rewards, num_generations):
    mean = rewards.view(-1, num_generations).mean(1, keepdim=True)
    centred = rewards.view(-1, num_generations) - mean
    return (centred / torch.where(mean == 0, 1, mean)).view(-1)


@mistake(
    "leave-one-out baseline, no std: that is RLOO's advantage; GRPO takes the mean "
    "of all G and divides by the std"
)
def _leave_one_out_baseline(rewards, num_generations):
    return _advantage_instead(rewards, num_generations)


@mistake(
    "leave-one-out mean and leave-one-out std: in [1, 0, 0, 0] the others have std 0 "
    "and the advantage is 1/eps"
)
def _leave_one_out_everything(rewards, num_generations, *, std="population", eps=1e-6):
    groups = rewards.view(-1, num_generations)
    own = torch.eye(num_generations, dtype=torch.bool)
    others = groups[:, None, :].expand(-1, num_generations, -1)[:, ~own]
    others = others.reshape(len(groups), num_generations, num_generations - 1)
    spread = others.std(2, correction=int(std == "bessel" and num_generations > 2))
    if eps == 0:
        spread = torch.where(spread == 0, 1, spread)
    return ((groups - others.mean(2)) / (spread + eps)).view(-1)


@mistake(
    "leave-one-out baseline over the group's std: this is the z-score times G/(G-1); "
    "keep your own reward in the mean"
)
def _leave_one_out_over_std(rewards, num_generations, *, std="population", eps=1e-6):
    z = group_advantages(rewards, num_generations, std=std, eps=eps)
    return z * num_generations / (num_generations - 1)


@mistake(
    "rewards scaled to 0 ... 1: nothing is below average any more, so nothing is "
    "pushed down; use (r - mean) / std"
)
def _min_max(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    low, high = groups.amin(1, keepdim=True), groups.amax(1, keepdim=True)
    return ((groups - low) / (high - low + 1e-6)).view(-1)


@mistake("the sign is flipped: the advantage is r - mean, positive for the better answers")
def _flipped(rewards, num_generations, *, std="population", eps=1e-6):
    return -group_advantages(rewards, num_generations, std=std, eps=eps)


@mistake(NO_EPS)
def _no_eps(rewards, num_generations, *, std="population"):
    groups = rewards.view(-1, num_generations)
    spread = groups.std(1, keepdim=True, correction=int(std == "bessel"))
    return ((groups - groups.mean(1, keepdim=True)) / spread).view(-1)


@mistake("Bessel std and " + NO_EPS)
def _no_eps_bessel(rewards, num_generations):
    return _no_eps(rewards, num_generations, std="bessel")


def rewards_probe(
    label: str, values: list[float], num_generations: int, catches: str = ""
) -> Probe:
    """Flat rewards, `num_generations` to a prompt."""
    return Probe(label, {"rewards": values, "num_generations": num_generations}, catches)


SHARED = (
    rewards_probe("two answers", [1, 0], 2),
    rewards_probe("one right of four", [1, 0, 0, 0], 4),
    rewards_probe("graded rewards", [3, 1, 2, 0], 4),
    rewards_probe("three prompts", [1, 0, 3, 1, -0.5, 0], 2),
    rewards_probe("two prompts", [1, 1, 0, 0, 1, 0, 0, 0], 4),
    # exactly representable, so that float32 sees the same gap; tells one eps from the next
    rewards_probe("nearly equal rewards", [0.5 + 2**-10, 0.5, 0.5, 0.5], 4),
)

BASELINE_LEAVE_ONE_OUT = Exercise(
    name="baseline_leave_one_out",
    reference=baseline_leave_one_out,
    probes=(*SHARED, rewards_probe("equal rewards", [1, 1, 1, 1], 4)),
    mistakes=(
        _group_mean,
        _batch_leave_one_out,
        _batch_mean,
        _advantage_instead,
        _divided_by_all,
        _own_not_removed,
        _sum_of_others,
        _leave_one_out_interleaved,
    ),
    hint="Rows kG ... kG+G-1 answer the same prompt: view(-1, num_generations). The sum of the "
    "others is the group's sum minus your own reward. Return it flat again.",
)

GROUP_ADVANTAGES = Exercise(
    name="group_advantages",
    reference=group_advantages,
    probes=(
        *SHARED,
        rewards_probe("equal rewards", [1, 1, 1, 1], 4, catches=NO_EPS),
        rewards_probe("equal and mixed", [0, 0, 1, 0], 2, catches=NO_EPS),
    ),
    conventions=tuple(
        Convention(
            f"{whose}; this page uses the population std with eps 1e-6", {"std": std, "eps": eps}
        )
        for std, eps, whose in NORMALISERS
    ),
    mistakes=(
        _without_std,
        _over_the_batch,
        _batch_std,
        Mistake(
            "wrong neighbours: rows kG ... kG+G-1 answer one prompt, so view(-1, G), not "
            "view(G, -1)",
            interleaved_advantages,
        ),
        _variance,
        _not_centred,
        _every_mean_from_every_reward,
        _repeated,
        _over_the_mean,
        _leave_one_out_baseline,
        _leave_one_out_everything,
        _leave_one_out_over_std,
        _min_max,
        _flipped,
        _no_eps,
        _no_eps_bessel,
    ),
    families=NORMALISER_FAMILIES,
    hint="view(-1, num_generations) puts one prompt on each line; subtract the mean of the line, "
    "divide by its std plus a small eps, return it flat. torch.std is Bessel's by default.",
)
