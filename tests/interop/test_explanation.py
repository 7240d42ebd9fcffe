"""Every trap speaks where it should and is silent where it should, and its number is the number."""

from __future__ import annotations

import io
import math
import subprocess
import sys

import pytest
import torch

from rlnb.interop import explain_config, from_trl, from_verl, to_trl
from rlnb.interop.__main__ import main
from rlnb.interop.traps import mixed
from rlnb.interop.traps_trl import TRL_TRAPS
from rlnb.interop.traps_verl import VERL_TRAPS
from rlnb.objective import ZOO, Batch


def trl(trainer="GRPOConfig", **words):
    source = ", ".join(f"{k}={v!r}" for k, v in words.items())
    return explain_config(f"{trainer}({source})")


def verl(entry="verl.trainer.main_ppo", **words):
    paths = {
        "n": "actor_rollout_ref.rollout.n",
        "batch": "data.train_batch_size",
        "filter": "algorithm.filter_groups.enable",
        "type": "algorithm.kl_ctrl.type",
        "top_p": "actor_rollout_ref.rollout.top_p",
        "top_k": "actor_rollout_ref.rollout.top_k",
        "temperature": "actor_rollout_ref.rollout.temperature",
        "dynamic": "actor_rollout_ref.actor.use_dynamic_bsz",
        "v1": "trainer.use_v1",
    }
    from rlnb.interop.configuration import HOMES

    lines = [f"  {paths.get(k) or HOMES[k] + k}={v} \\" for k, v in words.items()]
    return explain_config(
        f"python -m {entry} "
        + "algorithm.adv_estimator=grpo \\\n" * ("adv_estimator" not in words)
        + "\n".join(lines)
        + "\n critic.x=1"
    )


def names(report):
    return {name for name, _ in report.traps}


G = {"loss_type": "grpo", "beta": 0.04}
SEQ = {"loss_type": "grpo", "importance_sampling_level": "sequence"}
# trap -> (configurations where it speaks, configurations where it is silent)
TRL_CASES = {
    "refused_group": ([{"num_generations": 1}], [{"num_generations": 2}, {}]),
    "refused_batches": (
        [{"generation_batch_size": 64, "steps_per_generation": 4}],
        [{"generation_batch_size": 64}, {"steps_per_generation": 4}],
    ),
    "refused_generation": (
        [{"generation_batch_size": 20}],
        [{"generation_batch_size": 64}, {"generation_batch_size": 20, "num_generations": 4}],
    ),
    "deprecated_cap": (
        [{"use_vllm": True, "vllm_importance_sampling_cap": 2.0}],
        [{"use_vllm": True, "vllm_importance_sampling_clip_max": 2.0}],
    ),
    "cispo_cap": (
        [{"loss_type": "cispo"}, {"loss_type": "cispo", "epsilon_high": 0.28}],
        [{"loss_type": "cispo", "epsilon_high": 5.0}, {"loss_type": "dapo"}],
    ),
    "loss_type_default": ([{}, {"beta": 0.04}], [{"loss_type": "dapo"}]),
    "dr_grpo_std": (
        [{"loss_type": "dr_grpo"}, {"loss_type": "dr_grpo", "scale_rewards": True}],
        [
            {"loss_type": "dr_grpo", "scale_rewards": "none"},
            {"loss_type": "dr_grpo", "scale_rewards": False},
            G,
        ],
    ),
    "no_kl": ([{"loss_type": "grpo"}], [G, {"loss_type": "grpo", "beta": 0.0}, SEQ]),
    "dapo_band": ([{"loss_type": "dapo"}], [{}, {"loss_type": "dapo", "epsilon_high": 0.28}]),
    "kl_corrected": ([G], [{**G, "use_bias_correction_kl": False}, {"beta": 0.0}]),
    "sequence_epsilon": (
        [SEQ, {**SEQ, "epsilon": 0.1}, {**SEQ, "epsilon": 3e-4, "epsilon_high": 0.2}],
        [{**SEQ, "epsilon": 3e-4, "epsilon_high": 4e-4}, G],
    ),
    "token_epsilon": (
        [{"epsilon": 3e-4}],
        [{"epsilon": 0.2}, {**SEQ, "epsilon": 3e-4}, {"loss_type": "sapo", "epsilon": 3e-4}],
    ),
    "sequence_summed": (
        [{**SEQ, "loss_type": t} for t in ("dapo", "bnpo", "dr_grpo", "cispo")],
        [SEQ, {"loss_type": "dapo"}],
    ),
    "luspo_token": ([{"loss_type": "luspo"}], [{**SEQ, "loss_type": "luspo"}]),
    "epsilon_high_is_edge": (
        [{"epsilon_high": 1.28}],
        [{"epsilon_high": 0.28}, {"epsilon": 10.0}, {"loss_type": "cispo", "epsilon_high": 2.0}],
    ),
    "delta_inside": (
        [{"delta": 1.2}, {"delta": 1.1, "epsilon_high": 0.28}],
        [{"delta": 4.0}, {"delta": 1.21}, {}],
    ),
    "delta_unread": ([{"loss_type": "sapo", "delta": 4.0}], [{"delta": 4.0}]),
    "epsilon_unread": (
        [
            {"loss_type": "sapo", "epsilon": 0.2},
            {"loss_type": "vespo", "epsilon_high": 0.2},
            {"loss_type": "cispo", "epsilon": 0.2, "epsilon_high": 5.0},
        ],
        [{"loss_type": "cispo", "epsilon_high": 5.0}, {"epsilon": 0.2}],
    ),
    "one_step": (
        [
            {"epsilon": 0.2},
            SEQ,
            {"loss_type": "sapo"},
            {"epsilon": 0.2, "gradient_accumulation_steps": 4, "steps_per_generation": 2},
            {"loss_type": "vespo"},
            {"loss_type": "grpo", "off_policy_mask_threshold": 0.5},
        ],
        [
            {"loss_type": "grpo", "off_policy_mask_threshold": 0.5, "use_vllm": True},
            {"epsilon": 0.2, "num_iterations": 2},
            {"loss_type": "cispo"},
            {},
            {"epsilon": 0.2, "steps_per_generation": 4},
            {"epsilon": 0.2, "generation_batch_size": 512},
        ],
    ),
    "many_steps": (
        [
            {"steps_per_generation": 4},
            {"loss_type": "cispo", "steps_per_generation": 8, "gradient_accumulation_steps": 4},
        ],
        [{"loss_type": "grpo", "steps_per_generation": 4}, {}],
    ),
    "truncated_rows": (
        [
            {**G, "mask_truncated_completions": True},
            {"loss_type": "dr_grpo", "mask_truncated_completions": True},
        ],
        [G, {"loss_type": "dapo", "mask_truncated_completions": True}],
    ),
    "gmpo_log_epsilon": (
        [{"trainer": "GMPOConfig", "epsilon": 0.2}],
        [{"trainer": "GMPOConfig"}, {"epsilon": 0.2}],
    ),
    "gmpo_unread": (
        [{"trainer": "GMPOConfig", "loss_type": "grpo"}],
        [{"trainer": "GMPOConfig", "beta": 0.04}],
    ),
    "rloo_beta": ([{"trainer": "RLOOConfig"}], [{"trainer": "RLOOConfig", "beta": 0.0}, {}]),
    "rloo_product": (
        [{"trainer": "RLOOConfig", "num_iterations": 2}],
        [{"trainer": "RLOOConfig"}, {"num_iterations": 2}],
    ),
    "engine_mask": (
        [{"use_vllm": True}],
        [
            {},
            {"use_vllm": True, "vllm_importance_sampling_correction": False},
            {"use_vllm": True, "vllm_importance_sampling_mode": "token_truncate"},
        ],
    ),
    "small_group": (
        [{"num_generations": 4}, {"trainer": "RLOOConfig"}],
        [{}, {"num_generations": 16}],
    ),
    "cut_distribution": (
        [{"top_p": 0.9}, {"top_k": 50}, {"min_p": 0.1}, {"repetition_penalty": 1.1}],
        [{}, {"top_p": 1.0, "top_k": 0}],
    ),
    "temperature": ([{"temperature": 0.7}], [{}, {"temperature": 1.0}]),
}
DR = {"loss_agg_mode": "seq-mean-token-sum-norm"}
ROW = {"loss_agg_mode": "seq-mean-token-mean"}
BAND = {"clip_ratio_low": 3e-4, "clip_ratio_high": 4e-4}
VERL_CASES = {
    "adv_default": ([{"adv_estimator": "", "loss_mode": "vanilla"}], [{}]),
    "group_of_one": (
        [{}, {"n": 1}, {"adv_estimator": "rloo"}],
        [{"n": 8}, {"adv_estimator": "gae"}],
    ),
    "dead_clip_ratio": (
        [{"clip_ratio": 0.1}, {"clip_ratio": 0.3, "clip_ratio_low": 0.2}],
        [
            {"clip_ratio": 0.2},
            {"loss_mode": "sapo", "clip_ratio": 0.1},
            {"clip_ratio": 0.1, "clip_ratio_low": "null", "clip_ratio_high": "null"},
        ],
    ),
    "token_mean_default": ([{}], [ROW, {"loss_mode": "gspo"}, {"adv_estimator": "gae"}]),
    "padded_width": ([DR], [{**DR, "loss_scale_factor": 1024}, ROW]),
    "dr_grpo_std": ([DR], [{**DR, "norm_adv_by_std_in_grpo": False}, ROW]),
    "sequence_epsilon": ([{"loss_mode": "gspo"}], [{"loss_mode": "gspo", **BAND}, {}]),
    "sequence_summed": ([{"loss_mode": "gspo"}], [{"loss_mode": "gspo", **ROW}, {}]),
    "token_epsilon": ([BAND], [{"loss_mode": "gspo", **BAND}, {}]),
    "high_is_edge": (
        [{"clip_ratio_high": 1.28}],
        [{"clip_ratio_high": 0.28}, {"loss_mode": "cispo", "clip_ratio_high": 2}],
    ),
    "cispo_floor": ([{"loss_mode": "cispo"}], [{"loss_mode": "cispo", "clip_ratio_low": 10}, {}]),
    "cispo_cap": ([{"loss_mode": "cispo"}], [{"loss_mode": "cispo", "clip_ratio_high": 4.0}, {}]),
    "geo_mean_log": (
        [{"loss_mode": "geo_mean"}],
        [{"loss_mode": "geo_mean", "clip_ratio_low": 0.4, "clip_ratio_high": 0.4}],
    ),
    "dppo_band": (
        [{"loss_mode": "dppo_tv"}, {"loss_mode": "dppo_kl"}],
        [{"loss_mode": "dppo_tv", "clip_ratio_low": 0.15, "clip_ratio_high": 0.15}],
    ),
    "dppo_cap": (
        [{"loss_mode": "dppo_tv"}],
        [
            {"loss_mode": "dppo_tv", "clip_ratio_c": 10000},
            {"loss_mode": "dppo_kl", "clip_ratio_c": 20},
            {},
        ],
    ),
    "dppo_anchor": (
        [{"loss_mode": "dppo_tv"}, {"loss_mode": "dppo_kl", "bypass_mode": False}],
        [{"loss_mode": "dppo_tv", "bypass_mode": True}, {}],
    ),
    "bypass_old_trainer": (
        [{"loss_mode": "dppo_tv", "bypass_mode": True, "v1": False}],
        [
            {"loss_mode": "dppo_tv", "bypass_mode": True},
            {"bypass_mode": True, "v1": False},
            {"loss_mode": "dppo_tv", "v1": False},
        ],
    ),
    "dual_clip": ([{}, {"clip_ratio_c": 10}], [{"clip_ratio_c": 10000}, {"loss_mode": "gspo"}]),
    "cap_unread": (
        [{"loss_mode": "gspo", "clip_ratio_c": 10}],
        [{"clip_ratio_c": 10}, {"loss_mode": "gspo"}],
    ),
    "band_unread": (
        [{"loss_mode": "sapo", "clip_ratio": 0.2}, {"loss_mode": "kl_cov", "clip_ratio_high": 0.3}],
        [{"loss_mode": "sapo"}, {"clip_ratio_high": 0.3}],
    ),
    "agg_unread": (
        [
            {"loss_mode": "sapo", "loss_agg_mode": "token-mean"},
            {"loss_mode": "geo_mean", "use_kl_loss": True},
        ],
        [
            {"loss_mode": "sapo"},
            {"loss_mode": "sapo", **ROW},
            {"loss_mode": "gspo", "loss_agg_mode": "token-mean"},
        ],
    ),
    "geo_mean_rows": (
        [{"loss_mode": "geo_mean", "dynamic": True}],
        [{"loss_mode": "geo_mean"}, {"dynamic": True}],
    ),
    "kl_coef_off": (
        [{"kl_loss_coef": 0.01}],
        [{"kl_loss_coef": 0.01, "use_kl_loss": True}, {"kl_loss_coef": 0.0}, {}],
    ),
    "kl_coef_zero": ([{"kl_loss_coef": 0.0, "use_kl_loss": True}], [{"use_kl_loss": True}]),
    "kl_reward_off": ([{"kl_coef": 0.01}], [{"kl_coef": 0.01, "use_kl_in_reward": True}, {}]),
    "kl_twice": ([{"use_kl_loss": True, "use_kl_in_reward": True}], [{"use_kl_loss": True}]),
    "kl_no_gradient": (
        [{"use_kl_loss": True, "kl_loss_type": "kl"}],
        [{"use_kl_loss": True}, {"use_kl_loss": True, "kl_loss_type": "k1+"}],
    ),
    "adaptive_kl": (
        [{"use_kl_in_reward": True, "type": "adaptive"}],
        [{"use_kl_in_reward": True}, {"type": "adaptive"}],
    ),
    "kl_cov_coef": ([{"loss_mode": "kl_cov"}], [{"loss_mode": "kl_cov", "ppo_kl_coef": 1.0}, {}]),
    "one_step": (
        [
            {"batch": 256, "clip_ratio_high": 0.28},
            {"batch": 64, "ppo_mini_batch_size": 64, "loss_mode": "sapo"},
        ],
        [
            {"batch": 1024, "clip_ratio_high": 0.28},
            {"batch": 256},
            {"loss_mode": "sapo"},
            {"batch": 256, "ppo_epochs": 2, "clip_ratio_high": 0.28},
        ],
    ),
    "dapo_filter": (
        [{"clip_ratio_high": 0.28}],
        [{"clip_ratio_high": 0.28, "filter": True}, {}, {"clip_ratio_high": 0.28, **ROW}],
    ),
    "filter_main_ppo": (
        [{"filter": True}, {"filter": True, "v1": False}],
        [{"filter": True, "v1": True}, {"filter": True, "entry": "recipe.dapo.main_dapo"}, {}],
    ),
    "small_group": ([{"n": 4}], [{"n": 8}, {"n": 1}, {"n": 4, "adv_estimator": "gae"}]),
    "cut_distribution": ([{"top_p": 0.9}], [{"top_p": 1.0}, {}]),
    "temperature": ([{"temperature": 0.6}], [{"temperature": 1.0}, {}]),
}


def test_every_rule_has_a_case_and_every_case_a_rule():
    assert [rule.name for rule in TRL_TRAPS] == list(TRL_CASES)
    assert [rule.name for rule in VERL_TRAPS] == list(VERL_CASES)


@pytest.mark.parametrize("name", TRL_CASES)
def test_trl_trap(name):
    hits, misses = TRL_CASES[name]
    for words in hits:
        assert name in names(trl(**words)), words
    for words in misses:
        assert name not in names(trl(**words)), words


@pytest.mark.parametrize("name", VERL_CASES)
def test_verl_trap(name):
    hits, misses = VERL_CASES[name]
    for words in hits:
        if words.get("adv_estimator") == "":
            assert name in names(explain_config({"loss_mode": "vanilla"}))
        else:
            assert name in names(verl(**words)), words
    for words in misses:
        assert name not in names(verl(**words)), words


@pytest.mark.parametrize(
    "cases, build", [(TRL_CASES, trl), (VERL_CASES, verl)], ids=["trl", "verl"]
)
def test_a_sentence_says_what_happens_a_number_and_what_to_write(cases, build):
    for name, (hits, _) in cases.items():
        for words in hits:
            if words.get("adv_estimator") == "":
                continue
            sentence = dict(build(**words).traps)[name]
            assert any(c.isdigit() for c in sentence), sentence
            assert any(
                w in sentence
                for w in (
                    "rite ",
                    "ake them out",
                    "ake it out",
                    "Keep one",
                    "valuate",
                    "take it out",
                    "is clip_ratio_high=4",
                    "; use ",
                    "gate has",
                )
            ), sentence
            assert sentence.endswith(".") and "None" not in sentence.replace("min_p=None", "")
            assert not any(bad in sentence for bad in ("nan", "inf ")), sentence


def test_an_unread_word_silences_its_rules_and_is_shown():
    report = explain_config("GRPOConfig(loss_type=args.loss, epsilon=args.e, num_generations=g())")
    assert names(report) == set()
    text = str(report)
    for line in ("loss_type = args.loss: taken as not set", "num_generations = g()"):
        assert line in text
    verl_script = "run actor_rollout_ref.actor.clip_ratio_c=$C algorithm.adv_estimator=$A"
    assert names(explain_config(verl_script)) == set()


# ---- the numbers in the sentences


def batch(old, rewards=(1.0,) + (0.0,) * 7):
    rows = len(rewards)
    lp = torch.full((rows, 1), -4.0)
    return Batch(
        lp.requires_grad_(),
        torch.ones(rows, 1),
        torch.tensor(rewards),
        rows,
        old_logprobs=torch.full((rows, 1), old),
    )


def weight(objective, ratio, rewards=(1.0,) + (0.0,) * 7, row=0):
    """The gate on row's gradient at a given ratio: 1 at ratio 1 for unclipped losses."""
    b = batch(-4.0 - math.log(ratio), rewards)
    out = objective(b)
    out.loss.backward()
    return float(-b.logprobs.grad[row, 0] / (out.weights * out.advantages)[row, 0])


def test_trl_cispo_by_default_caps_an_unmoved_token_at_a_fifth():
    assert weight(from_trl(loss_type="cispo").objective, 1.0) == pytest.approx(0.2)
    wide = from_trl(loss_type="cispo", epsilon_high=5.0).objective
    assert weight(wide, 1.0) == pytest.approx(1.0)


def test_one_right_in_eight_with_and_without_std():
    half, whole = (
        from_trl(loss_type="dr_grpo", scale_rewards=s).objective(batch(-1.0)).advantages[0, 0]
        for s in ("group", "none")
    )
    assert (round(float(half), 2), float(whole)) == (2.47, 0.875)
    norm = dict(adv_estimator="grpo", loss_agg_mode="seq-mean-token-sum-norm", loss_scale_factor=8)
    assert round(float(from_verl(**norm).objective(batch(-1.0)).advantages[0, 0]), 2) == 2.47


def test_a_delta_inside_the_band_cuts_both_signs():
    inside = from_trl(delta=1.1, epsilon_high=0.28).objective
    outside = from_trl(delta=4.0, epsilon_high=0.28).objective
    assert weight(inside, 1.2) == 0 and weight(outside, 1.2) == pytest.approx(1.2)
    assert weight(inside, 1.2, row=1) == pytest.approx(1.2)  # A < 0, still inside the band
    assert weight(inside, 1.4, row=1) == 0 and weight(outside, 1.4, row=1) == pytest.approx(1.4)


def test_verl_cispo_floor_and_cap():
    two_sided = from_verl(adv_estimator="grpo", loss_mode="cispo").objective
    assert [weight(two_sided, r) for r in (0.1, 3)] == pytest.approx([0.8, 1.2])
    wide = from_verl(
        adv_estimator="grpo", loss_mode="cispo", clip_ratio_low=10, clip_ratio_high=4.0
    ).objective
    assert [weight(wide, r) for r in (0.1, 9)] == pytest.approx([0.1, 5.0])


def test_verl_dual_clip_kills_a_token_above_three():
    usual = from_verl(adv_estimator="grpo").objective
    assert weight(usual, 2.9, row=1) == pytest.approx(2.9) and weight(usual, 3.1, row=1) == 0


def test_at_one_step_the_named_losses_share_their_gate():
    for name in ("grpo", "dapo", "gspo", "cispo", "sapo"):
        assert weight(ZOO[name].replace(terms=()), 1.0) == pytest.approx(1.0), name


def test_mixed_groups():
    assert [mixed(0.1, n) for n in (2, 4, 8, 16)] == ["18 %", "34 %", "57 %", "81 %"]
    assert mixed(0.9, 16) == "81 %"


def test_log_space_edges():
    sentence = dict(verl(loss_mode="geo_mean").traps)["geo_mean_log"]
    assert f"{math.exp(-0.2):.3f} to {math.exp(0.2):.3f}" in sentence
    assert f"{math.exp(-0.4):.3f} to {math.exp(0.4):.3f}" in sentence


# ---- the report


def test_a_named_method_and_its_conventions():
    report = trl(loss_type="dapo", epsilon_high=0.28)
    assert report.name == "dapo" and not report.difference
    assert [str(c) for c in report.conventions] == [
        "advantage: group_zscore() -> group_zscore('bessel', eps=0.0001)"
    ]
    assert report.objective == from_trl(loss_type="dapo", epsilon_high=0.28).objective


@pytest.mark.parametrize(
    "report, nearest",
    [
        (trl(loss_type="dapo"), "dapo"),
        (trl(loss_type="grpo"), "grpo"),
        (trl(loss_type="dr_grpo"), "dr_grpo"),
        (trl(loss_type="cispo"), "cispo"),
        (trl("RLOOConfig"), "rloo"),
        (trl(**SEQ), "gspo"),
        (verl(loss_mode="gspo"), "gspo_token"),
        (verl(clip_ratio_high=0.28, use_kl_loss=True), "dapo"),
        (verl(), "grpo"),
        (verl(loss_mode="geo_mean"), "gmpo"),
        (explain_config({"loss_mode": "vanilla"}), "ppo"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_the_nearest_method(report, nearest):
    assert report.name is None and report.nearest == nearest and len(report.difference) > 0


V3_2 = {
    "loss_type": "grpo",
    "scale_rewards": "none",
    "off_policy_mask_threshold": 0.5,
    "beta": 0.04,
    "use_bias_correction_kl": True,
    "use_vllm": True,
    "vllm_importance_sampling_correction": False,
}
DPPO = {
    "clip_ratio_c": 20,
    "norm_adv_by_std_in_grpo": False,
    "loss_scale_factor": 512,
    "bypass_mode": True,
    **DR,
}


@pytest.mark.parametrize(
    "report, name",
    [
        (trl(**{**SEQ, "loss_type": "luspo"}, epsilon=2e-3, epsilon_high=2.5e-3), "luspo"),
        (trl(loss_type="vespo"), "vespo"),
        (trl(**V3_2), "deepseek_v3_2"),
        (trl(**{k: v for k, v in V3_2.items() if k != "use_bias_correction_kl"}), "deepseek_v3_2"),
        (verl(loss_mode="clip_cov", clip_ratio_low=1.0, clip_ratio_high=1.0), "clip_cov"),
        (verl(loss_mode="kl_cov", ppo_kl_coef=1.0), "kl_cov"),
        (verl(loss_mode="gspo", **BAND, **ROW), "gspo_token"),
        (verl(loss_mode="dppo_tv", clip_ratio_low=0.15, clip_ratio_high=0.15, **DPPO), "dppo"),
        (verl(loss_mode="dppo_kl", clip_ratio_low=0.05, clip_ratio_high=0.05, **DPPO), "dppo_kl"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_the_recent_methods_are_recognised(report, name):
    assert report.name == report.nearest == name and not report.difference
    assert f"method      {name}" in str(report)


def test_the_covariance_methods_are_read_in_their_authors_settings():
    """Clip-Cov's script opens the band to [0, 2]; KL-Cov's 7B fraction is ten times its 32B one."""
    published = verl(loss_mode="clip_cov", clip_ratio_low=1.0, clip_ratio_high=1.0)
    assert "upper edge" not in str(published), "1 is their band, no edge written by mistake"
    default = verl(loss_mode="clip_cov")
    assert default.name is None and default.nearest == "clip_cov"
    assert {change.part for change in default.difference} == {"surrogate", "gates"}
    small = verl(loss_mode="kl_cov", kl_cov_ratio=2e-3, ppo_kl_coef=1.0)
    assert small.nearest == "kl_cov" and [c.part for c in small.difference] == ["surrogate"]


@pytest.mark.parametrize(
    "report, nearest, parts",
    [
        (trl(**V3_2 | {"off_policy_mask_threshold": 0.3}), "deepseek_v3_2", ["gates"]),
        (trl(**V3_2 | {"use_bias_correction_kl": False}), "deepseek_v3_2", ["terms"]),
        (trl(**V3_2 | {"scale_rewards": "group"}), "grpo", ["gates", "terms"]),
        (trl(**{**SEQ, "loss_type": "luspo"}), "luspo", ["surrogate"]),
        (verl(loss_mode="kl_cov"), "kl_cov", ["surrogate"]),
        (
            verl(
                loss_mode="dppo_tv",
                clip_ratio_low=0.15,
                clip_ratio_high=0.15,
                **DPPO | {"bypass_mode": False},
            ),
            "dppo",
            ["ratio", "gates"],
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_near_miss_has_no_name(report, nearest, parts):
    assert report.name is None and report.nearest == nearest
    assert [change.part for change in report.difference] == parts


@pytest.mark.parametrize("name", ["rloo", "gmpo", "grpo"])
def test_words_from_to_trl_name_their_trainer(name):
    report = explain_config(to_trl(ZOO[name]))
    assert report.unknown == () and report.objective == from_trl(to_trl(ZOO[name])).objective


def test_where_verls_bypass_mode_stands_in_a_file():
    """It changes what the ratio is against, so it must not be lost on the way."""
    text = "algorithm: {adv_estimator: grpo, rollout_correction: {%s}}"
    assert explain_config(text % "bypass_mode: true").objective.ratio.anchor == "sampling"
    assert explain_config(text % "bypass_mode: false").objective.ratio.anchor == "old"
    beside = explain_config(text % "bypass_mode: false, rollout_rs: token_k1")
    assert beside.beside == (
        "rollout_rs=token_k1: rejects by the trainer's probability over the engine's",
    )
    assert (
        explain_config(
            "actor_rollout_ref: {actor: {bypass_mode: true}}\nalgorithm: {adv_estimator: grpo}"
        ).traps[0][0]
        == "misplaced"
    )


def test_the_page_is_narrow_and_complete():
    report = explain_config("""
        args = GRPOConfig(
            loss_type="cispo", epsilon_hgh=0.3, learning_rate=1e-6, some_script_word="x" * 3,
            beta=opts.beta, importance_sampling_level="sequence", temperature=0.7, top_p=0.9,
            per_device_train_batch_size=4, delta=3.0)
    """)
    text = str(report)
    assert max(map(len, text.splitlines())) <= 76
    assert report.ignored == (
        "learning_rate",
        "temperature",
        "top_p",
        "per_device_train_batch_size",
        "delta",
    )
    assert report.unknown == ("epsilon_hgh",)
    assert dict(report.traps)["misspelt"].endswith("write epsilon_high.")
    assert report.not_read == (("beta", "opts.beta"),)
    assert "delta: not read by this loss; 4 words that no loss reads" in text
    assert text.count("\n\n") == len(report.traps) + 1


def test_a_misplaced_word_is_a_trap():
    report = explain_config(
        "x +actor_rollout_ref.actor.policy_loss.tau_pos=2 "
        "actor_rollout_ref.actor.policy_loss.loss_mode=sapo "
        "algorithm.adv_estimator=grpo"
    )
    assert dict(report.traps)["misplaced"].endswith("Write actor_rollout_ref.actor.tau_pos.")


def test_what_the_parts_cannot_say_still_gets_its_traps():
    report = verl(adv_estimator="gpg", n=16, temperature=0.7)
    assert report.objective is None and "gpg" in str(report) and "temperature" in names(report)
    report = verl(rollout_is="token")
    assert report.nearest == "grpo" and "rollout_is=token: weighs" in report.beside[0]
    report = verl(rollout_is="token", bypass_mode=True)
    assert report.objective is None and "rollout_is" in report.refused


def test_a_value_the_library_would_refuse_is_refused():
    with pytest.raises(ValueError, match="loss_type must be one of"):
        trl(loss_type="ppo")
    with pytest.raises(ValueError, match="not both"):
        explain_config("beta: 1", beta=1)
    with pytest.raises(ValueError, match="epsilon must be a number"):
        trl(epsilon="big")


def test_keywords_mappings_and_text_agree():
    words = {"loss_type": "dr_grpo", "scale_rewards": False, "beta": 0.0}
    texts = {str(explain_config(words)), str(explain_config(**words))}
    assert len(texts) == 1
    assert explain_config("loss_type: dr_grpo\nscale_rewards: false\nbeta: 0.0").name == "dr_grpo"


# ---- the command


def test_the_command_reads_a_file_and_standard_input(tmp_path, capsys, monkeypatch):
    path = tmp_path / "run.sh"
    path.write_text("python train.py --loss_type cispo\n", encoding="utf-8")
    assert main(["explain", str(path)]) == 0
    from_file = capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert main(["explain", "-"]) == 0
    assert capsys.readouterr().out == from_file and "caps the weight" in from_file
    assert main(["rosetta", "verl"]) == 0 and "clip_ratio_c" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, part",
    [
        (["explain", "nowhere.yaml"], "there is no file 'nowhere.yaml'"),
        (["explain", "."], "there is no file '.'"),
        (["rosetta", "ragen"], "there is no column 'ragen'"),
    ],
)
def test_a_bad_command_is_one_sentence_and_exit_2(arguments, part, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1 and part in err


def test_bytes_that_are_no_text(tmp_path, capsys):
    path = tmp_path / "weights.bin"
    path.write_bytes(b"\xff\xfe\x00" * 100)
    assert main(["explain", str(path)]) == 2
    assert "not UTF-8" in capsys.readouterr().err


def as_module(package: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", package, "explain", "-"],
        input="loss_type: grpo",
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_it_runs_as_a_module():
    done = as_module("rlnb.interop")
    assert done.returncode == 0 and "DeepSeekMath" in done.stdout and done.stderr == ""


def test_the_old_command_still_runs_and_says_its_new_name_once():
    done = as_module("rlnb.objective")
    assert done.returncode == 0 and "DeepSeekMath" in done.stdout
    assert done.stderr.count("\n") == 1 and "now python -m rlnb.interop" in done.stderr
