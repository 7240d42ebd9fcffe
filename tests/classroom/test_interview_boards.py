"""Page 20's derivation boards and whiteboard, without a browser."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import pytest
import torch

from rlnb.classroom import check, progress
from rlnb.classroom.interview import derivation as board_room
from rlnb.classroom.interview import whiteboard
from rlnb.classroom.interview.boards import BOARDS
from rlnb.classroom.interview.derivation import derivation, judge, lines

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture
def learner(tmp_path, monkeypatch):
    """A learner's own file, empty."""
    monkeypatch.setenv("RLNB_PROGRESS", str(tmp_path / "progress.json"))


@pytest.fixture
def reader(monkeypatch):
    monkeypatch.setenv("RLNB_PROGRESS", "off")


class Clock:
    """Time that a test moves."""

    now = 0.0

    def __call__(self):
        return self.now


# --- the derivation boards

EVERY = [(board, line) for board in BOARDS for line in lines(board)]


@pytest.mark.parametrize(("board", "line"), EVERY, ids=lambda x: getattr(x, "name", x))
def test_each_line_of_a_board_knows_right_from_its_slips(board, line):
    assert judge(line.name, line.right, board).right
    for slip, sentence in line.slips:
        judged = judge(line.name, slip, board)
        assert not judged.right and judged.said == sentence, slip


@pytest.mark.parametrize("board", BOARDS)
def test_every_line_feeds_a_later_one(board):
    asked = lines(board)
    names = [line.name for line in asked]
    for place, line in enumerate(asked[:-1]):
        later = {name for other in asked[place + 1 :] for name in other.uses}
        # results in themselves; "solved" is the reward, which the margin compares for two answers
        results = {"slope", "bias", "best", "solved", "grpo", "by_std", "by_length"}
        assert line.name in later or line.name in results, line.name
        assert not set(line.uses) & set(names[place:]), "nothing that comes later is used"


@pytest.mark.parametrize(
    ("name", "written", "said"),
    [
        ("ratio", "", "not written"),
        ("ratio", "exp(logp", "never closed"),
        ("ratio", "exp(logp - ref)", "'ref' does not stand in this line"),
        ("ratio", "logp.exp()", "write an expression"),
        ("ratio", "2", "a number came"),
        ("ratio", "exp(logp) + exp(old)", "another value"),
        ("policy", "-surrogate", "shape"),
        ("surrogate", "where(unclipped < clipped, unclipped, clipped)", "right"),
        ("surrogate", "min(unclipped, clipped)", "right"),
        ("clipped", "A * clip(ratio, 1 - eps, 1 + eps)", "right"),
        ("ratio", "exp(logp) / exp(old)", "right"),
        ("value", "mean(V * V - 2 * V * R + R * R) / 2", "right"),
    ],
)
def test_the_board_says_what_came(name, written, said):
    assert said in judge(name, written).said
    assert judge(name, written).right == (said == "right")


def test_the_page_s_example_is_no_line_s_answer():
    example = "log(a) * b"
    page = (NOTEBOOKS / "text/20_interview.py").read_text(encoding="utf-8")
    assert example in page
    for _, line in EVERY:
        assert line.right not in page
        assert re.sub(r"\w+", "x", line.right) != re.sub(r"\w+", "x", example)


@pytest.mark.parametrize(
    ("board", "line"), [x for x in EVERY if not x[1].number], ids=lambda x: getattr(x, "name", x)
)
def test_a_right_value_without_its_gradient_is_not_right(board, line):
    case = BOARDS[board].cases()[0]
    wanted = case.right[line.name]
    assert board_room._same(case, wanted, wanted, line)
    assert not board_room._same(case, wanted.detach(), wanted, line)


def test_the_board_judges_as_one_types_and_keeps_its_symbols_behind_a_hint():
    board = derivation()
    assert board.said["delta"].value == "the critic's surprise at each token"
    assert "V_next" not in board.fields["delta"].placeholder
    board.hints["delta"].click()
    assert board.said["delta"].value.endswith("made of r, V, V_next, gamma")
    board.fields["ratio"].value = "exp(old - logp)"
    assert "upside down" in board.said["ratio"].value and board.solved == ()
    board.fields["ratio"].value = "exp(logp - old)"
    assert board.solved == ("ratio",)
    for line in lines():
        board.fields[line.name].value = line.right
    assert len(board.solved) == len(lines()) == 10
    with pytest.raises(ValueError, match="no line 'rho'"):
        judge("rho", "1")
    with pytest.raises(ValueError, match="no board 'trpo'"):
        derivation("trpo")


def test_gae_by_the_board_is_gae_by_hand():
    right = BOARDS["ppo"].cases()[0].right
    delta, advantage = right["delta"][0], right["A"][0]
    factor = 0.99 * 0.95
    assert advantage[0] == pytest.approx(sum(d * factor**k for k, d in enumerate(delta)).item())


@pytest.mark.parametrize(
    ("board", "name", "written"),
    [
        ("grpo", "D", "R - 0.5"),  # the mean of 1, 1, 0, 0
        ("grpo", "A", "D / (0.5 + tiny)"),  # and their std
        ("grpo", "drgrpo", "-mean(tokens(plain)) / 8"),  # the first L
        ("grpo", "answer", "tokens(surrogate - 0.04 * kl) / n"),
        ("reinforce", "slope", "sum(p * score * (R + 1 - 1 * sum(p)))"),  # where p sums to 1
        ("ppo", "clipped", "clamp(ratio, 0.8, 1.2) * A"),
        ("dpo", "margin", "((logp_w - ref_w) - (logp_l - ref_l)) / 10"),
    ],
)
def test_a_line_that_is_right_for_one_case_only_is_not_right(board, name, written):
    line = next(line for line in lines(board) if line.name == name)
    first, *others = BOARDS[board].cases()
    came = board_room._value(first, line, written)
    assert board_room._same(first, came, first.right[name], line), "the first case is fooled"
    assert others
    judged = judge(name, written, board)
    assert not judged.right and judged.said == "right for one set of numbers, wrong for another"


@pytest.mark.parametrize(
    ("name", "written", "said"),
    [
        ("s", "(mean(R ** 2) - mean(R) ** 2) ** 0.5", "'R' does not stand"),
        ("s", "mean(D * D) ** 0.5", "right"),
        ("A", "D / s", "0 / 0"),
        ("drgrpo", "-mean(tokens(plain)) / mean(n)", "one mean over the tokens"),
        ("drgrpo", "-mean(tokens(plain / L))", "right"),
        ("answer", "tokens(surrogate) / n - beta * tokens(kl) / n", "right"),
        ("grpo", "-answer", "shape"),
        ("drgrpo", "-mean(plain) / L", "mean is over answers"),
    ],
)
def test_the_group_board_takes_other_spellings_and_says_what_is_wrong(name, written, said):
    judged = judge(name, written, "grpo")
    assert said in judged.said and judged.right == (said == "right")


def test_a_bias_that_is_written_as_0_is_asked_for_again():
    assert judge("bias", "sum(p * 0)", "reinforce").said.startswith("0 is what comes out")


def test_what_dr_grpo_removes_is_what_the_two_bias_lines_say():
    """GRPO's weight on a token, over Dr. GRPO's, is by_std times by_length up to the constant."""
    for case in BOARDS["grpo"].cases()[:2]:
        given, right = case.given, case.right
        torch.testing.assert_close(right["A"] / right["D"], right["by_std"].expand_as(right["A"]))
        unclipped = given["tokens"](given["ratio"].detach() * 0 + 1)  # n tokens of value 1
        by_hand = (unclipped * right["by_length"]).sum()
        torch.testing.assert_close(by_hand, torch.ones_like(by_hand))  # each answer 1 / G


# --- the whiteboard


def textbook_pass_at_k(n, c, k):
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def human_eval_pass_at_k(n, c, k):  # the paper's own, arXiv 2107.03374
    if n - c < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))


def all_right(n, c, k):
    return math.comb(c, k) / math.comb(n, k)


def no_subset(n, c, k):
    return 1 - math.comb(n - c, k) / math.comb(n, k + 1)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (textbook_pass_at_k, "right"),
        (human_eval_pass_at_k, "right"),
        (all_right, "known mistake"),
        (no_subset, "raised"),  # C(6, 7) is 0 where all are drawn
    ],
)
def test_a_function_of_one_whole_number_is_judged_like_one_for_all_problems(written, kind):
    verdict = check.pass_at_k(written)
    assert verdict.kind == kind, verdict
    if kind == "raised":
        with pytest.raises(ZeroDivisionError):
            written(*verdict.probe.values())
        assert isinstance(verdict.probe["c"], int)


def test_the_clock_starts_when_asked_to_and_a_pass_stops_it(learner, capsys, monkeypatch):
    monkeypatch.setattr(whiteboard, "_BEGAN", {})
    clock = Clock()

    def k3(logprobs, ref_logprobs): ...

    assert whiteboard.hand_in(k3, clock) is None
    assert whiteboard._BEGAN == {} and capsys.readouterr().out == "", "a run starts nothing"
    whiteboard.start("k3", clock)
    told = capsys.readouterr().out
    assert "The clock runs: 2 minutes" in told
    for head in ("shapes", "example", "convention"):
        assert head in told

    def k3(logprobs, ref_logprobs):
        gap = logprobs - ref_logprobs
        return torch.expm1(gap) - gap

    clock.now = 60.0
    assert not whiteboard.hand_in(k3, clock).passed
    assert "1.0 of 2 minutes" in capsys.readouterr().out
    whiteboard.start(k3, clock)  # anew

    def k3(logprobs, ref_logprobs):
        gap = ref_logprobs - logprobs
        return torch.expm1(gap) - gap

    clock.now = 210.0
    assert whiteboard.hand_in(k3, clock).passed
    told = capsys.readouterr().out
    assert "2.5 minutes, 2 were planned" in told and "The usual slip" in told
    assert progress.recall("whiteboard", "k3") == {"minutes": 2.5}
    assert whiteboard._BEGAN == {}
    assert whiteboard.hand_in(k3, clock).passed
    assert "No clock ran" in capsys.readouterr().out


def test_a_slip_that_was_just_named_is_not_told_again(learner, capsys, monkeypatch):
    monkeypatch.setattr(whiteboard, "_BEGAN", {})
    clock = Clock()

    def pass_at_k(n, c, k):
        return 1 - (1 - c / n) ** k

    whiteboard.start("pass_at_k", clock)
    assert whiteboard.hand_in(pass_at_k, clock).kind == "known mistake"

    def pass_at_k(n, c, k):
        return textbook_pass_at_k(n, c, k)

    assert whiteboard.hand_in(pass_at_k, clock).passed
    assert "usual slip" not in capsys.readouterr().out

    def pass_at_k(n, c, k):
        c - k

    assert whiteboard.hand_in(pass_at_k, clock).kind == "not attempted", "there is no return"


def test_an_error_is_printed_whole_with_the_line_and_the_arguments(reader, capsys):
    def pass_at_k(n, c, k):
        long = "a sentence that goes on for longer than a verdict is wide, " * 4
        raise RuntimeError(long + f"{math.comb(n - c, k)}")

    assert whiteboard.hand_in(pass_at_k).kind == "raised"
    told = capsys.readouterr().out
    assert "n = 10" in told and "c = 3" in told and "k = 5" in told
    assert "raise RuntimeError(long" in told and told.rstrip().endswith("wide, 21")


@pytest.mark.parametrize(
    "sheet", (*whiteboard.BOARD, whiteboard.ROUND), ids=lambda sheet: sheet.name
)
def test_the_example_of_a_sheet_is_right(sheet):
    given = [torch.tensor(x) if isinstance(x, list) else x
             for x in ast.literal_eval(f"({sheet.given},)")]  # fmt: skip
    given = [x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in given]
    if sheet.name == "pass_at_k":
        assert textbook_pass_at_k(*given) == pytest.approx(float(sheet.gives), abs=5e-5)
        return
    came = getattr(check, sheet.name).exercise.reference(*given)
    gives = torch.tensor(ast.literal_eval(sheet.gives), dtype=came.dtype)
    assert came.shape == gives.shape and torch.allclose(came, gives, rtol=0, atol=5.1e-5)


def test_the_wall_starts_a_clock_by_a_button(monkeypatch, reader):
    monkeypatch.setattr(whiteboard, "_BEGAN", {})
    wall = whiteboard.Wall(clock=lambda: 12.0)
    assert whiteboard._BEGAN == {} and not wall.ticks.playing
    wall.name.value = "gae"
    wall.begin.click()
    assert whiteboard._BEGAN == {"gae": 12.0} and wall.ticks.playing
    assert "the value there is 0" in wall.asked.value and "6 minutes" in wall.status.value


def test_ten_functions_are_on_the_board_and_every_one_has_its_check():
    names = [sheet.name for sheet in whiteboard.BOARD]
    assert len(names) == 10 == len(set(names)) and set(names) <= set(check.__all__)
    for sheet in whiteboard.BOARD:
        arguments = getattr(check, sheet.name).exercise.signature
        assert sheet.call == arguments

    def sonnet(): ...

    with pytest.raises(ValueError, match="no function 'sonnet'"):
        whiteboard.hand_in(sonnet)
    with pytest.raises(ValueError, match="no function 'sonnet'"):
        whiteboard.start("sonnet")
