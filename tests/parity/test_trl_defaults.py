"""What rlnb says about TRL's words and defaults, against the dataclasses of the installed TRL."""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest

from rlnb import interop
from rlnb.interop import from_trl
from rlnb.interop.rosetta_table import ROWS

# read by TRL's loss or advantages, and no part of an objective; why, after each
ELSEWHERE = {
    "use_adaptive_entropy",
    "entropy_coef_min",
    "entropy_coef_max",
    "entropy_coef_delta",
    "entropy_target",  # a controller that moves entropy_coef between steps
    "steps_per_generation",  # one optimizer step per rollout is assumed
    "gradient_accumulation_steps",
    "num_iterations",
    "per_device_train_batch_size",
    "per_device_eval_batch_size",
    "num_generations_eval",
    "router_aux_loss_coef",  # a model's own loss
    "num_generations",
    "mask_truncated_completions",  # of the batch
    "reward_weights",  # rewards come summed
    "pad_to_multiple_of",
    "log_multimodal",
    "gradient_checkpointing_kwargs",
    "chat_template_kwargs",  # of the forward pass
}


def effective(reference, kind):
    """Defaults as a constructed config has them."""
    config = reference.build(kind, 4, 4 if kind != "rloo" else 2).args
    return {name: getattr(config, name) for name in reference.defaults(kind)}


def test_grpo_defaults_are_those_of_the_installed_config(reference):
    theirs, built = reference.defaults("grpo"), effective(reference, "grpo")
    wrong = {
        word: (value, theirs.get(word, "not there"))
        for word, value in interop.TRL_DEFAULTS.items()
        if word not in theirs or theirs[word] != value or built[word] != value
    }
    assert not wrong, f"word: (rlnb says, TRL has): {wrong}"


def test_rloo_defaults_are_those_of_the_installed_config(reference):
    theirs = reference.defaults("rloo")
    wrong = {
        word: (value, theirs.get(word, "not there"))
        for word, value in interop.TRL_RLOO_DEFAULTS.items()
        if word not in theirs or theirs[word] != value
    }
    assert not wrong, f"word: (rlnb says, TRL has): {wrong}"


def test_gmpo_differs_from_grpo_in_epsilon_only(reference):
    grpo, gmpo = reference.defaults("grpo"), reference.defaults("gmpo")
    assert {word: gmpo[word] for word in gmpo if gmpo[word] != grpo[word]} == {"epsilon": 0.4}
    assert from_trl(trainer="gmpo").objective.ratio.epsilon == gmpo["epsilon"]


def test_the_rosetta_tables_column_is_the_installed_trl(reference):
    kinds = {"trl": "grpo", "trl_rloo": "rloo", "trl_gmpo": "gmpo"}
    installed = {library: reference.defaults(kind) for library, kind in kinds.items()}
    quoted = [
        (library, word, value)
        for row in ROWS
        for library, words in row.defaults.items()
        if library in kinds
        for word, value in words.items()
    ]
    assert len(quoted) == 24
    wrong = [q for q in quoted if installed[q[0]][q[1]] != q[2]]
    assert not wrong


@pytest.mark.parametrize(("kind", "words"), [("grpo", "trl_grpo"), ("rloo", "trl_rloo")])
def test_every_word_of_the_config_is_known_and_no_other(reference, kind, words):
    assert interop.known_words(words) == set(reference.defaults(kind))


def read_by(*functions):
    """The attribute names that TRL's methods read from themselves or their config."""
    trees = [ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(f)))) for f in functions]
    return {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


@pytest.mark.parametrize(
    ("kind", "ours"), [("grpo", interop.TRL_DEFAULTS), ("rloo", interop.TRL_RLOO_DEFAULTS)]
)
def test_every_word_that_trls_loss_reads_is_read_here(reference, kind, ours):
    """From TRL's source: config words in the methods that score rollouts and compute the loss."""
    trainer, _ = reference.TRAINERS[kind]
    seen = read_by(trainer._compute_loss, trainer._generate_and_score_completions)
    # the constructor keeps these two under other names
    seen |= {"epsilon", "epsilon_high"} if "epsilon_low" in seen else set()
    words = seen & set(reference.defaults(kind))
    assert {"epsilon", "beta"} <= words, "TRL's methods were not found"
    assert words - set(ours) - ELSEWHERE == set()


@pytest.mark.parametrize(("old", "new"), [(True, "group"), (False, "none")])
def test_scale_rewards_as_a_bool_means_what_trl_makes_of_it(reference, old, new):
    assert reference.build("grpo", 4, 4, scale_rewards=old).args.scale_rewards == new
    assert from_trl(scale_rewards=old).objective == from_trl(scale_rewards=new).objective


def test_words_that_do_not_touch_the_loss_are_said_to_be_ignored():
    made = from_trl(loss_type="dapo", learning_rate=1e-6, delta=4.0, temperature=1.0)
    assert set(made.ignored) == {"learning_rate", "temperature"}
    assert from_trl(loss_type="sapo", delta=4.0).ignored == ("delta",)


def test_a_config_object_says_the_same_as_its_keywords(reference):
    words = dict(loss_type="cispo", epsilon_high=5.0, beta=0.04, scale_rewards="batch")
    config = reference.build("grpo", 4, 4, **words).args
    assert from_trl(config).objective == from_trl(**words).objective
    rloo = reference.build("rloo", 4, 2, normalize_advantages=True).args
    assert from_trl(rloo).objective == from_trl(trainer="rloo", normalize_advantages=True).objective
    gmpo = reference.build("gmpo", 4, 4, epsilon=0.3).args
    assert from_trl(gmpo).objective == from_trl(trainer="gmpo", epsilon=0.3).objective
