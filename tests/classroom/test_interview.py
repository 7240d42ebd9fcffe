"""Page 20 without a browser: what a learner presses, and what is kept of it."""

from __future__ import annotations

import random
import re
from datetime import date, timedelta

import pytest
import torch

from rlnb.classroom import progress
from rlnb.classroom.interview import cards, mock, whiteboard
from rlnb.classroom.interview import derivation as board_room
from rlnb.classroom.interview.derivation import LINES, derivation, judge
from rlnb.classroom.interview.drill import Drill, drill
from rlnb.classroom.interview.repetition import WAIT, Card, after, draw, waiting
from rlnb.classroom.questions import bank, pick

TODAY = date(2026, 3, 1)


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


# --- repetition


def test_what_is_known_comes_back_ever_later_and_what_is_not_at_once():
    card, waits = None, []
    for _ in range(len(WAIT) + 1):
        card = after(card, "knew", TODAY)
        waits.append((card.due - TODAY).days)
    assert waits == [1, 3, 7, 16, 35, 80, 80, 80]
    assert after(card, "partly", TODAY).box == card.box
    assert after(card, "no", TODAY) == Card(0, TODAY)
    with pytest.raises(ValueError, match="grade is 'well'"):
        after(card, "well", TODAY)


def test_a_due_card_comes_before_a_resting_one_and_not_twice_in_a_row():
    kept = {
        "a": Card(1, TODAY),
        "b": Card(2, TODAY - timedelta(days=2)),
        "c": Card(3, TODAY + timedelta(days=1)),
    }
    dice = random.Random(0)
    assert draw("abc", kept, TODAY, dice) == "b", "longest due first"
    assert draw("abc", kept, TODAY, dice, last="b") == "a"
    assert draw("bc", kept, TODAY, dice, last="b") == "b", "nothing else is due"
    assert draw("c", kept, TODAY, dice) is None
    assert waiting("abcd", kept, TODAY) == (1, 2, 1)
    drawn = [draw("abcd", kept, TODAY, dice) for _ in range(300)]
    assert 60 < drawn.count("d") < 140, "a third of the draws is new"


@pytest.mark.parametrize(
    "facts", [{}, {"box": 1}, {"box": "x", "due": "2026-01-01"}, {"box": 1, "due": "soon"}]
)
def test_a_card_that_cannot_be_read_is_a_new_question(facts):
    assert Card.of(facts) is None


def test_a_card_survives_the_file():
    card = Card(3, TODAY)
    assert Card.of(card.facts()) == card
    assert Card.of({"box": 99, "due": "2026-03-01"}).box == len(WAIT) - 1


# --- the drill


def test_a_draw_can_be_repeated_and_keeps_to_its_filter(reader):
    def order(seed):
        room = Drill("ppo", "onsite", seed, today=lambda: TODAY)
        out = []
        for _ in range(5):
            out.append(room.draw().id)
            room.reveal()
            room.grade("knew")
        return out

    assert order(1) == order(1) != order(2)
    assert set(order(1)) <= {q.id for q in pick("ppo", "onsite")} and len(set(order(1))) == 5


def test_the_clock_runs_from_the_draw_to_the_reveal(reader):
    clock = Clock()
    room = Drill(seed=1, clock=clock)
    assert room.show.disabled and all(mark.disabled for mark in room.marks.values())
    room.next.click()
    assert room.ticks.playing and not room.show.disabled
    assert room.question.question in room.status.value, "screen readers hear the question"
    assert room.answer.value == ""
    clock.now = 75.0
    room.show.click()
    assert not room.ticks.playing and room.seconds == 75.0
    assert "75 seconds: too long" in room.status.value
    assert "A weak answer" in room.answer.value
    assert not any(mark.disabled for mark in room.marks.values())
    room.marks["no"].click()
    assert room.grades == ["no"] and "comes back today" in room.status.value
    room.marks["knew"].click()
    assert room.grades == ["no"], "one grade a question"


def test_the_learners_file_remembers_across_sessions(learner):
    first = Drill("kl", seed=3, today=lambda: TODAY)
    asked = first.draw().id
    first.reveal()
    first.grade("knew")
    assert progress.recall("question", asked) == {"box": 1, "due": "2026-03-02", "grade": "knew"}
    later = Drill("kl", seed=3, today=lambda: TODAY + timedelta(days=1))
    assert later.cards[asked] == Card(1, TODAY + timedelta(days=1))
    missed = [later.draw().id for _ in range(1)]
    later.reveal()
    later.grade("no")
    assert progress.recall("question", missed[0])["box"] == 0


def test_when_nothing_is_due_the_drill_says_so(learner):
    for question in pick("kl", "research"):
        progress.record("question", question.id, box=2, due="2026-03-09")
    room = Drill("kl", "research", today=lambda: TODAY)
    assert room.draw() is None and "Nothing is due" in room.status.value
    room.reveal()
    assert room.answer.value == "" and room.show.disabled
    room.level.value = ""
    assert room.draw() is not None


def test_every_control_of_the_drill_has_a_name(reader):
    room = drill()
    named = [room.topic, room.level, room.next, room.show, room.clock_face]
    assert all(control.description for control in [*named, *room.marks.values()])
    assert len(room.topic.options) == 21
    with pytest.raises(ValueError, match="no questions on"):
        drill("poetry")


# --- the mock interview


def graded(seed=7, points=2):
    interview = mock.mock(seed).interview
    for _ in interview.rounds:
        interview.grade(first_sentence=points, mechanism=points, evidence=points, follow_up=points)
    return interview


def test_the_panel_is_of_five_and_goes_by_the_seed():
    one, same, other = mock.panel(7, "onsite"), mock.panel(7, "onsite"), mock.panel(8, "onsite")
    assert one == same != other
    assert [r.panelist for r in one] == list(mock.PANEL)
    asked = {page for who in mock.PANEL for page in who.topics}
    assert asked == {q.topic[:2] for q in bank()}, "somebody asks about every page"
    for r in one:
        assert r.question.level == "onsite" and r.follow_up in r.question.follow_ups
        assert r.question.topic[:2] in r.panelist.topics


def test_the_report_adds_up():
    text = graded().report()
    assert "40 of 40" in text and "You would pass" in text and "lost on" in text
    assert "Read [" not in text and "Practise" not in text
    poor = graded(points=0).report()
    assert "0 of 40" in poor and poor.count("Read [") == 5 and "Not yet" in poor
    mixed = mock.mock(7).interview.grade(first_sentence=2, mechanism=1, evidence=0, follow_up=1)
    assert mixed.total == 4 and "1 of 5 rounds" in mixed.report()
    assert "mechanism, evidence, follow-up" in mixed.report()
    assert "Practise **evidence**" in mixed.report()


def test_grades_that_are_none_are_refused():
    interview = graded()
    with pytest.raises(ValueError, match="all rounds are graded"):
        interview.grade(first_sentence=1, mechanism=1, evidence=1, follow_up=1)
    with pytest.raises(ValueError, match="expected"):
        mock.mock().interview.grade(style=2)
    with pytest.raises(ValueError, match="0, 1 or 2"):
        mock.mock().interview.grade(first_sentence=3, mechanism=1, evidence=1, follow_up=1)
    with pytest.raises(ValueError, match="level is 'easy'"):
        mock.mock(level="easy")


def test_the_room_leads_through_five_questions_to_the_report(monkeypatch):
    shown = []

    class Handle:
        def update(self, item):
            shown.append(item.data["text/markdown"])

    monkeypatch.setattr(mock, "display", lambda item, display_id=None: Handle())
    room = mock.mock(seed=3)
    room._ipython_display_()
    for number in range(5):
        assert f"Question {number + 1} of 5" in room.status.value and room.key.value == ""
        room.next.click()
        assert "Show the key first" in room.status.value
        room.show.click()
        room.next.click()
        assert "Not graded yet" in room.status.value
        assert room.interview.rounds[number].follow_up.key.split()[0] in room.key.value
        for mark in room.marks.values():
            mark.value = 1
        room.next.click()
    assert room.done and room.next.disabled and "20 of 40" in shown[-1]
    room.go_on(), room.reveal()
    assert len(room.interview.points) == 5


# --- the derivation board


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_each_line_of_the_board_knows_right_from_its_slips(line):
    assert judge(line.name, line.right).right
    for slip, sentence in line.slips:
        judged = judge(line.name, slip)
        assert not judged.right and judged.said == sentence, slip


@pytest.mark.parametrize(
    ("name", "written", "said"),
    [
        ("ratio", "", "not written"),
        ("ratio", "exp(logp", "never closed"),
        ("ratio", "exp(logp - ref)", "'ref' is not given"),
        ("ratio", "logp.exp()", "write an expression"),
        ("ratio", "2", "a number came"),
        ("ratio", "exp(logp) + exp(old)", "another value"),
        ("policy", "-surrogate", "shape"),
        ("surrogate", "where(unclipped < clipped, unclipped, clipped)", "right"),
        ("ratio", "exp(logp) / exp(old)", "right"),
        ("value", "mean(V * V - 2 * V * R + R * R) / 2", "right"),
    ],
)
def test_the_board_says_what_came(name, written, said):
    assert said in judge(name, written).said
    assert judge(name, written).right == (said == "right")


@pytest.mark.parametrize("line", LINES[1:], ids=lambda line: line.name)
def test_a_right_value_without_its_gradient_is_not_right(line):
    wanted = board_room._room()[line.name]
    assert board_room._same(wanted, wanted, line)
    assert not board_room._same(wanted.detach(), wanted, line)


def test_the_board_judges_as_one_types():
    board = derivation()
    assert board.said["delta"].value == "the surprise at each token"
    board.fields["ratio"].value = "exp(old - logp)"
    assert "upside down" in board.said["ratio"].value and board.solved == ()
    board.fields["ratio"].value = "exp(logp - old)"
    assert board.solved == ("ratio",)
    for line in LINES:
        board.fields[line.name].value = line.right
    assert len(board.solved) == len(LINES)
    with pytest.raises(ValueError, match="no line 'rho'"):
        judge("rho", "1")


# --- the whiteboard


def test_the_first_run_starts_the_clock_and_a_pass_stops_it(learner, capsys, monkeypatch):
    monkeypatch.setattr(whiteboard, "_BEGAN", {})
    clock = Clock()

    def k3(logprobs, ref_logprobs): ...

    assert whiteboard.hand_in(k3, clock).kind == "not attempted"
    assert "The clock runs: 2 minutes" in capsys.readouterr().out

    def k3(logprobs, ref_logprobs):
        gap = logprobs - ref_logprobs
        return torch.expm1(gap) - gap

    clock.now = 60.0
    assert not whiteboard.hand_in(k3, clock).passed
    assert "1.0 of 2 minutes" in capsys.readouterr().out

    def k3(logprobs, ref_logprobs):
        gap = ref_logprobs - logprobs
        return torch.expm1(gap) - gap

    clock.now = 150.0
    assert whiteboard.hand_in(k3, clock).passed
    assert "2.5 minutes, 2 were planned" in capsys.readouterr().out
    assert progress.recall("whiteboard", "k3") == {"minutes": 2.5}
    assert whiteboard._BEGAN == {}, "handed in once more, it starts anew"


def test_ten_functions_are_on_the_board_and_every_one_has_its_check():
    from rlnb import check

    names = [sheet.name for sheet in whiteboard.BOARD]
    assert len(names) == 10 == len(set(names)) and set(names) <= set(check.__all__)

    def sonnet(): ...

    with pytest.raises(ValueError, match="no function 'sonnet'"):
        whiteboard.hand_in(sonnet)


# --- cards


def test_anki_reads_four_columns_and_five_headers(tmp_path):
    path = cards.write_anki(tmp_path / "cards.txt")
    lines = path.read_text(encoding="utf-8").splitlines()
    head, rows = lines[:5], [line.split("\t") for line in lines[5:]]
    assert all(line.startswith("#") for line in head) and "#separator:tab" in head
    assert len(rows) == len(bank()) and all(len(row) == 4 for row in rows)
    assert len({row[0] for row in rows}) == len(rows), "the id updates a card"
    assert all(re.fullmatch(r"\d\d_\w+ (screen|onsite|research)", row[3]) for row in rows)
    assert not any(re.search(r"<(?!/?(?:b|i|br|code)>)", row[2]) for row in rows), "escaped"
    with pytest.raises(FileExistsError, match="is kept"):
        cards.write_anki(path)


def test_markdown_takes_no_star_or_dollar_for_markup():
    assert cards.markdown("b* costs $5 if x < 1, `a*b`") == r"b\* costs \$5 if x \< 1, `a*b`"


def test_every_answer_can_be_shown_and_a_page_shows_each_level(monkeypatch):
    shown = []
    monkeypatch.setattr(cards, "display", shown.append)
    for question in bank():
        text = cards.answer(question)
        assert question.full in text.replace("\\", "")
        assert "Computed in: " in text
    cards.folded("ppo")
    text = shown[0].data["text/markdown"]
    assert text.count("<details>") == 3 == text.count("</details>")
    cards.folded("ppo", everything=True)
    assert shown[1].data["text/markdown"].count("<details>") == len(pick("ppo"))
