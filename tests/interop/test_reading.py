"""A reading: the objective that a library computes, and the words that did nothing."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

import rlnb
from rlnb.interop import Inexpressible, Reading, explain_config, from_trl, from_verl, to_trl
from rlnb.objective import ZOO, Objective


def test_a_reading_holds_the_objective_and_the_ignored_words():
    reading = from_trl(loss_type="dr_grpo", learning_rate=1e-6, scale_rewards="none", delta=None)
    assert reading == Reading(reading.objective, ("learning_rate",))
    assert isinstance(reading.objective, Objective)
    with pytest.raises(dataclasses.FrozenInstanceError):
        reading.ignored = ()


def test_a_changed_objective_says_nothing_of_words_it_was_not_read_from():
    """The words belong to the reading: `.replace` of an objective has none to lose."""
    reading = from_trl(learning_rate=1e-6)
    assert not hasattr(reading.objective, "ignored")
    assert reading.objective.replace(terms=()) == from_trl().objective.replace(terms=())


def test_a_reading_prints_the_objective_and_what_had_no_effect():
    assert str(from_verl(adv_estimator="grpo", kl_loss_coef=0.1)).splitlines() == [
        "Objective(group_zscore('bessel'), clip(0.2, dual=3.0), token_mean)",
        "without effect on the loss: kl_loss_coef",
    ]
    assert "without effect" not in str(from_trl())


@pytest.mark.parametrize(
    ("words", "ignored"),
    [
        # each loss_type reads its own words and no others
        (dict(loss_type="sapo", epsilon=0.3, epsilon_high=0.4), ("epsilon", "epsilon_high")),
        (dict(loss_type="cispo", epsilon=0.3, epsilon_high=4.0), ("epsilon",)),
        (dict(loss_type="cispo", epsilon=0.3), ()),
        (dict(loss_type="grpo", sapo_temperature_pos=2.0), ("sapo_temperature_pos",)),
        (dict(loss_type="dapo", max_completion_length=9), ("max_completion_length",)),
        (dict(loss_type="dr_grpo", max_completion_length=9), ()),
        # vespo's ratio is the product, so the level is read for the KL's correction alone
        (
            dict(loss_type="vespo", importance_sampling_level="sequence"),
            ("importance_sampling_level",),
        ),
        (dict(loss_type="vespo", importance_sampling_level="sequence", beta=0.1), ()),
        (
            dict(
                loss_type="vespo",
                importance_sampling_level="sequence",
                beta=0.1,
                use_bias_correction_kl=False,
            ),
            ("importance_sampling_level",),
        ),
        (dict(trainer="gmpo", loss_type="sapo", epsilon=0.3), ("loss_type",)),
        (dict(trainer="rloo", epsilon=0.3, temperature=0.9), ("temperature",)),
    ],
    ids=str,
)
def test_trl_reads_a_word_only_where_it_is_used(words, ignored):
    assert from_trl(**words).ignored == ignored


@pytest.mark.parametrize(
    ("words", "ignored"),
    [
        (dict(loss_mode="sapo", clip_ratio_low=0.1), ("clip_ratio_low",)),
        (dict(loss_mode="vanilla", clip_ratio_low=0.1), ()),
        (dict(loss_mode="kl_cov", clip_ratio_high=0.1), ("clip_ratio_high",)),
        (dict(loss_mode="gpg", clip_ratio_c=5.0), ("clip_ratio_c",)),
        (dict(loss_mode="geo_mean", loss_agg_mode="token-mean"), ("loss_agg_mode",)),
        # the policy term has its own average; the KL keeps loss_agg_mode
        (dict(loss_mode="sapo", loss_agg_mode="token-sum", use_kl_loss=True), ()),
        (dict(loss_mode="sapo", loss_agg_mode="token-sum", entropy_coeff=0.1), ()),
    ],
    ids=str,
)
def test_verl_reads_a_word_only_where_it_is_used(words, ignored):
    assert from_verl(adv_estimator="grpo", **words).ignored == ignored


def test_what_has_no_word_is_an_error_of_its_own_and_a_wrong_value_is_not():
    with pytest.raises(Inexpressible):
        to_trl(ZOO["ppo"])
    with pytest.raises(Inexpressible):
        from_trl(use_adaptive_entropy=True)
    with pytest.raises(ValueError) as wrong:
        from_trl(loss_type="drgrpo")
    assert not isinstance(wrong.value, Inexpressible)


def test_the_page_stands_where_no_composition_says_the_setting():
    report = explain_config(use_adaptive_entropy=True)
    assert report.objective is None and report.refused.startswith("none here: a composition has no")
    with pytest.raises(ValueError, match="Did you mean 'dr_grpo'"):
        explain_config({"loss_type": "drgrpo", "beta": 0.0})


def test_the_front_door_fetches_interop_on_first_use():
    assert rlnb.from_trl is from_trl and rlnb.explain_config is explain_config
    loaded = "print('rlnb.interop' in sys.modules)"
    code = f"import sys, rlnb; {loaded}; rlnb.rosetta; {loaded}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["False", "True"]
