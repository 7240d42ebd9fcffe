"""One step of training: sample, verify, prepare once, then one or more optimizer steps.

It takes any `Objective`. What the objective needs beside the log-probabilities (a reference, a
critic, the reward of the greedy answer) is produced only when `objective.needs` names it.
"""

import copy
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlnb.objective import Batch, Objective, Part, Prepared, value_loss
from rlnb.training.critic import Critic
from rlnb.training.errors import BadInput
from rlnb.training.evaluation import answer
from rlnb.training.model import check_vocabulary, encode_prompts
from rlnb.training.pool import Pool
from rlnb.training.recipe import Recipe
from rlnb.training.rewards import Filter, Reward, keep_all
from rlnb.training.sampler import Rollout, Sampling, sample
from rlnb.training.scoring import candidate_logprobs, likeliest, refuse_mismatch, token_logprobs
from rlnb.training.tasks import Problem, Task

PRODUCED = {
    "old_logprobs", "ref_logprobs", "sampling_logprobs", "entropies", "values", "old_values",
    "returns", "greedy_rewards", "max_completion_length", "generator",
    "topk_logprobs", "old_topk_logprobs", "sampled_rank",
}  # fmt: skip
PER_CANDIDATE = {"topk_logprobs", "old_topk_logprobs"}
CANDIDATES = 3  # K of SimKO; a vocabulary of thousands takes more, TRL's DPPO had 20


@dataclass
class Run:
    """What a run holds between steps. `model` is trained in place."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    task: Task
    objective: Objective
    recipe: Recipe
    reward: Reward
    keep: Filter
    sampler: Callable[..., Rollout]
    reference: PreTrainedModel | None
    modules: nn.ModuleDict
    optimizer: torch.optim.Optimizer
    rng: random.Random
    generator: torch.Generator
    pool: Pool | None = None
    num_tokens: int = 0

    @property
    def critic(self) -> Critic | None:
        return self.modules["critic"] if "critic" in self.modules else None


def start(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    task: Task,
    objective: Objective,
    recipe: Recipe,
    *,
    reward: Reward | None = None,
    keep: Filter = keep_all,
    sampler: Callable[..., Rollout] = sample,
    pool: Pool | None = None,
) -> Run:
    """A run before its first step. Raises BadInput if task, model and objective do not fit."""
    check_vocabulary(tokenizer, task)
    if pool is not None and len(pool.remaining) < recipe.prompts:
        raise BadInput(
            f"pool: it has {len(pool.remaining)} prompts, but a step takes {recipe.prompts}; make "
            "it larger, or prompts smaller"
        )
    refuse_mismatch(recipe.sampling, recipe.temperature)
    check_objective(objective, recipe)
    modules = nn.ModuleDict({"policy": model})
    if "values" in objective.needs:
        modules["critic"] = Critic(model)
        if not any(isinstance(part, value_loss) for part in objective.terms):
            # The named ppo says what the policy does; a critic that is not trained stays 0.
            objective = objective.replace(terms=(*objective.terms, value_loss(0.5)))
    reference = None
    if "ref_logprobs" in objective.needs:
        reference = copy.deepcopy(model).requires_grad_(False)
    for parameter in modules.parameters():
        # A gradient that is there and 0: a step without any signal is still a step of AdamW.
        parameter.grad = torch.zeros_like(parameter)
    return Run(
        model=model,
        tokenizer=tokenizer,
        task=task,
        objective=objective,
        recipe=recipe,
        reward=reward or task.verify,
        keep=keep,
        sampler=sampler,
        reference=reference,
        modules=modules,
        optimizer=torch.optim.AdamW(
            modules.parameters(),
            recipe.learning_rate,
            recipe.betas,
            weight_decay=recipe.weight_decay,
        ),
        rng=random.Random(recipe.seed),
        generator=torch.Generator(model.device).manual_seed(recipe.seed),
        pool=pool,
    )


def check_objective(objective: Objective, recipe: Recipe) -> None:
    """Asks the objective to prepare a batch of this recipe's shape, before anything is sampled.

    Raises BadInput if it cannot, for example a group method with num_generations=1.
    """
    if missing := sorted(objective.needs - PRODUCED):
        raise BadInput(f"objective: it needs {', '.join(missing)}, which the loop does not produce")
    rows = recipe.prompts * recipe.num_generations
    zero = torch.zeros(rows, 1)
    given = {name: zero for name in objective.needs & PRODUCED}
    given |= {name: zero[..., None] for name in objective.needs & PER_CANDIDATE}
    if "greedy_rewards" in given:
        given["greedy_rewards"] = zero[:, 0]
    batch = Batch(zero, zero + 1, zero[:, 0], recipe.num_generations, **given)
    prepare(objective, batch.replace(max_completion_length=recipe.max_completion_length))


def prepare(objective: Objective, batch: Batch) -> Prepared:
    """`objective.prepare`; BadInput where the batch, its rewards for example, does not suit it."""
    try:
        return objective.prepare(batch)
    except ValueError as error:
        raise BadInput(f"objective: {error}") from error


def collect(run: Run) -> tuple[Rollout, list[Problem], Tensor, Tensor, list[str]]:
    """One rollout: (rollout, problems, rewards (N,), verified (N,), texts).

    A truncated row gets reward 0; `verified` is what the task says of its text all the same.
    """
    recipe = run.recipe
    if run.pool is None:
        problems = [run.task.problem(run.rng, "train") for _ in range(recipe.prompts)]
    else:
        problems = run.pool.draw(run.rng, recipe.prompts)
    rollout = run.sampler(
        run.model,
        encode_prompts(run.tokenizer, [p.prompt for p in problems]),
        recipe.num_generations,
        recipe.sampling,
        eos_id=run.tokenizer.eos_token_id,
        pad_id=run.tokenizer.pad_token_id,
        generator=run.generator,
    )
    refuse_mismatch(rollout.sampling, recipe.temperature)
    if run.objective.needs & (PER_CANDIDATE | {"sampled_rank"}):
        parts = [
            likeliest(run.model, rollout, CANDIDATES, temperature=recipe.temperature, rows=r)
            for r in _micro_batches(rollout, recipe)
        ]
        rollout = replace(rollout, candidate_ids=torch.cat(parts))
    texts = rollout.texts(run.tokenizer)
    asked = [problems[i // recipe.num_generations] for i in range(len(texts))]
    device, done = rollout.logprobs.device, rollout.finished
    rewards = torch.tensor([float(run.reward(*pair)) for pair in zip(asked, texts, strict=True)])
    verified = torch.tensor([run.task.verify(*pair) for pair in zip(asked, texts, strict=True)])
    return rollout, problems, rewards.to(device) * done, verified.to(device), texts


@torch.no_grad()
def make_batch(run: Run, rollout: Rollout, problems: list[Problem], rewards: Tensor) -> Batch:
    """Everything the objective needs, computed once per rollout with the weights that sampled."""
    recipe, needs = run.recipe, run.objective.needs
    extra: dict[str, Any] = {}
    if not recipe.on_policy or needs & {"old_logprobs", "entropies"}:
        extra["old_logprobs"], entropies = _score(run.model, rollout, recipe)
        if "entropies" in needs:
            extra["entropies"] = entropies
    if run.reference is not None:
        extra["ref_logprobs"] = _score(run.reference, rollout, recipe)[0]
    if run.critic is not None:
        rows = _micro_batches(rollout, recipe)
        extra["values"] = torch.cat([run.critic.values(rollout, r) for r in rows])
    if needs & PER_CANDIDATE:
        parts = [
            candidate_logprobs(run.model, rollout, temperature=recipe.temperature, rows=r)
            for r in _micro_batches(rollout, recipe)
        ]
        # The trainer's: a rollout engine reports the sampled token only.
        extra["topk_logprobs"] = extra["old_topk_logprobs"] = torch.cat(parts)
    if "sampled_rank" in needs:
        same = rollout.candidate_ids == rollout.completion_ids[..., None]
        extra["sampled_rank"] = torch.where(same.any(-1), same.int().argmax(-1), CANDIDATES)
    if "greedy_rewards" in needs:
        greedy = answer(
            run.model, run.tokenizer, run.task, problems, 1,
            Sampling(temperature=0.0, max_new_tokens=recipe.max_completion_length),
        )  # fmt: skip
        scores = [run.reward(p, text) for p, text in zip(problems, greedy.texts, strict=True)]
        scores = torch.tensor(scores, device=rewards.device) * greedy.finished[:, 0].to(rewards)
        extra["greedy_rewards"] = scores.repeat_interleave(recipe.num_generations)
    return Batch(
        logprobs=extra.get("old_logprobs", rollout.logprobs),
        completion_mask=rollout.completion_mask,
        rewards=rewards.to(rollout.logprobs.dtype),
        num_generations=recipe.num_generations,
        sampling_logprobs=rollout.logprobs,
        max_completion_length=recipe.max_completion_length,
        generator=run.generator,
        **extra,
    )


def _score(model: PreTrainedModel, rollout: Rollout, recipe: Recipe) -> tuple[Tensor, Tensor]:
    parts = [
        token_logprobs(model, rollout, temperature=recipe.temperature, rows=r)
        for r in _micro_batches(rollout, recipe)
    ]
    logprobs, entropies = zip(*parts, strict=True)
    return torch.cat(logprobs), torch.cat(entropies)


def _micro_batches(rollout: Rollout, recipe: Recipe) -> tuple[Tensor, ...]:
    rows = torch.arange(len(rollout.finished), device=rollout.finished.device)
    return rows.split(recipe.micro_batch)


def silent_rows(objective: Objective, prepared: Prepared) -> Tensor:
    """(B,) True where the gradient of the row is exactly 0 whatever its log-probabilities are.

    A surrogate that says so (`Part.silent`) is 0 with slope 0 where the advantage is 0; a term or a
    reference may still pull, and a callable from elsewhere may do anything: then no row is silent.
    """
    still = (prepared.advantages == 0).all(1)
    known = isinstance(objective.surrogate, Part) and objective.surrogate.silent
    if objective.terms or "ref_logprobs" in objective.needs or not known:
        return torch.zeros_like(still)
    return still


def accumulate(run: Run, rollout: Rollout, mini: Prepared, rows: Tensor) -> dict[str, float]:
    """Adds the gradient of one optimizer step, in micro-batches of similar length.

    `rows` are the rollout's rows that `mini` holds, in its order. Returns the loss and the
    objective's metrics over the step's tokens.
    """
    recipe, objective = run.recipe, run.objective
    lengths = rollout.lengths[rows]
    local = torch.arange(len(rows), device=rows.device)
    if recipe.skip_silent_rows:
        local = local[~silent_rows(objective, mini)]
    local = local[lengths[local].argsort(stable=True)]
    total, evaluated = float(lengths.sum()), float(lengths[local].sum())
    sums: dict[str, float] = {"loss": 0.0}
    for piece in local.split(recipe.micro_batch) if len(local) else ():
        logprobs, entropies = token_logprobs(
            run.model,
            rollout,
            temperature=recipe.temperature,
            rows=rows[piece],
            entropy_gradient="entropies" in objective.needs,
        )
        fresh = {"logprobs": logprobs}
        if "entropies" in objective.needs:
            fresh["entropies"] = entropies
        if "topk_logprobs" in objective.needs:
            fresh["topk_logprobs"] = candidate_logprobs(
                run.model, rollout, temperature=recipe.temperature, rows=rows[piece]
            )
        if run.critic is not None:
            fresh["values"] = run.critic.values(rollout, rows[piece])
        out = objective.evaluate(mini.rows(piece).replace(**fresh))
        out.loss.backward()
        sums["loss"] += out.loss.item()
        tokens = float(lengths[piece].sum())
        metrics = out.metrics  # lazy: only what is looked up is computed
        for name in metrics:
            if name.startswith("clip_ratio/"):  # a silent row's tokens are never cut
                sums[name] = sums.get(name, 0.0) + metrics[name] * tokens / total
            elif name in ("kl", "ratio/mean"):
                sums[name] = sums.get(name, 0.0) + metrics[name] * tokens / evaluated
            elif name == "ratio/max":
                sums[name] = max(sums.get(name, 0.0), metrics[name])
        if recipe.on_policy:
            gap = (logprobs.detach() - rollout.logprobs[rows[piece]]).abs().max().item()
            sums["sampling/logp_difference"] = max(sums.get("sampling/logp_difference", 0.0), gap)
    return sums


def update(run: Run, rollout: Rollout, prepared: Prepared, rows: Tensor) -> dict[str, float]:
    """All optimizer steps of one rollout; metrics are means over them (ratio/max: the maximum)."""
    recipe, history = run.recipe, []
    for _ in range(recipe.num_iterations):
        order = torch.arange(len(rows), device=rows.device)
        if recipe.minibatches > 1:
            order = torch.randperm(len(rows), generator=run.generator, device=rows.device)
        for index in order.chunk(recipe.minibatches):
            run.optimizer.zero_grad(set_to_none=False)
            sums = accumulate(run, rollout, prepared.minibatch(index), rows[index])
            norms = {  # each on its own, so that a large value error does not slow the policy
                name: nn.utils.clip_grad_norm_(module.parameters(), recipe.max_grad_norm)
                for name, module in run.modules.items()
            }
            run.optimizer.step()
            history.append({**sums, "grad_norm": norms["policy"].item()})
    names = {name for sums in history for name in sums}
    merged = {}
    for name in sorted(names):
        values = [sums[name] for sums in history if name in sums]
        largest = name in ("ratio/max", "sampling/logp_difference")
        merged[name] = max(values) if largest else sum(values) / len(values)
    return merged


def rollout_metrics(
    rollout: Rollout, rewards: Tensor, verified: Tensor, texts: list[str]
) -> dict[str, float]:
    """What the rollout says before any update; names as in `record.METRICS`.

    The mean length of right (wrong) answers is nan where there is none. Truncation does not make
    an answer wrong there: sorting the longest answers among the wrong would lengthen these.
    """
    groups = rewards.view(-1, rollout.num_generations)
    low, high = groups.amin(1), groups.amax(1)
    lengths = rollout.lengths.float()
    all_pass, all_fail = (low >= 1).float().mean().item(), (high <= 0).float().mean().item()
    several = rollout.num_generations > 1
    return {
        "reward": rewards.mean().item(),
        "reward_std": groups.std(1).mean().item() if several else 0.0,
        "frac_reward_zero_std": (low == high).float().mean().item(),
        "rewards/verify/mean": (verified * rollout.finished).mean().item(),
        "groups/all_pass": all_pass,
        "groups/mixed": 1.0 - all_pass - all_fail,
        "groups/all_fail": all_fail,
        "completions/mean_length": lengths.mean().item(),
        "completions/mean_length_right": lengths[verified > 0].mean().item(),
        "completions/mean_length_wrong": lengths[verified <= 0].mean().item(),
        "completions/mean_wait": sum(text.count("wait") for text in texts) / len(texts),
        "completions/min_length": lengths.min().item(),
        "completions/max_length": lengths.max().item(),
        "completions/clipped_ratio": 1.0 - rollout.finished.float().mean().item(),
        "entropy": (rollout.entropies.sum() / lengths.sum()).item(),
    }


def step(run: Run) -> dict[str, float]:
    """One rollout and its optimizer steps; the metrics are named in `record.METRICS`."""
    clock, cpu = time.perf_counter(), time.process_time()
    rollout, problems, rewards, verified, texts = collect(run)
    metrics = rollout_metrics(rollout, rewards, verified, texts)
    if run.pool is not None:  # before any filter: a group that is dropped was answered all the same
        passed = (rewards.view(len(problems), -1) >= 1).sum(1).tolist()
        run.pool.record(problems, passed, rollout.num_generations)
        metrics["pool/size"] = len(run.pool.remaining)
        metrics["pool/retired"] = len(run.pool.retired)
    batch = make_batch(run, rollout, problems, rewards)
    groups = run.keep(batch)
    metrics["groups/kept"] = len(groups) / len(problems)
    if len(groups):
        size = rollout.num_generations
        within = torch.arange(size, device=rewards.device)
        rows = (groups.to(rewards.device)[:, None] * size + within).flatten()
        prepared = prepare(run.objective, batch.rows(rows))
        metrics |= update(run, rollout, prepared, rows)
        if not run.recipe.on_policy:
            gap = prepared.batch.old_logprobs - prepared.batch.sampling_logprobs
            metrics["sampling/logp_difference"] = gap.abs().max().item()
    seen = int(rollout.prompt_mask.sum()) + int(rollout.completion_mask.sum())
    run.num_tokens += seen
    metrics |= {
        "learning_rate": run.optimizer.param_groups[0]["lr"],
        "num_tokens": run.num_tokens,
        "step_time": time.perf_counter() - clock,
        "cpu_time": time.process_time() - cpu,
    }
    return metrics
