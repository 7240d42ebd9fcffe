"""The composer's menus: every part of every named method, and a few that no method uses.

choices_of("grpo")                                     # the parts of a method, menu by menu
compose(**choices_of("grpo") | {"kl": ()})             # ... and back, with one of them changed
"""

from __future__ import annotations

from typing import Any

from rlnb.objective import (
    Objective,
    batch_mean,
    batch_zscore,
    cispo,
    clip,
    clip_cov,
    constant_length,
    divergence_mask,
    engine_ratio,
    entropy_shaped,
    gae,
    gmpo,
    greedy_baseline,
    group_center,
    group_zscore,
    k1,
    k2,
    k3,
    kl_cov,
    kl_in_reward,
    leave_one_out,
    length_preference,
    local_token_mean,
    logprob,
    max_rl,
    method,
    mgpo_weight,
    press_top,
    product,
    prompt_mean,
    ratio,
    raw_reward,
    return_to_go,
    sapo,
    sequence,
    sequence_mask,
    sequence_mean,
    sequence_sum,
    sequence_token,
    soft_sequence,
    token,
    token_mean,
    token_sum,
    top_entropy,
    topk_mix,
    vespo,
    whiten,
)

__all__ = ["MENUS", "REWARDS", "choices_of", "compose"]

NONE: tuple = ()

# menu -> (label, part); a label fits beside its slider, the part's own spelling is in the picture
MENUS: dict[str, tuple[tuple[str, Any], ...]] = {
    "advantage": (
        ("r, no baseline", raw_reward()),
        ("r − batch mean", batch_mean()),
        ("leave one out", leave_one_out()),
        ("r − greedy answer", greedy_baseline()),
        ("reward to go", return_to_go()),
        ("critic, GAE .95", gae(1.0, 0.95)),
        ("group z-score", group_zscore()),
        ("r − group mean", group_center()),
        ("… / batch std", batch_zscore("group")),
        ("… / centred std", batch_zscore("group", of="centred")),
        ("batch z-score", batch_zscore()),
        ("MaxRL: … / mean", max_rl()),
    ),
    "credit": (
        ("as it is", NONE),
        ("whiten", whiten()),
        ("MGPO weight 4", mgpo_weight(4.0)),
        ("entropy-shaped", entropy_shaped()),
        ("by length, λ 1", length_preference()),
        ("SimKO, wrong half", press_top()),
    ),
    "ratio": (
        ("token", token()),
        ("token, vs engine", token("sampling")),
        ("sequence", sequence()),
        ("GSPO-token", sequence_token()),
        ("product", product()),
        ("GMPO .4", gmpo(0.4)),
        ("soft gates", soft_sequence(gate="arctan")),
        ("SimKO, right half", topk_mix()),
    ),
    "surrogate": (
        ("A log π", logprob()),
        ("ρ A, no clip", ratio()),
        ("clip .2", clip(0.2)),
        ("clip .2 / .28", clip(0.2, high=0.28)),
        ("clip 1: 0 to 2", clip(1.0)),
        ("clip 2e-3 / 2.5e-3", clip(2e-3, high=2.5e-3)),
        ("clip 3e-4 / 4e-4", clip(3e-4, high=4e-4)),
        ("dual clip .2, 3", clip(0.2, dual=3.0)),
        ("CISPO 5", cispo(5.0)),
        ("CISPO 20", cispo(20.0)),
        ("SAPO", sapo()),
        ("SAPO, arctan", sapo(gate="arctan")),
        ("VESPO", vespo()),
        ("KL-Cov", kl_cov()),
    ),
    "gates": (
        ("none", NONE),
        ("TV .15", divergence_mask(0.15, anchor="sampling")),
        ("KL .05", divergence_mask(0.05, kind="kl", anchor="sampling")),
        ("TV .15, top K", divergence_mask(0.15, anchor="sampling", top_k=True)),
        ("V3.2 mask .5", sequence_mask(0.5, anchor="sampling")),
        ("Clip-Cov", clip_cov(epsilon=1.0)),
        ("entropy, top 20 %", top_entropy(0.2)),
        ("engine ratio ≤ 2", engine_ratio("token", "truncate", high=2.0)),
        ("engine ratio, 3", engine_ratio()),
    ),
    "weights": (
        ("sequence mean", sequence_mean()),
        ("token mean", token_mean()),
        ("local token mean", local_token_mean()),
        ("prompt mean", prompt_mean()),
        ("constant length", constant_length()),
        ("sequence sum", sequence_sum()),
        ("token sum", token_sum()),
    ),
    "kl": (
        ("none", NONE),
        ("k3 .04", k3(0.04)),
        ("k2 .04", k2(0.04)),
        ("k1 .04", k1(0.04)),
        ("k3 .04, corrected", k3(0.04, corrected=True)),
        ("in the reward .01", kl_in_reward(0.01)),
        ("in the reward .05", kl_in_reward(0.05)),
    ),
}
# of the running batch's two prompts with four answers each
REWARDS: dict[str, tuple[float, ...]] = {
    "1 1 0 0 | 1 0 0 0": (1, 1, 0, 0, 1, 0, 0, 0),
    "1 1 0 0 | 0 0 0 0": (1, 1, 0, 0, 0, 0, 0, 0),
    "1 1 0 0 | 1 ½ 0 0": (1, 1, 0, 0, 1, 0.5, 0, 0),
}


def compose(
    advantage: Any,
    surrogate: Any,
    weights: Any,
    *,
    ratio: Any = token(),  # noqa: B008
    credit: Any = NONE,
    gates: Any = NONE,
    kl: Any = NONE,
) -> Objective:
    """The objective of one choice per menu. `kl` is a term of the loss, a `kl_in_reward`, or ().

    >>> compose(group_zscore(), clip(0.2), sequence_mean(), kl=k3(0.04))
    Objective(group_zscore(), clip(0.2), sequence_mean, terms=k3(0.04))
    """
    place = "shape" if isinstance(kl, kl_in_reward) else "terms"
    return Objective(
        advantage, surrogate, weights, ratio=ratio, credit=credit, gates=gates, **{place: kl}
    )


def choices_of(known: str | Objective) -> dict[str, Any]:
    """The parts of a method, or of its name, menu by menu: `compose(**choices_of(x)) == x`.

    Raises ValueError for an unknown name, and for an objective with a KL in two places.
    """
    objective = method(known) if isinstance(known, str) else known
    penalties = objective.shape + objective.terms
    if len(penalties) > 1:
        raise ValueError(
            f"the composer has one KL menu, and this objective has {len(penalties)} "
            f"terms and shapes: {objective!r}."
        )
    parts = {
        "advantage": objective.advantage,
        "credit": objective.credit,
        "ratio": objective.ratio,
        "surrogate": objective.surrogate,
        "gates": objective.gates,
        "weights": objective.weights,
        "kl": penalties,
    }
    return {
        menu: part[0] if isinstance(part, tuple) and len(part) == 1 else part
        for menu, part in parts.items()
    }
