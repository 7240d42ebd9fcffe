"""What a model can do on held-out problems: pass@k, greedy, forced styles, length, entropy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rlnb.training.errors import BadInput
from rlnb.training.models.loading import check_vocabulary
from rlnb.training.sampling.graph_decoder import sampler_for
from rlnb.training.sampling.prompts import encode_prompts, end_ids
from rlnb.training.sampling.sampler import Sampling
from rlnb.training.tasks import Problem, Task, held_out

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["Answers", "answer", "evaluate", "pass_at_k", "pass_rate", "summary"]


def pass_at_k(n: int, correct: int, k: int) -> float:
    """The unbiased estimate of the chance that k draws contain a correct one, from n draws.

    pass@k = 1 - C(n - correct, k) / C(n, k)   (Chen et al. 2021, arXiv 2107.03374, eq. 1).
    Raises BadInput unless 1 <= k <= n and 0 <= correct <= n.

    >>> pass_at_k(4, 2, 1), round(pass_at_k(4, 2, 2), 4)
    (0.5, 0.8333)
    """
    if not (1 <= k <= n and 0 <= correct <= n):
        raise BadInput(f"pass@k: got n={n}, correct={correct}, k={k}; expected 1 <= k <= n")
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


@dataclass(frozen=True)
class Answers:
    """Sampled answers: problems, texts of problems x G rows, and per row, each (problems, G):

    right (1.0 or 0.0), finished, length in tokens, and the summed entropy of its tokens in nats.
    """

    problems: list[Problem]
    texts: list[str]
    right: Tensor
    finished: Tensor
    length: Tensor
    entropy: Tensor


def answer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    task: Task,
    problems: list[Problem],
    num_generations: int,
    sampling: Sampling,
    *,
    generator: torch.Generator | None = None,
    openings: list[str] | None = None,
    rows_in_flight: int = 1024,
) -> Answers:
    """Samples and verifies. `openings[i]` is put behind prompt i and counts as part of the answer.

    A truncated answer is wrong.
    """
    openings, texts, columns = openings or [""] * len(problems), [], []
    ids = encode_prompts(tokenizer, [p.prompt for p in problems], openings=openings, task=task)
    chunk = max(1, rows_in_flight // num_generations)
    for start in range(0, len(problems), chunk):
        rollout = sampler_for(model.device)(
            model,
            ids[start : start + chunk],
            num_generations,
            sampling,
            eos_id=end_ids(model, tokenizer),
            pad_id=tokenizer.pad_token_id,
            generator=generator,
        )
        texts += [
            openings[start + i // num_generations] + text
            for i, text in enumerate(rollout.texts(tokenizer))
        ]
        columns.append((rollout.finished, rollout.lengths, rollout.entropies.sum(1)))
    finished, length, entropy = (
        torch.cat(column).cpu().view(len(problems), num_generations)
        for column in zip(*columns, strict=True)
    )
    right = [task.verify(problems[i // num_generations], text) for i, text in enumerate(texts)]
    right = torch.tensor(right).view(len(problems), num_generations) * finished
    return Answers(problems, texts, right, finished, length, entropy)


def pass_rate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    task: Task,
    *,
    prompts: int = 250,
    num_generations: int = 4,
    sampling: Sampling = Sampling(),  # noqa: B008  (frozen)
    style: str | None = None,
    seed: int = 99,
) -> Answers:
    """Answers to the first held-out problems under a fixed seed; pass@1 is `.right.mean()`.

    style: one of the task's openings, forced on every answer.
    """
    problems = held_out(task, prompts)
    openings = None
    if style is not None:
        openings = [task.openings(problem)[style] for problem in problems]
    return answer(
        model,
        tokenizer,
        task,
        problems,
        num_generations,
        sampling,
        generator=torch.Generator(model.device).manual_seed(seed),
        openings=openings,
    )


def summary(task: Task, answers: Answers) -> dict[str, float]:
    """pass@k without bias for k = 1, 2, 4, ... up to the number of answers to a prompt; mean
    length, entropy in nats per token, truncated share, share of direct answers, `wait` per answer;
    for a task with a `difficulty(problem)`, pass@1 of each difficulty as well.
    """
    each = answers.right.shape[1]
    openings = [task.openings(problem).get("direct") for problem in answers.problems]
    direct = [
        bool(openings[i // each]) and text.startswith(openings[i // each])
        for i, text in enumerate(answers.texts)
    ]
    rates: dict[str, list[float]] = {}
    if hasattr(task, "difficulty"):
        for problem, rate in zip(answers.problems, answers.right.mean(1).tolist(), strict=True):
            rates.setdefault(f"pass@1/{task.difficulty(problem)}", []).append(rate)
    counts, several = answers.right.sum(1).int().tolist(), {}
    k = 2
    while k <= each:
        estimates = [pass_at_k(each, correct, k) for correct in counts]
        several[f"pass@{k}"] = sum(estimates) / len(estimates)
        k *= 2
    return {
        "pass@1": answers.right.mean().item(),
        **several,
        "mean_length": answers.length.float().mean().item(),
        "entropy": (answers.entropy.sum() / answers.length.sum()).item(),
        "clipped_ratio": 1.0 - answers.finished.float().mean().item(),
        "direct": sum(direct) / len(direct),
        "mean_wait": sum(text.count("wait") for text in answers.texts) / len(answers.texts),
        "samples": answers.right.numel(),
    } | {name: sum(rates[name]) / len(rates[name]) for name in sorted(rates)}


def evaluate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    task: Task,
    *,
    prompts: int = 250,
    num_generations: int = 8,
    max_new_tokens: int = 72,
    seed: int = 99,
) -> dict[str, float]:
    """The whole report: `summary` at T=1, greedy, and forced styles.

    The forced styles are the control for "it learned to reason": a base model that solves the task
    once its first step is written for it had the skill, and training elicits it.
    """
    check_vocabulary(tokenizer, task)
    warm = Sampling(max_new_tokens=max_new_tokens)
    cold = Sampling(temperature=0.0, max_new_tokens=max_new_tokens)

    def rate(n: int, sampling: Sampling, style: str | None = None) -> Answers:
        return pass_rate(
            model, tokenizer, task, prompts=prompts, num_generations=n, sampling=sampling,
            style=style, seed=seed,
        )  # fmt: skip

    answers = rate(num_generations, warm)
    report = summary(task, answers)
    report["greedy"] = rate(1, cold).right.mean().item()
    for style in task.openings(held_out(task, 1)[0]):
        report[f"forced/{style}"] = rate(num_generations, warm, style).right.mean().item()
        report[f"forced/{style}/greedy"] = rate(1, cold, style).right.mean().item()
    return report
