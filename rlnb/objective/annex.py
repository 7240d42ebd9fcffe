"""Proposals shown on page 14: compositions that have a name, beside the zoo's.

They are here to be read, compared and recognised in a configuration. Where a number or a formula
could not be verified in the paper or its code, the line says so.
"""

from __future__ import annotations

from rlnb.objective import ratios
from rlnb.objective.advantages import group_center, group_zscore
from rlnb.objective.composition import Objective
from rlnb.objective.credit import entropy_shaped, length_preference, press_top
from rlnb.objective.gates import clip_cov, sequence_mask
from rlnb.objective.surrogates import clip, kl_cov, ratio, vespo
from rlnb.objective.terms import k3
from rlnb.objective.weights import sequence_mean, sequence_sum, token_mean

__all__ = ["ANNEX"]

_zscore = group_zscore()

ANNEX: dict[str, Objective] = {
    # GSPO's ratio, each answer weighed by its length; TRL's band                  2602.05261
    "luspo": Objective(_zscore, clip(2e-3, high=2.5e-3), sequence_sum, ratio=ratios.sequence()),
    # a smooth weight on the true importance ratio of the answer                    2602.10693
    "vespo": Objective(_zscore, vespo(), token_mean, ratio=ratios.product()),
    # geometric mean of soft gates: sigmoids in its first version, later an arctan of the log-ratio
    # (so two readers' notes; the equation was not seen)                            2602.19327
    "sspo": Objective(_zscore, ratio(), sequence_mean, ratio=ratios.soft_sequence(gate="arctan")),
    # a few high-covariance tokens lose their gradient; the authors' script sets the ratio's band to
    # [0, 2], so wide that it hardly cuts (verl's default band is 0.8 to 1.2)       2505.22617
    "clip_cov": Objective(_zscore, clip(1.0), token_mean, gates=clip_cov(epsilon=1.0)),
    # ... or pay for moving; no clip. 2 in 10,000 tokens (32B); their 7B run 20     2505.22617
    "kl_cov": Objective(_zscore, kl_cov(), token_mean),
    # at fork tokens: lift the top K when right, press the top 1 when wrong         2510.14807
    "simko": Objective(_zscore, clip(0.2), token_mean, ratio=ratios.topk_mix(), credit=press_top()),
    # the loss of an answer weighed by its length; lambda is learned in the paper   2510.06870
    "lambda_grpo": Objective(_zscore, clip(0.2), token_mean, credit=length_preference()),
    # a detached entropy bonus on the advantage                                     2506.14758
    "entropy_shaped": Objective(_zscore, clip(0.2), token_mean, credit=entropy_shaped()),
    # DeepSeek-V3.2: no std, corrected KL, bad answers far from the engine's policy masked; beta and
    # delta are not published, GRPO's 0.04 and TRL's 0.5 stand in                   2512.02556
    "deepseek_v3_2": Objective(
        group_center(),
        clip(0.2),
        sequence_mean,
        gates=sequence_mask(0.5, anchor="sampling"),
        terms=k3(0.04, corrected=True),
    ),
}
