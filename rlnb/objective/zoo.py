"""The named methods, one line each: a baseline, and a way to tame the importance ratio.

`difference(ZOO["grpo"], ZOO["dr_grpo"])` says what a method changes; `.replace(...)` changes more.
Where a paper states a number it stands here; what papers leave open (which std, eps, the constant
length) is a convention of the part and does not change the name.

"race ROW, ARM: +x" is a result of `rlnb.training.studies.race`: pass@1 (MaxRL: pass@16) of small
policies against the arm's rival, GRPO with one mean over tokens, at equal answers and tuned rates.
"""

from __future__ import annotations

from rlnb.objective.advantages import (
    batch_mean,
    batch_zscore,
    gae,
    greedy_baseline,
    group_center,
    group_zscore,
    leave_one_out,
    max_rl,
    raw_reward,
    return_to_go,
)
from rlnb.objective.composition import Objective
from rlnb.objective.credit import mgpo_weight, whiten
from rlnb.objective.gates import divergence_mask
from rlnb.objective.ratios import gmpo, sequence, sequence_token, token
from rlnb.objective.shapes import kl_in_reward
from rlnb.objective.surrogates import cispo, clip, logprob, ratio, sapo
from rlnb.objective.terms import k3
from rlnb.objective.weights import (
    constant_length,
    prompt_mean,
    sequence_mean,
    sequence_sum,
    token_mean,
)

__all__ = ["ZOO"]

# the ratio only weighs, and the anchor is the rollout engine; the gate says what is dropped
_dppo = Objective(group_center(), cispo(20.0), constant_length(), ratio=token("sampling"))

ZOO: dict[str, Objective] = {
    # A = r, loss -(1/B) sum_i r_i sum_t log pi                              Williams 1992
    "reinforce": Objective(raw_reward(), logprob(), sequence_sum),
    # A = r - batch mean: the cheapest baseline
    "reinforce_batch_mean": Objective(batch_mean(), logprob(), sequence_sum),
    # A = r - mean of the other answers to the prompt: unbiased              2402.14740
    "rloo": Objective(leave_one_out(), logprob(), sequence_sum),
    # A = r - reward of the greedy answer                                    2310.10505
    "remax": Objective(greedy_baseline(), logprob(), sequence_sum),
    # A = KL-penalised return to go, z-scored over the batch's tokens        2501.03262
    "reinforce_plus_plus": Objective(
        return_to_go(), clip(0.2), token_mean, shape=kl_in_reward(0.01), credit=whiten()
    ),
    # A from a critic; min(rho A, clip(rho) A)                               1707.06347, 1506.02438
    "ppo": Objective(gae(gamma=1.0, lam=0.95), clip(0.2), token_mean),
    # A = (r - mean)/std of the group; 1/T_i; KL in the loss                 2402.03300
    "grpo": Objective(group_zscore(), clip(0.2), sequence_mean, terms=k3(0.04)),
    # GRPO with a higher upper edge, one mean over tokens, no KL             2503.14476
    "dapo": Objective(group_zscore(), clip(0.2, high=0.28), token_mean),
    # GRPO without its two divisors and without KL                           2503.20783
    "dr_grpo": Objective(group_center(), clip(0.2), constant_length()),
    # race stale, GSPO, k = 4: -0.033; with a hundred times the band,
    # race stale, GSPO wide, k = 4: +0.028
    # one ratio per answer, the geometric mean; a band 500 to 700 times narrower   2507.18071
    "gspo": Objective(group_zscore(), clip(3e-4, high=4e-4), sequence_mean, ratio=sequence()),
    # the same value, the gradient token by token: for advantages that differ inside an answer
    "gspo_token": Objective(
        group_zscore(), clip(3e-4, high=4e-4), sequence_mean, ratio=sequence_token()
    ),
    # the tokens are clipped before their geometric mean, in log space       2507.20673
    "gmpo": Objective(group_zscore(), ratio(), sequence_mean, ratio=gmpo(0.4)),
    # the ratio caps the weight and is never differentiated: no dead token   2506.13585
    # race stale, CISPO, k = 4: -0.074; race stale, CISPO, k = 16: +0.089
    "cispo": Objective(group_zscore(), cispo(5.0), token_mean),
    # a smooth gate in place of the clip                                     2511.20347
    # race stale, SAPO, k = 4: -0.127
    "sapo": Objective(group_zscore(), sapo(), sequence_mean),
    # race stale, DPPO, k = 16: +0.145, and undecided at k = 4
    # a token is dropped when its probability moved .15 and is pushed on; .15, .05 and the cap are
    # those of verl's examples/dppo_trainer                                    2602.04879
    "dppo": _dppo.replace(gates=divergence_mask(0.15, anchor="sampling")),
    "dppo_kl": _dppo.replace(gates=divergence_mask(0.05, kind="kl", anchor="sampling")),
    "dppo_topk": _dppo.replace(gates=divergence_mask(0.15, anchor="sampling", top_k=True)),
    # CISPO with one std for the batch and one mean per prompt, against the engine   2510.13786
    "scalerl": Objective(
        batch_zscore("group", of="centred"), cispo(5.0), prompt_mean, ratio=token("sampling")
    ),
    # A = (r - mean)/mean: the gradient of log p(success)                    2602.02710
    # race passk, MaxRL: +0.023
    "maxrl": Objective(max_rl(), logprob(), sequence_sum),
    # GRPO with more weight on prompts near one half                         2511.06221
    "mgpo": Objective(group_zscore(), clip(0.2), sequence_mean, credit=mgpo_weight(4.0)),
}
