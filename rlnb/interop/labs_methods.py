"""Methods, in the configuration that their authors' scripts or papers run."""

from __future__ import annotations

from rlnb.interop.labs_row import Lab, edge_weight, mean_over_right, right_likelihood, tapered
from rlnb.objective import (
    ANNEX,
    ZOO,
    Objective,
    cispo,
    clip,
    group_zscore,
    kl_cov,
    max_rl,
    product,
    ratio,
    raw_reward,
    return_to_go,
    sequence_sum,
    term,
    token,
    token_mean,
    token_sum,
    top_entropy,
)

__all__ = ["METHODS"]

_RIGHT = term(0.1, right_likelihood, mean_over_right)

METHODS: tuple[Lab, ...] = (
    Lab(
        "80/20",
        ZOO["dapo"].replace(gates=top_entropy(0.2)),
        "dapo",
        "the authors' script and core_algos.py at 6f5dda6, arXiv 2506.01939",
        "A",
        updates=16,
        outside="the authors divide by the kept tokens: about five times the step",
    ),
    Lab(
        "SAPO",
        ZOO["sapo"],
        "sapo",
        "verl's example and TRL's paper index, after arXiv 2511.20347",
        "B",
    ),
    Lab(
        "DPPO",
        ZOO["dppo"].replace(surrogate=cispo(1e4)),
        "dppo",
        "verl's example at 1dda039; the mask in sail-sg/Stable-RL at c6af1d1, arXiv 2602.04879",
        "B",
        updates=8,
        outside="the example divides by the padded length; 0.05 where the divergence is a KL",
    ),
    Lab(
        "MaxRL",
        Objective(max_rl(), clip(0.2, dual=3.0), token_mean),
        "maxrl",
        "tajwarfahim/maxrl at c0698eb, run_qwen3_training.sh and core_algos.py, arXiv 2602.02710",
        "A",
        updates=1,
        outside="with one update the clip is idle",
    ),
    Lab(
        "Clip-Cov",
        ANNEX["clip_cov"],
        "dapo",
        "the authors' recipe/dapo at 8850579, arXiv 2505.22617",
        "A",
        updates=8,
    ),
    Lab(
        "KL-Cov, 32B",
        ANNEX["kl_cov"],
        "dapo",
        "the authors' recipe/dapo at 8850579, arXiv 2505.22617",
        "A",
        updates=8,
    ),
    Lab(
        "KL-Cov, 7B",
        ANNEX["kl_cov"].replace(surrogate=kl_cov(2e-3)),
        "kl_cov",
        "the authors' recipe/dapo at 8850579, arXiv 2505.22617",
        "A",
        updates=8,
    ),
    Lab(
        "SimKO",
        ANNEX["simko"],
        "dapo",
        "CLR-Lab/SimKO at 306f4ff, run_qwen2.5-math-7b_SimKO.sh and core_algos.py",
        "A",
        updates=4,
        outside="that code's token mean is over the micro-batch",
    ),
    Lab(
        "GPPO (Klear)",
        Objective(group_zscore(), edge_weight(0.2, band_high=0.28), token_mean, terms=_RIGHT),
        "dapo",
        "arXiv 2508.07629, section 3.2; Kwai-Klear/CE-GPPO at 10558fe, core_algos.py",
        "A",
        updates=8,
        unknown=("lower edge",),
        outside="8 updates in mathematics, 4 in code; the likelihood's mean is over the right "
        "tokens of a micro-batch",
    ),
    Lab(
        "CE-GPPO, 7B",
        Objective(group_zscore(), edge_weight(0.2, low=0.75, dual=10.0), token_mean, terms=_RIGHT),
        "GPPO (Klear)",
        "Kwai-Klear/CE-GPPO at 10558fe, script of the 7B run and core_algos.py, arXiv 2509.20712",
        "A",
        updates=8,
        outside="0.5 in place of 0.75 for 1.5B; equal groups filtered",
    ),
    Lab(
        "TOPR",
        Objective(raw_reward(), tapered(), sequence_sum, ratio=product()),
        "reinforce",
        "readers' notes that quote the update of arXiv 2503.14286",
        "C",
        outside="rewards have a sign, and their baseline decides what counts as wrong",
    ),
    Lab(
        "On-policy distillation",
        Objective(return_to_go(gamma=0.0), ratio(), token_sum, ratio=token("sampling")),
        "GLM-5 distillation",
        "Thinking Machines' tinker-cookbook at 9dfcc3a, train_on_policy.py; its library's losses",
        "A",
        updates=1,
        outside="a token's reward is log teacher - log student; groups of 4",
    ),
    Lab(
        "GDPO",
        None,
        "grpo",
        "NVlabs/GDPO at b080e63, ray_trainer.py and train_gdpo.sh, arXiv 2601.05242",
        "A",
        updates=4,
        why_not="it z-scores each reward before it sums them, and a batch here holds one number "
        "per answer; rlnb.objective.several_rewards makes its advantages",
    ),
)
