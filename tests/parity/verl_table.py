"""verl's recorded numbers beside ours.

`verl_tables()` maps a name to its `Tally`: how many cases, and the worst difference in value and in
gradient. `verl_table()` is the same as text. The recorded cases come from `record_verl.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from named_methods import aligned

from rlnb.interop import from_verl
from rlnb.objective import Batch, Objective, engine_ratio, logprob, value_loss

TOLERANCE = 1e-10
# what no composition says; refusing them is tested, their numbers are kept for the day it can
REFUSED_MODES = ("dro",)
REFUSED_ESTIMATORS = ("grpo_vectorized", "grpo_passk", "opo", "gpg")


@cache
def recorded() -> dict[str, Any]:
    """The file that `record_verl.py` wrote."""
    return json.loads(Path(__file__).with_name("verl_cases.json").read_text(encoding="utf-8"))


@dataclass
class Tally:
    """What a list of cases came to."""

    name: str
    tolerance: float = TOLERANCE
    cases: int = 0
    value: float = 0.0
    gradient: float = 0.0
    failures: list[str] = field(default_factory=list)

    def add(self, case: str, theirs: tuple[Any, Any], mine: tuple[Any, Any]) -> None:
        """Count one case: each side is (loss or losses, gradient or advantages); keep the worst."""
        value, gradient = (_apart(a, b) for a, b in zip(theirs, mine, strict=True))
        self.cases += 1
        self.value, self.gradient = max(self.value, value), max(self.gradient, gradient)
        if not (value <= self.tolerance and gradient <= self.tolerance):  # nan fails too
            self.failures.append(
                f"{case}: verl's loss {theirs[0]}, ours {mine[0]}; the other "
                f"numbers differ by up to {gradient:.3g}"
            )


def _apart(a: Any, b: Any) -> float:
    a, b = (torch.as_tensor(x, dtype=torch.float64) for x in (a, b))
    if a.shape != b.shape:
        raise ValueError(f"verl has {tuple(a.shape)} numbers, ours {tuple(b.shape)}.")
    return float((a - b).abs().max()) if a.numel() else 0.0


def batch_of(name: str, **changes: Any) -> tuple[Batch, torch.Tensor]:
    """A recorded batch and its log-probabilities; every masked entry is nan: it must not matter."""
    raw = recorded()["batches"][name]
    mask = torch.tensor(raw["mask"])

    def hidden(key: str) -> torch.Tensor | None:
        if key not in raw:
            return None
        return torch.where(mask.bool(), torch.tensor(raw[key], dtype=torch.float64), torch.nan)

    logprobs = hidden("log_prob").requires_grad_()
    batch = Batch(
        logprobs,
        mask,
        torch.zeros(len(mask), dtype=torch.float64),
        raw["num_generations"],
        old_logprobs=hidden("old_log_prob"),
        ref_logprobs=hidden("ref_log_prob"),
        sampling_logprobs=hidden("rollout_log_prob"),
        entropies=hidden("entropy"),
        advantages=hidden("advantages"),
    )
    return batch.replace(**changes), logprobs


# ---- losses


def objective_of(case: dict[str, Any]) -> Objective:
    """Ours for verl's words. What from_verl refuses and our parts can say is composed here."""
    words = dict(case["words"])
    level, bound = words.pop("rollout_is", None), words.pop("rollout_is_threshold", None)
    if words["loss_mode"] == "reinforce":  # verl's function of that name is gpg's loss
        words["loss_mode"] = "gpg"
    objective = from_verl(**words).objective
    if level is not None:
        if isinstance(bound, str):  # "lower_upper": outside, the weight is 0
            low, high = (float(x) for x in bound.split("_"))
            gate = engine_ratio(level, "mask", low, high)
        else:
            gate = engine_ratio(level, "truncate", None, bound)
        objective = objective.replace(gates=(*objective.gates, gate))
    if case["denominators"] == "local":
        objective = without_empty_rows(objective, policy=words["loss_mode"] != "geo_mean")
    return objective


def without_empty_rows(objective: Objective, policy: bool = True) -> Objective:
    """Fully masked rows leave the denominators: what verl does when its trainer passes none.

    policy=False: only those of the KL and entropy terms (geo_mean is a plain mean of the rows).
    """

    def local(part: Any) -> Any:
        return replace(part, count_empty=False) if hasattr(part, "count_empty") else part

    terms = tuple(
        replace(t, weights=local(t.weights or objective.weights)) for t in objective.terms
    )
    return objective.replace(
        weights=local(objective.weights) if policy else objective.weights, terms=terms
    )


def compare(tally: Tally, case: dict[str, Any]) -> None:
    """One recorded loss beside ours, in as many micro-batches as verl had."""
    batch, logprobs = batch_of(case["batch"])
    objective = objective_of(case)
    prepared = objective.prepare(batch)
    rows, pieces = len(logprobs), len(case["loss"])
    losses = [
        objective.loss(prepared.rows(range(k * rows // pieces, (k + 1) * rows // pieces)))
        for k in range(pieces)
    ]
    (gradient,) = torch.autograd.grad(sum(losses), logprobs)
    mask = batch.mask
    stray = gradient[~mask]
    if not bool((stray == 0).all()):
        tally.failures.append(f"{say(case)}: a masked token has gradient {stray.abs().max()}.")
    tally.add(
        say(case),
        (case["loss"], case["gradient"]),
        ([float(x.detach()) for x in losses], gradient[mask]),
    )


def say(case: dict[str, Any]) -> str:
    """A case as something that can be typed."""
    words = ", ".join(f"{k}={v!r}" for k, v in case["words"].items())
    return f"from_verl({words}) on {case['batch']!r}, {case['denominators']} denominators"


def kind(case: dict[str, Any]) -> str:
    """The tally a loss case belongs to."""
    words = case["words"]
    for word, name in (
        ("use_kl_loss", "KL loss"),
        ("entropy_coeff", "entropy"),
        ("rollout_is", "engine correction"),
        ("bypass_mode", "engine as anchor"),
    ):
        if word in words:
            return name
    return words["loss_mode"]


def losses() -> Iterator[Tally]:
    """A tally per loss_mode, and for KL, entropy and engine correction."""
    tallies: dict[str, Tally] = {}
    for case in recorded()["losses"]:
        name = kind(case)
        if name not in REFUSED_MODES:
            compare(tallies.setdefault(name, Tally(name)), case)
    yield from tallies.values()


# ---- named methods


def methods() -> Tally:
    """Each method of the zoo and the annex that verl can say, from rewards to gradient."""
    tally = Tally("methods by name")
    for case in recorded()["methods"]:
        compare_method(tally, case, aligned("verl", case["name"]))
    return tally


def compare_method(tally: Tally, case: dict[str, Any], objective: Objective) -> None:
    """One recorded method beside an objective; verl's padded width is the generation limit."""
    batch, logprobs = scored(
        case["batch"],
        case["words"]["adv_estimator"],
        max_completion_length=len(recorded()["batches"]["ragged"]["mask"][0]),
    )
    loss = objective(batch).loss
    (gradient,) = torch.autograd.grad(loss, logprobs)
    tally.add(
        f"{case['name']} on {case['batch']!r}",
        (case["loss"], case["gradient"]),
        (float(loss.detach()), gradient[batch.mask]),
    )


def scored(name: str, estimator: str, **changes: Any) -> tuple[Batch, torch.Tensor]:
    """A recorded batch with its rewards, and what this estimator needs beside them."""
    data = recorded()

    def numbers(values: Any) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float64)

    values = numbers(data["batches"][name]["entropy"]) if estimator == "gae" else None
    greedy = numbers(data["greedy_rewards"]) if estimator == "remax" else None
    return batch_of(
        name,
        advantages=None,
        rewards=numbers(data["rewards"]),
        values=values,
        greedy_rewards=greedy,
        **changes,
    )


# ---- advantages


def advantages() -> Iterator[Tally]:
    """Each estimator, without and with a KL penalty in the reward."""
    data = recorded()
    tallies: dict[str, Tally] = {}
    for case in data["advantages"]:
        words = case["words"]
        name = words["adv_estimator"]
        if name in REFUSED_ESTIMATORS:
            continue
        if name == "remax" and words.get("use_kl_in_reward"):
            continue  # refused: see test_verl.py
        tally = tallies.setdefault(name, Tally(name))
        batch, _ = scored("ragged", name)
        prepared = from_verl(**words).objective.prepare(batch)
        mask = batch.mask
        returns = ([], [])
        if name == "gae":  # the critic's target, computed before whitening
            returns = (case["returns"], prepared.batch.returns[mask])
        tally.add(
            f"from_verl({words})",
            (returns[0], case["advantages"]),
            (returns[1], prepared.advantages[mask]),
        )
    yield from tallies.values()


def critic() -> Tally:
    """verl's value loss beside `value_loss`, clip range 0.5."""
    tally = Tally("value loss")
    for case in recorded()["value_losses"]:
        words = {k: v for k, v in case.items() if k.startswith("loss_")}
        weights = without_empty_rows(from_verl(**words).objective).weights
        batch, logprobs = batch_of("ragged")
        new = batch.entropies.clone().requires_grad_()  # the recorded critic has these numbers
        batch = batch.replace(
            values=new,
            old_values=new.detach() + 0.9 * batch.advantages,
            returns=logprobs.detach() + 2,
            advantages=torch.zeros_like(batch.advantages),
        )
        objective = Objective(
            constant_advantage, logprob(), weights, terms=value_loss(1.0, clip=0.5)
        )
        loss = objective.loss(objective.prepare(batch))
        (gradient,) = torch.autograd.grad(loss, new)
        tally.add(
            str(words),
            (case["loss"], case["gradient"]),
            (float(loss.detach()), gradient[batch.mask]),
        )
    return tally


def constant_advantage(batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
    return token_rewards


# ---- all of it


@cache
def verl_tables() -> dict[str, Tally]:
    """Every tally by name."""
    groups: list[Callable[[], Any]] = [losses, advantages, lambda: [critic(), methods()]]
    tallies = [tally for group in groups for tally in group()]
    return {tally.name: tally for tally in tallies}


def verl_table() -> str:
    """The tallies as text, one line each."""
    lines = [
        f"verl {recorded()['verl']}, recorded; float64",
        f"{'':30s}{'cases':>6}{'worst value':>13}{'worst gradient':>16}",
    ]
    for tally in verl_tables().values():
        red = f"   {len(tally.failures)} DISAGREE" if tally.failures else ""
        lines.append(
            f"{tally.name:30s}{tally.cases:>6}{tally.value:>13.1e}{tally.gradient:>16.1e}{red}"
        )
    total = sum(t.cases for t in verl_tables().values())
    lines.append(f"{'all':30s}{total:>6}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(verl_table())
