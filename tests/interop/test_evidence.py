"""A method is named where the words that decide it were read, and nowhere else."""

from __future__ import annotations

import json
import math

import pytest
import torch

from rlnb.interop import (
    explain_all,
    explain_config,
    from_openrlhf,
    from_prime_rl,
    from_slime,
    from_verl,
    to_verl,
)
from rlnb.interop.libraries import OTHERS
from rlnb.interop.sources import read_configuration, read_configurations
from rlnb.objective import ZOO, Batch, local_token_mean, token_mean
from rlnb.objective.naming import name_of


def doubts(text, **more):
    return " | ".join(explain_all(text, **more)[0].doubts)


def traps(text, **more):
    return [name for name, _ in explain_all(text, **more)[0].traps]


# ---- keywords of a dictionary

KWARGS = """
from trl import GRPOConfig
common = {"loss_type": "dr_grpo", "beta": 0.01, "max_steps": steps(), "epsilon": eps}
if long:
    common["delta"] = 4.0
common["num_iterations"] = 2
common.update(scale_rewards="none")
args = GRPOConfig(**common, temperature=1.0)
"""


def test_the_readable_keys_of_a_dictionary_are_kept_and_the_others_printed():
    read = read_configuration(KWARGS)
    assert read.words == {
        "loss_type": "dr_grpo",
        "beta": 0.01,
        "num_iterations": 2,
        "scale_rewards": "none",
        "temperature": 1.0,
    }
    assert dict(read.not_read) == {
        "max_steps": "steps()",
        "epsilon": "eps, not bound to a literal",
        "delta": "4.0, in a branch",
    }
    report = explain_config(KWARGS)
    assert report.name is None and report.nearest is None
    assert "epsilon = eps, not bound to a literal was not read" in report.doubts


def test_a_dictionary_that_cannot_be_read_is_printed_and_nothing_is_named():
    report = explain_config("args = GRPOConfig(loss_type='dr_grpo', beta=0.01, **rest)")
    assert (report.name, report.nearest) == (None, None)
    assert report.doubts == ("**rest was not read, and may hold any word",)
    assert "** = rest: taken as not set" in str(report)
    # rest may set scale_rewards: the default is no evidence for the trap
    assert "dr_grpo_std" not in dict(report.traps)
    assert "dr_grpo_std" in traps("args = GRPOConfig(loss_type='dr_grpo', beta=0.01)")


def test_no_word_that_decides_the_loss_is_no_method():
    report = explain_config("args = GRPOConfig(learning_rate=1e-6, num_generations=8)")
    assert report.nearest is None and report.doubts == ("no word that decides the loss was read",)
    assert "method      not named, because" in str(report)


def test_a_default_of_the_scripts_own_is_read_and_said():
    text = """
import argparse, os
from dataclasses import dataclass
from trl import GRPOConfig
@dataclass
class Mine:
    epsilon: float = 0.2
def train(cfg: Mine, delta=4.0):
    parser = argparse.ArgumentParser()
    parser.add_argument("--beta", type=float, default=0.04)
    args = parser.parse_args()
    return GRPOConfig(loss_type="grpo", beta=args.beta, epsilon=cfg.epsilon, delta=delta,
                      scale_rewards=os.environ.get("SCALE", "group"))
"""
    read = read_configuration(text)
    assert (read.words["beta"], read.words["epsilon"], read.words["delta"]) == (0.04, 0.2, 4.0)
    assert set(read.notes) == {
        "beta: --beta read as 0.04, its default",
        "epsilon: Mine.epsilon read as 0.2, its default",
        "delta: the parameter delta read as 4.0, its default",
        "scale_rewards: the variable SCALE read as 'group', its default",
    }


def test_a_subclass_with_defaults_is_read_and_a_foreign_class_is_a_doubt():
    text = """
from dataclasses import field
from trl import GRPOConfig
class Mine(GRPOConfig):
    loss_type: str = field(default="cispo")
    epsilon_high: float = 5.0
args = Mine(beta=0.0)
"""
    assert read_configuration(text).words == {
        "loss_type": "cispo",
        "epsilon_high": 5.0,
        "beta": 0.0,
    }
    assert explain_config(text).name == "cispo"
    assert "comes from mine.configs" in doubts(
        "from mine.configs import GRPOConfig\nGRPOConfig(loss_type='grpo')"
    )
    assert "Unsloth" in doubts(
        "from unsloth import FastLanguageModel\nfrom trl import GRPOConfig\nGRPOConfig(beta=0.1)"
    )


def test_a_trainer_with_a_loss_of_its_own_is_a_doubt():
    own = (
        "from trl import GRPOConfig, GRPOTrainer\nclass T(GRPOTrainer):\n"
        "    def compute_loss(self): ...\nGRPOConfig(loss_type='grpo', beta=0.04)"
    )
    assert "class T of this file has its own compute_loss" in doubts(own)
    assert explain_config(own.replace("compute_loss", "log")).nearest == "grpo"
    away = "from trl import GRPOConfig\nfrom x.y import MyGRPOTrainer\nGRPOConfig(loss_type='grpo')"
    assert "MyGRPOTrainer comes from x.y: its loss was not seen" in doubts(away)


# ---- commands

LAUNCH = """accelerate launch train.py --loss_type dr_grpo --scale_rewards none \\
    --beta 0.01 --epsilon 0.2"""


def test_a_command_in_a_docstring_and_in_a_slurm_file():
    script = f'"""Train.\n\n{LAUNCH}\n"""\nfrom trl import GRPOConfig, TrlParser\n'
    script += "args = TrlParser((GRPOConfig,)).parse_args_and_config()\n"
    slurm = f"#!/bin/bash\n#SBATCH --gpus=8\nsrun bash -c '{LAUNCH}'\n"
    for text, name in ((script, "train.py"), (slurm, "run.slurm")):
        read = read_configurations(text, name)[0]
        assert read.words["loss_type"] == "dr_grpo" and read.words["beta"] == 0.01
        assert explain_all(text, name=name)[0].nearest == "dr_grpo"
    assert "an example of its command line" in read_configurations(script)[0].where
    with pytest.raises(ValueError, match="from a command line or a YAML file"):
        explain_config("from trl import GRPOConfig, TrlParser\nTrlParser((GRPOConfig,))")


def test_a_config_file_on_the_command_line_is_a_doubt():
    text = "accelerate launch grpo.py --config recipes/a.yaml --loss_type grpo --beta 0.04"
    assert "--config recipes/a.yaml was not seen" in doubts(text)
    assert traps(text) == ["kl_corrected"] or "loss_type_default" not in traps(text)


VERL = "python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo {}"


@pytest.mark.parametrize(
    "text, part",
    [
        (VERL.format("--config-name mine"), "--config-name mine was not seen"),
        (VERL.format("--config-path /conf"), "--config-path /conf was not seen"),
        (VERL.format("actor_rollout_ref.actor.state_masking=true"), "actor.state_masking: no word"),
        (VERL.format("algorithm.kl_ctrl.kl_coef=0.001"), "up to verl 0.3"),
        (VERL.format("$EXTRA_ARGS"), "$EXTRA_ARGS was not read"),
        (VERL.format("distillation.enabled=True"), "a teacher's loss"),
        (VERL.format("").replace("verl.trainer.main_ppo", "mine.main"), "mine.main starts it"),
        ("ARGS=1 actor_rollout_ref.actor.clip_ratio_low=0.2", "no command was found"),
        ("algorithm: {adv_estimator: grpo}\ndefaults: [mine, _self_]\nactor_rollout_ref: "
         "{actor: {clip_ratio_low: 0.2}}", "names mine, which was not seen"),
    ],
)  # fmt: skip
def test_what_makes_verls_defaults_uncertain_is_said(text, part):
    report = explain_all(text)[0]
    assert any(part in d for d in report.doubts), report.doubts
    assert report.name is None and report.nearest is None


@pytest.mark.parametrize(
    "more", ["", "--config-name ppo_megatron_trainer", "--config-path config", "trainer.nnodes=2"]
)
def test_verls_own_base_is_none(more):
    report = explain_all(VERL.format(more))[0]
    assert (
        report.doubts == () and report.nearest == "grpo" and report.called == "adv_estimator=grpo"
    )


def test_each_command_has_its_report_and_a_branch_is_not_followed():
    text = """
high=0.28
if [ "$1" = big ]; then
    high=0.3
fi
for beta in 0.0 0.04; do
    python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
        actor_rollout_ref.actor.clip_ratio_high=$high actor_rollout_ref.actor.kl_loss_coef=$beta
done
ARGS=(algorithm.adv_estimator=rloo)  # arrays go where they are used
python -m verl.trainer.main_ppo "${ARGS[@]}"
"""
    first, second = read_configurations(text, "run.sh")
    assert dict(first.not_read) == {
        "clip_ratio_high": "0.28 or 0.3, by a branch",
        "kl_loss_coef": "0.0 or 0.04",
    }
    assert first.words == {"adv_estimator": "grpo"} and second.words == {"adv_estimator": "rloo"}


@pytest.mark.parametrize("gap", ["    # the KL", "", "   "])
def test_a_comment_or_an_empty_line_in_a_continuation_ends_the_command(gap):
    """bash ends the command there, and takes the next line for another one."""
    text = (
        f"python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\\n{gap}\n"
        "    actor_rollout_ref.actor.use_kl_loss=True \\\n"
        "    actor_rollout_ref.actor.kl_loss_coef=0.001\n"
    )
    report = explain_all(text, name="run.sh")[0]
    assert report.words == {"adv_estimator": "grpo"}
    assert "does not pass the 2 arguments below it" in dict(report.traps)["lost_words"]
    whole = explain_all(text.replace(f"{gap}\n", "", 1), name="run.sh")[0]
    assert whole.words["use_kl_loss"] is True and "lost_words" not in dict(whole.traps)


# ---- notebooks, nested files


def notebook(*cells, output=""):
    return json.dumps(
        {"cells": [{"cell_type": "code", "source": c, "outputs": [output]} for c in cells]}
    )


def test_a_notebook_of_a_megabyte_of_outputs_and_its_magics():
    text = notebook(
        "if colab:\n    !pip install \\\n        trl\n%pip install -q \\\n  x",
        "not python at all (",
        "args = GRPOConfig(loss_type='grpo', beta=0.04)",
        "%%bash\ntrl grpo --loss_type cispo --epsilon_high 5.0",
        output="x" * 1_000_000,
    )
    first, second = read_configurations(text)
    assert first.words == {"loss_type": "grpo", "beta": 0.04}
    assert second.words["loss_type"] == "cispo" and second.where.endswith("code cell 4")


def test_nested_words_are_read_and_their_reader_is_a_doubt():
    text = json.dumps({"model": {"name": "x"}, "grpo": {
        "loss_type": "dr_grpo", "beta": 0.0, "num_generations": 8}})  # fmt: skip
    report = explain_config(text)
    assert report.words == {"loss_type": "dr_grpo", "beta": 0.0, "num_generations": 8}
    assert report.nearest is None and "what reads the section grpo" in report.doubts[0]


def test_interpolations_are_resolved_once_or_said():
    text = """
algorithm: {adv_estimator: grpo}
actor_rollout_ref:
  actor: {clip_ratio_low: "${band.low}", clip_ratio_high: "${oc.env:HIGH,0.28}",
          kl_loss_coef: "${env.kl}"}
band: {low: 0.2}
"""
    read = read_configuration(text)
    assert (read.words["clip_ratio_low"], read.words["clip_ratio_high"]) == (0.2, 0.28)
    assert dict(read.not_read) == {"kl_loss_coef": "${env.kl}"}


# ---- other libraries

FOREIGN = {
    "AReaL": "from areal.api.cli_args import GRPOConfig\nGRPOConfig(beta=0.1)",
    "SkyRL": "python -m skyrl_train.entrypoints.main_base "
    "trainer.algorithm.advantage_estimator=grpo generator.n_samples_per_prompt=5",
    "EasyR1": "python3 -m verl.trainer.main config=a.yaml algorithm.adv_estimator=grpo "
    "worker.actor.model.model_path=x",
    "ROLL": "adv_estimator: grpo\nactor_train:\n  model_args: {dtype: bf16}\nbeta: 0.1",
    "ms-swift": "NPROC_PER_NODE=2 megatron rlhf --rlhf_type grpo --beta 0.04 --loss_type grpo",
    "NeMo RL": "grpo: {num_prompts_per_step: 32}\nloss_fn: {ratio_clip_min: 0.2}\nbeta: 1",
    "oat": "python train_zero_math.py --critic_type drgrpo --beta 0",
    "Tunix": "from tunix.rl.grpo import GRPOConfig\nGRPOConfig(beta=0.1)",
    "verifiers": "import verifiers as vf\nargs = vf.grpo_defaults(run_name='x')\nbeta = 0.1",
    "verl's recipe SPPO": "python -m recipe.sppo.main_sppo algorithm.adv_estimator=null "
    "actor_rollout_ref.actor.clip_ratio_high=0.2",
}


@pytest.mark.parametrize("library", FOREIGN)
def test_another_library_is_refused_by_its_name(library):
    with pytest.raises(ValueError, match=f"configuration of {library}.*only those of TRL"):
        explain_all(FOREIGN[library])


def test_a_class_of_the_file_is_not_trls():
    with pytest.raises(ValueError, match="defined in this file and is not TRL's"):
        explain_config("class GRPOConfig:\n    beta = 0.1\ncfg = GRPOConfig()")


def test_a_recipe_for_preferences_is_refused_as_one():
    with pytest.raises(ValueError, match="DPOConfig, which learns from pairs"):
        explain_config("loss_type: sigmoid\nbeta: 0.1\n")


def test_no_library_claims_the_words_of_those_that_are_read():
    for one in OTHERS:
        assert not {w for w in one.words if w.startswith(("actor_rollout_ref.", "algo."))}, one


OPENRLHF = "python3 -m openrlhf.cli.train_ppo_ray {} "


@pytest.mark.parametrize(
    "text, nearest, parts",
    [
        (OPENRLHF.format("--advantage_estimator group_norm --use_kl_loss --kl_estimator k3 "
         "--init_kl_coef 1e-3"), "grpo", {"weights", "terms"}),
        (OPENRLHF.format("--algo.advantage.estimator gae --algo.kl.init_coef 0 "
         "--algo.advantage.lambd 0.95"), "ppo", {"credit"}),
        (OPENRLHF.format("--algo.advantage.estimator group_norm --algo.kl.init_coef 0 "
         "--actor.policy_loss_type gspo --actor.eps_clip_low_high 3e-4 4e-4"), "gspo", set()),
        ("GRPO_ARGS=(\n --advantage-estimator grpo # the band\n --eps-clip 0.2\n"
         " --eps-clip-high 0.28\n)\nray job submit -- python3 train.py --num-rollout 9 "
         "--hf-checkpoint x --rm-type math --calculate-per-token-loss ${GRPO_ARGS[@]}",
         "dapo", set()),
        ("python3 train.py --num-rollout 9 --hf-checkpoint x --rm-type math "
         "--advantage-estimator gspo --eps-clip 3e-4 --eps-clip-high 4e-4", "gspo", set()),
        ("[trainer.loss]\nkl_tau = 0.0\ndppo_mask_low = 0.15\ndppo_mask_high = 0.15\n"
         "[orchestrator]\nbatch_size = 8\n", "dppo", {"surrogate", "weights"}),
    ],
)  # fmt: skip
def test_openrlhf_slime_and_prime_rl_are_read(text, nearest, parts):
    report = explain_all(text)[0]
    assert report.nearest == nearest and {c.part for c in report.difference} == parts
    assert (report.name is None) == bool(parts)


def test_openrlhfs_older_flags_mean_averages_over_the_micro_batch():
    older = OPENRLHF.format("--advantage_estimator dr_grpo --init_kl_coef 0")
    newer = OPENRLHF.format("--algo.advantage.estimator dr_grpo --algo.kl.init_coef 0")
    assert explain_all(older)[0].objective.weights == local_token_mean()
    assert explain_all(newer)[0].objective.weights == token_mean()


def test_what_prime_rl_and_openrlhf_add_has_no_part_and_is_said():
    report = explain_all("[trainer.loss]\ntype='default'\n[orchestrator]\nbatch_size = 8\n")[0]
    assert report.objective is None and "kl_tau=0.001" in report.refused
    report = explain_all(OPENRLHF.format("--advantage_estimator rloo --n_samples_per_prompt 8"))[0]
    assert report.objective is None and "after the baseline" in report.refused


def losses(objective):
    """The loss of two answers of 2 and 1 tokens, ratios 1.5, 1, 0.5, rewards 1 and 0."""
    ratio = torch.tensor([[1.5, 1.0], [0.5, 1.0]])
    batch = Batch(
        torch.full((2, 2), -1.0) + ratio.log(),
        torch.tensor([[1.0, 1.0], [1.0, 0.0]]),
        torch.tensor([1.0, 0.0]),
        2,
        old_logprobs=torch.full((2, 2), -1.0),
    )
    return float(objective(batch).loss)


def test_the_readers_loss_is_the_librarys_formula_by_hand():
    """A = +-1/sqrt(2) by Bessel's std; the first token is cut at 1.2, the last, with A < 0, at 0.8:
    slime has the mean of each answer, OpenRLHF one mean over the tokens, prime-rl masks."""
    a = 2**-0.5
    slime = losses(from_slime({}).objective)
    assert slime == pytest.approx(-((1.2 * a + a) / 2 - 0.8 * a) / 2, abs=1e-5)
    tokens = losses(from_slime({"calculate_per_token_loss": True}).objective)
    assert tokens == pytest.approx(-(1.2 * a + a - 0.8 * a) / 3, abs=1e-5)
    words = {"advantage_estimator": "group_norm", "init_kl_coef": 0.0}
    assert losses(from_openrlhf(words).objective) == pytest.approx(tokens, abs=1e-5)
    dr = losses(from_openrlhf({**words, "advantage_estimator": "dr_grpo"}).objective)
    assert dr == pytest.approx(-(1.2 / 2 + 1 / 2 - 0.8 / 2) / 3, abs=1e-6)
    # slime's cispo: the weight is clamped to [1 - eps, 1 + high] and multiplies log pi
    capped = losses(from_slime({"advantage_estimator": "cispo"}).objective)
    logs = (-1 + math.log(1.5), -1.0, -1 + math.log(0.5))
    by_hand = (1.2 * a * logs[0] + a * logs[1]) / 2 - 0.8 * a * logs[2]
    assert capped == pytest.approx(-by_hand / 2, abs=1e-5)


def test_prime_rls_mask_drops_what_moved_and_is_pushed_on():
    objective = from_prime_rl({"loss.kl_tau": 0.0}).objective
    p = torch.tensor([[0.5, 0.3], [0.1, 0.5]])  # engine's 0.2, 0.3, 0.2, 0.2
    q = torch.tensor([[0.2, 0.3], [0.2, 0.2]])
    batch = Batch(
        p.log(),
        torch.ones(2, 2),
        torch.tensor([1.0, 0.0]),
        2,
        old_logprobs=q.log(),
        sampling_logprobs=q.log(),
    )
    # A = +-1/2; kept: 0.3/0.3 of the first, both of the second (0.1: fell by 0.1; 0.5: rose)
    assert float(objective(batch).loss) == pytest.approx(-(0.5 - 0.5 * (0.5 + 2.5)) / 4)


# ---- versions and corrections


def test_vllms_correction_stands_beside_the_name():
    report = explain_config("GRPOConfig(loss_type='dapo', epsilon_high=0.28, use_vllm=True)")
    assert report.name == "dapo" and "correction for the rollout engine" in report.beside[0]
    assert "beside      engine_ratio(" in str(report)


def test_an_old_name_that_still_acts_counts():
    text = "GRPOConfig(loss_type='dapo', use_vllm=True, vllm_importance_sampling_cap=2.0)"
    assert explain_config(text).objective.gates[0].high == 2.0
    assert "deprecated_cap" in traps(text)


def test_a_file_without_loss_type_is_named_once_its_version_is_known():
    text = "GRPOConfig(beta=0.1, max_prompt_length=512)"
    report = explain_config(text)
    assert report.nearest is None and "--trl and a version settle it" in report.doubts[0]
    assert any("a word of TRL up to 0.27" in note for note in report.notes)
    old, new = (explain_all(text, trl=v)[0] for v in ((0, 15), (0, 22)))
    assert (old.nearest, old.version) == ("grpo", "TRL 0.15") and new.nearest == "dapo"
    pinned = explain_config("# pip install trl==0.15.2\n" + text)
    assert pinned.version == "TRL 0.15" and pinned.nearest == "grpo"


@pytest.mark.parametrize("version, beta", [((0, 18), 0.04), ((0, 19), 0.0), ((1, 16), 0.0)])
def test_an_older_version_has_its_defaults(version, beta):
    report = explain_all("GRPOConfig(loss_type='grpo')", trl=version)[0]
    terms = report.objective.terms
    assert (terms[0].coefficient if terms else 0.0) == beta
    assert not terms or terms[0].corrected is False


@pytest.mark.parametrize("name", ["grpo", "dapo", "dr_grpo", "gspo_token", "cispo", "sapo"])
def test_a_round_trip_through_verl_keeps_the_name(name):
    """The dual clip that cannot be switched off, and the length that a run must add, are verl's."""
    words = to_verl(ZOO[name])
    report = explain_config(dict(words))
    assert report.name == name, report
    with_habits = {**words, **({"clip_ratio_c": 3.0} if "clip_ratio_c" in words else {})}
    assert explain_config(with_habits).name == name
    if name in ("grpo", "dapo"):
        assert name_of(from_verl(words).objective) == name
