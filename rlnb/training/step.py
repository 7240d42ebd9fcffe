"""One step of training: sample, verify, prepare once, then one or more optimizer steps.

It takes any `Objective`. What the objective needs beside the log-probabilities (a reference, a
critic, the reward of the greedy answer) is produced only when `objective.needs` names it. The parts
of a step are in run, rollouts and update.
"""

from __future__ import annotations

import time
from typing import Any

import torch

from rlnb.objective import Prepared
from rlnb.training.memory import make_way_to_train
from rlnb.training.models.precision import tensor_float_32
from rlnb.training.rollouts import Drawn, collect, make_batch, refill, rollout_metrics, rows_of
from rlnb.training.run import Run, check_objective, prepare, start
from rlnb.training.update import accumulate, engine_metrics, silent_rows, update

__all__ = [
    "Drawn", "Run", "accumulate", "check_objective", "collect", "make_batch", "prepare",
    "rollout_metrics", "silent_rows", "start", "step", "update",
]  # fmt: skip


def step(run: Run, shown: list[dict[str, Any]] | None = None) -> dict[str, float]:
    """One rollout and its optimizer steps; the metrics are named in `metrics_file.METRICS`.

    shown: a list that receives the answers to the first `record_rollouts` prompts, as
    `metrics_file` describes them.
    """
    with tensor_float_32(run.recipe.tf32):
        return _step(run, shown)


def _step(run: Run, shown: list[dict[str, Any]] | None) -> dict[str, float]:
    clock, cpu = time.perf_counter(), time.process_time()
    behind = run.fall_behind()
    drawn = collect(run)
    size = run.recipe.num_generations
    metrics = rollout_metrics(drawn.rollout, drawn.rewards, drawn.verified, drawn.texts)
    metrics |= {"generated": len(drawn.texts), "staleness": behind}
    if run.pool is not None:  # before any filter: a group that is dropped was answered all the same
        passed = (drawn.rewards.view(len(drawn.problems), -1) >= 1).sum(1).tolist()
        run.pool.record(drawn.problems, passed, size)
        metrics["pool/size"] = len(run.pool.remaining)
        metrics["pool/retired"] = len(run.pool.retired)
    trained, prepared = refill(run, drawn), None
    make_way_to_train(run, trained.rollout)
    if trained.problems:
        batch = make_batch(run, trained.rollout, trained.problems, trained.rewards)
        groups = run.keep(batch)
        rows = rows_of(groups.to(trained.rewards.device), size)
        if batch.mask[rows].any():  # or nothing is left to learn from
            prepared = prepare(run.objective, batch.rows(rows))
    metrics["groups/kept"] = 0.0
    if prepared is not None:
        metrics["groups/kept"] = len(groups) / len(drawn.problems)
        if shown is not None:
            shown += shown_rollouts(run, trained, prepared, rows)
        metrics |= update(run, trained.rollout, prepared, rows)
        if not run.recipe.on_policy:
            batch = prepared.batch
            metrics |= engine_metrics(batch.old_logprobs, batch.sampling_logprobs, batch.mask)
    seen = int(drawn.rollout.prompt_mask.sum()) + int(drawn.rollout.completion_mask.sum())
    run.num_tokens += seen
    seconds = time.perf_counter() - clock
    metrics |= {
        "learning_rate": run.optimizer.param_groups[0]["lr"],
        "num_tokens": run.num_tokens,
        "tokens_per_second": seen / seconds,
        "step_time": seconds,
        "cpu_time": time.process_time() - cpu,
    }
    return metrics


def shown_rollouts(
    run: Run, drawn: Drawn, prepared: Prepared, rows: torch.Tensor
) -> list[dict[str, Any]]:
    """The answers to the first prompts of a step, token by token, before its first update.

    `gradient` is dL/dlogprob of each token: negative where the update makes it likelier.
    """
    state = run.generator.get_state()  # random parts draw from it: looking must not change the run
    table = run.objective.explain(prepared.batch)
    run.generator.set_state(state)
    every, out = drawn.rollout.completion_ids[rows].tolist(), []
    lengths = drawn.rollout.lengths[rows].tolist()
    for i in range(min(len(rows), run.recipe.record_rollouts * run.recipe.num_generations)):
        row, length = int(rows[i]), lengths[i]
        out.append({
            "prompt": drawn.problems[row // run.recipe.num_generations].prompt,
            "tokens": run.tokenizer.convert_ids_to_tokens(every[i][:length]),
            "reward": drawn.rewards[row].item(),
            "verified": drawn.verified[row].item(),
            "advantage": prepared.advantages[i, 0].item(),
            "gradient": [float(f"{g:.2g}") for g in table.gradient[i, :length].tolist()],
            "logprobs": [round(x, 3) for x in prepared.batch.logprobs[i, :length].tolist()],
        })  # fmt: skip
    return out
