"""OpenRLHF and slime: what their arguments do that their reader may not expect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlnb.interop.configuration import Configuration
from rlnb.interop.traps import Facts, Trap, facts_of, is_number, mixed, number

__all__ = ["OPENRLHF_TRAPS", "SLIME_TRAPS", "other_facts"]

GROUPED = ("rloo", "reinforce_baseline", "group_norm", "dr_grpo")


def other_facts(read: Configuration, defaults: Mapping[str, Any]) -> Facts:
    """Words over the parser's defaults, and adv and n."""
    c = facts_of(read, {"n_samples_per_prompt": 1, **defaults})
    c.update(adv=c.advantage_estimator, n=c.n_samples_per_prompt)
    return c


OPENRLHF_TRAPS: tuple[Trap, ...] = (
    Trap(
        "refused_group",
        lambda c: c.adv in GROUPED and c.n == 1,
        lambda c: (
            f"OpenRLHF refuses advantage_estimator={c.adv} with n_samples_per_prompt=1: a group of "
            "one has no baseline. Write n_samples_per_prompt=8."
        ),
    ),
    Trap(
        "kl_no_gradient",
        lambda c: c.use_kl_loss is True and c.kl_estimator == "k1" and c.init_kl_coef,
        lambda c: (
            "use_kl_loss with kl_estimator=k1 (the default) has expected gradient 0: the term is "
            "logged and restrains nothing. Write kl_estimator=k3."
        ),
    ),
    Trap(
        "kl_default",
        lambda c: "init_kl_coef" not in c.given and c.adv is not None,
        lambda c: (
            "init_kl_coef is not set, and OpenRLHF's default is 0.01: a reference model runs, and "
            "its KL is in the reward. Write init_kl_coef=0.0 for none."
        ),
    ),
    Trap(
        "dr_grpo_mean",
        lambda c: c.adv == "dr_grpo",
        lambda c: (
            "advantage_estimator=dr_grpo takes the std out and keeps the mean over tokens: "
            "Dr. GRPO's constant divisor is not here, so in a batch of longer answers each token "
            "counts less. 1 of its 2 changes is made; write it so in the paper."
        ),
    ),
    Trap(
        "small_group",
        lambda c: c.adv in GROUPED and is_number(c.n) and 2 <= c.n <= 4,
        lambda c: (
            f"n_samples_per_prompt={c.n}: a prompt solved once in ten gives a mixed group only "
            f"{mixed(0.1, c.n)} of the time. Write n_samples_per_prompt=8 ({mixed(0.1, 8)})."
        ),
    ),
)

SLIME_TRAPS: tuple[Trap, ...] = (
    Trap(
        "kl_no_gradient",
        lambda c: c.use_kl_loss is True and c.kl_loss_type == "k1" and c.kl_loss_coef,
        lambda c: (
            "use_kl_loss with kl_loss_type=k1 (the default) has expected gradient 0: the term is "
            "logged and restrains nothing. Write kl_loss_type=low_var_kl."
        ),
    ),
    Trap(
        "kl_coef_zero",
        lambda c: c.use_kl_loss is True and c.kl_loss_coef == 0,
        lambda c: (
            "use_kl_loss with kl_loss_coef=0 (its default is 0.0) runs the reference model on "
            "every answer and multiplies its term by 0. Take use_kl_loss out."
        ),
    ),
    Trap(
        "kl_reward_off",
        lambda c: is_number(c.kl_coef) and c.kl_coef != 0 and c.adv in ("grpo", "gspo", "cispo"),
        lambda c: (
            f"kl_coef={number(c.kl_coef)} reaches nothing with advantage_estimator={c.adv}: the "
            "KL is computed, and the advantage is the reward's alone. Write use_kl_loss and "
            f"kl_loss_coef={number(c.kl_coef)}."
        ),
    ),
    Trap(
        "sequence_epsilon",
        lambda c: c.adv == "gspo" and is_number(c.eps_clip) and c.eps_clip >= 0.01,
        lambda c: (
            f"gspo's ratio is a geometric mean and stays near 1: eps_clip={number(c.eps_clip)} is "
            f"{c.eps_clip / 3e-4:.0f} times GSPO's 3e-4 and practically never clips. Write "
            "eps_clip=3e-4."
        ),
    ),
    Trap(
        "cispo_floor",
        lambda c: c.adv == "cispo" and is_number(c.eps_clip) and c.eps_clip < 1,
        lambda c: (
            f"cispo clamps the weight on both sides here, from {number(1 - c.eps_clip)}; the paper "
            "leaves the lower side open. Write eps_clip=1.0."
        ),
    ),
    Trap(
        "group_of_one",
        lambda c: c.adv in ("grpo", "gspo", "cispo") and c.n == 1,
        lambda c: (
            "n_samples_per_prompt is 1: the reward minus its own mean is 0, and nothing is "
            "trained. Write n_samples_per_prompt=8."
        ),
    ),
)
