"""Which library a configuration is for, by what it imports, what starts it and the words it uses.

Many libraries have a class called GRPOConfig or a word `algorithm.adv_estimator`; what these mean
differs. So the library is told first, and one that is not read here is refused by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["OTHERS", "Entry", "entry_of", "library_of_modules", "library_of_words", "other"]


@dataclass(frozen=True)
class Other:
    """A library that is not read here. modules: packages it is imported by; entry: what starts it;
    words: paths or flags that no other library has, `all_of` those that must stand together."""

    name: str
    modules: tuple[str, ...] = ()
    entry: str = r"(?!)"
    words: tuple[str, ...] = ()
    all_of: tuple[str, ...] = ()


OTHERS = (
    Other(
        "AReaL",
        ("areal", "realhf"),
        r"\bareal\b|areal\.launcher",
        (
            "allocation_mode",
            "gconfig.n_samples",
            "gconfig.max_new_tokens",
            "actor.use_decoupled_loss",
            "actor.kl_ctl",
            "ppo.gen.max_new_tokens",
        ),
    ),
    Other(
        "SkyRL",
        ("skyrl_train", "skyrl", "skyrl_gym", "skyrl_agent"),
        r"\bskyrl",
        (
            "trainer.algorithm.advantage_estimator",
            "trainer.policy.model.path",
            "generator.n_samples_per_prompt",
            "generator.num_inference_engines",
            "trainer.algorithm.use_kl_loss",
        ),
    ),
    Other(
        "EasyR1",
        ("verl.trainer.main",),
        r"\bverl\.trainer\.main(?!_)\b",
        (
            "worker.actor.model.model_path",
            "worker.rollout.n",
            "worker.actor.global_batch_size",
            "worker.actor.model",
            "algorithm.disable_kl",
            "worker.reward.reward_function",
        ),
    ),
    Other(
        "ROLL",
        ("roll.pipeline", "roll.distributed"),
        r"start_(?:rlvr|agentic|dpo|distill)\w*pipeline|roll\.pipeline",
        (
            "actor_train.model_args",
            "actor_infer.generating_args",
            "actor_train.strategy_args",
            "actor_train.model_args.attn_implementation",
            "actor_train.training_args.learning_rate",
        ),
        (),
    ),
    Other(
        "ms-swift",
        ("swift", "swift.llm"),
        r"\b(?:swift|megatron)\s+rlhf\b|swift/cli/rlhf|swift\.cli\.|\bswift\s+(?:sft|infer)\b",
        ("rlhf_type",),
    ),
    Other(
        "NeMo RL",
        ("nemo_rl", "nemo_aligner"),
        r"nemo_rl|examples/run_grpo|run_grpo_math",
        (
            "grpo.num_prompts_per_step",
            "grpo.num_generations_per_prompt",
            "loss_fn.reference_policy_kl_penalty",
            "loss_fn.ratio_clip_min",
        ),
    ),
    Other(
        "Open Instruct",
        ("open_instruct",),
        r"open_instruct/|open_instruct\.",
        ("num_samples_per_prompt_rollout", "num_unique_prompts_rollout"),
    ),
    Other("oat", ("oat",), r"\boat\b|train_zero_math", ("critic_type", "oracle_type")),
    Other("axolotl", ("axolotl",), r"\baxolotl\b", (), ("base_model", "rl", "micro_batch_size")),
    Other(
        "LLaMA-Factory",
        ("llamafactory",),
        r"llamafactory|llama_factory",
        (),
        ("stage", "finetuning_type"),
    ),
    Other("torchtune", ("torchtune",), r"\btune\s+run\b", ()),
    Other("TRLX", ("trlx",), r"\btrlx\b"),
    Other("verifiers", ("verifiers",), r"\bvf-(?:rl|train)\b"),
    Other("Tunix", ("tunix",), r"\btunix\b"),
    Other("EasyDeL", ("easydel",), r"\beasydel\b"),
    Other("MLX-LM-LoRA", ("mlx_lm_lora", "mlx_lm"), r"mlx_lm"),
    Other("ART", ("art",), r"(?!)"),
    Other("Tinker", ("tinker", "tinker_cookbook"), r"tinker_cookbook"),
    Other("RL4LMs", ("rl4lms",)),
    Other("MaxText", ("MaxText", "maxtext"), r"MaxText"),
    Other(
        "RLinf",
        ("rlinf",),
        r"\brlinf\b",
        ("algorithm.group_size", "algorithm.adv_type", "algorithm.loss_type"),
    ),
    Other("ReaLHF", ("realhf",)),
    Other("Logic-RL's verl 0.1", ("logic_rl",)),
    Other(
        "Flow-GRPO or another trainer of images",
        ("flow_grpo", "diffusers"),
        r"flow_grpo|train_(?:sd3|flux|wan)",
    ),
)
# entry points whose loss is verl's own, and its configuration names
VERL_ENTRIES = re.compile(r"(?:^|\.)verl\.trainer\.main_ppo$|(?:^|\.)dapo\.(?:src\.)?main_dapo$")
VERL_BASES = {"ppo_trainer", "ppo_megatron_trainer", "dapo_trainer", "dapo_megatron_trainer"}
LAUNCHERS = (
    "accelerate",
    "torch.distributed",
    "torch.utils",
    "deepspeed.launcher",
    "debugpy",
    "torchrun",
)
# recipes that live in verl's repository and have a loss of their own
OWN_LOSS = {"sppo": "SPPO", "spin": "SPIN", "prime": "PRIME", "spo": "SPO", "gkd": "GKD"}
OPENRLHF = {
    "init_kl_coef",
    "micro_rollout_batch_size",
    "micro_train_batch_size",
    "actor.policy_loss_type",
    "algo.advantage.estimator",
    "algo.kl.init_coef",
    "actor.eps_clip",
    "rollout.n_samples_per_prompt",
    "advantage_estimator",
}
SLIME = {
    "num_rollout",
    "hf_checkpoint",
    "rollout_max_response_len",
    "ref_load",
    "rollout_function_path",
    "rm_type",
    "actor_num_nodes",
    "eps_clip_high",
    "advantage_estimator",
    "rollout_temperature",
    "kl_loss_coef",
}


@dataclass(frozen=True)
class Entry:
    """What a command starts. name: the module or script; other: a library that is not read, or
    ""; openrlhf, slime, verl: whether it is that library's own entry point."""

    name: str
    text: str
    other: str = ""
    openrlhf: bool = False
    verl: bool = False


def entry_of(plain: Iterable[str]) -> Entry:
    """What a command starts, from its words that are no arguments."""
    words = list(plain)
    text = " ".join(words)
    name = ""
    for at, word in enumerate(words):
        if word == "-m" and at + 1 < len(words) and not words[at + 1].startswith(LAUNCHERS):
            name = words[at + 1]
            break
        if word.endswith(".py") and not any(part in word for part in ("accelerate/", "torch/")):
            name = word
            break
        if word in ("trl", "swift", "megatron", "axolotl", "tune") and at + 1 < len(words):
            name = f"{word} {words[at + 1]}"
            break
    found = next((o.name for o in OTHERS if re.search(o.entry, name or text)), "")
    tail = name.removesuffix(".py").replace("/", ".").lstrip(".")
    recipe = re.search(r"recipe\.(\w+)\.", tail)
    if recipe and recipe[1] in OWN_LOSS:
        found = f"verl's recipe {OWN_LOSS[recipe[1]]} ({name})"
    return Entry(
        name, text, found, "openrlhf.cli.train_ppo" in tail, bool(VERL_ENTRIES.search(tail))
    )


def library_of_modules(modules: Iterable[str]) -> str:
    """The library that is not read here and that a Python file imports, or ""."""
    given = set(modules)
    return next((o.name for o in OTHERS if given & set(o.modules)), "")


def library_of_words(paths: Iterable[str]) -> str:
    """The library that is not read here and whose words these are, or ""."""
    given = set(paths)
    sections = (
        given | {p.rpartition(".")[0] for p in given} | {".".join(p.split(".")[:2]) for p in given}
    )
    for one in OTHERS:
        if sections & set(one.words) or (one.all_of and sections >= set(one.all_of)):
            return one.name
    return ""


def other(name: str) -> ValueError:
    """The refusal: one sentence that names the library."""
    return ValueError(
        f"this is a configuration of {name}, whose words mean other things; only those of TRL, "
        "verl, OpenRLHF, slime and prime-rl are read."
    )
