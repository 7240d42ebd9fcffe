"""The small model at a desk: reinforcement learning over turns, with what goes wrong, recorded.

    python -m rlnb.training.studies.agents data/runs              records what is missing there
    python -m rlnb.training.studies.agents data/runs --arms leak --seeds 0

starts from the shipped model, shows it 100 or 400 batches of demonstrations of calling (`warm`; the
desk's own tokens are no labels), and trains it on `tasks.desk` with Dr. GRPO, one arm after
another. Every arm and seed is a line of agents.jsonl: the recipe, the mean reward of every step,
and evaluations on held-out problems at a desk that is cleared. `records` reads them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rlnb.objective import ZOO, Batch
from rlnb.shipped import data_folder
from rlnb.training.metrics_file import environment
from rlnb.training.models.base_training import IGNORED
from rlnb.training.models.loading import load
from rlnb.training.sampling.prompts import encode_prompts
from rlnb.training.sampling.sampler import Sampling
from rlnb.training.sampling.scoring import token_logprobs
from rlnb.training.sampling.turns import Dialogue, World, sample_turns
from rlnb.training.tasks.desk import CALL, CHAIN, Desk, demo
from rlnb.training.tasks.task import Problem, held_out

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["ARMS", "Arm", "evaluate", "main", "own_texts", "records", "roll", "train_arm", "warm"]


@dataclass(frozen=True)
class Arm:
    """How one run differs. masked: the desk's tokens stay out of the loss. clears: the desk's
    memory is emptied before a trajectory; else it holds the answer, for the one who made the
    problems has calculated it there. notes: the share of trajectories whose desk writes `so` and a
    digit behind every result. warm_steps: supervised steps before. shown: the chance of such a
    note in their demonstrations, which go on as if it were not there. coin: the reward is a coin.
    All problems are new ones.
    """

    masked: bool = True
    warm_steps: int = 100
    shown: float = 0.0
    clears: bool = True
    notes: float = 0.0
    coin: bool = False
    busy: float = 0.3
    steps: int = 40
    prompts: int = 8
    num_generations: int = 8
    learning_rate: float = 3e-4
    max_new_tokens: int = 48
    eval_every: int = 10
    eval_prompts: int = 100
    eval_generations: int = 4


ARMS: dict[str, Arm] = {
    "masked": Arm(),
    "unmasked": Arm(masked=False),
    "leak": Arm(clears=False),
    "notes": Arm(notes=0.5),
    "notes, 400": Arm(notes=0.5, warm_steps=400),
    "shown, 400": Arm(shown=0.5, warm_steps=400),
    "both, 400": Arm(notes=0.5, shown=0.5, warm_steps=400),
    "coin": Arm(coin=True, steps=20),
}
SEEDS = (0, 1, 2)


def warm(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, steps: int = 100,
    batch: int = 64, learning_rate: float = 1e-3, seed: int = 0, notes: float = 0.0,
) -> PreTrainedModel:  # fmt: skip
    """Supervised steps on demonstrations of calling, in place. Labels: the policy's tokens only."""
    rng = random.Random(seed)
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate, (0.9, 0.98))
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * min(1.0, (step + 1) / 20) * (1 - 0.9 * step / steps)
        rows = [_labelled(tokenizer, rng, notes) for _ in range(batch)]
        width = max(len(ids) for ids, _ in rows)
        ids = torch.full((batch, width), tokenizer.pad_token_id)
        labels = torch.full((batch, width), IGNORED)
        for i, (row, wanted) in enumerate(rows):
            ids[i, : len(row)], labels[i, : len(row)] = torch.tensor(row), torch.tensor(wanted)
        logits = model(ids[:, :-1], use_cache=False).logits.flatten(0, 1)
        loss = F.cross_entropy(logits, labels[:, 1:].flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def _labelled(
    tokenizer: PreTrainedTokenizerBase, rng: random.Random, notes: float
) -> tuple[list[int], list[int]]:
    problem = CHAIN.problem(rng, "train")
    ids = list(encode_prompts(tokenizer, [problem.prompt])[0])
    labels = [IGNORED] * len(ids)
    for author, text in demo(rng, problem, notes=notes):
        part = tokenizer(text, add_special_tokens=False)["input_ids"]
        ids += part
        labels += part if author == "policy" else [IGNORED] * len(part)
    return [*ids, tokenizer.eos_token_id], [*labels, tokenizer.eos_token_id]


def _world(tokenizer: PreTrainedTokenizerBase, desk: Desk) -> World:
    desk.reset()

    def answer(said: list[int]) -> list[int]:
        ids: list[int] = tokenizer(desk.reply(tokenizer.decode(said)), add_special_tokens=False)[
            "input_ids"
        ]
        return ids

    return answer


def roll(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, problems: Sequence[Problem],
    desks: Sequence[Desk], max_new_tokens: int, generator: torch.Generator,
) -> Dialogue:  # fmt: skip
    """Trajectories of every problem, as many as there are desks to it; each desk is reset."""
    return sample_turns(
        model, encode_prompts(tokenizer, [p.prompt for p in problems]),
        len(desks) // len(problems), Sampling(max_new_tokens=max_new_tokens),
        [_world(tokenizer, desk) for desk in desks], eos_id=tokenizer.eos_token_id,
        call_id=tokenizer.convert_tokens_to_ids(CALL), pad_id=tokenizer.pad_token_id,
        generator=generator,
    )  # fmt: skip


def own_texts(tokenizer: PreTrainedTokenizerBase, dialogue: Dialogue) -> list[str]:
    """What the policy wrote of each trajectory; a grader must not read what the desk wrote."""
    rows = zip(dialogue.rollout.completion_ids.tolist(), dialogue.own.tolist(), strict=True)
    return [
        tokenizer.decode([t for t, own in zip(ids, mine, strict=True) if own],
                         skip_special_tokens=True)
        for ids, mine in rows
    ]  # fmt: skip


def _graded(problems: Sequence[Problem], texts: Sequence[str], finished: Tensor) -> Tensor:
    size = len(texts) // len(problems)
    asked = [p for p in problems for _ in range(size)]
    right = [CHAIN.verify(p, text) for p, text in zip(asked, texts, strict=True)]
    return torch.tensor(right) * finished


@torch.no_grad()
def evaluate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, arm: Arm, *, notes: bool = False
) -> dict[str, float]:
    """On held-out problems, at desks that are cleared.

    pass@1; turns; cut: the share that ran out of tokens; wait and digit: mean log-probability under
    the policy of the desk's `wait` and of its digits; recalls: the share of trajectories that asked
    for the memory. notes: every desk writes notes; stopped is the share that then ended without an
    answer of its own.
    """
    problems, size = held_out(CHAIN, arm.eval_prompts), arm.eval_generations
    desks = [
        Desk(arm.busy, note=f"so{i % 10}" if notes else "", rng=random.Random(i))
        for i in range(len(problems) * size)
    ]
    dialogue = roll(model, tokenizer, problems, desks, arm.max_new_tokens,
                    torch.Generator().manual_seed(99))  # fmt: skip
    rollout, texts = dialogue.rollout, own_texts(tokenizer, dialogue)
    logp, _ = token_logprobs(model, rollout, temperature=1.0)
    theirs = rollout.completion_mask & ~dialogue.own
    wait = rollout.completion_ids == tokenizer.convert_tokens_to_ids("wait")
    zero, nine = (tokenizer.convert_tokens_to_ids(d) for d in "09")
    digit = (rollout.completion_ids >= zero) & (rollout.completion_ids <= nine)
    silent = torch.tensor(["so" not in text for text in texts]) & rollout.finished
    found = {
        "pass@1": _graded(problems, texts, rollout.finished).mean().item(),
        "turns": dialogue.turns.float().mean().item(),
        "cut": 1 - rollout.finished.float().mean().item(),
        "wait": logp[theirs & wait].mean().item(),
        "digit": logp[theirs & digit].mean().item(),
        "recalls": sum("x=" in text for text in texts) / len(texts),
        "stopped": silent.float().mean().item(),
    }
    return {name: round(value, 4) for name, value in found.items()}


def train_arm(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, arm: Arm, seed: int
) -> dict[str, Any]:
    """One run, in place: {"reward": a number a step, "evals": [{"step", ...}], "noted_before" and
    "noted": {...}, "waits": see `_waits`, over all training trajectories}.
    """
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), arm.learning_rate, (0.9, 0.95), weight_decay=0.0
    )
    rewards, evals, seen = [], [], []
    noted_before = evaluate(model, tokenizer, arm, notes=True)
    for step in range(arm.steps + 1):
        if step % arm.eval_every == 0:
            evals.append({"step": step, **evaluate(model, tokenizer, arm)})
        if step == arm.steps:
            break
        problems = [CHAIN.problem(rng, "train") for _ in range(arm.prompts)]
        desks = []
        for problem in problems:
            for _ in range(arm.num_generations):
                note = f"so{rng.randint(0, 9)}" if rng.random() < arm.notes else ""
                dice = random.Random(rng.random())
                desks.append(Desk(arm.busy, note, arm.clears, dice, memory=problem.answer))
        dialogue = roll(model, tokenizer, problems, desks, arm.max_new_tokens, generator)
        rollout = dialogue.rollout
        reward = _graded(problems, own_texts(tokenizer, dialogue), rollout.finished)
        rewards.append(round(reward.mean().item(), 4))
        if arm.coin:
            reward = torch.randint(0, 2, reward.shape, generator=generator).float()
        groups = reward.view(-1, arm.num_generations)
        advantage = (groups - groups.mean(1, keepdim=True)).flatten()
        seen.append(torch.stack([_count_waits(tokenizer, dialogue), reward, advantage]))
        logp, _ = token_logprobs(model, rollout, temperature=1.0)
        mask = dialogue.own if arm.masked else rollout.completion_mask
        batch = Batch(logp, mask, reward, arm.num_generations,
                      max_completion_length=arm.max_new_tokens)  # fmt: skip
        optimizer.zero_grad()
        ZOO["dr_grpo"](batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return {
        "reward": rewards, "evals": evals, "noted_before": noted_before,
        "noted": evaluate(model, tokenizer, arm, notes=True), "waits": _waits(torch.cat(seen, 1)),
    }  # fmt: skip


def _count_waits(tokenizer: PreTrainedTokenizerBase, dialogue: Dialogue) -> Tensor:
    wait = dialogue.rollout.completion_ids == tokenizer.convert_tokens_to_ids("wait")
    theirs = dialogue.rollout.completion_mask & ~dialogue.own
    return (wait & theirs).sum(1).float()


def _waits(seen: Tensor) -> dict[str, Any]:
    """What `wait` goes with. seen (3, N): waits in a trajectory, its reward, its advantage.

    by_count: for 0, 1, 2 and 3 or more waits, how many trajectories and the share rewarded, None
    where there is no trajectory.
    advantage: the mean over all `wait` tokens of their trajectory's advantage.
    """
    n, reward, advantage = seen
    rows = [reward[n.clamp(max=3) == k] for k in range(4)]
    return {
        "by_count": [[len(r), round(r.mean().item(), 4) if len(r) else None] for r in rows],
        "advantage": round(((n * advantage).sum() / n.sum()).item(), 4),
    }


def records(path: str | Path | None = None) -> dict[str, dict[int, dict[str, Any]]]:
    """{arm: {seed: record}} of a file that this module wrote; the shipped one by default."""
    path = data_folder() / "runs" / "agents.jsonl" if path is None else Path(path)
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "arm" in record:
            found.setdefault(record["arm"], {})[record["seed"]] = record
    return found


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.training.studies.agents", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("folder", type=Path, help="where agents.jsonl is, or will be")
    parser.add_argument("--arms", nargs="*", choices=list(ARMS), default=list(ARMS))
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS))
    args = parser.parse_args(arguments)
    path = args.folder / "agents.jsonl"
    base, tokenizer = load(data_folder() / "model", device="cpu")
    if not path.exists():
        head = {"record": "header", "model": "data/model, then supervised steps", "task": "desk"}
        path.write_text(json.dumps(head | environment(base.device)) + "\n", encoding="utf-8")
    for name in args.arms:
        arm = ARMS[name]
        start = warm(deepcopy(base), tokenizer, steps=arm.warm_steps, notes=arm.shown)
        for seed in args.seeds:
            if seed in records(path).get(name, {}):
                continue
            made = train_arm(deepcopy(start), tokenizer, arm, seed)
            line = {"arm": name, "seed": seed, "recipe": asdict(arm), **made}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n")
            print(name, seed, made["evals"][-1], made["noted"], flush=True)
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
