"""A whole run: steps, evaluations, records, checkpoints, resuming."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from tqdm import tqdm

from rlnb.objective import Objective, name_of
from rlnb.training import checkpoint
from rlnb.training.errors import BadInput
from rlnb.training.evaluation import pass_rate, summary
from rlnb.training.memory import in_words
from rlnb.training.metrics_file import FILE, Recorder, environment, read
from rlnb.training.models.loading import save
from rlnb.training.prompt_pool import PromptPool
from rlnb.training.recipe import Recipe
from rlnb.training.rewards import Filter, Reward, keep_all
from rlnb.training.sampling.sampler import Rollout
from rlnb.training.step import Run, start, step
from rlnb.training.tasks import Task

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["open_folder", "restore", "train"]

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
    sampler: Callable[..., Rollout] | None = None,
    pool: PromptPool | None = None,
    watch: Callable[[dict[str, Any]], None] | None = None,
    progress: bool = True,
    model_name: str = "",
) -> list[dict[str, Any]]:
    """Trains `model` in place and returns the records that `metrics_file` describes.

    reward: (problem, text) -> number, the task's verifier when None; truncated answers get 0
    whatever it says. keep: batch -> indices of the groups to train on. sampler: anything with
    `sample`'s signature, by default what `graph_decoder.sampler_for` has for the model's device;
    the loop refuses a rollout drawn at another temperature than the recipe's or from a truncated
    vocabulary, because scoring uses the recipe's temperature and all tokens.
    pool: the prompts to draw from, changed in place, an answer passing with a reward of 1 or more;
    the task's whole training split when None. watch: called with every record as it is written, for
    a live plot.

    out: folder for metrics.jsonl, checkpoints and the final model; must be empty or new, unless
    resume. A resumed run repeats the uninterrupted one exactly, on the same machine: what was
    recorded after the last checkpoint is cut and done again.

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
    name = name_of(objective) or "custom"
    bar = tqdm(desc=name, disable=not progress)
    with in_words(run):
        return _steps(run, folder, header, first, records, bar, watch)


def _steps(
    run: Run,
    folder: Path | None,
    header: dict[str, Any],
    first: int,
    records: list[dict[str, Any]] | None,
    bar: tqdm,
    watch: Callable[[dict[str, Any]], None] | None,
) -> list[dict[str, Any]]:
    """The steps from `first` on; `records` are those before it, None in a new run."""
    recipe = run.recipe
    with _writing(folder):
        recorder = Recorder(None if folder is None else folder / FILE, records, watch)
        if records is None:
            recorder.write("header", **header)
            if folder is not None and recipe.checkpoint_every:
                _checkpoint(run, folder, 0)  # from here on a killed run can be resumed
    bar.reset(recipe.steps)
    bar.update(first - 1)
    try:
        if first == 1 and recipe.eval_every:
            _write_all(recorder, folder, 0, _evaluation(run))
        for number in range(first, recipe.steps + 1):
            due = _due(number, recipe.eval_every, recipe.steps)
            shown = [] if recipe.record_rollouts and (due or number == 1) else None
            metrics = step(run, shown)
            found = [("step", metrics), *(("rollout", answer) for answer in shown or ())]
            _write_all(recorder, folder, number, found + (_evaluation(run) if due else []))
            bar.set_postfix(reward=f"{metrics['reward']:.3f}", entropy=f"{metrics['entropy']:.3f}")
            bar.update()
            if folder is not None and _due(number, recipe.checkpoint_every, recipe.steps):
                with _writing(folder):
                    _checkpoint(run, folder, number)
        if folder is not None:
            with _writing(folder):
                save(run.model, run.tokenizer, folder / "model")
    finally:
        recorder.close()
        bar.close()
    return recorder.records


@contextmanager
def _writing(folder: Path | None) -> Iterator[None]:
    """A disk that is full, or a folder that has become read-only, as one sentence."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        if folder is None:  # nothing is written: it is someone else's
            raise
        kept = checkpoint.checkpoints(folder)
        advice = "then start again in an empty folder: there is no checkpoint yet"
        if kept:
            advice = f"then repeat with --resume: the checkpoint {kept[-1].name!r} in it is whole"
        raise BadInput(
            f"out: cannot write to {str(folder)!r} any more ({getattr(error, 'strerror', error)}); "
            f"make room, or give back the right to write, {advice}"
        ) from error


Found = list[tuple[str, dict[str, Any]]]  # kinds of records and their fields


def _write_all(recorder: Recorder, folder: Path | None, number: int, found: Found) -> None:
    with _writing(folder):
        for kind, values in found:
            recorder.write(kind, step=number, **values)


def _due(number: int, every: int, last: int) -> bool:
    return bool(every) and (number % every == 0 or number == last)


def _evaluation(run: Run) -> Found:
    """The records of one evaluation on held-out problems."""
    recipe = run.recipe
    answers = pass_rate(
        run.model,
        run.tokenizer,
        run.task,
        prompts=recipe.eval_prompts,
        num_generations=recipe.eval_generations,
        sampling=recipe.sampling,
    )
    report = summary(run.task, answers)
    if recipe.eval_greedy:
        greedy = pass_rate(
            run.model,
            run.tokenizer,
            run.task,
            prompts=recipe.eval_prompts,
            num_generations=1,
            sampling=replace(recipe.sampling, temperature=0.0),
        )
        report["greedy"] = greedy.right.mean().item()
    found: Found = [("eval", report)]
    for index in range(min(SAMPLES, recipe.eval_prompts)):
        shown = {
            "prompt": answers.problems[index].prompt,
            "completion": answers.texts[index * recipe.eval_generations],
            "reward": answers.right[index, 0].item(),
        }
        found.append(("sample", shown))
    return found


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
        past=list(run.past)[-run.recipe.staleness :],
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
    records = read(folder)
    recorded = records[0]
    asked = {**header, **header["recipe"]}
    # What older runs do not record was at its default then.
    found = {"keep": keep_all.__name__, **asdict(Recipe()), **recorded, **recorded["recipe"]}
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
        past=run.past,
    )
    run.num_tokens = state["num_tokens"]
    if "reward" in state:
        run.reward.setstate(state["reward"])
    if run.pool is not None:
        run.pool.setstate(state["pool"])
    last = state["step"] or -1  # that of step 0 is written before the evaluation of step 0
    kept = [r for r in records if r["record"] == "header" or r["step"] <= last]
    return state["step"] + 1, kept
