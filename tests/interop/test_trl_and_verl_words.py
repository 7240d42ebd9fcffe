"""Other libraries' words: what they build, what they ignore, and the way back.

That the objectives built here compute the libraries' losses is shown in tests/parity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from rlnb.interop import (
    TRL_DEFAULTS,
    TRL_SILENT,
    VERL_DEFAULTS,
    VERL_SILENT,
    Inexpressible,
    from_trl,
    from_verl,
    to_trl,
    to_verl,
)
from rlnb.objective import (
    ANNEX,
    ZOO,
    Objective,
    batch_mean,
    clip,
    constant_length,
    difference,
    divergence_mask,
    group_center,
    group_zscore,
    k1,
    k3,
    kl_cov,
    kl_in_reward,
    leave_one_out,
    local_token_mean,
    logprob,
    name_of,
    overlong,
    padded_length,
    product,
    prompt_mean,
    return_to_go,
    sequence_mask,
    sequence_mean,
    token,
    token_mean,
    value_loss,
    whiten,
)

SAY = {"trl": to_trl, "verl": to_verl}


def test_trl_defaults_are_not_the_paper():
    reading = from_trl()
    built = reading.objective
    assert repr(built) == ("Objective(group_zscore('bessel', eps=0.0001), clip(0.2), token_mean)")
    assert name_of(built) is None and reading.ignored == ()
    assert name_of(from_trl(epsilon_high=0.28).objective) == "dapo"


def test_loss_type_dr_grpo_is_half_of_dr_grpo():
    half = from_trl(loss_type="dr_grpo").objective
    assert [c.part for c in difference(ZOO["dr_grpo"].canonical(), half.canonical())] == [
        "advantage"
    ]
    assert name_of(from_trl(loss_type="dr_grpo", scale_rewards="none").objective) == "dr_grpo"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (dict(loss_type="grpo", beta=0.04, use_bias_correction_kl=False), "grpo"),
        (dict(loss_type="dr_grpo", scale_rewards=False), "dr_grpo"),
        (
            dict(
                loss_type="grpo",
                importance_sampling_level="sequence",
                epsilon=3e-4,
                epsilon_high=4e-4,
            ),
            "gspo",
        ),
        (dict(loss_type="cispo", epsilon_high=5.0), "cispo"),
        (dict(loss_type="sapo"), "sapo"),
        (dict(trainer="gmpo"), "gmpo"),
        (
            dict(
                loss_type="luspo",
                importance_sampling_level="sequence",
                epsilon=2e-3,
                epsilon_high=2.5e-3,
            ),
            "luspo",
        ),
        (dict(loss_type="vespo"), "vespo"),
        (
            dict(
                loss_type="grpo",
                scale_rewards="none",
                off_policy_mask_threshold=0.5,
                beta=0.04,
                use_vllm=True,
                vllm_importance_sampling_correction=False,
            ),
            "deepseek_v3_2",
        ),
        (dict(loss_type="dapo", epsilon_high=0.2), None),
    ],
)
def test_names_from_trl(words, name):
    assert name_of(from_trl(**words).objective) == name


def test_cispo_with_trls_default_caps_at_the_lower_epsilon():
    assert from_trl(loss_type="cispo").objective.surrogate.cap == 0.2


@pytest.mark.parametrize(
    ("words", "ignored"),
    [
        (dict(learning_rate=1e-6, temperature=0.7, beta=0.1), ("learning_rate", "temperature")),
        (dict(loss_type="cispo", epsilon=0.1, epsilon_high=5.0), ("epsilon",)),
        (
            dict(loss_type="sapo", epsilon=0.1, epsilon_high=0.3, delta=4.0),
            ("epsilon", "epsilon_high", "delta"),
        ),
        (
            dict(loss_type="vespo", importance_sampling_level="sequence"),
            ("importance_sampling_level",),
        ),
        (dict(loss_type="dapo", max_completion_length=99), ("max_completion_length",)),
        (dict(use_bias_correction_kl=False), ("use_bias_correction_kl",)),
        (dict(vllm_importance_sampling_clip_max=9.0), ("vllm_importance_sampling_clip_max",)),
        (dict(trainer="gmpo", loss_type="dapo", delta=3.0), ("loss_type", "delta")),
        (dict(trainer="rloo", beta=0.0, temperature=0.5), ("temperature",)),
    ],
)
def test_words_that_do_not_touch_the_loss_are_listed(words, ignored):
    assert from_trl(**words).ignored == ignored


def test_a_config_object_counts_where_it_is_not_default():
    @dataclass
    class RLOOConfig:
        beta: float = 0.05
        epsilon: float = 0.3
        learning_rate: float = 1e-6
        reward_weights: list = field(default_factory=list)

    reading = from_trl(RLOOConfig(beta=0.1, learning_rate=2e-6))
    built = reading.objective
    assert built.shape[0].beta == 0.1 and reading.ignored[0] == "learning_rate"
    assert built.surrogate == clip(0.2)  # .3 is the stand-in's own default, so it was not "given"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: from_trl(los_type="grpo"), "no keyword 'los_type'. Did you mean 'loss_ty"),
        (lambda: from_trl(loss_type="drgrpo"), "Did you mean 'dr_grpo'"),
        (lambda: from_trl(scale_rewards="std"), "'group', 'batch' or 'none'"),
        (lambda: from_trl(epsilon="0.2"), "epsilon must be a number; got '0.2'"),
        (lambda: from_trl(trainer="ppo"), "trainer must be"),
        (lambda: from_trl(use_adaptive_entropy=True), "use_adaptive_entropy"),
        (
            lambda: from_trl(multi_objective_aggregation="normalize_then_sum"),
            "multi_objective_aggregation must be one of",
        ),
        (lambda: from_trl(loss_type="vespo", use_vllm=True), "vespo with vllm"),
        (lambda: from_trl(trainer="rloo", loss_type="grpo"), "no keyword 'loss_type'"),
        (lambda: from_trl(3), "must be a mapping"),
        (lambda: from_verl(clip_ratio_hi=0.2), "Did you mean 'clip_ratio_high'"),
        (lambda: from_verl(loss_mode="gpso"), "Did you mean 'gspo'"),
        (lambda: from_verl(loss_mode="dro"), "loss_mode='dro'"),
        (lambda: from_verl(adv_estimator="opo"), "adv_estimator must be one of"),
        (lambda: from_verl(rollout_is="token"), "rollout_is"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(call, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        call()


def test_verls_defaults():
    built = from_verl(adv_estimator="grpo").objective
    assert built.surrogate == clip(0.2, dual=3.0) and built.weights == token_mean()
    assert from_verl(clip_ratio=0.5).objective.surrogate == clip(0.2, dual=3.0)
    assert "clip_ratio" in from_verl(clip_ratio=0.5).ignored
    freed = from_verl(clip_ratio=0.5, clip_ratio_low=None, clip_ratio_high=None)
    assert freed.objective.surrogate == clip(0.5, dual=3.0) and freed.ignored == ()
    assert "kl_loss_coef" in from_verl(kl_loss_coef=0.1).ignored
    assert "loss_agg_mode" in from_verl(loss_mode="sapo", loss_agg_mode="token-mean").ignored
    assert from_verl(bypass_mode=True, adv_estimator="grpo").objective.ratio == token("sampling")
    dppo = from_verl(loss_mode="dppo_tv", clip_ratio_low=0.15, clip_ratio_high=0.15).objective
    assert dppo.gates == (divergence_mask(0.15),) and dppo.surrogate.cap == 3.0


NAMED = {**ZOO, **ANNEX}
SAID_BY_TRL = {
    **{
        name: NAMED[name]
        for name in (
            "grpo",
            "dapo",
            "dr_grpo",
            "gspo",
            "gmpo",
            "cispo",
            "sapo",
            "luspo",
            "vespo",
            "deepseek_v3_2",
        )
    },
    "graded": from_trl(scale_rewards="batch", loss_type="bnpo", delta=4.0, beta=0.1).objective,
    "tight delta": from_trl(delta=1.1).objective,
    "masks": from_trl(
        loss_type="luspo", off_policy_mask_threshold=0.5, top_entropy_quantile=0.2
    ).objective,
    "bonus": from_trl(off_policy_mask_threshold=0.5, entropy_coef=0.01).objective,
    "engine": from_trl(use_vllm=True, vllm_importance_sampling_mode="token_truncate").objective,
    "engine off": from_trl(
        use_vllm=True, off_policy_mask_threshold=0.3, vllm_importance_sampling_correction=False
    ).objective,
    "rloo trainer": from_trl(
        trainer="rloo", normalize_advantages=True, reward_clip_range=(-1.0, 1.0), epsilon_high=0.3
    ).objective,
    "vespo kl": from_trl(
        loss_type="vespo", importance_sampling_level="sequence", beta=0.1
    ).objective,
    "sequence kl": from_trl(importance_sampling_level="sequence", beta=0.1).objective,
}


@pytest.mark.parametrize("name", SAID_BY_TRL)
def test_trl_round_trip(name):
    """Conventions aside the same method; what TRL itself built comes back exactly."""
    objective = SAID_BY_TRL[name]
    words = to_trl(objective)
    back = from_trl(**words).objective
    assert back.canonical() == objective.canonical()
    assert from_trl(words).objective == back  # a mapping may hold the trainer
    if name not in NAMED or name == "deepseek_v3_2":  # which leaves no convention open
        assert from_trl(**to_trl(objective, strict=True)).objective == objective
        assert words.differences == ()
    else:  # the papers' conventions are not TRL's, and it says so
        assert "conventions" in words.differences[-1]
        with pytest.raises(ValueError, match="this exactly"):
            to_trl(objective, strict=True)


SAID_BY_VERL = {
    **{
        name: NAMED[name]
        for name in ("rloo", "remax", "cispo", "sapo", "gmpo", "gspo_token", "clip_cov", "kl_cov")
    },
    **{name: NAMED[name].replace(weights=padded_length()) for name in ("dppo", "dppo_kl")},
    "vanilla": from_verl(adv_estimator="grpo", use_kl_loss=True, kl_loss_type="k3+").objective,
    "ppo": from_verl(gamma=0.99, lam=0.95, use_kl_in_reward=True, entropy_coeff=0.01).objective,
    "reinforce++": from_verl(
        adv_estimator="reinforce_plus_plus_baseline", loss_agg_mode="seq-mean-token-sum-norm"
    ).objective,
    "gspo": from_verl(
        loss_mode="gspo",
        adv_estimator="grpo",
        clip_ratio_low=3e-4,
        clip_ratio_high=4e-4,
        loss_agg_mode="seq-mean-token-mean",
    ).objective,
    "sapo kl": from_verl(
        loss_mode="sapo", adv_estimator="grpo", use_kl_loss=True, loss_agg_mode="token-sum"
    ).objective,
    "dppo old": from_verl(
        loss_mode="dppo_kl", adv_estimator="grpo", clip_ratio_high=0.05
    ).objective,
    "clip_cov default": from_verl(loss_mode="clip_cov", adv_estimator="grpo").objective,
    "kl_cov default": from_verl(loss_mode="kl_cov", adv_estimator="grpo").objective,
    **{
        f"{mode} engine": from_verl(
            loss_mode=mode, adv_estimator="grpo", bypass_mode=True
        ).objective
        for mode in (
            "vanilla",
            "gspo",
            "cispo",
            "sapo",
            "dppo_tv",
            "dppo_kl",
            "clip_cov",
            "kl_cov",
            "gpg",
        )
    },
    "norm": from_verl(
        loss_agg_mode="seq-mean-token-sum-norm",
        adv_estimator="grpo",
        loss_scale_factor=512,
        norm_adv_by_std_in_grpo=False,
    ).objective,
}


@pytest.mark.parametrize("name", SAID_BY_VERL)
def test_verl_round_trip(name):
    objective = SAID_BY_VERL[name]
    back = from_verl(**to_verl(objective)).objective
    assert back.canonical() == objective.canonical()
    if name not in NAMED or name.startswith("dppo"):
        assert from_verl(**to_verl(objective, strict=True)).objective == objective


TRL_HAS = {
    "rloo",
    "grpo",
    "dapo",
    "dr_grpo",
    "gspo",
    "gspo_token",
    "gmpo",
    "cispo",
    "sapo",
    "luspo",
    "vespo",
    "deepseek_v3_2",
}
VERL_HAS = {
    "rloo",
    "remax",
    "reinforce_plus_plus",
    "ppo",
    "grpo",
    "dapo",
    "dr_grpo",
    "gspo",
    "gspo_token",
    "gmpo",
    "cispo",
    "sapo",
    "dppo",
    "dppo_kl",
    "luspo",
    "clip_cov",
    "kl_cov",
}
# the parts without a word, and one phrase of why: (TRL, verl)
REFUSED = {
    "reinforce": (["advantage=raw_reward()"], ["advantage=raw_reward()"], "baselines"),
    "reinforce_batch_mean": (["advantage=batch_mean()"], ["advantage=batch_mean()"], "baselines"),
    "remax": (["advantage=greedy_baseline()"], None, "leave-one-out in RLOOTrainer"),
    "reinforce_plus_plus": (
        ["advantage=return_to_go(gamma=1.0)", "shape=kl_in_reward(0.01)", "credit=whiten()"],
        None,
        "Only RLOOTrainer changes the reward",
    ),
    "ppo": (["advantage=gae(gamma=1.0, lam=0.95)"], None, "group mean"),
    "dppo": (
        ["ratio=token('sampling')", "gates=divergence_mask(0.15, anchor='sampling')"],
        None,
        "only weigh or mask",
    ),
    "dppo_kl": (
        ["ratio=token('sampling')", "gates=divergence_mask(0.05, kind='kl', anchor='sampling')"],
        None,
        "sequence_mask, top_entropy and engine_ratio",
    ),
    "dppo_topk": (
        ["ratio=token('sampling')", "gates=divergence_mask(0.15, anchor='sampling', top_k=True)"],
        ["gates=divergence_mask(0.15, anchor='sampling', top_k=True)"],
        "sampled token|trainer's old policy",
    ),
    "scalerl": (
        [
            "advantage=batch_zscore('group', of='centred')",
            "weights=prompt_mean",
            "ratio=token('sampling')",
        ],
        ["advantage=batch_zscore('group', of='centred')", "weights=prompt_mean"],
        "spread between prompts|seq-mean-token-sum-norm",
    ),
    "maxrl": (["advantage=max_rl()"], ["advantage=max_rl()"], "baselines"),
    "mgpo": (["credit=mgpo_weight(4.0)"], ["credit=mgpo_weight(4.0)"], "between|whitening"),
    "vespo": (None, ["surrogate=vespo()", "ratio=product"], "sequence_token"),
    "sspo": (
        ["ratio=soft_sequence(gate='arctan')"],
        ["ratio=soft_sequence(gate='arctan')"],
        "Its ratios are token",
    ),
    "clip_cov": (["gates=clip_cov(0.0002, epsilon=1.0)"], None, "top_entropy"),
    "kl_cov": (["surrogate=kl_cov(0.0002)"], None, "clip, cispo, sapo and vespo"),
    "simko": (
        ["ratio=topk_mix(alpha=0.01)", "credit=press_top(1.1)"],
        ["ratio=topk_mix(alpha=0.01)", "credit=press_top(1.1)"],
        "Its ratios are token",
    ),
    "lambda_grpo": (
        ["credit=length_preference(1.0)"],
        ["credit=length_preference(1.0)"],
        "between|whitening",
    ),
    "entropy_shaped": (
        ["credit=entropy_shaped(0.4)"],
        ["credit=entropy_shaped(0.4)"],
        "between|whitening",
    ),
    "deepseek_v3_2": (
        None,
        ["gates=sequence_mask(0.5, anchor='sampling')", "terms=k3(0.04, corrected=True)"],
        "whatever the sign of A. Its KL loss has no ratio",
    ),
}


def test_every_named_method_is_said_or_refused():
    for library, has, column in (("trl", TRL_HAS, 0), ("verl", VERL_HAS, 1)):
        refused = {name for name, entry in REFUSED.items() if entry[column] is not None}
        assert has | refused == NAMED.keys() and not has & refused, library
        for name in has:
            SAY[library](NAMED[name])


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("library", ["trl", "verl"])
def test_a_refusal_lists_every_part_without_a_word_and_why(name, library):
    parts = REFUSED[name][("trl", "verl").index(library)]
    if parts is None:
        return
    with pytest.raises(ValueError) as caught:
        SAY[library](NAMED[name])
    sentence = str(caught.value)
    *most, last = parts
    listed = f"{', '.join(most)} or {last}" if most else last
    version = {"trl": "TRL 1.16.0", "verl": "verl 0.9.1"}[library]
    assert sentence.startswith(f"{version} has no word for {listed}. ")
    assert re.search(REFUSED[name][2], sentence), sentence
    assert sentence.endswith(".") and "  " not in sentence


def test_a_composition_refused_only_for_how_its_parts_stand_together():
    """Each part has a word; the pair has none, and the sentence names the pair."""
    for objective, library, pair in [
        (Objective(leave_one_out(), clip(), token_mean), "trl", "leave-one-out with anything but"),
        (ZOO["cispo"].replace(weights=sequence_mean()), "trl", "cispo.5.0. with sequence_mean"),
        (ZOO["gspo"].replace(ratio=product()), "trl", "a clipped product of ratios"),
        (ZOO["ppo"].replace(advantage=group_zscore(), credit=whiten()), "verl", "with whitening"),
        (Objective(return_to_go(), clip(), token_mean), "verl", "without whitening"),
        (ZOO["dppo"].replace(ratio=token()), "verl", "one anchor"),
        (ZOO["dppo"].replace(surrogate=clip()), "verl", "gates=.divergence_mask.* with clip"),
        (ZOO["dppo"].replace(shape=kl_in_reward()), "verl", "kl_in_reward.* with ratio=token"),
        (ZOO["sapo"].replace(weights=token_mean()), "verl", "sapo with token_mean"),
    ]:
        with pytest.raises(Inexpressible, match=f"has no word for .*{pair}"):
            SAY[library](objective)


def test_what_goes_by_another_road_is_a_difference():
    shaped = ZOO["dapo"].replace(shape=overlong(20480, 4096))
    assert "get_soft_overlong_punishment(20480, 4096)" in " ".join(to_trl(shaped).differences)
    assert "overlong_buffer_cfg" in " ".join(to_verl(shaped).differences)
    assert "dual clip cannot be switched off" in " ".join(to_verl(ZOO["grpo"]).differences)
    assert "padded width" in " ".join(to_verl(ZOO["dr_grpo"]).differences)
    assert "always whitens" in " ".join(to_verl(ZOO["ppo"]).differences)
    assert "ratio is 1" in " ".join(to_trl(ZOO["rloo"]).differences)


@pytest.mark.parametrize(
    ("objective", "library", "sentence"),
    [
        (ZOO["reinforce"], "trl", "advantage=raw_reward"),
        (ZOO["ppo"], "trl", "advantage=gae"),
        (ZOO["reinforce_plus_plus"], "trl", "credit=whiten"),
        (Objective(group_zscore(), clip(), prompt_mean), "trl", "weights=prompt_mean"),
        (Objective(group_zscore(), clip(), token_mean, terms=k1(0.1)), "trl", "terms=k1"),
        (Objective(group_zscore(), clip(1.0, dual=1.5), token_mean), "trl", "surrogate=clip"),
        (
            Objective(group_zscore(), clip(), token_mean, terms=k3(0.1, corrected="sequence")),
            "trl",
            "beside ratio=token",
        ),
        (Objective(group_zscore(), kl_cov(), token_mean), "trl", "surrogate=kl_cov"),
        (Objective(group_zscore(), clip(), token_mean, gates=divergence_mask()), "trl", "gates="),
        (Objective(batch_mean(), logprob(), token_mean), "verl", "advantage=batch_mean"),
        (Objective(group_center(), clip(), local_token_mean), "verl", "weights=local_token_mean"),
        (Objective(group_center(), clip(), token_mean, gates=sequence_mask()), "verl", "gates="),
        (
            Objective(group_center(), clip(), token_mean, terms=k3(0.1, corrected=True)),
            "verl",
            "terms=",
        ),
        (Objective(group_center(), clip(), token_mean, terms=value_loss()), "verl", "terms="),
        (
            Objective(group_center(), clip(), constant_length(), credit=lambda b, A: A),
            "verl",
            "credit=",
        ),
    ],
)
def test_what_a_library_cannot_say_is_refused_in_a_sentence(objective, library, sentence):
    with pytest.raises(Inexpressible, match=f"has no word for .*{sentence}"):
        SAY[library](objective)


def test_every_known_word_is_read_or_silent():
    assert not TRL_SILENT & TRL_DEFAULTS.keys() and not VERL_SILENT & VERL_DEFAULTS.keys()
    assert "learning_rate" in TRL_SILENT and "ppo_epochs" in VERL_SILENT
