"""The command line: python -m rlnb.training {base,grpo,eval,replay}."""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import get_type_hints

import torch

from rlnb.objective import ANNEX, ZOO, Objective, overlong
from rlnb.shipped import NotShipped, shipped_folder
from rlnb.training.errors import BadInput
from rlnb.training.evaluation import evaluate, pass_rate, summary
from rlnb.training.loop import open_folder, train
from rlnb.training.metrics_file import read, replay
from rlnb.training.models.base_training import BaseRecipe, train_base
from rlnb.training.models.loading import load, save
from rlnb.training.models.precision import AUTOCAST, SAMPLER_DTYPES
from rlnb.training.models.presets import PRESETS
from rlnb.training.prompt_pool import PromptPool
from rlnb.training.recipe import Recipe
from rlnb.training.rewards import CoinFlip, Reward, WaitBonus, keep_all, keep_mixed
from rlnb.training.tasks import TASKS, WEAK, Task, weak_verifier

__all__ = ["find_objective", "find_pool", "find_reward", "find_task", "main", "parser"]

SHIPPED = "data/model"  # what a run's header calls the model that ships with the course
FILTERS = ("all", "mixed")
REWARDS = ("verify", "coin_flip", "wait_bonus")
WEAK_REWARDS = tuple(sorted({name for known in WEAK.values() for name in known}))


def nearest(kind: str, name: str, known) -> BadInput:
    """The error for an unknown name, with the name that was probably meant."""
    near = difflib.get_close_matches(name.lower().replace("-", "_"), known, 1, 0.4)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return BadInput(f"{kind}: there is no {name!r}; {guess}known: {', '.join(known)}")


def find_objective(name: str) -> Objective:
    """A name of the ZOO or the ANNEX, or `module:attribute` of an Objective."""
    if ":" not in name:
        if name not in (named := ZOO | ANNEX):
            raise nearest("objective", name, named)
        return named[name]
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BadInput(f"objective: cannot take {name!r}: {error}") from error
    if not isinstance(found, Objective):
        raise BadInput(f"objective: {name!r} is a {type(found).__name__}, expected an Objective")
    return found


def find_task(name: str) -> Task:
    """One of TASKS. Raises BadInput, with the near name, for another one."""
    if name not in TASKS:
        raise nearest("task", name, TASKS)
    return TASKS[name]


def find_reward(name: str, task: Task, seed: int) -> Reward | None:
    """One of REWARDS, or a weak verifier of this task; None is the task's own verifier."""
    if name in WEAK_REWARDS:
        return weak_verifier(task, name)
    return {"coin_flip": CoinFlip(seed), "wait_bonus": WaitBonus(task)}.get(name)


def find_pool(args: argparse.Namespace, task: Task) -> PromptPool | None:
    """--pool, --retire and --visits as a PromptPool; None draws from the whole training split."""
    if args.visits is not None and args.retire is None:
        raise BadInput("visits: it says over which visits to take --retire; add --retire 0.9")
    if args.retire is not None and args.pool is None:
        raise BadInput("retire: prompts leave a pool; add --pool N, the number of prompts in it")
    if args.pool is None:
        return None
    return PromptPool.drawn(task, args.pool, args.seed, retire=args.retire, visits=args.visits)


def shaped(objective: Objective, longest: int, cache: int) -> Objective:
    """The objective with DAPO's soft penalty on the last `cache` of `longest` tokens."""
    try:
        return objective.replace(shape=(*objective.shape, overlong(longest, cache)))
    except ValueError as error:
        raise BadInput(f"overlong: {error}") from error


def parser() -> argparse.ArgumentParser:
    """All commands and flags; a number or a switch of the Recipe is a flag of its name."""
    top = argparse.ArgumentParser(prog="python -m rlnb.training", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)

    base = commands.add_parser("base", help="train a base model (from scratch about 220 CPU s)")
    base.add_argument("--start", help="folder or hub id of a model to go on from; without it, "
                      "training starts from scratch")  # fmt: skip
    sizes = ", ".join(f"{name} {p.parameters() / 1e6:.1f}M" for name, p in PRESETS.items())
    base.add_argument("--preset", choices=PRESETS, help=f"size from scratch ({sizes}); "
                      f"{BaseRecipe.preset} without it")  # fmt: skip
    base.add_argument("--out", required=True, type=Path, help="new folder for the model")
    base.add_argument("--steps", type=int, default=BaseRecipe.steps)
    base.add_argument("--batch", type=int, default=BaseRecipe.batch)
    base.add_argument("--learning-rate", type=float, default=BaseRecipe.learning_rate)
    base.add_argument("--seed", type=int, default=BaseRecipe.seed)

    grpo = commands.add_parser("grpo", help="train with any objective (about 20 CPU s)")
    grpo.add_argument("--objective", default="dr_grpo", help="a name of the ZOO or the ANNEX, or "
                      "module:attribute")  # fmt: skip
    grpo.add_argument("--out", required=True, type=Path, help="new folder for the run")
    grpo.add_argument("--resume", action="store_true", help="continue the run in --out")
    grpo.add_argument("--reward", choices=(*REWARDS, *WEAK_REWARDS), default="verify",
                      help="coin_flip is the wrong-verifier control; wait_bonus is the verifier "
                      "plus 0.01 per `wait`; the others are weak verifiers of some tasks, to be "
                      "gamed")  # fmt: skip
    grpo.add_argument("--keep", choices=FILTERS, default="all",
                      help="mixed drops groups whose rewards are all equal")  # fmt: skip
    grpo.add_argument("--pool", type=int, metavar="N", help="draw from N prompts, chosen by the "
                      "seed; without it, from the whole training split")  # fmt: skip
    grpo.add_argument("--retire", type=float, metavar="RATE", help="prompts of the pool with this "
                      "pass rate leave for good; ScaleRL has 0.9")  # fmt: skip
    grpo.add_argument("--visits", type=int, metavar="N", help="the pass rate is that of a prompt's "
                      "last N visits; without it, of all")  # fmt: skip
    grpo.add_argument("--sampler-dtype", choices=SAMPLER_DTYPES, default=Recipe.sampler_dtype,
                      help="sample from a copy of the weights in this type")  # fmt: skip
    grpo.add_argument("--autocast", choices=AUTOCAST, default=Recipe.autocast,
                      help="matrix products of scoring and training in this type")  # fmt: skip
    grpo.add_argument("--overlong", type=int, metavar="TOKENS", help="answers of the last so many "
                      "tokens before --max-completion-length lose up to 1 of their reward (DAPO's "
                      "soft penalty)")  # fmt: skip
    types = get_type_hints(Recipe)
    for field in fields(Recipe):
        flag = "--" + field.name.replace("_", "-")
        if (kind := types[field.name]) in (int, float) and field.default is not MISSING:
            grpo.add_argument(flag, type=kind, default=field.default, metavar="N")
        elif kind is bool:  # with its --no-, for those that are on
            grpo.add_argument(flag, action=argparse.BooleanOptionalAction, default=field.default)

    evaluation = commands.add_parser("eval", help="pass@k, greedy, forced styles, length, entropy")
    evaluation.add_argument("--prompts", type=int, default=250)
    evaluation.add_argument("--num-generations", type=int, default=8)
    evaluation.add_argument("--max-completion-length", type=int, default=72)
    evaluation.add_argument("--seed", type=int, default=99)

    for command in (base, grpo, evaluation):
        command.add_argument("--task", default="chain")
        command.add_argument("--device", default="auto", help="auto, cpu or cuda")
        command.add_argument("--threads", type=int, default=1, help="CPU threads; results of runs "
                             "are comparable at one number of threads only")  # fmt: skip
    for command in (grpo, evaluation):
        command.add_argument(
            "--model",
            help="folder or hub id of the starting model, such as Qwen/Qwen2.5-0.5B-Instruct; "
            "without it, the shipped data/model, wherever you are",
        )

    recorded = commands.add_parser("replay", help="a recorded run as text; needs no model")
    recorded.add_argument("run", type=Path, help="a .jsonl file, or the --out folder of a run")
    return top


def show(report: dict[str, float]) -> None:
    for name, value in report.items():
        print(f"{name:24s} {value:.4f}" if isinstance(value, float) else f"{name:24s} {value}")


def run_base(args: argparse.Namespace) -> None:
    task, out = find_task(args.task), open_folder(args.out, resume=False)
    if args.start and args.preset:
        raise BadInput("preset: a model to go on from has its size; give --start or --preset")
    recipe = BaseRecipe(
        steps=args.steps,
        batch=args.batch,
        learning_rate=args.learning_rate,
        seed=args.seed,
        preset=args.preset or BaseRecipe.preset,
    )
    start = load(args.start, device=args.device) if args.start else None
    model, tokenizer, spent = train_base(task, recipe, start=start, device=args.device)
    save(model, tokenizer, out)
    show(spent | summary(task, pass_rate(model, tokenizer, task, num_generations=8)))


def run_grpo(args: argparse.Namespace) -> None:
    values = {f.name: getattr(args, f.name) for f in fields(Recipe) if hasattr(args, f.name)}
    recipe, objective, task = Recipe(**values), find_objective(args.objective), find_task(args.task)
    if args.overlong is not None:
        objective = shaped(objective, recipe.max_completion_length, args.overlong)
    pool, reward = find_pool(args, task), find_reward(args.reward, task, recipe.seed)
    open_folder(args.out, args.resume)
    model, tokenizer = load(start_of(args), device=args.device)
    records = train(
        model,
        tokenizer,
        task,
        objective,
        recipe,
        out=args.out,
        resume=args.resume,
        reward=reward,
        keep=keep_mixed if args.keep == "mixed" else keep_all,
        pool=pool,
        model_name=args.model or SHIPPED,
    )
    print(replay(records))


def start_of(args: argparse.Namespace) -> str | Path:
    """--model, or the folder of the shipped one, found from the package."""
    return shipped_folder(SHIPPED) if args.model is None else args.model


def run_eval(args: argparse.Namespace) -> None:
    task = find_task(args.task)
    model, tokenizer = load(start_of(args), device=args.device)
    report = evaluate(
        model,
        tokenizer,
        task,
        prompts=args.prompts,
        num_generations=args.num_generations,
        max_new_tokens=args.max_completion_length,
        seed=args.seed,
    )
    show(report)


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0, or 2 with one sentence on stderr when the input was bad."""
    args = parser().parse_args(arguments)
    try:
        if args.command == "replay":
            print(replay(read(args.run)))
            return 0
        torch.set_num_threads(args.threads)
        {"base": run_base, "grpo": run_grpo, "eval": run_eval}[args.command](args)
    except (BadInput, NotShipped) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
