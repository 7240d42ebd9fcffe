"""What verl 0.9.1 needs to train on an objective: configuration, reward, data, command.

    from rlnb.interop.verl_files import write_verl
    write_verl("run", ZOO["maxrl"], train=pairs, test=held_out_pairs, model="Qwen/Qwen2.5-0.5B")

The configuration is one YAML file over verl's `ppo_trainer`, every overridden key with its reason.
It was composed by hydra, and its sections built by verl's own dataclasses, for every named method
(tests/parity/check_verl_files.py, with verl 0.9.1 in an environment of its own); it was not run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from rlnb.interop.verl_plugin import NAME, advantage_estimator, policy_loss
from rlnb.interop.verl_words import to_verl
from rlnb.interop.vocabulary import Inexpressible, Words
from rlnb.objective.advantages import group_center, group_zscore
from rlnb.objective.composition import Objective
from rlnb.objective.ratios import token
from rlnb.objective.surrogates import clip

__all__ = ["verl_config", "verl_words_and_plugin", "write_verl"]

POLICY_LOSS = ("loss_mode", "clip_cov_ratio", "clip_cov_lb", "clip_cov_ub", "kl_cov_ratio",
               "ppo_kl_coef")  # fmt: skip
ALGORITHM = ("adv_estimator", "norm_adv_by_std_in_grpo", "gamma", "lam", "use_kl_in_reward",
             "kl_penalty")  # fmt: skip
WHY = {
    "adv_estimator": "the baseline",
    "norm_adv_by_std_in_grpo": "whether the group's deviations are divided by their std",
    "gamma": "discount of later rewards",
    "lam": "how far GAE trusts the rewards over the critic",
    "use_kl_in_reward": "the KL penalty is part of the reward",
    "kl_penalty": "its estimator",
    "kl_coef": "its coefficient",
    "bypass_mode": "the ratio is against the rollout engine, not the trainer's old policy",
    "loss_mode": "the surrogate",
    "loss_agg_mode": "how tokens are averaged",
    "loss_scale_factor": "the constant length of that average",
    "clip_ratio_low": "the band's lower edge is 1 minus this",
    "clip_ratio_high": "the band's upper edge is 1 plus this",
    "clip_ratio_c": "dual clip; 1e9 switches off what verl has on at 3",
    "tau_pos": "steepness of SAPO's gate where A > 0",
    "tau_neg": "and where A < 0",
    "entropy_coeff": "entropy bonus",
    "use_kl_loss": "a KL term in the loss, which loads the reference model",
    "kl_loss_coef": "its coefficient",
    "kl_loss_type": "its estimator; low_var_kl is k3",
    "clip_cov_ratio": "share of tokens that Clip-Cov silences",
    "clip_cov_lb": "of covariance above this",
    "clip_cov_ub": "and below this",
    "kl_cov_ratio": "share of tokens that KL-Cov penalises",
    "ppo_kl_coef": "how much",
}


def verl_words_and_plugin(objective: Objective) -> tuple[Words, bool, bool]:
    """(verl's words, whether the loss is the plugin's, whether the advantages are).

    Raises Inexpressible where neither verl's words nor its registries take a part.
    """
    baseline = group_zscore() if objective.advantage != group_center() else group_center()
    plain_loss = objective.replace(surrogate=clip(0.2), ratio=token, gates=())
    for loss, advantages in ((False, False), (False, True), (True, False), (True, True)):
        said = plain_loss if loss else objective
        if advantages:
            said = said.replace(advantage=baseline, credit=())
        try:
            words = to_verl(said)
            if loss:
                policy_loss(objective)
            if advantages:
                advantage_estimator(objective)
        except Inexpressible as error:
            last = error
            continue
        out = dict(words)
        differences = list(words.differences)
        if loss:  # what clip(0.2) stood for
            for word in ("clip_ratio_low", "clip_ratio_high", "clip_ratio_c"):
                out.pop(word, None)
            out["loss_mode"] = NAME
            differences = [d for d in differences if "clip" not in d]
        if advantages:
            out.pop("norm_adv_by_std_in_grpo", None)
            out["adv_estimator"] = NAME
            differences = [d for d in differences if not d.startswith("conventions")]
        return Words(out, differences), loss, advantages
    raise last


def verl_config(
    objective: Objective,
    *,
    model: str,
    folder: str | Path = ".",
    num_generations: int = 8,
    prompts: int = 128,
    max_prompt_length: int = 512,
    max_completion_length: int = 1024,
    learning_rate: float = 1e-6,
    gpus: int = 8,
) -> str:
    """The YAML file. prompts and num_generations: of a rollout, which is one optimizer step."""
    words, *_ = verl_words_and_plugin(objective)
    if words.get("loss_agg_mode") == "seq-mean-token-sum-norm":
        words.setdefault("loss_scale_factor", max_completion_length)
    here = Path(folder).resolve()
    keys: list[tuple[str, Any, str]] = [
        (_path(word), value, WHY.get(word, "as the objective says"))
        for word, value in words.items()
    ]
    actor, rollout = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
    keys += [
        ("data.train_files", str(here / "train.parquet"), "what write_verl wrote"),
        ("data.val_files", str(here / "test.parquet"), "the held-out problems"),
        ("data.train_batch_size", prompts, "prompts of a rollout"),
        ("data.max_prompt_length", max_prompt_length, "longer prompts are an error"),
        ("data.max_response_length", max_completion_length, "longer answers are cut"),
        ("reward.custom_reward_function.path", str(here / "reward.py"), "the verifier"),
        ("reward.custom_reward_function.name", "compute_score", "its function"),
        ("actor_rollout_ref.model.path", model, "the policy, and the reference if there is one"),
        (f"{actor}.optim.lr", learning_rate, "AdamW"),
        (f"{actor}.ppo_mini_batch_size", prompts, "prompts of an optimizer step: all, on-policy"),
        (f"{actor}.use_dynamic_bsz", True, "micro-batches by tokens; the loss does not change"),
        (f"{rollout}.name", "vllm", "the engine"),
        (f"{rollout}.n", num_generations, "answers per prompt"),
        (f"{rollout}.temperature", 1.0, "log-probabilities are taken at it too"),
        (f"{rollout}.log_prob_use_dynamic_bsz", True, "scoring by tokens as well"),
        ("actor_rollout_ref.ref.log_prob_use_dynamic_bsz", True, "and the reference"),
        ("trainer.n_gpus_per_node", gpus, "of one machine"),
        ("trainer.nnodes", 1, "machines"),
        ("trainer.logger", ["console"], "verl's default also asks for wandb"),
    ]
    if words["adv_estimator"] == "gae":
        keys.append(("critic.model.path", model, "the critic starts from the policy"))
        keys.append(("critic.use_dynamic_bsz", True, "and takes micro-batches by tokens"))
    tree: dict[str, Any] = {}
    for path, value, why in keys:
        *sections, last = path.split(".")
        at = tree
        for section in sections:
            at = at.setdefault(section, {})
        at[last] = (value, why)
    head = [f"# {objective!r}", *(f"# not carried over: {d}" for d in words.differences)]
    head += ["hydra:", "  searchpath:", "    - pkg://verl.trainer.config", ""]
    head += ["defaults:", "  - ppo_trainer", "  - _self_", ""]
    return "\n".join([*head, *_lines(tree)]) + "\n"


def _path(word: str) -> str:
    if word in POLICY_LOSS:
        return f"actor_rollout_ref.actor.policy_loss.{word}"
    if word in ALGORITHM:
        return f"algorithm.{word}"
    if word == "kl_coef":
        return "algorithm.kl_ctrl.kl_coef"
    if word == "bypass_mode" or word.startswith(("rollout_is", "rollout_rs")):
        return f"algorithm.rollout_correction.{word}"
    return f"actor_rollout_ref.actor.{word}"


def _lines(tree: dict[str, Any], depth: int = 0) -> list[str]:
    out = []
    for name, value in tree.items():
        indent = "  " * depth
        if isinstance(value, dict):
            out += [f"{indent}{name}:", *_lines(value, depth + 1)]
        else:
            # YAML reads 1e-06 as a string: a float needs its point
            said = json.dumps(value[0])
            if isinstance(value[0], float) and "e" in said and "." not in said:
                said = said.replace("e", ".0e")
            out.append(f"{indent}{name}: {said}  # {value[1]}")
    return out


REWARD = '''"""verl's compute_score: the verifier of the task {task!r}."""

from __future__ import annotations

from rlnb.training import TASKS
from rlnb.training.tasks import Problem

TASK = TASKS[{task!r}]


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_):
    """1.0 for a right answer, 0.0 for any other."""
    return float(TASK.verify(Problem(extra_info["prompt"], ground_truth), solution_str))
'''

PLUGIN = '''"""Imported by verl in every process: VERL_USE_EXTERNAL_MODULES=rlnb_plugin."""

from __future__ import annotations

from rlnb.interop.verl_plugin import register
from rlnb.objective import *  # noqa: F403

register({objective!r}, loss={loss}, advantages={advantages})  # noqa: F405
'''


def write_verl(
    folder: str | Path,
    objective: Objective,
    *,
    train: Iterable[tuple[str, str]],
    test: Iterable[tuple[str, str]],
    model: str,
    task: str = "chain",
    **numbers: Any,
) -> list[Path]:
    """Writes trainer.yaml, reward.py, train.parquet, test.parquet, run.sh, and rlnb_plugin.py where
    verl has no word. train, test: pairs of prompt and right answer. numbers: `verl_config`'s.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _, loss, advantages = verl_words_and_plugin(objective)
    config = verl_config(objective, model=model, folder=folder, **numbers)
    texts = {"trainer.yaml": config, "reward.py": REWARD.format(task=task)}
    plugin = ""
    if loss or advantages:
        said = dict(objective=objective, loss=loss, advantages=advantages)
        texts["rlnb_plugin.py"] = PLUGIN.format(**said)
        plugin = 'export VERL_USE_EXTERNAL_MODULES=rlnb_plugin PYTHONPATH="$PWD:$PYTHONPATH"\n'
    texts["run.sh"] = (
        '#!/usr/bin/env bash\nset -e\ncd "$(dirname "$0")"\n' + plugin
        + 'python -m verl.trainer.main_ppo --config-path "$PWD" --config-name trainer "$@"\n'
    )  # fmt: skip
    paths = []
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        paths.append(folder / name)
    for name, pairs in (("train", train), ("test", test)):
        paths.append(folder / f"{name}.parquet")
        _write_rows(paths[-1], [_row(prompt, answer, task, name) for prompt, answer in pairs])
    return paths


def _row(prompt: str, answer: str, task: str, split: str) -> dict[str, Any]:
    """A row in verl's columns; the verifier reads the prompt from extra_info."""
    return {
        "data_source": f"rlnb/{task}",
        "prompt": [{"role": "user", "content": prompt}],
        "ability": task,
        "reward_model": {"style": "rule", "ground_truth": answer},
        "extra_info": {"split": split, "prompt": prompt},
    }


def _write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(f"{path.name} is written by pyarrow: pip install pyarrow") from error
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
