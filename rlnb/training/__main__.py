"""The command line: python -m rlnb.training {base,grpo,eval,replay}."""

from __future__ import annotations

import argparse
import sys
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any, get_type_hints

from rlnb.shipped import NotShipped, shipped_folder
from rlnb.training.dashboards import DASHBOARDS, check_dashboard, dashboard
from rlnb.training.errors import BadInput, Diverged, notice
from rlnb.training.metrics_file import read, replay
from rlnb.training.models.device import pick_device, use_threads
from rlnb.training.models.optimizers import OPTIMIZERS
from rlnb.training.models.precision import AUTOCAST, DTYPES, SAMPLER_DTYPES
from rlnb.training.models.presets import PRESETS, SHIPPED
from rlnb.training.named import find_objective, find_pool, find_reward, find_task, shaped
from rlnb.training.recipe import SCHEDULES, BaseRecipe, Recipe
from rlnb.training.rewards import keep_all, keep_mixed
from rlnb.training.run_folder import claim
from rlnb.training.tasks import held_out

# transformers, and with it the loop and the models, is imported when all that was asked for has
# been checked: it takes seconds, and half a minute on a cold disk.

__all__ = ["find_objective", "find_pool", "find_reward", "find_task", "main", "parser"]

FILTERS = ("all", "mixed")
SMALLER = {
    "base": "--batch or --preset",
    "grpo": "--prompts, or --model",
    "eval": "--prompts, --num-generations or --max-completion-length",
}
PRETRAINED = 1e-5  # learning rate of supervised training that starts from a real model


def parser() -> argparse.ArgumentParser:
    """All commands and flags; a number or a switch of the Recipe is a flag of its name.

    Such a flag has no default here: what is not given is up to the model's size (`recipe_of`).
    """
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
    base.add_argument("--learning-rate", type=float, help=f"{BaseRecipe.learning_rate:g} without "
                      f"it, {PRETRAINED:g} from a --start of 0.1B or more")  # fmt: skip
    base.add_argument("--seed", type=int, default=BaseRecipe.seed)

    grpo = commands.add_parser("grpo", help="train with any objective (about 20 CPU s)")
    grpo.add_argument("--objective", default="dr_grpo", help="a name of the ZOO or the ANNEX, or "
                      "module:attribute")  # fmt: skip
    grpo.add_argument("--out", required=True, type=Path, help="new folder for the run")
    grpo.add_argument("--resume", action="store_true", help="continue the run in --out")
    grpo.add_argument("--reward", default="verify",
                      help="verify, the task's own; coin_flip, the wrong-verifier control; "
                      "wait_bonus, the verifier plus 0.01 per `wait`; a weak verifier of the task, "
                      "to be gamed; or module:attribute of a function (problem, text) -> "
                      "number")  # fmt: skip
    grpo.add_argument("--log", choices=DASHBOARDS, default="none", help="the records on a "
                      "dashboard as well, whose library has to be installed")  # fmt: skip
    grpo.add_argument("--keep", choices=FILTERS, default="all",
                      help="mixed drops groups whose rewards are all equal")  # fmt: skip
    grpo.add_argument("--pool", type=int, metavar="N", help="draw from N prompts, chosen by the "
                      "seed; without it, from the whole training split")  # fmt: skip
    grpo.add_argument("--retire", type=float, metavar="RATE", help="prompts of the pool with this "
                      "pass rate leave for good; ScaleRL has 0.9")  # fmt: skip
    grpo.add_argument("--visits", type=int, metavar="N", help="the pass rate is that of a prompt's "
                      "last N visits; without it, of all")  # fmt: skip
    for flag, known, text in (
        ("--sampler-dtype", SAMPLER_DTYPES, "sample from a copy of the weights in this type"),
        ("--autocast", AUTOCAST, "matrix products of scoring and training in this type"),
        ("--dtype", DTYPES, "with --lora-r: the type that the frozen weights are held in"),
        ("--optim", OPTIMIZERS, "AdamW of torch, or with 8-bit moments of bitsandbytes"),
        ("--lr-scheduler-type", SCHEDULES, "the learning rate after --warmup-steps"),
    ):
        grpo.add_argument(flag, choices=known, default=argparse.SUPPRESS, help=text)
    grpo.add_argument("--overlong", type=int, metavar="TOKENS", help="answers of the last so many "
                      "tokens before --max-completion-length lose up to 1 of their reward (DAPO's "
                      "soft penalty)")  # fmt: skip
    types = get_type_hints(Recipe)
    for field in fields(Recipe):
        flag = "--" + field.name.replace("_", "-")
        if (kind := types[field.name]) in (int, float) and field.default is not MISSING:
            grpo.add_argument(flag, type=kind, default=argparse.SUPPRESS, metavar="N")
        elif kind is bool:  # with its --no-, for those that are on
            grpo.add_argument(
                flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS
            )

    evaluation = commands.add_parser("eval", help="pass@k, greedy, forced styles, length, entropy")
    evaluation.add_argument("--prompts", type=int, default=250)
    evaluation.add_argument("--num-generations", type=int, default=8)
    evaluation.add_argument("--max-completion-length", type=int, default=argparse.SUPPRESS)
    evaluation.add_argument("--seed", type=int, default=99)

    for command in (base, grpo, evaluation):
        command.add_argument("--task", default="chain", help="a name, module:attribute, or a "
                             ".jsonl file or folder of questions in GSM8K's format")  # fmt: skip
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
    if args.start and args.preset:
        raise BadInput("preset: a model to go on from has its size; give --start or --preset")
    rate = BaseRecipe.learning_rate
    if args.start and args.learning_rate is None and recipe_of(args, args.start) != Recipe():
        rate = PRETRAINED
    recipe = BaseRecipe(
        steps=args.steps,
        batch=args.batch,
        learning_rate=rate if args.learning_rate is None else args.learning_rate,
        seed=args.seed,
        preset=args.preset or BaseRecipe.preset,
    )
    task = find_task(args.task)
    with claim(args.out, resume=False) as out:
        from rlnb.training.evaluation import pass_rate, summary
        from rlnb.training.models.base_training import train_base
        from rlnb.training.models.loading import load, save

        start = load(args.start, device=args.device) if args.start else None
        model, tokenizer, spent = train_base(task, recipe, start=start, device=args.device)
        save(model, tokenizer, out)
        show(spent | summary(task, pass_rate(model, tokenizer, task, num_generations=8)))


def given(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of the Recipe that were typed."""
    return {f.name: getattr(args, f.name) for f in fields(Recipe) if hasattr(args, f.name)}


def recipe_of(args: argparse.Namespace, model: str | Path, **typed: Any) -> Recipe:
    """The typed fields, and the others by the model's size and the device (`recipe_by_size`)."""
    from rlnb.training.recipe_by_size import lower_type, parameters_of, recipe_for

    return recipe_for(parameters_of(model), lower_type(pick_device(args.device)), **typed)


def run_grpo(args: argparse.Namespace) -> None:
    objective, task = find_objective(args.objective), find_task(args.task)
    recipe = recipe_of(args, start_of(args), **given(args))
    args.seed = recipe.seed
    if args.overlong is not None:
        objective = shaped(objective, recipe.max_completion_length, args.overlong)
    pool, reward = find_pool(args, task), find_reward(args.reward, task, recipe.seed)
    if recipe.eval_every:
        held_out(task, recipe.eval_prompts)  # refuses a task with fewer
    check_dashboard(args.log)
    with claim(args.out, args.resume) as out:
        from rlnb.training.loop import train
        from rlnb.training.models.loading import load
        from rlnb.training.run import check_objective
        from rlnb.training.sampling.scoring import refuse_mismatch

        refuse_mismatch(recipe.sampling, recipe.temperature)
        check_objective(objective, recipe)
        typed = {**asdict(Recipe()), **given(args)}
        if chosen := [f"{k} {v}" for k, v in asdict(recipe).items() if v != typed[k]]:
            notice(f"recipe: by the model's size: {', '.join(chosen)}; a flag replaces each")
        model, tokenizer = load(start_of(args), device=args.device, dtype=DTYPES[recipe.dtype])
        with dashboard(args.log, out) as watch:
            records = train(
                model,
                tokenizer,
                task,
                objective,
                recipe,
                out=out,
                claimed=True,
                resume=args.resume,
                reward=reward,
                keep=keep_mixed if args.keep == "mixed" else keep_all,
                pool=pool,
                watch=watch,
                model_name=args.model or SHIPPED,
            )
    print(replay(records))


def start_of(args: argparse.Namespace) -> str | Path:
    """--model, or the folder of the shipped one, found from the package."""
    return shipped_folder(SHIPPED) if args.model is None else args.model


def run_eval(args: argparse.Namespace) -> None:
    longest = recipe_of(args, start_of(args), **given(args)).max_completion_length
    task = find_task(args.task)
    held_out(task, args.prompts)
    from rlnb.training.evaluation import evaluate
    from rlnb.training.models.loading import load

    model, tokenizer = load(start_of(args), device=args.device)
    report = evaluate(
        model,
        tokenizer,
        task,
        prompts=args.prompts,
        num_generations=args.num_generations,
        max_new_tokens=longest,
        seed=args.seed,
    )
    show(report)


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0; 2 with one sentence on stderr when the input was bad, 3 when the run diverged,
    130 when it was interrupted from the keyboard."""
    args = parser().parse_args(arguments)
    try:
        if args.command == "replay":
            print(replay(read(args.run)))
            return 0
        pick_device(args.device)
        use_threads(args.threads)
        {"base": run_base, "grpo": run_grpo, "eval": run_eval}[args.command](args)
    except Diverged as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    except (BadInput, NotShipped) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # torch's, which is not imported here
            raise
        print(
            f"error: memory: the card has too few free bytes for {args.command!r}; end what else "
            f"runs on it, make it smaller ({SMALLER[args.command]}), or add --device cpu",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        advice = "; repeat the command with --resume to go on" if args.command == "grpo" else ""
        print(f"interrupted{advice}", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
