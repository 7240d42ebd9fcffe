"""Advantages and what decides who gets one, each with the bugs it was written with."""

from __future__ import annotations

from math import comb

import torch

from rlnb.classroom.breaking.bench import bench

__all__ = ["BENCHES"]

HABIT = "a habit of learners"


def group_advantages(rewards, num_generations):
    """GRPO's z-score: population std, eps 1e-6. Rows of a prompt stand together. (B,) -> (B,)"""
    groups = rewards.view(-1, num_generations)
    centred = groups - groups.mean(1, keepdim=True)
    std = groups.std(1, correction=0, keepdim=True)
    return (centred / (std + 1e-6)).reshape(-1)


def leave_one_out(rewards, num_generations):
    """RLOO: reward minus the mean reward of the other answers to its prompt. (B,) -> (B,)"""
    groups = rewards.view(-1, num_generations)
    others = groups.sum(1, keepdim=True) - groups
    return (groups - others / (num_generations - 1)).reshape(-1)


def keep_mixed(rewards, num_generations):
    """DAPO's filter: True on the rows of groups whose rewards differ. (B,) -> bool (B,)"""
    groups = rewards.view(-1, num_generations)
    mixed = groups.max(1).values > groups.min(1).values
    return mixed.repeat_interleave(num_generations)


def overlong_penalty(length, longest, buffer):
    """DAPO's ramp: 0 up to longest - buffer tokens, from there straight down to -1 at longest."""
    start = longest - buffer
    return -min(max((length - start) / buffer, 0.0), 1.0)


def gae(rewards, values, gamma, lam):
    """Advantages of one finished answer: A_t = delta_t + gamma lam A_t+1. (T,)"""
    out = torch.zeros_like(rewards)
    running, value_next = 0.0, 0.0
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * value_next - values[t]
        running = delta + gamma * lam * running
        out[t] = running
        value_next = values[t]
    return out


def pass_at_k(n, c, k):
    """pass@k: the chance that k of n sampled answers, c of them right, hold a right one."""
    return 1 - comb(n - c, k) / comb(n, k)


BENCHES = (
    bench(
        group_advantages,
        (
            "compares an answer with answers to other prompts",
            "rows laid out by sample in one library and by prompt in the next",
            "rewards.view(-1, num_generations)",
            "rewards.view(num_generations, -1).T",
        ),
        (
            "the mean of the whole batch as the baseline",
            HABIT,
            "groups.mean(1, keepdim=True)",
            "groups.mean()",
        ),
        (
            "one std for the whole batch",
            'TRL\'s scale_rewards="batch", taken for "group"',
            "groups.std(1, correction=0, keepdim=True)",
            "groups.std(correction=0)",
        ),
        (
            "the std of the other answers: 0 for the one that differs, an advantage of a million",
            "NeMo-RL #1518",
            "std = groups.std(1, correction=0, keepdim=True)",
            "G = num_generations\n"
            "    others = [[j for j in range(G) if j != i] for i in range(G)]\n"
            "    std = torch.stack([groups[:, o].std(1, correction=0) for o in others], 1)",
        ),
        ("0/0 in a group of equal rewards", HABIT, "(std + 1e-6)", "std"),
        ("divides by the variance", HABIT, "groups.std(", "groups.var("),
        (
            "n - 1 for n: every source has its own, a function has one",
            "TRL and verl: their std is over n - 1",
            "correction=0",
            "correction=1",
        ),
    ),
    bench(
        leave_one_out,
        (
            "its own reward stays in the baseline",
            HABIT,
            "groups.sum(1, keepdim=True) - groups",
            "groups.sum(1, keepdim=True)",
        ),
        ("divides the others' sum by all", HABIT, "(num_generations - 1)", "num_generations"),
        (
            "the others of the whole batch, not of the prompt",
            HABIT,
            "rewards.view(-1, num_generations)",
            "rewards.view(1, -1)",
        ),
    ),
    bench(
        keep_mixed,
        (
            "keeps groups that are all right",
            "filters that look for a success only",
            "groups.max(1).values > groups.min(1).values",
            "groups.max(1).values > 0",
        ),
        (
            "throws graded rewards away that differ by less than one",
            "a comparison with 0 and n, written for 0/1 rewards",
            "groups.max(1).values > groups.min(1).values",
            "groups.max(1).values >= groups.min(1).values + 1",
        ),
        (
            "spreads the groups' verdicts over the rows in the wrong order",
            "repeat for repeat_interleave",
            "mixed.repeat_interleave(num_generations)",
            "mixed.repeat(num_generations)",
        ),
    ),
    bench(
        overlong_penalty,
        ("pays for length", HABIT, "return -min", "return min"),
        (
            "the ramp begins where the answer is already cut off",
            HABIT,
            "start = longest - buffer",
            "start = longest",
        ),
        (
            "a cliff in place of the ramp",
            "the plain truncation penalty under the other's name",
            "min(max((length - start) / buffer, 0.0), 1.0)",
            "float(length > start)",
        ),
        (
            "goes on below -1",
            HABIT,
            "min(max((length - start) / buffer, 0.0), 1.0)",
            "max((length - start) / buffer, 0.0)",
        ),
    ),
    bench(
        gae,
        (
            "looks up a value after the end: the last one once more",
            "the done mask forgotten: CoursIA's comparison turned round when it was mended",
            "running, value_next = 0.0, 0.0",
            "running, value_next = 0.0, values[-1]",
        ),
        ("forgets lambda", HABIT, "gamma * lam * running", "gamma * running"),
        ("discounts the sum by lambda alone", HABIT, "gamma * lam * running", "lam * running"),
        ("leaves the value of the state in", HABIT, " - values[t]\n", "\n"),
        (
            "returns in place of advantages",
            "the critic's target handed to the policy",
            "out[t] = running",
            "out[t] = running + values[t]",
        ),
        (
            "subtracts the next value and adds this one",
            "the sign of a temporal difference, from memory",
            "gamma * value_next - values[t]",
            "values[t] - gamma * value_next",
        ),
    ),
    bench(
        pass_at_k,
        (
            "draws with replacement: too low whenever k is not small",
            "the plug-in estimate that the Codex paper warns of, arXiv 2107.03374",
            "1 - comb(n - c, k) / comb(n, k)",
            "1 - (1 - c / n) ** k",
        ),
        (
            "the chance that all k are right",
            HABIT,
            "1 - comb(n - c, k) / comb(n, k)",
            "comb(c, k) / comb(n, k)",
        ),
        (
            "pass@1, whatever k is",
            "a k that nothing reads",
            "1 - comb(n - c, k) / comb(n, k)",
            "c / n",
        ),
    ),
)
