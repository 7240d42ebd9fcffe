"""Plans by bytes and minutes, for the cards that people have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlnb.training.studies.gpu_budget import SHAPES, memory, of_recipe
from rlnb.training.studies.gpu_plans import GPU, LONGEST, PROMPT, SHARE, need, plans_for, seconds_of
from rlnb.training.studies.gpu_time import CARDS


@pytest.mark.parametrize("name", CARDS)
def test_every_plan_fits_its_card_in_bytes_and_minutes(name):
    card = CARDS[name]
    plans = plans_for(card.memory * 1e9, card)
    assert plans[-1].preset == "tiny" and len({plan.preset for plan in plans}) == len(plans)
    for plan in plans:
        assert need(plan) <= SHARE * card.memory * 1e9
        assert seconds_of(plan, card) <= LONGEST


def test_the_first_plan_by_card():
    first = {name: plans_for(card.memory * 1e9, card)[0] for name, card in CARDS.items()}
    assert {name: plan.preset for name, plan in first.items()} == {
        "RTX 4060": "medium", "T4": "medium", "L4": "medium", "RTX 3090": "large",
        "RTX 4090": "large", "A100 80 GB": "large", "H100 SXM": "large", "H200 SXM": "large",
    }  # fmt: skip


def test_a_t4_gets_no_emulated_bfloat16_and_no_twenty_minutes():
    plan, t4 = plans_for(15e9, CARDS["T4"])[0], CARDS["T4"]
    recipe = plan.recipe
    assert (recipe.sampler_dtype, recipe.autocast, recipe.tf32) == ("float16", "float16", False)
    large = replace(GPU[0], recipe=replace(recipe, prompts=512, micro_batch=256))
    assert need(large) <= SHARE * 15e9 and seconds_of(large, t4) > LONGEST  # fits by bytes alone
    other = plans_for(15e9, CARDS["L4"])[0].recipe
    assert (other.sampler_dtype, other.autocast, other.tf32) == ("bfloat16", "bfloat16", True)


def test_fewer_bytes_first_cost_micro_batches_then_the_room_then_the_preset():
    card, seen = CARDS["H200 SXM"], []
    for gigabytes in (80, 24, 19, 14, 12, 9, 5, 3, 1.6, 0.1):
        plan = plans_for(gigabytes * 1e9, card)[0]
        stays = need(plan, kept=True) <= SHARE * gigabytes * 1e9
        seen.append((plan.preset, plan.recipe.micro_batch, stays))
    assert seen == sorted(seen, key=lambda entry: [p.preset for p in GPU].index(entry[0]))
    large = [entry[1:] for entry in seen if entry[0] == "large"]
    assert large[0] == (512, True) and large[-1][1] is False
    assert seen[-1][0] == "tiny"


def test_a_room_is_counted_in_full_and_in_the_samplers_type():
    """The issue's case: 8192 rows, 92 tokens, in float32 17.2 GB and not 11.1."""
    plan = replace(GPU[0], recipe=replace(GPU[0].recipe, prompts=512))
    counted = memory(SHAPES["large"], *of_recipe(plan.recipe, PROMPT))["cache"]
    assert 17.1e9 < counted < 17.3e9 and need(plan) > counted
    half = replace(plan.recipe, sampler_dtype="bfloat16")
    assert memory(SHAPES["large"], *of_recipe(half, PROMPT))["cache"] < counted / 1.9
    assert "large" not in [p.preset for p in plans_for(3e9, CARDS["H200 SXM"])]
