"""DeepSeek-V3.2's objective, to be told from its neighbours."""

from __future__ import annotations

from rlnb.classroom.checking.name_this import NameThis

__all__ = ["NAME_THIS_THE_ZOO"]

NAME_THIS_THE_ZOO = NameThis(
    name="name_this_the_zoo",
    answer="deepseek_v3_2",
    also=("v3.2", "deepseek v3.2", "DeepSeek-V3.2", "deepseek_v32"),
    near={
        "grpo": "there a std divides, and the KL is not multiplied by the ratio",
        "dr_grpo": "the advantage is the same, but each answer is divided by its own length here, "
        "and there is a KL",
        "dppo": "it drops tokens, by how much probability moved; here a whole answer goes, by its "
        "mean log-ratio",
        "gspo": "the mean log-ratio is only asked whether the answer counts: the ratio is the "
        "token's",
        "dapo": "it has a std, one mean over tokens, a higher upper edge and no KL",
        "ppo": "a critic would give the advantage; here the group does",
    },
    story="no std, k3 times the ratio with its gradient, and wrong answers much less likely than "
    "when the engine sampled them are left out whole: DeepSeek-V3.2.",
)
