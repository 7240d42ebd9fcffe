"""One question, five answers: the same setting in the papers, here, in TRL, verl and OpenRLHF.

TRL's and verl's cells carry the defaults they quote (`defaults`), which the tests compare with the
library and with a recording of it. OpenRLHF is not installed here: its cells are as read in its
code.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LIBRARIES", "Row", "Table", "rosetta"]

WIDTH = 76
LIBRARIES = {
    "papers": "as published",
    "rlnb": "this package's parts and zoo",
    "trl": "TRL 1.16.0, as installed and run",
    "verl": "verl 0.9.1, its losses as run, its YAML defaults",
    "openrlhf": "OpenRLHF at commit 3c3be62, as read in code on 2026-08-13",
}


@dataclass(frozen=True)
class Row:
    """One question and a cell per library. defaults: {library: {word: default value}}."""

    question: str
    papers: str
    rlnb: str
    trl: str
    verl: str
    openrlhf: str
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __getitem__(self, library: str) -> str:
        return getattr(self, library)


@dataclass(frozen=True)
class Table:
    """Rows of the comparison; iterate it, or print it (at most 76 columns)."""

    rows: tuple[Row, ...]
    libraries: tuple[str, ...]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        lines = [line for name in self.libraries for line in _cell(name, LIBRARIES[name])]
        for row in self.rows:
            lines += ["", row.question]
            for name in self.libraries:
                lines += _cell(name, row[name])
        return "\n".join(lines)

    __repr__ = __str__


def rosetta(library: str | None = None) -> Table:
    """The comparison of all libraries, or one library's column. Raises ValueError for another name.

    >>> print(str(rosetta("trl")).splitlines()[3])
      trl       'dapo' (loss_type): the token mean, band 0.2, no KL
    """
    if library is None:
        return Table(ROWS, tuple(LIBRARIES))
    name = library.lower().removesuffix(" 1.16.0").removesuffix(" 0.9.1")
    if name not in LIBRARIES:
        raise ValueError(f"there is no column {library!r}; the columns are {', '.join(LIBRARIES)}.")
    return Table(ROWS, (name,))


def _cell(name: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"  {name:<10}",
        subsequent_indent=" " * 12,
        break_on_hyphens=False,
    )


ROWS: tuple[Row, ...] = (
    Row(
        "What runs when nothing is set",
        papers="-",
        rlnb="nothing is set silently: a method is named, ZOO['grpo']",
        trl="'dapo' (loss_type): the token mean, band 0.2, no KL",
        verl="'vanilla' (loss_mode) with adv_estimator 'gae': PPO with a critic and a dual clip",
        openrlhf="PPO's clipped loss on the chosen advantage.estimator",
        defaults={
            "trl": {"loss_type": "dapo"},
            "verl": {"loss_mode": "vanilla", "adv_estimator": "gae"},
        },
    ),
    Row(
        "Advantage of GRPO: which std",
        papers="not stated",
        rlnb="population (divide by G); group_zscore('bessel') for the others",
        trl="Bessel (divide by G - 1)",
        verl="Bessel (divide by G - 1)",
        openrlhf="Bessel (group_norm); the global z-score has the population's",
    ),
    Row(
        "Advantage of GRPO: what is added to the std",
        papers="not stated",
        rlnb="1e-6",
        trl="1e-4",
        verl="1e-6",
        openrlhf="1e-9",
    ),
    Row(
        "Leaving the std out (Dr. GRPO)",
        papers="A = r - mean",
        rlnb="group_center()",
        trl="scale_rewards='none'; the default 'group' stays with loss_type='dr_grpo'",
        verl="norm_adv_by_std_in_grpo=False; default True",
        openrlhf="advantage.estimator=dr_grpo, which leaves the averaging alone",
        defaults={"trl": {"scale_rewards": "group"}, "verl": {"norm_adv_by_std_in_grpo": True}},
    ),
    Row(
        "Dividing by something else (MaxRL, ScaleRL)",
        papers="MaxRL (r - mean)/mean; ScaleRL one std for the batch, of the centred rewards",
        rlnb="max_rl(); batch_zscore('group', of='centred')",
        trl="no word; scale_rewards='batch' has the std of the raw rewards",
        verl="no word in 0.9.1",
        openrlhf="not read",
    ),
    Row(
        "A group whose rewards are all equal",
        papers="0/0 as printed; DAPO filters such prompts out",
        rlnb="exactly 0",
        trl="rounding over 1e-4: 0 for rewards 0 and 1, at most 0.001 for twelve 0.7",
        verl="rounding over 1e-6: 0 for rewards 0 and 1, up to 0.11 for twelve 0.7; "
        "filter_groups.enable (default False) drops them in the DAPO trainer",
        openrlhf="rounding over 1e-9; dynamic filtering is an option",
        defaults={"verl": {"filter_groups.enable": False}},
    ),
    Row(
        "A group of one",
        papers="-",
        rlnb="refused, in a sentence",
        trl="refused: num_generations is at least 2; default 8 (RLOO 2)",
        verl="mean 0, std 1: A is the raw reward; rollout.n defaults to 1",
        openrlhf="not read",
        defaults={
            "trl": {"num_generations": 8},
            "trl_rloo": {"num_generations": 2},
            "verl": {"rollout.n": 1},
        },
    ),
    Row(
        "Averaging: each answer counts the same (GRPO, GSPO)",
        papers="1/G, then 1/T_i",
        rlnb="sequence_mean",
        trl="loss_type='grpo' or 'sapo'",
        verl="loss_agg_mode='seq-mean-token-mean' (T_i + 1e-8); sapo always",
        openrlhf="token_level_loss=False; gspo always",
    ),
    Row(
        "Averaging: each token counts the same (DAPO, CISPO)",
        papers="DAPO prints the tokens of one prompt's group as the divisor",
        rlnb="token_mean (the step); prompt_mean is DAPO as printed",
        trl="loss_type='dapo' (the default) or 'cispo': the optimizer step's share of the "
        "generation batch; 'bnpo': the micro-batch",
        verl="loss_agg_mode='token-mean' (the default): the minibatch",
        openrlhf="token_level_loss=True",
        defaults={"trl": {"loss_type": "dapo"}, "verl": {"loss_agg_mode": "token-mean"}},
    ),
    Row(
        "Averaging: a constant length (Dr. GRPO)",
        papers="1/L with L a constant",
        rlnb="constant_length(L), or the batch's max_completion_length",
        trl="loss_type='dr_grpo'; L is max_completion_length, default 512",
        verl="'seq-mean-token-sum-norm'; L is loss_scale_factor, default None: the padded width",
        openrlhf="none",
        defaults={"trl": {"max_completion_length": 512}, "verl": {"loss_scale_factor": None}},
    ),
    Row(
        "An answer whose tokens are all masked",
        papers="-",
        rlnb="contributes 0; count_empty says whether it counts in the divisor",
        trl="contributes 0 and counts in per-answer means; not in token counts",
        verl="contributes 0 and counts when the trainer gives the batch size, as it does",
        openrlhf="not read",
    ),
    Row(
        "Ratio: per token, or per answer",
        papers="token; GSPO: geometric mean; RLOO: product",
        rlnb="token, sequence, sequence_token, product, gmpo",
        trl="importance_sampling_level 'token' (default) or 'sequence' = geometric mean; "
        "RLOOTrainer: product",
        verl="loss_mode: gspo has GSPO-token's, geo_mean clips tokens first; the rest token",
        openrlhf="policy_loss_type=gspo: geometric mean; else token",
        defaults={"trl": {"importance_sampling_level": "token"}},
    ),
    Row(
        "Clip: the band",
        papers="PPO 0.2; DAPO 0.2 and 0.28; GSPO 3e-4 and 4e-4; DeepSeekMath states none",
        rlnb="clip(0.2, high=0.28): edges 0.8 and 1.28",
        trl="epsilon 0.2, epsilon_high None: the same",
        verl="clip_ratio_low 0.2, clip_ratio_high 0.2; clip_ratio 0.2 is dead unless one is null",
        openrlhf="eps_clip_low_high, 0.2 and 0.2",
        defaults={
            "trl": {"epsilon": 0.2, "epsilon_high": None},
            "verl": {"clip_ratio_low": 0.2, "clip_ratio_high": 0.2, "clip_ratio": 0.2},
        },
    ),
    Row(
        "Dual clip: a cap on the ratio where A < 0",
        papers="c = 3 (1912.09729); not in PPO, GRPO, DAPO",
        rlnb="off; clip(0.2, dual=3.0)",
        trl="delta, default None: off; at or inside the band it cuts both signs",
        verl="always on with vanilla: clip_ratio_c 3.0; the same word caps dppo's ratio",
        openrlhf="dual_clip, default None: off",
        defaults={"trl": {"delta": None}, "verl": {"clip_ratio_c": 3.0}},
    ),
    Row(
        "CISPO: what the number means",
        papers="upper side only; no value published; ScaleRL 5",
        rlnb="cispo(cap): the cap itself, 5.0; floor is open",
        trl="epsilon_high is the cap itself; default None, then epsilon: a cap of 0.2",
        verl="clip_ratio_high 0.2 is a cap of 1.2, clip_ratio_low 0.2 a floor of 0.8",
        openrlhf="none",
        defaults={
            "trl": {"epsilon_high": None, "epsilon": 0.2},
            "verl": {"clip_ratio_high": 0.2, "clip_ratio_low": 0.2},
        },
    ),
    Row(
        "GMPO: the unit of the band",
        papers="0.4 in log space: ratios 0.670 to 1.492",
        rlnb="gmpo(0.4), log space",
        trl="GMPOConfig epsilon 0.4, log space",
        verl="geo_mean reads clip_ratio_low and _high in log space; default 0.2",
        openrlhf="none",
        defaults={"trl_gmpo": {"epsilon": 0.4}, "verl": {"clip_ratio_low": 0.2}},
    ),
    Row(
        "SAPO: the temperatures for A > 0 and A <= 0",
        papers="1.0 and 1.05",
        rlnb="sapo(tau_pos=1.0, tau_neg=1.05)",
        trl="sapo_temperature_pos 1.0, sapo_temperature_neg 1.05",
        verl="actor.tau_pos 1.0, actor.tau_neg 1.05 (policy_loss.tau_pos is not read)",
        openrlhf="none",
        defaults={
            "trl": {"sapo_temperature_pos": 1.0, "sapo_temperature_neg": 1.05},
            "verl": {"tau_pos": 1.0, "tau_neg": 1.05},
        },
    ),
    Row(
        "DPPO: how far a token's probability may move",
        papers="TV 0.15 or KL 0.05, from the rollout engine; the ratio capped at a large C",
        rlnb="cispo(20.0) with divergence_mask(0.15, anchor='sampling'); kind='kl', top_k=True",
        trl="no word",
        verl="loss_mode 'dppo_tv', 'dppo_kl': clip_ratio_low, _high 0.2 are the thresholds, "
        "clip_ratio_c 3.0 the cap; the engine's log-probs with bypass_mode, default False",
        openrlhf="not read",
        defaults={"verl": {"clip_ratio_low": 0.2, "clip_ratio_c": 3.0, "bypass_mode": False}},
    ),
    Row(
        "A bad answer that became unlikely (DeepSeek-V3.2)",
        papers="masked where A < 0 and the mean of log(old/new) is above a threshold; no number",
        rlnb="sequence_mask(0.5, anchor='sampling')",
        trl="off_policy_mask_threshold, default None: off; it suggests 0.5",
        verl="no word; rollout_rs (null: off) masks whatever the sign of A",
        openrlhf="not read",
        defaults={"trl": {"off_policy_mask_threshold": None}, "verl": {"rollout_rs": None}},
    ),
    Row(
        "KL in the loss: coefficient",
        papers="DeepSeekMath 0.04; R1 0.001; DAPO, Dr. GRPO none",
        rlnb="ZOO['grpo'] has k3(0.04); no other loss has one",
        trl="beta 0.0: off, no reference model",
        verl="use_kl_loss False: off; kl_loss_coef 0.001 then does nothing",
        openrlhf="kl.use_loss off; kl.init_coef 0.01",
        defaults={"trl": {"beta": 0.0}, "verl": {"use_kl_loss": False, "kl_loss_coef": 0.001}},
    ),
    Row(
        "KL in the loss: form",
        papers="k3 (GRPO); ratio times k3 (DeepSeek-V3.2)",
        rlnb="k1, k2, k3; corrected=True for V3.2",
        trl="k3 times the undetached ratio: use_bias_correction_kl True",
        verl="kl_loss_type 'low_var_kl': k3, clamped to 10; 'k3+' has k2's gradient",
        openrlhf="k1, k2 or k3, each clamped to 10; it advises k2 or k3",
        defaults={"trl": {"use_bias_correction_kl": True}, "verl": {"kl_loss_type": "low_var_kl"}},
    ),
    Row(
        "KL in the reward",
        papers="RLHF's PPO: k1 per token; RLOO: k1 summed",
        rlnb="kl_in_reward(0.05)",
        trl="RLOOConfig beta 0.05, summed over the answer; GRPOTrainer has none",
        verl="use_kl_in_reward False; kl_penalty 'kl' (k1), kl_coef 0.001",
        openrlhf="the default place; kl.init_coef 0.01, k1",
        defaults={
            "trl_rloo": {"beta": 0.05},
            "verl": {"use_kl_in_reward": False, "kl_penalty": "kl", "kl_coef": 0.001},
        },
    ),
    Row(
        "Steps per rollout before the ratio leaves 1",
        papers="DeepSeekMath 1; GSPO 4 minibatches",
        rlnb="the loop's; old_logprobs=None means exactly 1",
        trl="num_iterations 1, steps_per_generation None = one step: the ratio is 1",
        verl="ppo_epochs 1, and data.train_batch_size over ppo_mini_batch_size (256) steps",
        openrlhf="by its epochs and batch sizes",
        defaults={
            "trl": {"num_iterations": 1, "steps_per_generation": None},
            "verl": {"ppo_epochs": 1, "ppo_mini_batch_size": 256},
        },
    ),
    Row(
        "Trainer against rollout engine",
        papers="truncate at C (TIS), or mask outside a band (IcePop)",
        rlnb="engine_ratio(); off unless the part is there",
        trl="use_vllm False: off; with it 'sequence_mask' at 3.0, the product over the answer",
        verl="rollout_is null: off; bypass_mode False: the ratio is against the trainer's own",
        openrlhf="tis, icepop or seq-mask-tis, from 0.5 to 5.0",
        defaults={
            "trl": {
                "use_vllm": False,
                "vllm_importance_sampling_mode": "sequence_mask",
                "vllm_importance_sampling_clip_max": 3.0,
            },
            "verl": {"rollout_is": None, "bypass_mode": False},
        },
    ),
    Row(
        "GAE: lambda, and whitening",
        papers="0.95; whitening is a habit of implementations",
        rlnb="gae(gamma=1.0, lam=0.95); whiten() as a credit part",
        trl="no PPO trainer in 1.16.0",
        verl="lam 1.0, gamma 1.0; whitened, Bessel",
        openrlhf="1.0; whitened, population",
        defaults={"verl": {"lam": 1.0, "gamma": 1.0}},
    ),
)
