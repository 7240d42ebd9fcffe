"""Short whole trainings of the shipped model: TRL's own trainer beside ObjectiveTrainer.

    python tests/parity/trl_trainings.py                          # the table, one process
    ACCELERATE_USE_CPU=true accelerate launch --multi_gpu --num_processes 2 \\
        tests/parity/trl_trainings.py                             # two on a CPU, through gloo
    ... --dtype float32 --json table.json --only dapo,grpo

Both trainers have the same seed, so they draw the same answers for as long as their weights agree;
after some optimizer steps the weights, and every number that TRL logs, are compared. In float64 a
difference is a difference of the loss and not of rounding; TRL's fused head computes in float32
whatever the model's dtype, so that there the log-probabilities of both come from `Float64Head`.
With two processes (gloo) each has half of the rows; "a group on both" cuts one between them.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import random
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import torch
import transformers
from trl import GRPOConfig, GRPOTrainer

from rlnb.interop import from_trl
from rlnb.interop.trl_fit import LOSS_WORDS
from rlnb.interop.trl_trainer import ObjectiveTrainer
from rlnb.objective import Objective
from rlnb.shipped import data_folder
from rlnb.training import TASKS, load
from rlnb.training.tasks import Problem

TASK = TASKS["chain"]
MODEL = data_folder() / "model"
LENGTH = 16

# what every loss type of TRL 1.16 is tried with, so that its own words matter
LOSSES: dict[str, dict[str, Any]] = {
    "grpo": {"loss_type": "grpo"},
    "bnpo": {"loss_type": "bnpo"},
    "dr_grpo": {"loss_type": "dr_grpo", "scale_rewards": "none"},
    "dapo": {"loss_type": "dapo", "epsilon": 0.1, "epsilon_high": 0.15},
    "cispo": {"loss_type": "cispo", "epsilon_high": 1.02},
    "sapo": {"loss_type": "sapo"},
    "vespo": {"loss_type": "vespo"},
    "luspo": {"loss_type": "luspo", "importance_sampling_level": "sequence", "epsilon": 0.01},
}
MORE: dict[str, dict[str, Any]] = {
    "gspo": {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-4},
    "kl": {"loss_type": "grpo", "beta": 0.1},
    "kl sequence": {"loss_type": "grpo", "beta": 0.1, "importance_sampling_level": "sequence"},
    "kl dapo": {"loss_type": "dapo", "beta": 0.1, "use_bias_correction_kl": False},
    "entropy grpo": {"loss_type": "grpo", "entropy_coef": 0.05},
    "entropy dapo": {"loss_type": "dapo", "entropy_coef": 0.05},
    "entropy bnpo": {"loss_type": "bnpo", "entropy_coef": 0.05},
    "top entropy": {"loss_type": "dapo", "top_entropy_quantile": 0.4},
    "off-policy mask": {"loss_type": "grpo", "off_policy_mask_threshold": 1e-3},
    "batch std": {"loss_type": "dapo", "scale_rewards": "batch"},
    "delta": {"loss_type": "grpo", "delta": 1.5},
}
# per_device_train_batch_size, gradient_accumulation_steps, steps_per_generation, num_iterations
SETTINGS: dict[str, dict[str, int]] = {
    "one micro-batch": dict(per_device_train_batch_size=16),
    "accumulation 4": dict(per_device_train_batch_size=4, gradient_accumulation_steps=4),
    "4 chunks, 2 a step": dict(
        per_device_train_batch_size=4, gradient_accumulation_steps=2, steps_per_generation=4
    ),
    "two passes": dict(
        per_device_train_batch_size=8, gradient_accumulation_steps=2, num_iterations=2
    ),
    "4 chunks, 2 a step, two passes": dict(
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        steps_per_generation=4,
        num_iterations=2,
    ),
    "a group on both": dict(  # 12 rows, 6 a process, groups of 4
        per_device_train_batch_size=6, steps_per_generation=2, num_iterations=2
    ),
    "2 rollouts a step": dict(
        per_device_train_batch_size=8, gradient_accumulation_steps=4, steps_per_generation=2
    ),
}
SECONDS = ("time", "per_second")  # how the names of timings end


def questions(count: int = 64, seed: int = 0) -> datasets.Dataset:
    """The task as TRL takes it: `prompt`, and `answer` for the reward function."""
    rng = random.Random(seed)
    problems = [TASK.problem(rng, "train") for _ in range(count)]
    return datasets.Dataset.from_list([vars(problem) for problem in problems])


def verified(
    prompts: list[str], completions: list[str], answer: list[str], **_: Any
) -> list[float]:
    """Our verifier as TRL's reward function."""
    rows = zip(prompts, completions, answer, strict=True)
    return [TASK.verify(Problem(p, a), text) for p, text, a in rows]


def graded(prompts: list[str], completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """The verifier plus a hundredth per symbol of a short answer: no group is ever silent."""
    right = verified(prompts, completions, answer)
    return [r + 0.01 * min(len(c), 9) for r, c in zip(right, completions, strict=True)]


class Float64Head:
    """Before a trainer's class: its log-probabilities and entropies by plain float64."""

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        ids: Any,
        attention: Any,
        width: int,
        batch_size: int | None = None,
        **_: Any,
    ) -> tuple[torch.Tensor, torch.Tensor, None]:
        parts = []
        for rows in torch.arange(len(ids)).split(batch_size or len(ids)):
            logits = model(input_ids=ids[rows], attention_mask=attention[rows]).logits
            logp = (logits[:, -width - 1 : -1] / self.temperature).log_softmax(-1)
            chosen = logp.gather(-1, ids[rows, -width:, None])[..., 0]
            real = attention[rows, -width:].bool()  # as TRL's head: 0 where there is no token
            entropies = -(logp.exp() * logp).sum(-1)
            parts.append((torch.where(real, chosen, 0.0), torch.where(real, entropies, 0.0)))
        logprobs, entropies = zip(*parts, strict=True)
        return torch.cat(logprobs), torch.cat(entropies), None


class ExactGRPO(Float64Head, GRPOTrainer):
    """TRL's trainer in float64 throughout."""


class ExactObjective(Float64Head, ObjectiveTrainer):
    """Ours in float64 throughout."""


def off_by_a_little(prompts: list[str], trainer: Any) -> dict[str, Any]:
    """A `rollout_func` that stands for vLLM: the trainer's weights draw the answers, and the
    log-probabilities that it reports differ from theirs by up to 0.3 nats; one it cannot score."""
    tokenizer, model = trainer.processing_class, trainer.model
    asked = tokenizer(prompts)["input_ids"]
    trainer.use_vllm = False  # for `generate`
    answers, _ = trainer._generate_single_turn(asked, None, {}, trainer.num_generations)
    trainer.use_vllm = True
    noise, reported = torch.Generator().manual_seed(trainer.state.global_step), []
    for before, after in zip(asked, answers, strict=True):
        ids = torch.tensor([[*before, *after]])
        with torch.no_grad():
            logp = model(ids).logits[0, len(before) - 1 : -1].log_softmax(-1)
        chosen = logp.gather(-1, ids[0, len(before) :, None])[:, 0]
        gap = 0.6 * torch.rand(len(chosen), generator=noise, dtype=torch.float64) - 0.3
        reported.append((chosen + gap).clamp(max=0).tolist())
    reported[0][0] = None
    return {"prompt_ids": asked, "completion_ids": answers, "logprobs": reported}


@dataclass
class Trained:
    """What is left of a training: weights, and the logged records."""

    weights: dict[str, torch.Tensor]
    log: list[dict[str, Any]] = field(default_factory=list)


def train(
    words: dict[str, Any],
    objective: Objective | None = None,
    *,
    dtype: torch.dtype = torch.float64,
    steps: int = 2,
    reward: Any = graded,
    resume: str | None = None,
    folder: str | None = None,
    engine: Any = None,
    **more: Any,
) -> Trained:
    """A training of the shipped model; by TRL's own trainer where `objective` is None.

    engine: a `rollout_func`, whose log-probabilities TRL then takes for vLLM's.
    """
    with tempfile.TemporaryDirectory() as own, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        words = {
            "output_dir": folder or own,
            "model_init_kwargs": {"dtype": dtype},
            "max_steps": steps,
            "num_generations": 4,
            "max_completion_length": LENGTH,
            "learning_rate": 1e-3,
            "lr_scheduler_type": "constant",
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": "none",
            "disable_tqdm": True,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "seed": 3,
            **words,
        }
        arguments: dict[str, Any] = dict(
            reward_funcs=reward,
            train_dataset=questions(),
            processing_class=load(MODEL)[1],
            rollout_func=engine,
            **more,
        )
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)  # TRL writes rewards into new tensors
        try:
            if objective is not None:
                arguments["objective"] = objective
            kinds = {True: (GRPOTrainer, ObjectiveTrainer), False: (ExactGRPO, ExactObjective)}
            kind = kinds[dtype == torch.float32][objective is not None]
            trainer = kind(str(MODEL), args=GRPOConfig(**words), **arguments)
            if engine is not None:  # the constructor would start vLLM
                trainer.use_vllm, trainer._last_loaded_step = True, -1
                trainer.vllm_generation = SimpleNamespace(sync_weights=lambda: None)
            trainer.remove_callback(transformers.PrinterCallback)
            trainer.train(resume_from_checkpoint=resume)
        finally:
            torch.set_default_dtype(before)
        model = trainer.accelerator.unwrap_model(trainer.model)
        weights = {name: value.detach().clone() for name, value in model.state_dict().items()}
        return Trained(weights, trainer.state.log_history)


@cache
def untrained() -> dict[str, torch.Tensor]:
    """The shipped model's weights."""
    return load(MODEL)[0].state_dict()


def apart(one: Trained, other: Trained) -> tuple[float, float, str]:
    """Largest difference of a weight; of a logged number, relative above 1; that number's name."""
    weight = max(
        float((value - other.weights[name]).abs().max()) for name, value in one.weights.items()
    )
    logged, where = 0.0, ""
    assert len(one.log) == len(other.log)
    for a, b in zip(one.log, other.log, strict=True):
        # ours may log more than TRL: kl without beta is never among TRL's
        for name in a:
            number = isinstance(a[name], (int, float)) and a[name] == a[name]
            if name.endswith(SECONDS) or not number:
                continue
            gap = abs(a[name] - b[name]) / max(1.0, abs(a[name])) if name in b else float("inf")
            if gap > logged:
                logged, where = gap, name
    return weight, logged, where


def ours(words: dict[str, Any]) -> tuple[dict[str, Any], Objective]:
    """The words without those of the loss, and the objective that those say."""
    loss = {word: value for word, value in words.items() if word in LOSS_WORDS}
    rest = {word: value for word, value in words.items() if word not in LOSS_WORDS}
    return rest, from_trl(**loss, max_completion_length=LENGTH).objective


def cases(setting: str | None) -> Iterator[tuple[str, str]]:
    """(loss, setting): every loss type in every setting, the other words in two; or all in one."""
    for one in [setting] if setting else SETTINGS:
        yield from ((name, one) for name in LOSSES)
        if setting or one in ("accumulation 4", "4 chunks, 2 a step, two passes"):
            yield from ((name, one) for name in MORE)


def compare(
    name: str, setting: str, processes: int = 1, dtype: torch.dtype = torch.float64
) -> dict[str, Any]:
    """One line of the table. With several processes each has its share of the rows."""
    loss = {**LOSSES, **MORE}[name]
    sizes = dict(SETTINGS[setting])
    sizes["per_device_train_batch_size"] //= processes
    started = time.perf_counter()
    reused = {"steps_per_generation", "num_iterations"} & sizes.keys()
    steps = 4 if reused and setting != "2 rollouts a step" else 2
    theirs = train({**sizes, **loss}, dtype=dtype, steps=steps)
    rest, objective = ours({**sizes, **loss})
    mine = train(rest, objective, dtype=dtype, steps=steps)
    weight, logged, where = apart(theirs, mine)
    moved = max(float((v - untrained()[k]).abs().max()) for k, v in mine.weights.items())
    return {
        "loss": name,
        "setting": setting,
        "processes": processes,
        "dtype": str(dtype).removeprefix("torch."),
        "weight": weight,
        "logged": logged,
        "which": where,
        "moved": moved,
        "seconds": time.perf_counter() - started,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--only", help="losses, with commas between them")
    parser.add_argument("--setting", help="one setting, by its name")
    parser.add_argument("--json", help="a file for the lines")
    args = parser.parse_args()
    quiet()
    from accelerate import PartialState

    state = PartialState(cpu=True)
    lines = []
    for name, setting in cases(args.setting):
        if args.only and name not in args.only.split(","):
            continue
        line = compare(name, setting, state.num_processes, getattr(torch, args.dtype))
        lines.append(line)
        if state.is_main_process:
            print(
                f"{line['loss']:16s} {line['setting']:32s} weight {line['weight']:.1e} of "
                f"{line['moved']:.1e}, logged {line['logged']:.1e} {line['which']:24s}"
                f"{line['seconds']:5.1f} s",
                flush=True,
            )
    if state.is_main_process and args.json:
        Path(args.json).write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


def quiet() -> None:
    """No advice on real training, no bars; and accelerate, which collects garbage at the end of
    each training, need not look at all that was imported."""
    gc.freeze()
    transformers.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    logging.getLogger("trl").setLevel(logging.ERROR)
    torch.set_num_threads(1)


if __name__ == "__main__":
    main()
