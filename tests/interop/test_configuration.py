"""Configurations as they lie around: what is read, what is not, and that nothing is ever run."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass

import pytest

from rlnb.interop.shell_source import shell_words
from rlnb.interop.sources import LONGEST, read_configuration, read_configurations


def words(text):
    return dict(read_configuration(text).words)


# ---- Python source


def test_a_call_is_read_with_names_bound_to_literals():
    reading = read_configuration(
        "from trl import GRPOConfig\n"
        "BETA = 0.04\n"
        "LENGTH: int = 1024 * 8\n"
        "args = GRPOConfig(beta=BETA, max_completion_length=LENGTH // 2, loss_type='grpo')\n"
    )
    assert reading.library == "trl" and reading.kind == "GRPOConfig"
    assert reading.where == "the GRPOConfig(...) call on line 4"
    assert reading.words == {"beta": 0.04, "max_completion_length": 4096, "loss_type": "grpo"}
    assert reading.not_read == ()


def test_what_would_have_to_be_run_is_listed_and_not_run(tmp_path):
    target = tmp_path / "touched"
    reading = read_configuration(
        "from trl import GRPOConfig\n"
        f"x = open({str(target)!r}, 'w')\n"
        "GRPOConfig(beta=float(input()), epsilon=args.eps, loss_type=['dapo'][0], num_iterations=2)"
    )
    assert not target.exists()
    assert reading.words == {"num_iterations": 2}
    assert dict(reading.not_read) == {
        "beta": "float(input())",
        "epsilon": "args.eps",
        "loss_type": "['dapo'][0]",
    }


def test_a_name_bound_twice_is_not_guessed():
    reading = read_configuration(
        "b = 0.1\nif fast:\n    b = 0.2\nc = b * 2\nGRPOConfig(beta=b, delta=c)"
    )
    assert reading.words == {}
    assert dict(reading.not_read) == {
        "beta": "b, bound more than once",
        "delta": "c, not bound to a literal",
    }


def test_later_attributes_and_literal_dictionaries_count():
    reading = read_configuration(
        "common = {'beta': 0.1, 'epsilon': 0.3}\n"
        "args = trl.GRPOConfig(**common, loss_type='dapo')\n"
        "args.beta = 0.0\n"
        "other.beta = 9.0\n"
    )
    assert reading.words == {"beta": 0.0, "epsilon": 0.3, "loss_type": "dapo"}


def test_only_the_first_of_several_calls_is_read_and_it_says_so():
    reading = read_configuration("a = GRPOConfig(beta=0.1)\nb = RLOOConfig(beta=0.2)")
    assert reading.words == {"beta": 0.1}
    assert reading.notes == ("1 of 2 configurations read: the GRPOConfig(...) call on line 1",)
    first, second = read_configurations("a = GRPOConfig(beta=0.1)\nb = RLOOConfig(beta=0.2)")
    assert (first.kind, second.kind, second.words) == ("GRPOConfig", "RLOOConfig", {"beta": 0.2})


@pytest.mark.parametrize("kind", ["GRPOConfig", "RLOOConfig", "GMPOConfig"])
def test_the_class_is_kept(kind):
    assert read_configuration(f"{kind}(beta=0.1)").kind == kind


def test_assignments_without_a_call_are_words():
    text = "loss_type = 'dr_grpo'\nscale_rewards = False\nother = 1"
    assert words(text) == {"loss_type": "dr_grpo", "scale_rewards": False, "other": 1}


def test_a_notebook_and_a_manual_page_are_read_by_their_code():
    code = "!pip install trl\n%time\nargs = GRPOConfig(\n    ...\n    beta=0.1,\n)"
    cells = [{"cell_type": "markdown", "source": ["# GRPO"]}, {"cell_type": "code", "source": code}]
    assert words(json.dumps({"cells": cells})) == {"beta": 0.1}
    assert words(f"# Title\n\nProse with an isn't.\n\n```python\n{code}\n```\n") == {"beta": 0.1}


# ---- mappings


def test_yaml_of_a_recipe_and_its_text_numbers():
    text = "model: x\nloss_type: cispo\nepsilon_high: 5e-1\nbeta: 1.0e-3\nscale_rewards: none\n"
    assert words(text) == {
        "model": "x",
        "loss_type": "cispo",
        "epsilon_high": 0.5,
        "beta": 0.001,
        "scale_rewards": "none",
    }


def test_nested_verl_yaml_and_its_flat_words_say_the_same():
    nested = """
actor_rollout_ref:
  actor:
    clip_ratio_high: 0.28
    policy_loss: {loss_mode: gspo}
  rollout: {n: 16, temperature: 0.8}
algorithm:
  adv_estimator: grpo
  kl_ctrl: {kl_coef: 0.01}
"""
    expected = {
        "clip_ratio_high": 0.28,
        "loss_mode": "gspo",
        "rollout.n": 16,
        "rollout.temperature": 0.8,
        "adv_estimator": "grpo",
        "kl_coef": 0.01,
    }
    assert read_configuration(nested).library == "verl"
    assert words(nested) == expected
    flat = {"clip_ratio_high": 0.28, "loss_mode": "gspo", "adv_estimator": "grpo", "kl_coef": 0.01}
    assert read_configuration(flat).library == "verl" and words(flat) == flat
    assert words(json.dumps(flat)) == flat


def test_a_config_object_gives_what_differs_from_its_defaults():
    @dataclass
    class GRPOConfig:
        loss_type: str = "dapo"
        beta: float = 0.0

    class Mine(GRPOConfig):
        pass

    reading = read_configuration(Mine(beta=0.1))
    assert (reading.kind, reading.words) == ("GRPOConfig", {"beta": 0.1})
    with pytest.raises(TypeError, match="not its path"):
        read_configuration(sys)


# ---- command lines

SCRIPT = r"""
#!/usr/bin/env bash
set -x   # don't stop
high=0.28
export low=0.2
LEN=$((1024 * 2))
n=${N:-8}
EXTRA="
    actor_rollout_ref.actor.kl_loss_coef=$((0)) \
    +algorithm.filter_groups.enable=True"
ARGS=(
    algorithm.adv_estimator=grpo
    actor_rollout_ref.rollout.n=$n
)
python3 -m verl.trainer.main_ppo "${ARGS[@]}" $EXTRA \
    actor_rollout_ref.actor.clip_ratio_high=${high} \
    actor_rollout_ref.actor.clip_ratio_low="$low" \
    actor_rollout_ref.actor.loss_scale_factor=$((LEN + ${LEN})) \
    actor_rollout_ref.actor.use_kl_loss=$FROM_OUTSIDE \
    actor_rollout_ref.actor.entropy_coeff=$(cat coeff) \
    data.train_files="['$HOME/a', '$HOME/b']" \
    actor_rollout_ref.actor.policy_loss.loss_mode='gspo' $@  # beta=9
# actor_rollout_ref.actor.clip_ratio_c=99
"""


def test_a_verl_script_with_variables_arrays_comments_and_continuations():
    reading = read_configuration(SCRIPT)
    assert reading.words == {
        "kl_loss_coef": 0,
        "filter_groups.enable": True,
        "adv_estimator": "grpo",
        "rollout.n": 8,
        "clip_ratio_high": 0.28,
        "clip_ratio_low": 0.2,
        "loss_scale_factor": 4096,
        "loss_mode": "gspo",
    }
    unread = dict(reading.not_read)
    assert unread["use_kl_loss"] == "$FROM_OUTSIDE"
    assert unread["entropy_coeff"] == "$(cat coeff)"
    assert reading.notes == ("actor_rollout_ref.rollout.n: ${N:-8} read as 8",)


def test_a_variable_has_the_value_it_holds_when_it_is_used():
    text = (
        "x=0.1\nrun actor_rollout_ref.actor.clip_ratio_low=$x \\\n"
        "actor_rollout_ref.actor.clip_ratio_high=$x algorithm.lam=$x "
        "algorithm.lam=1"
    )
    reading = read_configuration(text)
    assert reading.words == {"clip_ratio_low": 0.1, "clip_ratio_high": 0.1, "lam": 1}
    assert reading.notes == ("algorithm.lam is set twice, 0.1 and then 1; the last counts",)
    later = read_configurations(text + "\nx=0.3\nrun algorithm.lam=$x")[1]
    assert later.words == {"lam": 0.3}


def test_a_word_in_the_wrong_section_is_found():
    reading = read_configuration(
        "run +actor_rollout_ref.actor.policy_loss.tau_pos=2.0 \\\n"
        " algorithm.adv_estimator=grpo critic.ppo_epochs=4"
    )
    assert reading.misplaced == (
        ("actor_rollout_ref.actor.policy_loss.tau_pos", "actor_rollout_ref.actor.tau_pos"),
    )
    assert "tau_pos" not in reading.words and reading.words["critic.ppo_epochs"] == 4


def test_trl_flags():
    text = (
        "E=3e-4\naccelerate launch train.py --loss_type grpo --epsilon $E \\\n"
        "  --importance-sampling-level=sequence --bf16 --reward_weights 1.0 0.5 "
        "--beta $B\npython other.py"
    )
    reading = read_configuration(text)
    assert reading.words == {
        "loss_type": "grpo",
        "epsilon": 3e-4,
        "bf16": True,
        "importance_sampling_level": "sequence",
        "reward_weights": [1.0, 0.5],
    }
    assert reading.not_read == (("beta", "$B"),)
    assert read_configuration("trl rloo --num_generations 4").kind == "RLOOConfig"


def test_shell_quoting():
    assert list(shell_words("""a='x # y' "b \\" c" d#e \\\n f""")) == [
        "a=x # y",
        'b " c',
        "d#e",
        "f",
    ]


# ---- what is no configuration

BAD = {
    "": "empty",
    "   \n": "empty",
    "hello world": "no configuration of TRL or verl",
    "learning_rate: 1e-6\n": "no configuration of TRL or verl",
    "x = 1": "no configuration of TRL or verl",
    "[1, 2]": "no configuration of TRL or verl",
    "swift rlhf --loss_type cispo": "ms-swift",
    "GRPOConfig(beta=": "line 1",
    "beta: [": "line",
    '{"beta": }': "JSON does not parse: line 1",
    "beta: !!python/object/apply:os.system ['true']": "could not determine a constructor",
    "a\0b": "NUL",
    "loss_type: dapo\nbeta: .nan": "finite",
    "x: &a [1]\nbeta: [" + "*a, " * 30 + "]": "alias",
    "GRPOConfig(" + "(" * 500 + ")" * 500 + ")": "brackets",
    "GRPOConfig(beta=" + "-" * 50_000 + "1)": "",
    "GRPOConfig(beta=1" + "+1" * 40_000 + ")": "",
    "loss_type = " + "[" * 5000: "no configuration of TRL or verl",
    "[" * 50_000: "levels",
    '{"a":' * 30_000: "JSON",
    "beta: " + "{a: " * 100 + "1" + "}" * 100: "levels",
    "beta: 1\n" * 100_000: "characters",
    "run algorithm.lam=" + "$(" * 60_000: "",
    "run algorithm.lam=1 " + "${a" * 60_000: "",
    "\n".join(f"a{i + 1}=$a{i}$a{i}" for i in range(5000)) + "\nrun algorithm.lam=$a99": "",
    "run --beta 1\n" + "'" * 99_999: "",
    "GRPOConfig(beta=9**9**9**9)": "",
    "<<A\n" * 20 + "run algorithm.lam=1": "",
}


@pytest.mark.parametrize("text, part", BAD.items(), ids=[f"{k[:20]!r}" for k in BAD])
def test_bad_input_is_one_sentence_and_soon(text, part):
    start = time.perf_counter()
    try:
        reading = read_configuration(text)
    except ValueError as error:
        message = str(error)
        assert part in message and message.endswith(".") and "\n" not in message, message
        assert len(message) < 450
    else:
        assert part == "", f"read as {reading}"  # harmless: nothing hostile was believed
        assert all(isinstance(v, (int, float)) for v in reading.words.values())
    assert time.perf_counter() - start < 5


def test_the_length_limit_is_told():
    with pytest.raises(ValueError, match=f"at most {LONGEST:,}"):
        read_configuration("x" * (LONGEST + 1))


def test_yaml_without_pyyaml_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ValueError, match="pip install pyyaml"):
        read_configuration("loss_type: dapo")
    assert words('{"loss_type": "dapo"}') == {"loss_type": "dapo"}
