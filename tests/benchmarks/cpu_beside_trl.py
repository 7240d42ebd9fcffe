"""Seconds per training step on a CPU: this loop beside TRL's GRPOTrainer, in one process.

    python tests/benchmarks/cpu_beside_trl.py --threads 1 --json cpu.json

All train the shipped model on `chain` with Dr. GRPO: 16 prompts x 8 answers of at most 72 tokens,
one AdamW step each, learning rate 3e-4, no KL term. They take turns, some steps each, so that
whatever else the machine does falls on all of them alike. CPU seconds (of all threads) are the
column to read on a machine that is not idle. Evaluations and checkpoints are off on every side.
`--device cuda` asks the same of a GPU, where wall seconds count; it has not been run there.

Not alike: prompts of TRL come from one shuffled set, ours are drawn; an answer that is cut off is
worth 0 here, and there what the verifier says of it (0, but for one that is right before the cut).

    ours            rlnb.training.step, float32
    ours_bf16       the same with bfloat16 autocast and a bfloat16 sampler
    generate        ours, but answers come from transformers' `generate`
    trl             TRL's defaults: bfloat16 autocast, gradient checkpointing
    trl_fp32        TRL without both
"""

from __future__ import annotations

import argparse
import copy
import random
import statistics
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from bench import ROOT, device_name, fields_of, show, write_json
from generate_sampler import sample_by_generate

from rlnb.objective import ZOO
from rlnb.training import TASKS, Recipe, load
from rlnb.training.sampling.graph_decoder import sampler_for
from rlnb.training.step import start, step

TASK = TASKS["chain"]
LOOP = ("ours", "ours_bf16", "generate")


@dataclass
class Log:
    """Per step: wall and CPU seconds, mean reward, mean completion length."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    length: list[float] = field(default_factory=list)
    clock: tuple[float, float] = (0.0, 0.0)

    def begin(self) -> None:
        self.clock = (time.perf_counter(), time.process_time())

    def end(self, reward: float, length: float) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        self.wall.append(wall - self.clock[0])
        self.cpu.append(cpu - self.clock[1])
        self.reward.append(reward)
        self.length.append(length)
        self.begin()


def recipe_of(name: str, prompts: int, size: int, seed: int) -> Recipe:
    lower = {"autocast": "bfloat16", "sampler_dtype": "bfloat16"} if name == "ours_bf16" else {}
    return Recipe(prompts=prompts, num_generations=size, seed=seed, **lower)


def loop_steps(name: str, log: Log, args: argparse.Namespace, seed: int) -> Iterator[None]:
    """One step of ours per `next`."""
    torch.manual_seed(seed)
    model, tokenizer = load(ROOT / "data" / "model", device=args.device)
    sampler = sample_by_generate if name == "generate" else sampler_for(args.device)
    recipe = recipe_of(name, args.prompts, args.num_generations, seed)
    run = start(model, tokenizer, TASK, ZOO["dr_grpo"], recipe, sampler=sampler)
    while True:
        log.begin()
        metrics = step(run)
        log.end(metrics["reward"], metrics["completions/mean_length"])
        yield


class Baton:
    """TRL's trainer in a thread of its own that runs only while `next` waits for it."""

    def __init__(self, work: Callable[[Baton], None]):
        self.mine, self.theirs, self.error = threading.Semaphore(0), threading.Semaphore(0), None
        self.left = False
        self.thread = threading.Thread(target=self._run, args=(work,), daemon=True)

    def _run(self, work: Callable[[Baton], None]) -> None:
        try:
            work(self)
        except BaseException as error:  # noqa: BLE001  (handed to the thread that waits)
            self.error = error
        self.left = True
        self.theirs.release()

    def give_back(self) -> None:
        """Called in the thread, between steps: waits for the next turn."""
        self.theirs.release()
        self.mine.acquire()

    def __iter__(self) -> Baton:
        return self

    def __next__(self) -> None:
        if not self.thread.ident:
            self.thread.start()
        else:
            self.mine.release()
        self.theirs.acquire()
        if self.error is not None:
            raise self.error
        if self.left:
            raise StopIteration


def trl_steps(name: str, log: Log, args: argparse.Namespace, seed: int) -> Baton:
    """One step of TRL's GRPOTrainer per `next`; the first only sets it up."""
    import datasets
    import transformers
    import trl

    transformers.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    model, tokenizer = load(ROOT / "data" / "model", device=args.device)
    rng = random.Random(seed)
    problems = [TASK.problem(rng, "train") for _ in range((args.steps + 1) * args.prompts)]
    asked = {problem.prompt: problem for problem in problems}

    def reward(prompts: list[str], completions: list[str], **_: Any) -> list[float]:
        return [TASK.verify(asked[p], c) for p, c in zip(prompts, completions, strict=True)]

    plain = {"bf16": False, "gradient_checkpointing": False} if name == "trl_fp32" else {}
    questions = datasets.Dataset.from_list([{"prompt": prompt} for prompt in asked])
    rows_in_step = args.prompts * args.num_generations
    config = trl.GRPOConfig(
        output_dir=args.folder, use_cpu=args.device == "cpu", disable_tqdm=True,
        report_to=[], save_strategy="no", logging_strategy="steps", logging_steps=1,
        seed=seed, max_steps=args.steps + 1,
        per_device_train_batch_size=rows_in_step, gradient_accumulation_steps=1,
        num_generations=args.num_generations, max_completion_length=72, temperature=1.0,
        learning_rate=3e-4, lr_scheduler_type="constant", adam_beta1=0.9, adam_beta2=0.95,
        weight_decay=0.0, max_grad_norm=1.0, beta=0.0, loss_type="dr_grpo", scale_rewards="none",
        dataloader_pin_memory=False, dataloader_num_workers=0, **plain,
    )  # fmt: skip

    class Turns(transformers.TrainerCallback):
        """Waits after the log of each step, which belongs to the step."""

        def __init__(self, baton: Baton):
            self.baton = baton

        def on_train_begin(self, *_: Any, **__: Any) -> None:
            self.baton.give_back()
            log.begin()

        def on_log(self, *_: Any, logs: dict[str, float], **__: Any) -> None:
            if "reward" not in logs or len(log.wall) == args.steps:
                return
            log.end(logs["reward"], logs["completions/mean_length"])
            self.baton.give_back()
            log.begin()

    def work(baton: Baton) -> None:
        torch.set_num_threads(args.threads)  # OpenMP counts threads per caller
        trainer = trl.GRPOTrainer(
            model, reward, args=config, train_dataset=questions,
            processing_class=copy.deepcopy(tokenizer), callbacks=[Turns(baton)],
        )  # fmt: skip
        for shown in (transformers.PrinterCallback, transformers.trainer_callback.ProgressCallback):
            trainer.remove_callback(shown)
        trainer.train()

    baton = Baton(work)
    next(baton)
    return baton


def measure(args: argparse.Namespace, seed: int) -> dict[str, Log]:
    """All contestants, `block` steps at a time, their order turned by one in each round."""
    logs = {name: Log() for name in args.contestants}
    steps = {
        name: (loop_steps if name in LOOP else trl_steps)(name, log, args, seed)
        for name, log in logs.items()
    }
    order = list(args.contestants)
    for done in range(0, args.steps, args.block):
        for name in order:
            for _ in range(min(args.block, args.steps - done)):
                next(steps[name])
        order = order[1:] + order[:1]
    return logs


def spans(steps: int) -> dict[str, slice]:
    """The first and the last third of a run, and all of it."""
    third = max(1, steps // 3)
    return {"early": slice(0, third), "late": slice(steps - third, steps), "all": slice(0, steps)}


def table(logs: dict[str, list[Log]], steps: int) -> list[dict[str, Any]]:
    """One line per contestant and span: means over steps and seeds; ratios to `ours`.

    `cpu_x` and `wall_x`: how many times as long as ours. The median over the steps is beside the
    mean, since a busy machine makes some steps slow.
    """
    lines, ours = [], {}
    for name, seeds in logs.items():
        for span, part in spans(steps).items():
            cpu = [x for log in seeds for x in log.cpu[part]]
            wall = [x for log in seeds for x in log.wall[part]]
            reward = statistics.fmean(x for log in seeds for x in log.reward[part])
            last = statistics.fmean(x for log in seeds for x in log.reward[-5:])
            length = statistics.fmean(x for log in seeds for x in log.length[part])
            line = {
                "what": name, "steps": span,
                "cpu_s": statistics.fmean(cpu), "cpu_median": statistics.median(cpu),
                "wall_s": statistics.fmean(wall), "wall_median": statistics.median(wall),
                "reward": reward, "reward_last_5": last, "tokens": length,
            }  # fmt: skip
            ours.setdefault(span, line)
            line["cpu_x"] = line["cpu_s"] / ours[span]["cpu_s"]
            line["wall_x"] = line["wall_s"] / ours[span]["wall_s"]
            lines.append(line)
    return lines


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--block", type=int, default=5, help="steps before the next one's turn")
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--num-generations", type=int, default=8)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--contestants", nargs="+", default=["ours", "trl", "trl_fp32"])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", help="a file for the numbers")
    parser.add_argument("--dry-run", action="store_true", help="2 steps of 2 x 2, to see it work")
    args = parser.parse_args(arguments)
    if args.dry_run:
        args.steps, args.block, args.prompts, args.num_generations, args.seeds = 2, 1, 2, 2, [0]
    torch.set_num_threads(args.threads)
    warnings.simplefilter("ignore")
    logs: dict[str, list[Log]] = {}
    with tempfile.TemporaryDirectory() as args.folder:
        for seed in args.seeds:
            for name, log in measure(args, seed).items():
                logs.setdefault(name, []).append(log)
    lines = table(logs, args.steps)
    print(f"{device_name(args.device)}, {args.threads} thread(s), {args.prompts} x "
          f"{args.num_generations}, {args.steps} steps, seeds {args.seeds}")  # fmt: skip
    show(lines)
    if args.json:
        raw = {n: [fields_of(log, ("wall", "cpu", "reward", "length")) for log in ls]
               for n, ls in logs.items()}  # fmt: skip
        write_json(args.json, {"device": device_name(args.device), "threads": args.threads,
                               "seeds": args.seeds, "table": lines, "steps": raw})  # fmt: skip
    return lines


if __name__ == "__main__":
    main()
