"""The optimizer steps of one rollout."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import torch
from torch import Tensor, nn

from rlnb.objective import Objective, Part, Prepared
from rlnb.training.distributed import add_up, share
from rlnb.training.models.precision import recomputed_layers
from rlnb.training.run import Run
from rlnb.training.sampling.graph_decoder import make_way
from rlnb.training.sampling.sampler import Rollout
from rlnb.training.sampling.scoring import candidate_logprobs, token_logprobs

__all__ = ["ENGINE", "Tally", "accumulate", "engine_metrics", "silent_rows", "update"]

ENGINE = "sampling/importance_sampling_ratio/"


def silent_rows(objective: Objective, prepared: Prepared) -> Tensor:
    """(B,) True where the gradient of the row is exactly 0 whatever its log-probabilities are.

    A surrogate that says so (`Part.silent`) is 0 with slope 0 where the advantage is 0; a term or a
    reference may still pull, and a callable from elsewhere may do anything: then no row is silent.
    A row without any token that counts has the advantage 0.
    """
    still = (prepared.advantages == 0).all(1)
    known = isinstance(objective.surrogate, Part) and objective.surrogate.silent
    if objective.terms or "ref_logprobs" in objective.needs or not known:
        return torch.zeros_like(still)
    return still


def engine_metrics(trainer: Tensor, engine: Tensor, mask: Tensor) -> dict[str, float]:
    """How the trainer's log-probabilities (B, T) differ from those the rollout came with.

    omega = pi(trainer) / pi(engine), per token: 1 where both compute alike.
    """
    gap = (trainer.detach() - engine)[mask]
    omega = gap.exp()
    return {
        "sampling/logp_difference": gap.abs().max().item(),
        ENGINE + "min": omega.min().item(),
        ENGINE + "mean": omega.mean().item(),
        ENGINE + "max": omega.max().item(),
    }


class Tally:
    """Metrics of parts of a step, merged: shares of tokens add up, extremes stay extremes."""

    LARGEST = ("ratio/max", "sampling/logp_difference", ENGINE + "max")
    SMALLEST = ("ratio/min", ENGINE + "min")

    def __init__(self, **start: float):
        self.sums: dict[str, float] = dict(start)

    def add(self, name: str, value: float, share: float = 1.0) -> None:
        """Merges one part's value, which stands for `share` of the tokens."""
        if name in self.LARGEST:
            self.sums[name] = max(self.sums.get(name, value), value)
        elif name in self.SMALLEST:
            self.sums[name] = min(self.sums.get(name, value), value)
        else:
            self.sums[name] = self.sums.get(name, 0.0) + value * share


def _forward(run: Run, rollout: Rollout, rows: Tensor) -> dict[str, Tensor]:
    """What the objective takes of the weights as they are now, for these rows, with gradients."""
    needs, temperature = run.objective.needs, run.recipe.temperature
    logprobs, entropies = token_logprobs(
        run.model,
        rollout,
        temperature=temperature,
        rows=rows,
        entropy_gradient="entropies" in needs,
    )
    fresh = {"logprobs": logprobs}
    if "entropies" in needs:
        fresh["entropies"] = entropies
    if "topk_logprobs" in needs:
        fresh["topk_logprobs"] = candidate_logprobs(
            run.model, rollout, temperature=temperature, rows=rows
        )
    if run.critic is not None:
        fresh["values"] = run.critic.values(rollout, rows)
    return fresh


def accumulate(run: Run, rollout: Rollout, mini: Prepared, rows: Tensor) -> dict[str, float]:
    """Adds the gradient of one optimizer step, in micro-batches of similar length.

    `rows` are the rollout's rows that `mini` holds, in its order. Returns the loss and the
    objective's metrics over the step's tokens.
    """
    recipe, objective = run.recipe, run.objective
    lengths, counted = rollout.lengths[rows], mini.batch.mask.sum(1)
    local = torch.arange(len(rows), device=rows.device)
    if recipe.skip_silent_rows:
        local = local[~silent_rows(objective, mini)]
    local = local[lengths[local].argsort(stable=True)]
    total, evaluated = float(counted.sum()) or 1.0, float(counted[local].sum()) or 1.0
    tally = Tally(loss=0.0)
    mine = share(local)
    for piece in mine.split(recipe.micro_batch) if len(mine) else ():
        with run.precision(), recomputed_layers(run.modules, recipe.gradient_checkpointing):
            fresh = _forward(run, rollout, rows[piece])
        logprobs = fresh["logprobs"]
        out = objective.evaluate(mini.rows(piece).replace(**fresh))
        run.scaler.scale(out.loss).backward()
        tally.add("loss", out.loss.item())
        tokens = float(counted[piece].sum())
        metrics = out.metrics  # lazy: only what is looked up is computed
        for name in metrics if tokens else ():
            if name.startswith("clip_ratio/"):  # a silent row's tokens are never cut
                tally.add(name, metrics[name], tokens / total)
            elif name == "kl" or name.startswith("ratio/"):
                tally.add(name, metrics[name], tokens / evaluated)
        if recipe.on_policy:
            mask = rollout.completion_mask[rows[piece]]
            compared = engine_metrics(logprobs, rollout.logprobs[rows[piece]], mask)
            for name, value in compared.items():
                tally.add(name, value, float(lengths[piece].sum()) / float(lengths[local].sum()))
    return add_up(run.modules.parameters(), tally.sums, Tally())


def _fitted(run: Run, rollout: Rollout, mini: Prepared, rows: Tensor) -> dict[str, float]:
    """`accumulate` from no gradient; where bytes run out, again with half the micro-batch.

    The gradient is the same but for rounding, and the smaller micro-batch stays. Raises
    OutOfMemoryError where a row is too much, or where a part must see the whole batch.
    """
    state = run.generator.get_state()  # a part that draws numbers must draw the same ones again
    whole = any(getattr(part, "batch_statistics", False) for part in run.objective.parts)
    while True:
        run.optimizer.zero_grad(set_to_none=False)
        try:
            return accumulate(run, rollout, mini, rows)
        except torch.OutOfMemoryError:
            if whole or run.recipe.micro_batch == 1:
                raise
        # Out of the handler: it holds on to the failed pass, and that to its tensors.
        run.generator.set_state(state)
        make_way(run.model.device, float("inf"))
        if run.model.device.type == "cuda":
            torch.cuda.empty_cache()
        before = run.recipe.micro_batch
        run.recipe = replace(run.recipe, micro_batch=(min(before, len(rows)) + 1) // 2)
        warnings.warn(
            f"memory: a micro-batch of {before} rows does not fit this card; the run goes on with "
            f"{run.recipe.micro_batch}, which changes time and rounding, not the gradient. Next "
            f"time give --micro-batch {run.recipe.micro_batch}",
            stacklevel=2,
        )


def _gradient(
    run: Run, rollout: Rollout, mini: Prepared, rows: Tensor
) -> tuple[dict[str, float], dict[str, float]]:
    """The gradient of one optimizer step, clipped; (metrics, norm before clipping by module).

    Under float16 autocast the loss is scaled; where the gradient then overflows, it is computed
    again at half the scale, so that no rollout is wasted, until the scale is 1: what is not finite
    then is not finite in truth.
    """
    state = run.generator.get_state()
    while True:
        sums = _fitted(run, rollout, mini, rows)
        run.scaler.unscale_(run.optimizer)
        norms = {  # each on its own, so that a large value error does not slow the policy
            name: nn.utils.clip_grad_norm_(module.parameters(), run.recipe.max_grad_norm).item()
            for name, module in run.modules.items()
        }
        if all(math.isfinite(x) for x in (*norms.values(), sums["loss"])):
            return sums, norms
        if run.scaler.get_scale() <= 1.0:  # also where nothing is scaled
            return sums, norms
        run.scaler.update()
        run.generator.set_state(state)


def update(run: Run, rollout: Rollout, prepared: Prepared, rows: Tensor) -> dict[str, float]:
    """All optimizer steps of one rollout; metrics are means over them, extremes their extremes."""
    recipe, history = run.recipe, []
    for _ in range(recipe.num_iterations):
        order = torch.arange(len(rows), device=rows.device)
        if recipe.minibatches > 1:
            order = torch.randperm(len(rows), generator=run.generator, device=rows.device)
        for index in order.chunk(recipe.minibatches):
            sums, norms = _gradient(run, rollout, prepared.minibatch(index), rows[index])
            run.scaler.step(run.optimizer)
            run.scaler.update()
            history.append({**sums, "grad_norm": norms["policy"]})
    merged = Tally()
    for name in sorted({name for sums in history for name in sums}):
        values = [sums[name] for sums in history if name in sums]
        for value in values:
            merged.add(name, value, 1 / len(values))
    return merged.sums
