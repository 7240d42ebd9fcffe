"""What `write_verl` writes, given to verl 0.9.1 itself: by hand, in an environment that has verl.

    python tests/parity/check_verl_files.py

For every named method that verl can run: hydra composes the configuration over verl's own, verl's
dataclasses take actor, algorithm and rollout correction, verl's loader finds the reward function,
and its registries the plugin. Its numbers: tests/parity/test_verl_plugin.py, which needs no verl.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from rlnb.interop.verl_files import verl_words_and_plugin, write_verl
from rlnb.objective import ANNEX, ZOO
from rlnb.shipped import data_folder
from rlnb.training import TASKS

# in no environment of the course: fetched by name
verl = import_module("verl")
hydra = import_module("hydra")
core_algos = import_module("verl.trainer.ppo.core_algos")
get_custom_reward_fn = import_module("verl.trainer.ppo.reward").get_custom_reward_fn
config_of = import_module("verl.utils.config")
read_table = import_module("pyarrow.parquet").read_table


def pairs(split: str, count: int) -> list[tuple[str, str]]:
    rng = random.Random(0)
    problems = [TASKS["chain"].problem(rng, split) for _ in range(count)]
    return [(problem.prompt, problem.answer) for problem in problems]


def check(name: str, objective, folder: Path) -> str:
    words, loss, advantages = verl_words_and_plugin(objective)
    write_verl(
        folder,
        objective,
        train=pairs("train", 8),
        test=pairs("test", 4),
        model=str(data_folder() / "model"),
        gpus=1,
    )
    with hydra.initialize_config_dir(str(folder.resolve()), version_base=None):
        config = hydra.compose("trainer")
    critic = "values" in objective.needs
    config_of.validate_config(
        config, use_reference_policy=bool(words.get("use_kl_loss")), use_critic=critic
    )
    actor = config_of.omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    algorithm = config_of.omega_conf_to_dataclass(config.algorithm)
    assert actor.policy_loss.loss_mode == words["loss_mode"]
    assert actor.loss_agg_mode == words["loss_agg_mode"]
    assert algorithm.adv_estimator == words["adv_estimator"]
    reward = get_custom_reward_fn(config)
    row = read_table(config.data.train_files).to_pylist()[0]
    truth, extra = row["reward_model"]["ground_truth"], row["extra_info"]
    assert reward(row["data_source"], f"so{truth}", truth, extra) == 1.0
    for registry in (core_algos.POLICY_LOSS_REGISTRY, core_algos.ADV_ESTIMATOR_REGISTRY):
        registry.pop("rlnb", None)  # of the method before
    if loss or advantages:
        path = folder / "rlnb_plugin.py"
        spec = importlib.util.spec_from_file_location("rlnb_plugin", path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert core_algos.get_policy_loss_fn(actor.policy_loss.loss_mode)
    assert core_algos.get_adv_estimator_fn(algorithm.adv_estimator)
    return "plugin: " + ", ".join(
        word for word, on in (("loss", loss), ("advantages", advantages)) if on
    )


if __name__ == "__main__":
    print("verl", verl.__version__)
    failed = 0
    for name, objective in {**ZOO, **ANNEX}.items():
        try:
            verl_words_and_plugin(objective)
        except ValueError as error:
            print(f"{name:22s} refused: {error}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"{name:22s} composed; {check(name, objective, Path(folder))}")
            except Exception as error:  # noqa: BLE001  (all methods are tried)
                failed += 1
                print(f"{name:22s} FAILED {type(error).__name__}: {error}")
    sys.exit(failed > 0)
