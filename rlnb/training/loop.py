"""A whole run: steps, evaluations, records, checkpoints, resuming."""

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlnb.objective import Objective, name_of
from rlnb.training import checkpoint
from rlnb.training.errors import BadInput
from rlnb.training.evaluation import pass_rate, summary
from rlnb.training.model import save
from rlnb.training.pool import Pool
from rlnb.training.recipe import Recipe
from rlnb.training.record import FILE, Recorder, environment
from rlnb.training.record import read as read_record
from rlnb.training.rewards import Filter, Reward, keep_all
from rlnb.training.sampler import Rollout, sample
from rlnb.training.step import Run, start, step
from rlnb.training.tasks import Task

SAMPLES = 4  # answers recorded at each evaluation


def train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    task: Task,
    objective: Objective,
    recipe: Recipe = Recipe(),  # noqa: B008  (frozen)
    *,
    out: str | Path | None = None,
    resume: bool = False,
    reward: Reward | None = None,
    keep: Filter = keep_all,
    sampler: Callable[..., Rollout] = sample,
    pool: Pool | None = None,
    progress: bool = True,
    model_name: str = "",
) -> list[dict[str, Any]]:
    """Trains `model` in place and returns the records that `record` describes.

    reward: (problem, text) -> number, the task's verifier when None; truncated answers get 0
    whatever it says. keep: batch -> indices of the groups to train on. sampler: anything with
    `sample`'s signature; the loop refuses a rollout drawn at another temperature than the recipe's
    or from a truncated vocabulary, because scoring uses the recipe's temperature and all tokens.
    pool: the prompts to draw from, changed in place, an answer passing with a reward of 1 or more;
    the task's whole training split when None.

    out: folder for metrics.jsonl, checkpoints and the final model; must be empty or new, unless
    resume. A resumed run repeats the uninterrupted one exactly, on the same machine.

    Raises BadInput for anything the caller can mend, before the first step where that is possible.
    """
    if resume and out is None:
        raise BadInput("resume: there is nothing to resume without out, the folder of the run")
    run = start(
        model, tokenizer, task, objective, recipe,
        reward=reward, keep=keep, sampler=sampler, pool=pool,
    )  # fmt: skip
    header = {
        "version": 1,
        "task": task.name,
        "model": model_name,
        "objective": repr(run.objective),
        "objective_name": name_of(objective),
        "reward": getattr(reward, "name", getattr(reward, "__name__", "verify")),
        "keep": getattr(keep, "__name__", type(keep).__name__),
        "pool": None if pool is None else pool.describe(),
        "recipe": asdict(recipe),
        **environment(model.device),
    }
    first, records = 1, None
    folder = None if out is None else open_folder(Path(out), resume)
    if resume:
        first, records = restore(run, folder, header)
    recorder = Recorder(None if folder is None else folder / FILE, records)
    try:
        if records is None:
            recorder.write("header", **header)
            _evaluate(run, 0, recorder)
        bar = tqdm(
            range(first, recipe.steps + 1),
            desc=name_of(objective) or "custom",
            initial=first - 1,
            total=recipe.steps,
            disable=not progress,
        )
        for number in bar:
            metrics = step(run)
            recorder.write("step", step=number, **metrics)
            bar.set_postfix(reward=f"{metrics['reward']:.3f}", entropy=f"{metrics['entropy']:.3f}")
            if _due(number, recipe.eval_every, recipe.steps):
                _evaluate(run, number, recorder)
            if folder is not None and _due(number, recipe.checkpoint_every, recipe.steps):
                _checkpoint(run, folder, number)
        if folder is not None:
            save(model, tokenizer, folder / "model")
    finally:
        recorder.close()
    return recorder.records


def _due(number: int, every: int, last: int) -> bool:
    return bool(every) and (number % every == 0 or number == last)


def _evaluate(run: Run, number: int, recorder: Recorder) -> None:
    recipe = run.recipe
    if not recipe.eval_every:
        return
    answers = pass_rate(
        run.model,
        run.tokenizer,
        run.task,
        prompts=recipe.eval_prompts,
        num_generations=recipe.eval_generations,
        sampling=recipe.sampling,
    )
    recorder.write("eval", step=number, **summary(run.task, answers))
    for index in range(min(SAMPLES, recipe.eval_prompts)):
        row = index * recipe.eval_generations
        recorder.write(
            "sample",
            step=number,
            prompt=answers.problems[index].prompt,
            completion=answers.texts[row],
            reward=answers.right[index, 0].item(),
        )


def _checkpoint(run: Run, folder: Path, number: int) -> None:
    extra: dict[str, Any] = {"num_tokens": run.num_tokens}
    if hasattr(run.reward, "getstate"):
        extra["reward"] = run.reward.getstate()
    if run.pool is not None:
        extra["pool"] = run.pool.getstate()
    checkpoint.write(
        folder,
        number,
        model=run.model,
        tokenizer=run.tokenizer,
        modules=run.modules,
        optimizer=run.optimizer,
        rng=run.rng,
        generator=run.generator,
        extra=extra,
    )


def open_folder(out: Path, resume: bool) -> Path:
    """The output folder, made if needed. BadInput if it cannot be written, or is in use."""
    if not resume and out.is_dir() and any(out.iterdir()):
        raise BadInput(
            f"out: the folder {str(out)!r} is not empty; give a new one, or --resume to continue "
            "the run in it"
        )
    if resume and not checkpoint.checkpoints(out):
        raise BadInput(
            f"resume: there is no checkpoint in {str(out)!r}; start without --resume, in an empty "
            "folder"
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".writable"
        probe.touch()
        os.remove(probe)
    except OSError as error:
        raise BadInput(
            f"out: cannot write to {str(out)!r} ({error.strerror}); give a folder you may write to"
        ) from error
    return out


def restore(run: Run, folder: Path, header: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    """Puts the newest checkpoint into the run: (next step, the records up to it).

    Raises BadInput if the recorded run is not this one. Only the number of steps may differ.
    """
    records = read_record(folder)
    recorded = records[0]
    asked = {**header, **header["recipe"]}
    found = {"keep": keep_all.__name__, **recorded, **recorded["recipe"]}  # older runs: no "keep"
    for name in ("task", "objective", "reward", "keep", "pool", *header["recipe"]):
        before, now = found.get(name), asked[name]
        now = list(now) if isinstance(now, tuple) else now
        if name != "steps" and before != now:
            raise BadInput(
                f"resume: the run in {str(folder)!r} has {name}={before!r}, this one asks for "
                f"{now!r}; repeat the command that started it"
            )
    state = checkpoint.read(
        folder,
        model=run.model,
        modules=run.modules,
        optimizer=run.optimizer,
        rng=run.rng,
        generator=run.generator,
    )
    run.num_tokens = state["num_tokens"]
    if "reward" in state:
        run.reward.setstate(state["reward"])
    if run.pool is not None:
        run.pool.setstate(state["pool"])
    kept = [r for r in records if r.get("step", 0) <= state["step"]]
    return state["step"] + 1, kept
