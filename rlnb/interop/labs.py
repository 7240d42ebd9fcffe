"""What labs say they ran, as compositions.

    from rlnb.interop.labs import LABS, lab
    lab("DeepSeek-R1").objective

A row stands for a loss that somebody published, by the authors' text or code ("A") or by a
library's code or documentation ("B"). Numbers that were not printed are named in `unknown`; in the
composition the zoo's stand in for them. Filters, reward shaping, schedules and routing replay lie
outside the loss. Read in November 2026.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from rlnb.objective import (
    ANNEX,
    ZOO,
    Objective,
    batch_zscore,
    clip,
    divergence_mask,
    engine_ratio,
    group_center,
    group_zscore,
    k3,
    prompt_mean,
    ratio,
    return_to_go,
    sequence_mean,
    term,
    token,
    token_mean,
    top_entropy,
)
from rlnb.objective.batch import Batch

__all__ = ["LABS", "Lab", "engine_gap_squared", "lab"]


@dataclass(frozen=True)
class Lab:
    """One published loss.

    near: the named method it is told against. updates: optimizer steps per batch of answers, where
    printed. unknown: what was not printed. why_not: the sentence, where no composition says it
    (then `objective` is None). outside: what else the recipe does.
    """

    who: str
    objective: Objective | None
    near: str
    source: str
    letter: Literal["A", "B"]
    updates: int | None = None
    unknown: tuple[str, ...] = ()
    outside: str = ""
    why_not: str = ""


def engine_gap_squared(batch: Batch) -> torch.Tensor:
    """(log pi - log engine)^2 of every token, (B, T): prime-rl's pull towards the sampler."""
    gap = batch.logprobs - batch.required("sampling_logprobs", "engine_gap_squared").detach()
    return gap.square()


_GRPO = ZOO["grpo"].replace(terms=())
_GLM5 = Objective(
    group_zscore(),
    clip(0.2, high=0.28),
    sequence_mean,
    gates=engine_ratio("token", "mask", 0.5, 2.0),
)

LABS: tuple[Lab, ...] = (
    Lab(
        "DeepSeekMath",
        ZOO["grpo"],
        "grpo",
        "arXiv 2402.03300, section 4.2",
        "A",
        updates=1,
        unknown=("band",),
        outside="groups of 64",
    ),
    Lab(
        "DeepSeek-R1",
        ZOO["grpo"].replace(surrogate=clip(10.0), terms=k3(0.001)),
        "grpo",
        "TRL's paper index, quoting arXiv 2501.12948",
        "B",
        updates=16,
        outside="the reference is replaced every 400 steps",
    ),
    Lab(
        "DAPO",
        ZOO["dapo"].replace(weights=prompt_mean()),
        "dapo",
        "arXiv 2503.14476",
        "A",
        updates=16,
        outside="groups of equal rewards are drawn again; a penalty for overlong answers",
    ),
    Lab("GSPO", ZOO["gspo"], "gspo", "arXiv 2507.18071", "A", updates=4),
    Lab(
        "Qwen3-VL",
        ZOO["sapo"],
        "sapo",
        "its report names SAPO and prints no number; SAPO as verl and TRL have it",
        "B",
        unknown=("temperatures of its run",),
    ),
    Lab(
        "MiniMax-M1",
        ZOO["cispo"].replace(weights=prompt_mean()),
        "cispo",
        "arXiv 2506.13585",
        "A",
        updates=16,
        unknown=("cap",),
        outside="DAPO's filter and length penalty; the last layer in float32",
    ),
    Lab(
        "Magistral",
        Objective(batch_zscore("group", of="centred"), clip(0.2, high=0.28), prompt_mean()),
        "dapo",
        "arXiv 2506.10910",
        "A",
        unknown=("lower edge",),
        outside="upper edge 0.26 to 0.28 (Medium), 0.3 (Small); equal groups dropped",
    ),
    Lab(
        "VibeThinker",
        ZOO["mgpo"],
        "mgpo",
        "arXiv 2511.06221",
        "A",
        unknown=("strength of the weight", "band"),
    ),
    Lab(
        "ScaleRL",
        ZOO["scalerl"],
        "scalerl",
        "TRL's ScaleRLTrainer, after arXiv 2510.13786",
        "B",
        outside="equal groups dropped; a prompt at a pass rate of 0.9 retires",
    ),
    Lab(
        "OLMo 3 Think",
        Objective(
            group_center(),
            clip(0.2, high=0.272),
            token_mean,
            gates=engine_ratio("token", "truncate", high=2.0),
        ),
        "dapo",
        "allenai/open-instruct, scripts of December 2025",
        "A",
        updates=1,
        outside="weights renewed while answers are written; equal groups refilled (32B)",
    ),
    Lab(
        "DeepSeek-V3.2",
        ANNEX["deepseek_v3_2"],
        "grpo",
        "TRL's paper index, after arXiv 2512.02556",
        "B",
        unknown=("band", "threshold", "KL coefficient", "with or without std"),
        outside="expert choices and the sampling mask are replayed",
    ),
    Lab("GLM-5 reasoning", _GLM5, "grpo", "GLM-5 report", "A", updates=1, outside="groups of 32"),
    Lab(
        "prime-rl default",
        Objective(
            group_center(),
            ratio(),
            token_mean,
            ratio=token("sampling"),
            gates=divergence_mask(0.2, anchor="sampling"),
            terms=term(1e-3, engine_gap_squared),
        ),
        "dppo",
        "PrimeIntellect-ai/prime-rl at 559b447",
        "A",
        outside="one step asynchronous; tokens with A = 0 dropped",
    ),
    Lab(
        "80/20",
        ZOO["dapo"].replace(gates=top_entropy(0.2)),
        "dapo",
        "the authors' script and code, arXiv 2506.01939",
        "A",
        outside="the authors divide by the kept tokens: about five times the step",
    ),
    Lab(
        "Polaris",
        ZOO["dapo"].replace(surrogate=clip(0.2, high=0.28, dual=3.0)),
        "dapo",
        "the authors' train scripts",
        "A",
        updates=1,
        outside="temperature raised during training",
    ),
    Lab(
        "GLM-5 distillation",
        _GLM5.replace(advantage=return_to_go(gamma=0.0)),
        "GLM-5 reasoning",
        "GLM-5 report",
        "A",
        outside="a token's reward is log teacher - log student; groups of 1",
    ),
    Lab(
        "GLM-5 agentic",
        None,
        "GLM-5 reasoning",
        "GLM-5 report, section 4.1.2",
        "A",
        unknown=("band",),
        why_not="a token counts while its ratio to the engine lies inside a band, whatever the "
        "sign of its advantage: no part here is a band without a sign",
    ),
    Lab(
        "Kimi K2.5",
        None,
        "grpo",
        "Kimi K2.5 report",
        "A",
        unknown=("band", "weight of the square"),
        why_not="a band that is blind to the advantage's sign, as in GLM-5 agentic, beside a "
        "square of the log-ratio",
    ),
    Lab(
        "Kimi k1.5",
        None,
        "grpo",
        "arXiv 2501.12599",
        "A",
        unknown=("temperature",),
        why_not="it squares the log-ratio of a whole answer: a sum inside a square is no sum "
        "over tokens",
    ),
    Lab(
        "Seed-Thinking-v1.5",
        None,
        "ppo",
        "Seed-Thinking-v1.5 report",
        "A",
        unknown=("band", "weight of the likelihood term"),
        why_not="it trains a critic and adds a likelihood term on right answers only: a second "
        "loss beside this one",
    ),
    Lab(
        "Skywork-OR1",
        None,
        "grpo",
        "SkyworkAI/Skywork-OR1, scripts",
        "A",
        updates=1,
        why_not="its entropy coefficient moves by 0.0001 a step towards a target: a loss with a "
        "memory",
    ),
)


def lab(who: str) -> Lab:
    """The row of that name. Raises ValueError with the names there are."""
    for row in LABS:
        if row.who == who:
            return row
    raise ValueError(f"no row {who!r}; there are {', '.join(row.who for row in LABS)}.")
