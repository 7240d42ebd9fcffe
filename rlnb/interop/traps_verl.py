"""verl 0.9.1: what its actor and algorithm words do that their reader may not expect."""

from __future__ import annotations

from math import exp

from rlnb.interop.configuration import Configuration
from rlnb.interop.traps import Facts, Trap, facts_of, is_number, mixed, number
from rlnb.interop.traps_verl_kl import KL_TRAPS
from rlnb.interop.verl import VERL_DEFAULTS

__all__ = ["VERL_TRAPS", "verl_facts"]

GROUPED = ("grpo", "rloo", "rloo_vectorized", "reinforce_plus_plus_baseline")
BANDLESS = ("sapo", "kl_cov", "gpg", "dro")
NOT_LOSS = {
    "ppo_epochs": 1,
    "ppo_mini_batch_size": 256,
    "rollout.n": 1,
    "horizon": 10000,
    "target_kl": 0.1,
    "rollout.temperature": 1.0,
    "rollout.top_p": 1,
    "rollout.top_k": -1,
    "filter_groups.enable": False,
}
BAND = frozenset({"clip_ratio", "clip_ratio_low", "clip_ratio_high"})


def verl_facts(read: Configuration) -> Facts:
    """Words over the YAML's defaults, and: mode, agg, adv, low, high, n, batch, steps (optimizer
    steps per rollout; None when the batch sizes do not stand in the configuration)."""
    c = facts_of(read, {**VERL_DEFAULTS, **NOT_LOSS})
    c.update(
        mode=c.loss_mode,
        agg=c.loss_agg_mode,
        adv=c.adv_estimator,
        n=c["rollout.n"],
        entry=read.entry,
        batch=c["data.train_batch_size"],
    )
    for side in ("low", "high"):
        word = f"clip_ratio_{side}"
        c[side] = c.clip_ratio if word in read.words and c[word] is None else c[word]
    sizes = c.batch, c.ppo_mini_batch_size, c.ppo_epochs
    if all(isinstance(s, int) and not isinstance(s, bool) and s > 0 for s in sizes):
        c["steps"] = max(1, c.batch // c.ppo_mini_batch_size) * c.ppo_epochs
    return c


VERL_TRAPS: tuple[Trap, ...] = (
    Trap(
        "adv_default",
        lambda c: "adv_estimator" not in c.given,
        lambda c: (
            "algorithm.adv_estimator is not set, and verl's default is 'gae': a critic as "
            "large as the policy, with lam=1.0. For group baselines write "
            "algorithm.adv_estimator=grpo."
        ),
    ),
    Trap(
        "group_of_one",
        lambda c: c.adv in GROUPED and c.n == 1,
        lambda c: (
            f"rollout.n is 1{'' if 'rollout.n' in c.given else ' (the default)'}: for a "
            "group of one verl takes mean 0 and std 1, so A is the reward itself and there "
            "is no baseline. Write actor_rollout_ref.rollout.n=8."
        ),
    ),
    Trap(
        "dead_clip_ratio",
        lambda c: (
            "clip_ratio" in c.given
            and is_number(c.clip_ratio)
            and c.mode not in BANDLESS
            and is_number(c.low)
            and is_number(c.high)
            and c.clip_ratio not in (c.low, c.high)
        ),
        lambda c: (
            f"clip_ratio={number(c.clip_ratio)} is read only where clip_ratio_low or "
            "clip_ratio_high is null, and both default to 0.2: the half-widths stay "
            f"{number(c.low)} and {number(c.high)}. Write "
            f"clip_ratio_low={number(c.clip_ratio)} and "
            f"clip_ratio_high={number(c.clip_ratio)}."
        ),
    ),
    Trap(
        "token_mean_default",
        lambda c: c.adv == "grpo" and c.mode == "vanilla" and "loss_agg_mode" not in c.given,
        lambda c: (
            "loss_agg_mode is not set, and verl's default is 'token-mean', DAPO's: an "
            "answer of 1000 tokens weighs 10 times one of 100. For GRPO's own 1/T_i write "
            "loss_agg_mode=seq-mean-token-mean."
        ),
    ),
    Trap(
        "padded_width",
        lambda c: (
            c.agg == "seq-mean-token-sum-norm"
            and "loss_scale_factor" not in c.given
            and c.mode not in ("sapo", "geo_mean")
        ),
        lambda c: (
            "loss_agg_mode=seq-mean-token-sum-norm without loss_scale_factor divides by the "
            "padded width of the micro-batch, which changes from step to step: padded to "
            "512 a token counts 4 times as much as padded to 2048. Write "
            "loss_scale_factor= and the response limit."
        ),
    ),
    Trap(
        "dr_grpo_std",
        lambda c: (
            c.agg == "seq-mean-token-sum-norm"
            and c.adv == "grpo"
            and c.norm_adv_by_std_in_grpo is True
        ),
        lambda c: (
            "Dr. GRPO's aggregation with norm_adv_by_std_in_grpo=True (the default) does "
            "half of Dr. GRPO: one right answer in 8 gets 2.47 instead of 0.875. Write "
            "algorithm.norm_adv_by_std_in_grpo=False."
        ),
    ),
    Trap(
        "sequence_epsilon",
        lambda c: (
            c.mode == "gspo"
            and is_number(c.low)
            and is_number(c.high)
            and max(c.low, c.high) >= 0.01
        ),
        lambda c: (
            "gspo's ratio is a geometric mean over the answer's tokens, so it stays near 1, "
            f"and clip_ratio_high={number(c.high)} is {c.high / 4e-4:.0f} times GSPO's "
            "4e-4: it practically never clips. Write clip_ratio_low=3e-4, "
            "clip_ratio_high=4e-4."
        ),
    ),
    Trap(
        "sequence_summed",
        lambda c: c.mode == "gspo" and c.agg is not None and c.agg != "seq-mean-token-mean",
        lambda c: (
            f"gspo with loss_agg_mode={c.agg!r}"
            f"{'' if 'loss_agg_mode' in c.given else ' (the default)'} repeats the answer's "
            "value on each token and adds them up: an answer of 1000 tokens weighs 10 times "
            "one of 100. verl 0.9.1 honours the word here (other versions fix it). "
            "Write loss_agg_mode=seq-mean-token-mean."
        ),
    ),
    Trap(
        "token_epsilon",
        lambda c: c.mode == "vanilla" and is_number(c.high) and c.high < 0.01,
        lambda c: (
            f"a band of {number(c.high)} belongs to gspo's sequence ratio; token ratios "
            "move by 0.01 and more, so nearly every token that moves as it should is cut. "
            "Write policy_loss.loss_mode=gspo, or clip_ratio_high=0.2."
        ),
    ),
    Trap(
        "high_is_edge",
        lambda c: c.mode in ("vanilla", "gspo") and is_number(c.high) and 1 <= c.high < 3,
        lambda c: (
            f"clip_ratio_high is added to 1: the upper edge is {number(1 + c.high)}. "
            + (
                f"For an edge of {number(c.high)} write clip_ratio_high={number(c.high - 1)}."
                if c.high > 1
                else "DAPO's edge of 1.28 is clip_ratio_high=0.28; for no upper edge, write "
                "clip_ratio_high=10000."
            )
        ),
    ),
    Trap(
        "cispo_floor",
        lambda c: c.mode == "cispo" and is_number(c.low) and c.low < 1,
        lambda c: (
            "verl's cispo clamps the weight on both sides, here from "
            f"{number(1 - c.low)}: a token that fell to ratio 0.1 is pushed as if it stood "
            f"at {number(1 - c.low)}. The paper leaves the lower side open; write "
            "clip_ratio_low=10."
        ),
    ),
    Trap(
        "cispo_cap",
        lambda c: c.mode == "cispo" and is_number(c.high) and c.high < 1,
        lambda c: (
            f"cispo's cap is 1 + clip_ratio_high = {number(1 + c.high)} (in TRL the word is "
            "the cap itself). ScaleRL's cap of 5.0 is clip_ratio_high=4.0."
        ),
    ),
    Trap(
        "geo_mean_log",
        lambda c: (
            c.mode == "geo_mean"
            and is_number(c.low)
            and is_number(c.high)
            and (c.low, c.high) != (0.4, 0.4)
        ),
        lambda c: (
            f"geo_mean's band is in log space: {number(c.low)} and {number(c.high)} allow "
            f"ratios from {exp(-c.low):.3f} to {exp(c.high):.3f}. GMPO's 0.4 allows 0.670 "
            "to 1.492. Write clip_ratio_low=0.4, clip_ratio_high=0.4."
        ),
    ),
    Trap(
        "dppo_band",
        lambda c: (
            c.mode in ("dppo_tv", "dppo_kl") and not {"clip_ratio_low", "clip_ratio_high"} & c.given
        ),
        lambda c: (
            "dppo reads clip_ratio_low and clip_ratio_high as "
            + ("probability differences" if c.mode == "dppo_tv" else "divergences in nats")
            + ", and their default is 0.2. The authors use "
            + ("0.15." if c.mode == "dppo_tv" else "0.05.")
            + " Write both."
        ),
    ),
    Trap(
        "dppo_cap",
        lambda c: (
            c.mode in ("dppo_tv", "dppo_kl") and is_number(c.clip_ratio_c) and c.clip_ratio_c < 20
        ),
        lambda c: (
            f"clip_ratio_c={number(c.clip_ratio_c)}"
            f"{'' if 'clip_ratio_c' in c.given else ' (the default)'} caps dppo's ratio; "
            "the 20 in its own code is never reached, and the authors advise a large cap. "
            "Write clip_ratio_c=20."
        ),
    ),
    Trap(
        "dppo_anchor",
        lambda c: c.mode in ("dppo_tv", "dppo_kl") and c.bypass_mode is False,
        lambda c: (
            "dppo measures from the policy that sampled; with bypass_mode=False (the "
            "default) verl measures from log-probs that the trainer computed again, 1 more "
            "forward pass, and the engine's gap is not seen. Write "
            "algorithm.rollout_correction.bypass_mode=True."
        ),
    ),
    Trap(
        "bypass_old_trainer",
        lambda c: (
            c.bypass_mode is True
            and c["trainer.use_v1"] is False
            and c.mode not in (None, "vanilla")
        ),
        lambda c: (
            f"with trainer.use_v1=False bypass_mode=True replaces loss_mode={c.mode} by a "
            f"clip of {number(c.low) if is_number(c.low) else 'clip_ratio_low'} and "
            f"{number(c.high) if is_number(c.high) else 'clip_ratio_high'}. Write "
            "trainer.use_v1=True, where only the old log-probs change."
        ),
    ),
    Trap(
        "dual_clip",
        lambda c: c.mode == "vanilla" and is_number(c.clip_ratio_c) and c.clip_ratio_c < 100,
        lambda c: (
            "the dual clip is always on: with A < 0 a token above ratio "
            f"{number(c.clip_ratio_c)} (clip_ratio_c) gets no gradient, though it moved the "
            "wrong way. PPO, GRPO and DAPO as published have none; write "
            "clip_ratio_c=10000."
        ),
    ),
    Trap(
        "cap_unread",
        lambda c: (
            "clip_ratio_c" in c.given
            and c.mode is not None
            and c.mode not in ("vanilla", "dppo_tv", "dppo_kl")
        ),
        lambda c: (
            f"clip_ratio_c is not read with loss_mode={c.mode}, which has no dual clip: "
            f"{c.clip_ratio_c} changes nothing. Take it out."
        ),
    ),
    Trap(
        "band_unread",
        lambda c: c.mode in BANDLESS and BAND & c.given,
        lambda c: (
            f"{', '.join(sorted(BAND & c.given))}: not read with loss_mode={c.mode}, which "
            "has no clip. "
            + (
                "Its gate has tau_pos=1.0 and tau_neg=1.05."
                if c.mode == "sapo"
                else "Nothing bounds the ratio there; use ppo_epochs=1 and few minibatches."
            )
        ),
    ),
    Trap(
        "agg_unread",
        lambda c: (
            c.mode in ("sapo", "geo_mean")
            and c.agg != "seq-mean-token-mean"
            and ("loss_agg_mode" in c.given or c.use_kl_loss is True or c.entropy_coeff)
        ),
        lambda c: (
            f"loss_mode={c.mode} takes the mean of each answer and then of the answers, "
            f"whatever loss_agg_mode says; the KL loss and the entropy bonus follow "
            f"{c.agg!r}, so an answer of 1000 tokens weighs 10 times one of 100 in them "
            "alone. Write loss_agg_mode=seq-mean-token-mean."
        ),
    ),
    Trap(
        "geo_mean_rows",
        lambda c: c.mode == "geo_mean" and c.use_dynamic_bsz is True,
        lambda c: (
            "geo_mean averages over the rows of a micro-batch and not of the step, and "
            "use_dynamic_bsz=True makes micro-batches unequal: an answer in one of 4 rows "
            "weighs twice one in a micro-batch of 8. Write use_dynamic_bsz=False."
        ),
    ),
    *KL_TRAPS,
    Trap(
        "kl_cov_coef",
        lambda c: c.mode == "kl_cov" and "ppo_kl_coef" not in c.given,
        lambda c: (
            "ppo_kl_coef is not set, and the configuration's default is 0.1; the loss "
            "function's own docstring and KL-Cov's paper have 1. Write "
            "policy_loss.ppo_kl_coef=1.0."
        ),
    ),
    Trap(
        "one_step",
        lambda c: (
            c.steps == 1
            and (
                c.given & {*BAND, "clip_ratio_c", "tau_pos", "tau_neg"}
                or c.mode not in ("vanilla", None)
            )
            and c.mode not in ("kl_cov", "gpg")
        ),
        lambda c: (
            f"one optimizer step per rollout (data.train_batch_size={c.batch}, "
            f"ppo_mini_batch_size={c.ppo_mini_batch_size}, ppo_epochs=1): every ratio is 1 "
            "and no clip, cap or gate acts, so all loss modes differ only in how they "
            "average. For reuse write a smaller ppo_mini_batch_size or ppo_epochs=2."
        ),
    ),
    Trap(
        "dapo_filter",
        lambda c: (
            c.adv == "grpo"
            and c.mode == "vanilla"
            and c.agg == "token-mean"
            and is_number(c.high)
            and is_number(c.low)
            and c.high > c.low
            and c["filter_groups.enable"] is False
        ),
        lambda c: (
            "this is DAPO's band and mean without its dynamic sampling: groups whose "
            f"answers all agree stay in. At n={c.n} a prompt solved nine times in ten is "
            f"mixed {mixed(0.9, c.n) if is_number(c.n) else 'only part'} of the time. "
            "Write algorithm.filter_groups.enable=True (DAPO trainer only)."
        ),
    ),
    Trap(
        "filter_main_ppo",
        lambda c: (
            c["filter_groups.enable"] is True
            and str(c.entry).endswith("verl.trainer.main_ppo")
            and c["trainer.use_v1"] is not True
        ),
        lambda c: (
            "filter_groups.enable=True under verl.trainer.main_ppo filters only in the v1 trainer "
            "of verl 0.9; its other trainer and every version before 0.9 read the word and keep "
            "all groups. Write trainer.use_v1=True, or start recipe.dapo.main_dapo."
        ),
    ),
    Trap(
        "small_group",
        lambda c: c.adv in GROUPED and is_number(c.n) and 2 <= c.n <= 4,
        lambda c: (
            f"rollout.n={c.n}: a prompt solved once in ten gives a mixed group only "
            f"{mixed(0.1, c.n)} of the time, and an equal group teaches nothing. Write "
            f"rollout.n=8 ({mixed(0.1, 8)}) or 16 ({mixed(0.1, 16)})."
        ),
    ),
    Trap(
        "cut_distribution",
        lambda c: (
            (is_number(c["rollout.top_p"]) and c["rollout.top_p"] < 1)
            or (is_number(c["rollout.top_k"]) and c["rollout.top_k"] > 0)
        ),
        lambda c: (
            "rollout sampling is cut (top_p or top_k) while the loss takes log-probs of the "
            "whole distribution, so even on fresh data the ratio is not that of the policy "
            "that sampled. Write rollout.top_p=1.0, rollout.top_k=-1."
        ),
    ),
    Trap(
        "temperature",
        lambda c: is_number(c["rollout.temperature"]) and c["rollout.temperature"] != 1,
        lambda c: (
            f"rollout.temperature={number(c['rollout.temperature'])} divides the logits in "
            "sampling and in the loss: what is trained is the policy at that temperature. "
            "Validate with the same (rollout.val_kwargs.temperature), or write 1.0."
        ),
    ),
)
