"""The page on rewards: how hard best-of-N pushes, what to keep of N answers, several rewards."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, mistake
from rlnb.classroom.checking.silent_bug import SilentBug

__all__ = [
    "BEST_OF_N_KL",
    "KEEP_BEST",
    "SEVERAL_REWARDS",
    "SILENT_BUG_REWARDS",
    "best_of_n_kl",
    "estimate",
    "keep_best",
    "several_rewards",
]


def best_of_n_kl(n: torch.Tensor, *, base: float = 0.0) -> torch.Tensor:
    """log n - (n - 1) / n in nats: (k,) -> (k,). base: another base of the logarithm."""
    nats = n.log() - (n - 1) / n
    return nats / torch.tensor(base, dtype=n.dtype).log() if base else nats


@mistake("this is log n, the KL of a policy that keeps only the top share 1/n: best of n is softer")
def _log(n):
    return n.log()


@mistake("the sign of the second term: E[log u] is -1/n, below zero, so it is subtracted")
def _plus(n):
    return n.log() + (n - 1) / n


@mistake("1/n is subtracted instead of (n - 1)/n: at n = 1 the KL must be 0")
def _one_over(n):
    return n.log() - 1 / n


@mistake("the factor 1/n is missing: (n - 1) E[log u] with E[log u] = -1/n")
def _undivided(n):
    return n.log() - (n - 1)


@mistake("this is the other direction, KL(policy || best of n) = n - 1 - log n; its mean runs over"
         " the policy's answers")  # fmt: skip
def _other_way(n):
    return n - 1 - n.log()


@mistake("log(n - 1) instead of log n: the density of the best one is n u^(n - 1)")
def _shifted(n):
    return (n - 1).clamp(min=1).log() - (n - 1) / n


BEST_OF_N_KL = Exercise(
    name="best_of_n_kl",
    reference=best_of_n_kl,
    probes=(Probe("two draws", {"n": [2.0]}), Probe("four sizes", {"n": [1.0, 4.0, 64.0, 1024.0]})),
    conventions=(Convention("right in bits; the page counts in nats", {"base": 2.0}),),
    mistakes=(_log, _plus, _one_over, _undivided, _other_way, _shifted),
    hint="The best of n has density n u^(n - 1) against the policy's 1. Take the mean of its log "
    "under itself; the mean of log u is -1/n.",
)


def keep_best(rewards: torch.Tensor, least: float) -> torch.Tensor:
    """1 on the first best answer of each prompt if it reaches `least`, else 0: (P, N) -> (P, N)."""
    chosen = torch.zeros_like(rewards).scatter(1, rewards.argmax(1, keepdim=True), 1.0)
    return chosen * (rewards >= least)


@mistake("a prompt whose answers all fail still gives one: its best is a wrong answer, and you "
         "train on it")  # fmt: skip
def _no_floor(rewards, least):
    return torch.zeros_like(rewards).scatter(1, rewards.argmax(1, keepdim=True), 1.0)


@mistake("every answer that reaches `least` is kept: easy prompts fill the training set")
def _all_that_pass(rewards, least):
    return (rewards >= least).to(rewards.dtype)


@mistake("all answers that share the top reward are kept: one per prompt was asked for")
def _ties(rewards, least):
    top = rewards.amax(1, keepdim=True)
    return ((rewards == top) & (rewards >= least)).to(rewards.dtype)


@mistake("this picks the best over all prompts at once: the easy prompts take every place")
def _global(rewards, least):
    chosen = torch.zeros_like(rewards).view(-1)
    chosen[rewards.reshape(-1).argsort(descending=True, stable=True)[: len(rewards)]] = 1.0
    return chosen.view_as(rewards) * (rewards >= least)


@mistake("the best along dim 0: that compares answers to different prompts")
def _wrong_axis(rewards, least):
    chosen = torch.zeros_like(rewards).scatter(0, rewards.argmax(0, keepdim=True), 1.0)
    return chosen * (rewards >= least)


@mistake("above `least`, strictly: an answer that just reaches it is to be kept")
def _strict(rewards, least):
    return keep_best(rewards, least) * (rewards > least)


@mistake("the first answer that reaches `least` is kept, not the best one")
def _first(rewards, least):
    passed = (rewards >= least).to(rewards.dtype)
    return passed * (passed.cumsum(1) == 1)


KEEP_BEST = Exercise(
    name="keep_best",
    reference=keep_best,
    probes=(
        Probe("two prompts", {"rewards": [[0.2, 0.9, 0.6], [0.1, 0.0, 0.3]], "least": 0.5}),
        Probe(
            "ties, an easy prompt, a hopeless one",
            {
                "rewards": [
                    [1.0, 0.0, 1.0, 0.5],
                    [0.5, 0.0, 0.0, 0.0],
                    [0.0, 0.0, 0.0, 0.0],
                    [0.5, 1.0, 1.0, 1.0],
                ],
                "least": 0.5,
            },
        ),
    ),
    mistakes=(_no_floor, _all_that_pass, _ties, _global, _wrong_axis, _strict, _first),
    hint="argmax(1) is the first best of each row; scatter a 1 there, then ask whether it reaches "
    "`least`.",
)


def several_rewards(
    rewards: torch.Tensor, *, correction: int = 0, eps: float = 1e-6, mean: bool = False
) -> torch.Tensor:
    """Each reward z-scored in its group, then summed over the rewards: (P, G, K) -> (P, G)."""
    each = _zscore(rewards, 1, correction, eps)
    return each.mean(2) if mean else each.sum(2)


def _zscore(x, dim, correction=0, eps=1e-6):
    centred = x - x.mean(dim, keepdim=True)
    return centred / (x.std(dim, keepdim=True, correction=correction) + eps)


@mistake("summed first: two answers with equal sums get one advantage, however they earned it")
def _sum_first(rewards):
    return _zscore(rewards.sum(2), 1)


@mistake("one more z-score in the group at the end takes away again what was kept apart (GDPO's "
         "last one runs over the batch)")  # fmt: skip
def _again(rewards):
    return _zscore(several_rewards(rewards), 1)


@mistake("the z-score runs over the rewards of one answer (dim 2): compare answers, not rewards")
def _over_rewards(rewards):
    return _zscore(rewards, 2).sum(2)


@mistake("the z-score runs over the prompts (dim 0): a group is the answers to one prompt")
def _over_prompts(rewards):
    return _zscore(rewards, 0).sum(2)


@mistake("mean and std over all prompts at once: an easy prompt's wrong answers look good")
def _whole_batch(rewards):
    centred = rewards - rewards.mean((0, 1))
    return (centred / (rewards.std((0, 1), correction=0) + 1e-6)).sum(2)


@mistake("nothing is divided by a std: the reward with the larger spread drowns the other")
def _centred(rewards):
    return (rewards - rewards.mean(1, keepdim=True)).sum(2)


@mistake("only the first reward counts here: sum over the last dimension")
def _one_only(rewards):
    return _zscore(rewards, 1)[..., 0]


SEVERAL_REWARDS = Exercise(
    name="several_rewards",
    reference=several_rewards,
    probes=(
        Probe("one prompt, two rewards", {"rewards": [[[1.0, 0.0], [0.0, 2.0], [1.0, 5.0]]]}),
        Probe(
            "three prompts",
            {
                "rewards": [
                    [[1.0, 3.0], [0.0, 3.5], [1.0, 9.0], [0.0, 1.0]],
                    [[1.0, 0.5], [1.0, 2.0], [1.0, 4.0], [0.0, 7.0]],
                    [[0.0, 8.0], [1.0, 2.0], [0.0, 2.5], [0.0, 4.0]],
                ]
            },
        ),
        Probe(
            "a reward that all answers share",
            {"rewards": [[[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]]},
            catches="a reward that all answers share has std 0, and 0/0 is nan: add a small number "
            "to the std",
        ),
    ),
    conventions=(
        Convention("right with Bessel's std, TRL's", {"correction": 1}),
        Convention("right with Bessel's std and 1e-4, as in TRL", {"correction": 1, "eps": 1e-4}),
        Convention("right up to a factor: the mean over the rewards, not the sum", {"mean": True}),
    ),
    mistakes=(_sum_first, _again, _over_rewards, _over_prompts, _whole_batch, _centred, _one_only),
    hint="Mean and std along dim 1, the answers; the sum along dim 2, the rewards, comes last.",
)


def _right(gold, score, n):
    K = len(score)
    k = torch.arange(1, K + 1, dtype=torch.float64)
    sets = torch.lgamma(k) - torch.lgamma((k - n + 1).clamp(min=1.0))
    sets = sets - torch.lgamma(torch.tensor(float(K + 1))) + torch.lgamma(torch.tensor(K - n + 1.0))
    weight = torch.where(k >= n, (sets + torch.log(torch.tensor(float(n)))).exp(), 0.0)
    return (weight * gold[score.argsort()]).sum()


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def estimate(gold, score, n):
    """Mean gold of the best of n, from K sampled answers: (K,), (K,)"""
    K = len(score)
    k = torch.arange(1, K + 1)                    # ranks, 1 the lowest
    weight = (k / K) ** n - ((k - 1) / K) ** n
    return (weight * gold[score.argsort()]).sum()
# fmt: on


SILENT_BUG_REWARDS = SilentBug(
    name="silent_bug_rewards",
    right=_right,
    broken=estimate,
    story="It draws with putting back: one sample may come twice. Best of K of K samples is surely "
    "the top one. The k-th is the best of n different ones with chance C(k-1, n-1) / C(K, n).",
    hint="With n = 1 it gives the mean, as it must. What must it give with n = K?",
)
