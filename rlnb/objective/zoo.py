"""The named methods, one line each: a baseline, and a way to tame the importance ratio.

`difference(ZOO["grpo"], ZOO["dr_grpo"])` says what a method changes; `.replace(...)` changes more.
Where a paper states a number it stands here; what papers leave open (which std, eps, the constant
length) is a convention of the part and does not change the name.
"""

from __future__ import annotations

import difflib

from rlnb.objective import ratios, surrogates
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
from rlnb.objective.annex import ANNEX
from rlnb.objective.composition import Objective
from rlnb.objective.credit import mgpo_weight, whiten
from rlnb.objective.gates import divergence_mask
from rlnb.objective.ratios import sequence, sequence_token, token
from rlnb.objective.report import Difference, difference
from rlnb.objective.shapes import kl_in_reward
from rlnb.objective.surrogates import clip, logprob, ratio
from rlnb.objective.terms import k3
from rlnb.objective.weights import (
    constant_length,
    prompt_mean,
    sequence_mean,
    sequence_sum,
    token_mean,
)

__all__ = ["ZOO", "closest", "method", "name_of", "neighbours"]

# A = r, loss -(1/B) sum_i r_i sum_t log pi                              Williams 1992
reinforce = Objective(raw_reward(), logprob(), sequence_sum)
# A = r - batch mean: the cheapest baseline
reinforce_batch_mean = Objective(batch_mean(), logprob(), sequence_sum)
# A = r - mean of the other answers to the prompt: unbiased              2402.14740
rloo = Objective(leave_one_out(), logprob(), sequence_sum)
# A = r - reward of the greedy answer                                    2310.10505
remax = Objective(greedy_baseline(), logprob(), sequence_sum)
# A = KL-penalised return to go, z-scored over the batch's tokens        2501.03262
reinforce_plus_plus = Objective(
    return_to_go(), clip(0.2), token_mean, shape=kl_in_reward(0.01), credit=whiten()
)
# A from a critic; min(rho A, clip(rho) A)                               1707.06347, 1506.02438
ppo = Objective(gae(gamma=1.0, lam=0.95), clip(0.2), token_mean)
# A = (r - mean)/std of the group; 1/T_i; KL in the loss                 2402.03300
grpo = Objective(group_zscore(), clip(0.2), sequence_mean, terms=k3(0.04))
# GRPO with a higher upper edge, one mean over tokens, no KL             2503.14476
dapo = Objective(group_zscore(), clip(0.2, high=0.28), token_mean)
# GRPO without its two divisors and without KL                           2503.20783
dr_grpo = Objective(group_center(), clip(0.2), constant_length())
# one ratio per answer, the geometric mean; a band 500 to 700 times narrower   2507.18071
gspo = Objective(group_zscore(), clip(3e-4, high=4e-4), sequence_mean, ratio=sequence())
# the same value, the gradient token by token: for advantages that differ inside an answer
gspo_token = gspo.replace(ratio=sequence_token())
# the tokens are clipped before their geometric mean, in log space       2507.20673
gmpo = Objective(group_zscore(), ratio(), sequence_mean, ratio=ratios.gmpo(0.4))
# the ratio caps the weight and is never differentiated: no dead token   2506.13585
cispo = Objective(group_zscore(), surrogates.cispo(5.0), token_mean)
# a smooth gate in place of the clip                                     2511.20347
sapo = Objective(group_zscore(), surrogates.sapo(), sequence_mean)
# the ratio only weighs; a token is dropped when its probability moved .15 and is pushed on;
# the anchor is the rollout engine                                       2602.04879
dppo = Objective(
    group_center(),
    surrogates.cispo(20.0),
    constant_length(),
    ratio=token("sampling"),
    gates=divergence_mask(0.15, anchor="sampling"),
)
dppo_kl = dppo.replace(gates=divergence_mask(0.05, kind="kl", anchor="sampling"))
dppo_topk = dppo.replace(gates=divergence_mask(0.15, anchor="sampling", top_k=True))
# CISPO with one std for the batch and one mean per prompt, against the engine   2510.13786
scalerl = Objective(
    batch_zscore("group", of="centred"), surrogates.cispo(5.0), prompt_mean, ratio=token("sampling")
)
# A = (r - mean)/mean: the gradient of log p(success)                    2602.02710
maxrl = Objective(max_rl(), logprob(), sequence_sum)
# GRPO with more weight on prompts near one half                         2511.06221
mgpo = Objective(group_zscore(), clip(0.2), sequence_mean, credit=mgpo_weight(4.0))

ZOO: dict[str, Objective] = {
    name: value for name, value in list(globals().items()) if isinstance(value, Objective)
}
NAMED = ZOO | ANNEX


def method(name: str) -> Objective:
    """ZOO[name] or ANNEX[name]; for an unknown name a ValueError that suggests the nearest."""
    if name in NAMED:
        return NAMED[name]
    near = difflib.get_close_matches(name.lower().replace("-", "_").replace(".", ""), NAMED, 1, 0.4)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"there is no method {name!r}.{guess} The zoo has {', '.join(ZOO)}; "
        f"the annex {', '.join(ANNEX)}."
    )


def name_of(objective: Objective) -> str | None:
    """The method's name, conventions ignored; None for a composition that no one named.

    >>> from rlnb.objective import group_zscore
    >>> name_of(ZOO["grpo"].replace(advantage=group_zscore("bessel", eps=1e-4)))
    'grpo'
    """
    wanted = objective.canonical()
    return next((name for name, known in NAMED.items() if known.canonical() == wanted), None)


def neighbours(objective: Objective, n: int = 3) -> list[tuple[str, Difference]]:
    """The n named methods that take the least to change, nearest first, and what differs.

    Conventions are ignored. Another number in a part counts 1, and so does a term more or
    less; a part of another kind 2, or 3 to 5 where the kind makes the family (baseline, ratio,
    surrogate, weights).
    """
    wanted = objective.canonical()
    gaps = {name: difference(known.canonical(), wanted) for name, known in NAMED.items()}
    near = sorted(
        gaps,
        key=lambda name: sum(
            _price(
                change.part,
                _kinds(getattr(NAMED[name], change.part)),
                _kinds(getattr(wanted, change.part)),
            )
            for change in gaps[name]
        ),
    )
    return [(name, gaps[name]) for name in near[:n]]


def closest(objective: Objective) -> tuple[str, Difference]:
    """The nearest of the `neighbours`: a method's own name where it has one."""
    return neighbours(objective, 1)[0]


def _price(part: str, before: list[str], after: list[str]) -> int:
    if before == after:
        return 1
    if part == "advantage":
        groups = {"group_zscore", "group_center", "batch_zscore"}
        return 3 if {*before, *after} <= groups else 5
    return {"ratio": 5, "weights": 3, "surrogate": 3, "terms": 1}.get(part, 2)


def _kinds(part: object) -> list[str]:
    return [type(p).__name__ for p in (part if isinstance(part, tuple) else (part,))]
