"""A whole run: steps, evaluations, records, checkpoints, resuming."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from tqdm import tqdm

from rlnb.objective import Objective, name_of
from rlnb.training import checkpoint
from rlnb.training.divergence import Collapse, diverged, not_finite
from rlnb.training.errors import BadInput, notice
from rlnb.training.evaluation import pass_rate, summary
from rlnb.training.memory import in_words
from rlnb.training.metrics_file import FILE, Recorder, environment, salvage
from rlnb.training.models.adapters import base_weights
from rlnb.training.models.presets import SHIPPED
from rlnb.training.prompt_pool import PromptPool
from rlnb.training.recipe import Recipe
from rlnb.training.rewards import Filter, Reward, keep_all
from rlnb.training.run_folder import claim
from rlnb.training.sampling.sampler import Rollout
from rlnb.training.step import Run, start, step
from rlnb.training.tasks import TASKS, Task

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["restore", "train"]

FEW = 32  # with so many answers none right, less than one in ten would have been (95 %)
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
    claimed: bool = False,
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
    recorded after the last checkpoint is cut and done again. It goes on from the newest checkpoint
    that is not damaged, and says on stderr what it left out. One process at a time writes there;
    claimed: the caller holds the folder already (`run_folder.claim`).

    Raises BadInput for anything the caller can mend, before the first step where that is possible;
    Diverged, a BadInput, at the first step whose loss, gradient or weights are not finite, or where
    a very large learning rate has left a policy none of whose answers is right.
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
        "reward": "verify" if reward is None else _name(reward),
        "keep": _name(keep),
        "pool": None if pool is None else pool.describe(),
        "recipe": asdict(recipe),
        **environment(model.device),
    }
    first, records, done = 1, None, False
    whole = nullcontext(out and Path(out)) if out is None or claimed else claim(Path(out), resume)
    with whole as folder:
        if resume:
            first, records, done = restore(run, folder, header)
        if done:
            Recorder(folder / FILE, records).close()  # mended, where it was damaged
            reached = first - 1
            notice(
                f"resume: nothing to do: the run in {str(folder)!r} has {reached} steps and its "
                f"model; ask for more with --steps {max(reached, 1) * 2}, for example"
            )
            return records
        name = name_of(objective) or "custom"
        with tqdm(desc=name, disable=not progress) as bar, in_words(run):
            return _steps(run, folder, header, first, records, bar, watch)


def _name(choice: Any) -> str:
    """What a reward or a filter calls itself."""
    return getattr(choice, "name", getattr(choice, "__name__", type(choice).__name__))


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
    try:
        if records is None:
            with _writing(folder):
                recorder.write("header", **header)
                if folder is not None and recipe.checkpoint_every:
                    _checkpoint(run, folder, 0, header)  # from here on a killed run can be resumed
        bar.reset(recipe.steps)
        bar.update(first - 1)
        if first == 1 and recipe.eval_every:
            found = _evaluation(run)
            _write_all(recorder, folder, 0, found)
            report = found[0][1]
            _warn_untaught(header, report["pass@1"], report["samples"], "to held-out problems")
        collapse = Collapse()
        for number in range(first, recipe.steps + 1):
            due = _due(number, recipe.eval_every, recipe.steps)
            for group in run.optimizer.param_groups:
                group["lr"] = recipe.rate(number)
            shown = [] if recipe.record_rollouts and (due or number == 1) else None
            metrics = _step(run, folder, number, shown)
            collapse.check(run, folder, number, metrics)
            if number == 1 and not recipe.eval_every:
                right, answers = metrics["rewards/verify/mean"], metrics["generated"]
                _warn_untaught(header, right, answers, "of the first step")
            found = [("step", metrics), *(("rollout", answer) for answer in shown or ())]
            _write_all(recorder, folder, number, found + (_evaluation(run) if due else []))
            bar.set_postfix(reward=f"{metrics['reward']:.3f}", entropy=f"{metrics['entropy']:.3f}")
            bar.update()
            if folder is not None and _due(number, recipe.checkpoint_every, recipe.steps):
                with _writing(folder):
                    _checkpoint(run, folder, number, header)
        if folder is not None:
            with _writing(folder):
                checkpoint.write_model(folder, run.model, run.tokenizer, recipe.merge_adapter)
    finally:
        recorder.close()
    return recorder.records


def _step(run: Run, folder: Path | None, number: int, shown: list | None) -> dict[str, float]:
    """One step. Raises Diverged if it was not finite, or left a model that is not."""
    try:
        metrics = step(run, shown)
    except torch.OutOfMemoryError:  # a RuntimeError too; asking a full card would fail again
        raise
    except (BadInput, RuntimeError) as error:  # what a model without finite logits leads to
        if (what := not_finite(run, {})) is None:
            raise
        raise diverged(run, folder, number, what) from error
    if (what := not_finite(run, metrics)) is not None:
        raise diverged(run, folder, number, what)
    return metrics


def _warn_untaught(header: dict[str, Any], right: float, answers: int, what: str) -> None:
    """Says what to do where no answer of the starting model is right, so that none can teach it.

    Of few answers none may be right by chance.
    """
    if right > 0.0 or answers < FEW or header["reward"] != "verify":
        return
    name, model = header["task"], header["model"]
    task = name if name in TASKS else "(as here)"
    start = f" --start {model}" if model and model != SHIPPED else ""
    notice(
        f"task: none of the {answers} answers {what} ({name}) is right, and a reward of 0.000 "
        "teaches nothing: the model may never have been taught the task. Make a base that was, "
        f"with `python -m rlnb.training base --task {task}{start} --out runs/base`, and start from "
        "it with --model runs/base"
    )


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


def _checkpoint(run: Run, folder: Path, number: int, header: dict[str, Any]) -> None:
    extra: dict[str, Any] = {"num_tokens": run.num_tokens, "header": header}
    if (reference := _reference(run)) is not None:
        extra["reference"] = reference
    if run.scaler.is_enabled():
        extra["scaler"] = run.scaler.state_dict()
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


def _reference(run: Run) -> str | None:
    """The fingerprint of the frozen weights that a checkpoint does not hold; None without any."""
    if run.adapted:
        return checkpoint.fingerprint(base_weights(run.model))
    return None if run.reference is None else checkpoint.fingerprint(run.reference.state_dict())


def restore(
    run: Run, folder: Path, header: dict[str, Any]
) -> tuple[int, list[dict[str, Any]], bool]:
    """Puts the newest good checkpoint into the run.

    Returns (next step, the records up to it, whether there is nothing left to do). What is damaged
    is left out, and said on stderr; a damaged record file is kept beside the mended one.

    Raises BadInput if the recorded run is not this one. Only the number of steps may differ, and
    that only where the learning rate does not depend on it.
    """
    found, told = checkpoint.newest_good(folder)
    state = checkpoint.state_of(found)
    _refuse_another(folder, state["header"], header)
    if state.get("reference") != _reference(run):
        what = "its adapters belong to" if run.adapted else "its KL is taken to"
        raise BadInput(
            f"resume: the run in {str(folder)!r} started from another model, which {what}; repeat "
            "the command that started it, with its --model"
        )
    if told:
        notice(f"resume: {'; '.join(told)}; going on from {found.name}")
    records = _recorded(folder, {"record": "header", **state["header"]}, state["step"])
    checkpoint.put_back(
        found,
        model=run.model,
        modules=run.modules,
        optimizer=run.optimizer,
        rng=run.rng,
        generator=run.generator,
        past=run.past,
    )
    run.num_tokens = state["num_tokens"]
    if "scaler" in state:
        run.scaler.load_state_dict(state["scaler"])
    if "reward" in state:
        run.reward.setstate(state["reward"])
    if run.pool is not None:
        run.pool.setstate(state["pool"])
    done = state["step"] >= run.recipe.steps and checkpoint.is_final_model(folder, found)
    return state["step"] + 1, records, done


def _refuse_another(folder: Path, recorded: dict[str, Any], header: dict[str, Any]) -> None:
    asked = {**header, **header["recipe"]}
    # What older runs do not record was at its default then.
    found = {"keep": keep_all.__name__, **asdict(Recipe()), **recorded, **recorded["recipe"]}
    for name in ("task", "objective", "reward", "keep", "pool", *header["recipe"]):
        before, now = found.get(name), asked[name]
        before, now = (list(v) if isinstance(v, tuple) else v for v in (before, now))
        if name == "steps" and asked["lr_scheduler_type"] == "constant":
            continue  # otherwise the learning rates would be others
        if before != now:
            raise BadInput(
                f"resume: the run in {str(folder)!r} has {name}={before!r}, this one asks for "
                f"{now!r}; repeat the command that started it"
            )


def _recorded(folder: Path, header: dict[str, Any], step: int) -> list[dict[str, Any]]:
    """The header and the records up to a checkpoint's step, as far as they can be read."""
    path = folder / FILE
    records, wrong = salvage(path) if path.is_file() else ([], [])
    headers = [r for r in records if r["record"] == "header"]
    last = step or -1  # the checkpoint of step 0 is written before the evaluation of step 0
    kept = [r for r in records if r["record"] != "header" and r["step"] <= last]
    missing = set(range(1, step + 1)) - {r["step"] for r in kept if r["record"] == "step"}
    if wrong or missing or not headers:
        aside = path.with_name(f"{path.name}.damaged")
        if path.is_file():
            os.replace(path, aside)
        lines = ", ".join(f"line {number} {what}" for number, what in wrong[:3])
        notice(
            f"resume: {FILE} is damaged ({lines or 'lines are missing'}); the rest is kept, "
            f"{len(missing)} of {step} steps are lost from the record, the run goes on from the "
            f"checkpoint{f' and the damaged file lies in {aside.name}' if aside.is_file() else ''}"
        )
    return [*(headers[:1] or [header]), *kept]
