"""PPO's objective from memory, line by line, each line judged by its numbers and its gradient.

    derivation()                       a field a line; Tab to the next, Enter judges
    judge("ratio", "exp(logp - old)")  the same without a screen

What a line may use stands beside it. A line is a Python expression over tensors of the running
batch, (B, T) each; every line is judged alone, with right values for the lines before it. Right
means: value and gradient equal those of `rlnb.objective` to 1e-10.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import torch

from rlnb.classroom.figures import Bundle
from rlnb.classroom.notebook_display import display, ipywidgets, spoken_line, tone, widget_view
from rlnb.objective import Objective
from rlnb.objective.advantages import gae
from rlnb.objective.batch import Batch
from rlnb.objective.ratios import token
from rlnb.objective.surrogates import clip
from rlnb.objective.terms import entropy_bonus, value_loss
from rlnb.objective.weights import token_mean
from rlnb.toys import running_batch

__all__ = ["LINES", "Board", "Line", "derivation", "judge"]

EPSILON, GAMMA, LAMBDA, VALUE, ENTROPY = 0.2, 1.0, 0.95, 0.5, 0.01
BLANK = "not written yet"
LEAVES = ("logp", "V", "H")  # what carries a gradient


@dataclass(frozen=True)
class Line:
    """One line: its name, what it is, what it may use, a right one, and slips with a sentence."""

    name: str
    says: str
    uses: tuple[str, ...]
    right: str
    slips: tuple[tuple[str, str], ...] = ()


LINES = (
    Line("delta", "the surprise at each token", ("r", "V", "V_next", "gamma"),
         "r + gamma * V_next - V",
         (("r + V - gamma * V_next", "the two values changed places: what comes minus what was"),
          ("r - V", "the next state's value is missing"))),
    Line("ratio", "new over old probability of a token", ("logp", "old"),
         "exp(logp - old)",
         (("exp(old - logp)", "upside down: the new policy stands above the line"),
          ("logp - old", "that is its logarithm"),
          ("exp(logp) / exp(old) * 0 + 1", "a constant: the new log-probs must carry a gradient"))),
    Line("unclipped", "what importance sampling gives", ("ratio", "A"), "ratio * A",
         (("log(ratio) * A", "the ratio itself weighs the advantage, not its logarithm"),)),
    Line("clipped", "the same with the ratio kept in its band", ("ratio", "A", "eps"),
         "clamp(ratio, 1 - eps, 1 + eps) * A",
         (("clamp(ratio * A, 1 - eps, 1 + eps)", "the ratio is clipped, not its product with A"),
          ("clamp(ratio, 1 - eps, 1 + eps)", "times A is missing"))),
    Line("surrogate", "the pessimist's choice, a token", ("unclipped", "clipped"),
         "minimum(unclipped, clipped)",
         (("maximum(unclipped, clipped)", "that is the optimist: it keeps the dead corners alive"),
          ("clipped", "the clip alone cannot pull back a token that went the wrong way"))),
    Line("policy", "the policy's loss, minimised: one mean over tokens", ("surrogate", "mean"),
         "-mean(surrogate)",
         (("mean(surrogate)", "the sign: an objective is maximised, a loss minimised"),)),
    Line("value", "the critic's loss", ("V", "R", "mean"), "mean((V - R) ** 2) / 2",
         (("mean((V - R) ** 2)", "right but for the one half that cancels the square's two"),
          ("mean(V - R) / 2", "the error is squared"))),
    Line("loss", "the whole", ("policy", "value", "H", "c_v", "c_h", "mean"),
         "policy + c_v * value - c_h * mean(H)",
         (("policy + c_v * value + c_h * mean(H)",
           "the entropy's sign: a bonus is subtracted from a loss"),
          ("policy + c_v * value", "the entropy bonus is missing"))),
)  # fmt: skip
_BY_NAME = MappingProxyType({line.name: line for line in LINES})


def _batch() -> tuple[Batch, torch.Tensor]:
    """The running batch with a critic that says something, and its rewards token by token."""
    batch = running_batch(complete=True)
    mask = batch.mask.to(batch.logprobs.dtype)
    place = torch.arange(mask.shape[1], dtype=mask.dtype)
    values = ((0.3 + 0.1 * place) * mask).requires_grad_()
    last = batch.mask.sum(1) - 1
    rewards = torch.zeros_like(mask)
    rewards[torch.arange(len(mask)), last] = batch.rewards
    entropies = batch.entropies.clone().requires_grad_()
    batch = batch.replace(values=values, old_values=values.detach(), entropies=entropies)
    advantages = gae(GAMMA, LAMBDA)(batch, rewards)
    return batch.replace(returns=(advantages + values).detach()), rewards


@cache
def _room() -> dict[str, Any]:
    """Names for the lines: what is given, and the right value of each line by `rlnb.objective`."""
    batch, rewards = _batch()
    on = batch.mask

    def mean(x: torch.Tensor) -> torch.Tensor:
        return torch.where(on, x, 0.0).sum() / on.sum()

    advantages = gae(GAMMA, LAMBDA)(batch, rewards)
    log_ratio = token()(batch, advantages)
    values = batch.values
    following = torch.where(on[:, 1:], values[:, 1:], 0.0)
    following = torch.cat((following, torch.zeros_like(values[:, :1])), 1)
    given = {
        "logp": batch.logprobs, "old": batch.old_logprobs, "A": advantages, "r": rewards,
        "V": values, "V_next": following.detach(), "R": batch.returns, "H": batch.entropies,
        "eps": EPSILON, "gamma": GAMMA, "c_v": VALUE, "c_h": ENTROPY, "mean": mean,
        "exp": torch.exp, "log": torch.log, "clamp": torch.clamp, "clip": torch.clamp,
        "minimum": torch.minimum, "maximum": torch.maximum, "min": torch.minimum,
        "max": torch.maximum, "where": torch.where, "abs": torch.abs,
    }  # fmt: skip
    ratio = log_ratio.exp()
    method = Objective(gae(GAMMA, LAMBDA), clip(EPSILON), token_mean)
    whole = method.replace(terms=(value_loss(VALUE, clip=None), entropy_bonus(ENTROPY)))
    right = {
        "delta": gae(GAMMA, 0.0)(batch, rewards),
        "ratio": ratio,
        "unclipped": ratio * advantages,
        "clipped": ratio.clamp(1 - EPSILON, 1 + EPSILON) * advantages,
        "surrogate": clip(EPSILON)(batch, advantages, log_ratio),
        "policy": method(batch).loss,
        "value": mean(value_loss(1.0, clip=None)(batch)),
        "loss": whole(batch).loss,
    }
    return {**given, **right, "_mask": on}


@dataclass(frozen=True)
class Judged:
    """What a line got: right or not, and a sentence."""

    right: bool
    said: str


def judge(name: str, written: str) -> Judged:
    """Judge one line. Raises ValueError for a name that is no line of the board."""
    if name not in _BY_NAME:
        raise ValueError(f"judge: no line {name!r}; the lines are {', '.join(_BY_NAME)}.")
    line, written = _BY_NAME[name], written.strip()
    if not written or written == "...":
        return Judged(False, BLANK)
    try:
        came = _value(line, written)
    except (ValueError, TypeError, RuntimeError, SyntaxError) as error:
        return Judged(False, str(error).splitlines()[0])
    wanted = _room()[name]
    if _same(came, wanted, line):
        return Judged(True, "right, in value and gradient")
    for slip, sentence in line.slips:
        if _same(came, _value(line, slip), line):
            return Judged(False, sentence)
    if came.shape != wanted.shape:
        return Judged(False, f"shape {tuple(came.shape)} came, {tuple(wanted.shape)} was expected")
    if _close(came, wanted):
        return Judged(False, "the value is right, the gradient is not")
    return Judged(False, "another value; try it on one token by hand")


def _value(line: Line, written: str) -> torch.Tensor:
    tree = ast.parse(written, mode="eval")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    functions = {k for k, v in _room().items() if callable(v) and not torch.is_tensor(v)}
    if strange := sorted(names - set(line.uses) - functions):
        raise ValueError(f"{strange[0]!r} is not given here; use {', '.join(line.uses)}")
    if any(isinstance(node, (ast.Attribute, ast.Subscript, ast.Lambda)) for node in ast.walk(tree)):
        raise ValueError("write an expression with + - * / ** and the functions named above")
    came = eval(compile(tree, line.name, "eval"), {"__builtins__": {}}, dict(_room()))
    if not torch.is_tensor(came):
        raise ValueError("a number came; the line is a tensor over all tokens")
    return came


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    on = _room()["_mask"]
    if a.shape != b.shape:
        return False
    if a.dim():
        a, b = a[on], b[on]
    return torch.allclose(a.detach(), b.detach(), rtol=0.0, atol=1e-10)


def _same(came: torch.Tensor, wanted: torch.Tensor, line: Line) -> bool:
    """Equal in value, and in the gradient of a weighted sum; delta is a number without one."""
    if not _close(came, wanted):
        return False
    if line.name == "delta":
        return True
    return all(_close(a, b) for a, b in zip(_slopes(came), _slopes(wanted), strict=True))


def _slopes(x: torch.Tensor) -> list[torch.Tensor]:
    room = _room()
    weights = torch.linspace(1.0, 2.0, x.numel(), dtype=x.dtype).reshape(x.shape)
    leaves = [room[name] for name in LEAVES]
    if not x.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    on = torch.where(room["_mask"], weights, 0.0) if x.dim() else weights
    found = torch.autograd.grad(
        (torch.where(on > 0, x, 0.0) * on).sum(), leaves, retain_graph=True, allow_unused=True
    )
    return [
        torch.zeros_like(leaf) if g is None else g for g, leaf in zip(found, leaves, strict=True)
    ]


class Board:
    """A field for each line. Tab goes to the next one; Enter or Tab judges what was written."""

    def __init__(self) -> None:
        self.fields = {
            line.name: ipywidgets.Text(
                value="",
                description=line.name,
                placeholder=", ".join(line.uses),
                continuous_update=False,
                tooltip=line.says,
                style={"description_width": "7em"},
                layout=ipywidgets.Layout(width="42em", max_width="98%"),
            )
            for line in LINES
        }
        self.said = {line.name: spoken_line(line.says) for line in LINES}
        for name, text in self.fields.items():
            text.observe(lambda change, name=name: self._judge(name, change["new"]), "value")

    @property
    def solved(self) -> tuple[str, ...]:
        """The lines that are right."""
        return tuple(name for name, text in self.fields.items() if judge(name, text.value).right)

    def _judge(self, name: str, written: str) -> None:
        judged = judge(name, written)
        if judged.said == BLANK:
            self.said[name].value = _BY_NAME[name].says
            tone(self.said[name], "quiet")
            return
        self.said[name].value = f"{name}: {judged.said}"
        tone(self.said[name], "done" if judged.right else "wrong")

    def _ipython_display_(self) -> None:
        rows = []
        for line in LINES:
            rows += [self.fields[line.name], self.said[line.name]]
        data = widget_view(ipywidgets.VBox(rows))
        lines = "\n".join(f"{x.name}: {x.says}; from {', '.join(x.uses)}" for x in LINES)
        data["text/plain"] = f"[the board: a field a line; run the page to write]\n{lines}"
        display(Bundle(data))


def derivation() -> Board:
    """The empty board."""
    return Board()
