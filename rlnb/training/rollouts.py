"""One rollout: drawing it, verifying it, and all that the objective needs to be told about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlnb.objective import Batch, Objective, Part
from rlnb.training.evaluation import answer
from rlnb.training.recipe import Recipe
from rlnb.training.rewards import mixed_groups
from rlnb.training.run import PER_CANDIDATE, Run
from rlnb.training.sampling.prompts import encode_prompts, end_ids
from rlnb.training.sampling.sampler import Rollout, Sampling
from rlnb.training.sampling.scoring import (
    candidate_logprobs,
    likeliest,
    refuse_mismatch,
    token_logprobs,
)
from rlnb.training.tasks import Problem

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = [
    "CANDIDATES",
    "Drawn",
    "collect",
    "join",
    "make_batch",
    "refill",
    "rollout_metrics",
    "rows_of",
]

LOGPROBS = {"old_logprobs", "ref_logprobs", "sampling_logprobs", "old_topk_logprobs"}
CANDIDATES = 3  # K of SimKO; a vocabulary of thousands takes more, TRL's DPPO had 20


class Drawn(NamedTuple):
    """A rollout that was verified: its problems, and per answer its rewards, the task's verdicts
    (each (N,)) and its text.

    A truncated answer has reward 0; `verified` is what the task says of its text all the same.
    """

    rollout: Rollout
    problems: list[Problem]
    rewards: Tensor
    verified: Tensor
    texts: list[str]

    def groups(self, indices: Tensor) -> Drawn:
        """The answers to some of the prompts only."""
        size = self.rollout.num_generations
        rows = rows_of(indices, size)
        taken = {
            name: value[rows.to(value.device)]
            for name, value in vars(self.rollout).items() if torch.is_tensor(value)
        }  # fmt: skip
        return Drawn(
            replace(self.rollout, **taken),
            [self.problems[i] for i in indices.tolist()],
            self.rewards[rows.to(self.rewards.device)],
            self.verified[rows.to(self.verified.device)],
            [self.texts[i] for i in rows.tolist()],
        )


def rows_of(groups: Tensor, size: int) -> Tensor:
    """Rows kG ... kG+G-1 of each group k, for G = size."""
    return (groups[:, None] * size + torch.arange(size, device=groups.device)).flatten()


def join(parts: list[Drawn], pad_id: int) -> Drawn:
    """Several as one, prompts padded in front and completions behind."""
    if len(parts) == 1:
        return parts[0]
    rollouts = [part.rollout for part in parts]
    before, behind = (
        max(getattr(rollout, name).shape[1] for rollout in rollouts)
        for name in ("prompt_ids", "completion_ids")
    )
    columns: dict[str, Any] = {}
    for name, value in vars(rollouts[0]).items():
        if not torch.is_tensor(value):
            continue
        found, fill = [getattr(r, name) for r in rollouts], pad_id if name.endswith("_ids") else 0
        if name.startswith("prompt"):
            found = [pad(x, (before - x.shape[1], 0), value=fill) for x in found]
        elif value.dim() > 1:
            rest = (0, 0) * (value.dim() - 2)
            found = [pad(x, (*rest, 0, behind - x.shape[1]), value=fill) for x in found]
        columns[name] = torch.cat(found)
    return Drawn(
        replace(rollouts[0], **columns),
        [problem for part in parts for problem in part.problems],
        torch.cat([part.rewards for part in parts]),
        torch.cat([part.verified for part in parts]),
        [text for part in parts for text in part.texts],
    )


def collect(run: Run) -> Drawn:
    """All that is sampled for one step: one round, and further ones as `max_resample` allows."""
    recipe, rounds, mixed = run.recipe, [_round(run)], 0
    for _ in range(recipe.max_resample):
        mixed += len(mixed_groups(rounds[-1].rewards, recipe.num_generations))
        if mixed >= recipe.prompts:
            break
        rounds.append(_round(run))
    return join(rounds, run.tokenizer.pad_token_id)


def refill(run: Run, drawn: Drawn) -> Drawn:
    """The first `prompts` groups whose rewards differ, where `max_resample` asks for that."""
    recipe = run.recipe
    if not recipe.max_resample:
        return drawn
    return drawn.groups(mixed_groups(drawn.rewards, recipe.num_generations)[: recipe.prompts])


def _round(run: Run) -> Drawn:
    """`prompts` prompts, their answers, and what these are worth."""
    recipe = run.recipe
    if run.pool is None:
        problems = [run.task.problem(run.rng, "train") for _ in range(recipe.prompts)]
    else:
        problems = run.pool.draw(run.rng, recipe.prompts)
    rollout = run.sampler(
        run.sampling_model(),
        encode_prompts(run.tokenizer, [p.prompt for p in problems], task=run.task),
        recipe.num_generations,
        recipe.sampling,
        eos_id=end_ids(run.model, run.tokenizer),
        pad_id=run.tokenizer.pad_token_id,
        generator=run.generator,
    )
    refuse_mismatch(rollout.sampling, recipe.temperature)
    if run.objective.needs & (PER_CANDIDATE | {"sampled_rank"}):
        parts = [
            likeliest(run.behaviour, rollout, CANDIDATES, temperature=recipe.temperature, rows=r)
            for r in _micro_batches(rollout, recipe)
        ]
        rollout = replace(rollout, candidate_ids=_in_order(rollout, parts))
    texts = rollout.texts(run.tokenizer)
    asked = [problems[i // recipe.num_generations] for i in range(len(texts))]
    device, done = rollout.logprobs.device, rollout.finished
    verified = torch.tensor([run.task.verify(*pair) for pair in zip(asked, texts, strict=True)])
    rewards = verified
    if run.reward != run.task.verify:  # or the verifier would run twice
        rewards = torch.tensor(
            [float(run.reward(*pair)) for pair in zip(asked, texts, strict=True)]
        )
    return Drawn(rollout, problems, rewards.to(device) * done, verified.to(device), texts)


@torch.no_grad()
def make_batch(run: Run, rollout: Rollout, problems: list[Problem], rewards: Tensor) -> Batch:
    """Everything the objective needs, computed once per rollout with the weights that sampled."""
    recipe, needs = run.recipe, run.objective.needs
    extra: dict[str, Any] = {}
    # On-policy the old log-probabilities are the fresh ones, detached: `old_logprobs` is None.
    trainers = not recipe.on_policy or (run.engine is not None and early(run.objective))
    if trainers or needs & {"old_logprobs", "entropies"}:
        extra["old_logprobs"], entropies = _score(run, run.behaviour, rollout)
        if "entropies" in needs:
            extra["entropies"] = entropies
    if "ref_logprobs" in needs:
        with run.referring() as reference:
            extra["ref_logprobs"] = _score(run, reference, rollout)[0]
    if run.critic is not None:
        with run.precision():
            parts = [run.critic.values(rollout, r) for r in _micro_batches(rollout, recipe)]
        extra["values"] = _in_order(rollout, parts)
    if needs & PER_CANDIDATE:
        with run.precision():
            parts = [
                candidate_logprobs(run.behaviour, rollout, temperature=recipe.temperature, rows=r)
                for r in _micro_batches(rollout, recipe)
            ]
        # The trainer's: a rollout engine reports the sampled token only.
        extra["topk_logprobs"] = extra["old_topk_logprobs"] = _in_order(rollout, parts)
    if "sampled_rank" in needs:
        same = rollout.candidate_ids == rollout.completion_ids[..., None]
        extra["sampled_rank"] = torch.where(same.any(-1), same.int().argmax(-1), CANDIDATES)
    if "greedy_rewards" in needs:
        greedy = answer(
            run.behaviour, run.tokenizer, run.task, problems, 1,
            Sampling(temperature=0.0, max_new_tokens=recipe.max_completion_length),
        )  # fmt: skip
        scores = greedy.right[:, 0]
        if run.reward != run.task.verify:
            given = [run.reward(p, text) for p, text in zip(problems, greedy.texts, strict=True)]
            scores = torch.tensor(given) * greedy.finished[:, 0]
        scores = scores.to(rewards)
        extra["greedy_rewards"] = scores.repeat_interleave(recipe.num_generations)
    mask = rollout.completion_mask
    if recipe.mask_truncated_completions:
        mask = mask & rollout.finished[:, None]
    return Batch(
        logprobs=extra.get("old_logprobs", rollout.logprobs),
        completion_mask=mask,
        rewards=rewards.to(rollout.logprobs.dtype),
        num_generations=recipe.num_generations,
        sampling_logprobs=rollout.logprobs,
        max_completion_length=recipe.max_completion_length,
        generator=run.generator,
        **extra,
    )


def early(objective: Objective) -> bool:
    """Whether advantages may depend on the log-probabilities of this rollout.

    They then must be the trainer's, not those of a sampler of lower precision. A part that says
    what it needs is taken at its word; a callable from elsewhere may look at anything.
    """
    parts = (objective.advantage, *objective.shape, *objective.credit)
    known = all(isinstance(part, Part) for part in parts)
    return not known or any(name in LOGPROBS for part in parts for name in part.needs)


def _score(run: Run, model: PreTrainedModel, rollout: Rollout) -> tuple[Tensor, Tensor]:
    with run.precision():
        parts = [
            token_logprobs(model, rollout, temperature=run.recipe.temperature, rows=r)
            for r in _micro_batches(rollout, run.recipe)
        ]
    logprobs, entropies = zip(*parts, strict=True)
    return _in_order(rollout, logprobs), _in_order(rollout, entropies)


def _micro_batches(rollout: Rollout, recipe: Recipe) -> tuple[Tensor, ...]:
    """Rows of similar length, as the update has them: little of a forward pass is padding."""
    return rollout.lengths.argsort(stable=True).split(recipe.micro_batch)


def _in_order(rollout: Rollout, parts: Sequence[Tensor]) -> Tensor:
    """What was computed for `_micro_batches`, row by row of the rollout again."""
    return torch.cat(list(parts))[rollout.lengths.argsort(stable=True).argsort()]


def rollout_metrics(
    rollout: Rollout, rewards: Tensor, verified: Tensor, texts: list[str]
) -> dict[str, float]:
    """What the rollout says before any update; names as in `metrics_file.METRICS`.

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
