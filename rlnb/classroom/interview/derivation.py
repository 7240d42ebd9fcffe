"""A derivation from memory, line by line, each line judged by its numbers and its gradient.

    derivation()                       PPO: a field a line; Tab to the next, Enter judges
    derivation("reinforce")            from the slope of log p to a loss with reward-to-go
    derivation("grpo")                 the group's baseline, the two biases, Dr. GRPO
    derivation("dpo")                  from the reward with a KL to DPO's loss
    judge("ratio", "exp(logp - old)")  the same without a screen

A line is a Python expression over tensors, those of the running batch (B, T) or of a few pairs.
Every line is judged alone, with right values for the lines before it. Right means: in every case of
the board value and gradient equal those of `rlnb.objective`, or of autograd, to 1e-10.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

import torch

from rlnb.classroom.figures import Bundle
from rlnb.classroom.interview import desk
from rlnb.classroom.interview.board_text import BoardText, Line, Numbers
from rlnb.classroom.interview.boards import BOARDS, FUNCTIONS
from rlnb.classroom.notebook_display import display, ipywidgets, spoken_line, tone, widget_view

__all__ = ["Board", "Judged", "derivation", "judge", "lines"]

BLANK = "not written yet"


@dataclass(frozen=True)
class Judged:
    """What a line got: right or not, and a sentence."""

    right: bool
    said: str


def _board(name: str, caller: str) -> BoardText:
    if name not in BOARDS:
        raise ValueError(f"{caller}: no board {name!r}; the boards are {', '.join(BOARDS)}.")
    return BOARDS[name]


def lines(board: str = "ppo") -> tuple[Line, ...]:
    """The lines of a board. Raises ValueError for a name that is none."""
    return _board(board, "lines").lines


def judge(name: str, written: str, board: str = "ppo") -> Judged:
    """Judge one line. Raises ValueError for a name that is no line of the board."""
    text = _board(board, "judge")
    by_name = {line.name: line for line in text.lines}
    if name not in by_name:
        raise ValueError(f"judge: no line {name!r}; the lines are {', '.join(by_name)}.")
    line, written = by_name[name], written.strip()
    if not written or written == "...":
        return Judged(False, BLANK)
    cases = text.cases()
    try:
        came = [_value(case, line, written) for case in cases]
    except (ValueError, TypeError, RuntimeError, SyntaxError, IndexError) as error:
        return Judged(False, str(error).splitlines()[0])
    wanted = [case.right[name] for case in cases]
    right = [_same(*each, line) for each in zip(cases, came, wanted, strict=True)]
    if all(right):
        return Judged(True, "right" if line.number else "right, in value and gradient")
    for slip, sentence in line.slips:
        slipped = [_value(case, line, slip) for case in cases]
        if all(_same(*each, line) for each in zip(cases, came, slipped, strict=True)):
            return Judged(False, sentence)
    if any(right):
        return Judged(False, "right for one set of numbers, wrong for another")
    if came[0].shape != wanted[0].shape:
        shapes = tuple(came[0].shape), tuple(wanted[0].shape)
        return Judged(False, f"shape {shapes[0]} came, {shapes[1]} was expected")
    if all(_close(*each) for each in zip(cases, came, wanted, strict=True)):
        return Judged(False, "the value is right, the gradient is not")
    return Judged(False, "another value; try it on one token by hand")


def _value(case: Numbers, line: Line, written: str) -> torch.Tensor:
    tree = ast.parse(written, mode="eval")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if strange := sorted(names - set(line.uses) - {*FUNCTIONS, "mean"}):
        raise ValueError(f"{strange[0]!r} does not stand in this line; hint says what does")
    if any(isinstance(node, (ast.Attribute, ast.Subscript, ast.Lambda)) for node in ast.walk(tree)):
        raise ValueError("write an expression with + - * / ** and the functions named above")
    room = {**FUNCTIONS, **case.given, **case.right}
    came = eval(compile(tree, line.name, "eval"), {"__builtins__": {}}, room)
    if not torch.is_tensor(came):
        raise ValueError("a number came; the line is a tensor")
    return came


def _close(case: Numbers, a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape:
        return False
    if case.on is not None and a.shape == case.on.shape:
        a, b = a[case.on], b[case.on]
    return torch.allclose(a.detach(), b.detach(), rtol=0.0, atol=1e-10, equal_nan=True)


def _same(case: Numbers, came: torch.Tensor, wanted: torch.Tensor, line: Line) -> bool:
    """Equal in value, and in the gradient of a weighted sum; some lines are numbers without one."""
    if not _close(case, came, wanted):
        return False
    if line.number:
        return True
    slopes = zip(_slopes(case, came), _slopes(case, wanted), strict=True)
    return all(_close(case, a, b) for a, b in slopes)


def _slopes(case: Numbers, x: torch.Tensor) -> list[torch.Tensor]:
    if not x.requires_grad:
        return [torch.zeros_like(leaf) for leaf in case.leaves]
    weights = torch.linspace(1.0, 2.0, x.numel(), dtype=x.dtype).reshape(x.shape)
    if case.on is not None and x.dim():
        weights = torch.where(case.on, weights, 0.0)
        x = torch.where(case.on, x, 0.0)
    found = torch.autograd.grad(
        (x * weights).sum(), case.leaves, retain_graph=True, allow_unused=True
    )
    return [
        torch.zeros_like(leaf) if g is None else g
        for g, leaf in zip(found, case.leaves, strict=True)
    ]


class Board:
    """A field for each line. Tab goes to the next one; Enter or Tab judges what was written."""

    def __init__(self, name: str = "ppo") -> None:
        self.name, self.text = name, _board(name, "derivation")
        self.fields = {
            line.name: ipywidgets.Text(
                value="",
                description=line.name,
                continuous_update=False,
                tooltip=line.says,
                style={"description_width": "7em"},
                layout=ipywidgets.Layout(width="40em", max_width="85%"),
            )
            for line in self.text.lines
        }
        self.hints = {
            line.name: desk.button(
                "hint", f"what {line.name} is made of", lambda line=line: self.hint(line.name)
            )
            for line in self.text.lines
        }
        self.said = {line.name: spoken_line(line.says) for line in self.text.lines}
        for field, text in self.fields.items():
            text.observe(lambda change, field=field: self._judge(field, change["new"]), "value")

    @property
    def solved(self) -> tuple[str, ...]:
        """The lines that are right."""
        return tuple(n for n, text in self.fields.items() if judge(n, text.value, self.name).right)

    def hint(self, name: str) -> None:
        """Say what stands in a line, not how."""
        line = next(line for line in self.text.lines if line.name == name)
        self.said[name].value = f"{line.says}: made of {', '.join(line.uses)}"
        tone(self.said[name], "quiet")

    def _judge(self, name: str, written: str) -> None:
        judged = judge(name, written, self.name)
        if judged.said == BLANK:
            line = next(line for line in self.text.lines if line.name == name)
            self.said[name].value = line.says
            tone(self.said[name], "quiet")
            return
        self.said[name].value = f"{name}: {judged.said}"
        tone(self.said[name], "done" if judged.right else "wrong")

    def _ipython_display_(self) -> None:
        rows = [ipywidgets.HTML(f"<p>Given: {self.text.symbols}.</p>")]
        for line in self.text.lines:
            rows += [
                ipywidgets.HBox([self.fields[line.name], self.hints[line.name]]),
                self.said[line.name],
            ]
        data = widget_view(ipywidgets.VBox(rows))
        asked = "\n".join(f"{x.name}: {x.says}" for x in self.text.lines)
        data["text/plain"] = (
            f"[the board: a field a line; run the page to write]\nGiven: {self.text.symbols}.\n"
            f"{asked}"
        )
        display(Bundle(data))


def derivation(board: str = "ppo") -> Board:
    """The empty board: "reinforce", "ppo", "grpo" or "dpo". Raises ValueError for another name."""
    return Board(board)
