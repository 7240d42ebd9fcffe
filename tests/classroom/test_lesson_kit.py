"""Guesses, tasks, statements and what is remembered of them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rlnb.classroom import progress
from rlnb.classroom.explorers import one_token, token_gates
from rlnb.classroom.figures import static_figure
from rlnb.classroom.lesson import goals, guesses, predict, reveal, score, settle, statement, task
from rlnb.classroom.lesson import statements as ledger_room


@pytest.fixture
def learner(tmp_path, monkeypatch):
    """A learner's own file, empty."""
    path = tmp_path / "deep" / "progress.json"
    monkeypatch.setenv("RLNB_PROGRESS", str(path))
    return path


@pytest.fixture
def reader(monkeypatch):
    """Builds, tests and readers without a kernel: nothing is remembered."""
    monkeypatch.setenv("RLNB_PROGRESS", "off")


class Screen:
    """Stands in for a notebook: what was shown, and what each display id shows now."""

    def __init__(self):
        self.shown, self.now = [], {}

    def display(self, item, display_id=None):
        self.shown.append(item)
        if display_id is None:
            return None
        self.now[display_id] = item
        return Handle(self, display_id)

    def text(self) -> str:
        """Everything a reader sees, as plain text, updates included."""
        ids = {id(item): key for key, item in self.now.items()}
        items = [self.now.get(ids.get(id(item)), item) for item in self.shown]
        return "\n".join(plain(item) for item in [*items, *self.now.values()])


class Handle:
    def __init__(self, screen, display_id):
        self.screen, self.display_id = screen, display_id

    def update(self, item):
        self.screen.now[self.display_id] = item


def plain(item) -> str:
    return item.data["text/plain"] if hasattr(item, "data") else ""


@pytest.fixture
def screen(monkeypatch):
    """A screen for every module that shows something, and no question asked before."""
    fake = Screen()
    for module in (guesses, goals, ledger_room):
        monkeypatch.setattr(module, "display", fake.display)
    monkeypatch.setattr(guesses, "_ASKED", {})
    return fake


# --- what is remembered


def test_facts_of_one_entry_add_up_and_the_file_is_json(learner):
    progress.record("guess", "ppo.1", guess="4")
    progress.record("guess", "ppo.1", right=True)
    progress.record("task", "ppo.t", **{"1": True})
    assert progress.recall("guess", "ppo.1") == {"guess": "4", "right": True}
    content = json.loads(learner.read_text(encoding="utf-8"))
    assert content["task"]["ppo.t"] == {"1": True} and content["version"] == 1


def test_nothing_is_read_or_written_when_it_is_off(reader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert progress.record("guess", "ppo.1", guess="4") is False
    assert progress.recall("guess", "ppo.1") == {} and list(tmp_path.iterdir()) == []


def test_a_broken_file_is_set_aside_and_not_thrown_away(learner):
    learner.parent.mkdir()
    learner.write_text("{ not json", encoding="utf-8")
    assert progress.recall("guess", "ppo.1") == {}
    progress.record("guess", "ppo.1", guess="4")
    assert progress.recall("guess", "ppo.1") == {"guess": "4"}
    aside = [path for path in learner.parent.iterdir() if "broken" in path.name]
    assert [path.read_text(encoding="utf-8") for path in aside] == ["{ not json"]


def test_a_page_goes_on_where_the_file_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("RLNB_PROGRESS", str(tmp_path / "file" / "progress.json"))
    assert progress.record("guess", "ppo.1", guess="4") is False


def test_two_pages_that_write_at_once_lose_nothing(learner):
    code = (
        "import sys; from rlnb.classroom import progress\n"
        "for i in range(20): progress.record('guess', f'{sys.argv[1]}.{i}', guess=i)"
    )
    pages = [subprocess.Popen([sys.executable, "-c", code, name]) for name in ("ppo", "grpo")]
    assert [page.wait() for page in pages] == [0, 0]
    assert len(progress.everything()["guess"]) == 40


# --- guesses


def test_a_reader_sees_the_question_and_a_folded_answer(reader, screen):
    predict("x.1", "How many?", ["two", "four"])
    reveal("x.1", "four", "Count them.")
    text = "\n".join(plain(item) for item in screen.shown)
    assert "How many?" in text and "b · four" in text and "b, four. Count them." in text
    folded = screen.shown[-1].data["text/markdown"]
    assert folded.startswith("<details>")


def test_an_answer_waits_for_the_guess_and_then_opens_by_itself(learner, screen):
    picture = static_figure(lambda figure, _: None, alt="A picture of four.", size=(20, 20))
    predict("x.1", "How many?", ["two", "four"])
    reveal("x.1", "four", "Count them.", picture)
    assert "Count them" not in screen.text() and "A picture of four" not in screen.text()
    guesses._ASKED["x.1"].keep("two")
    assert "Count them" in screen.text() and "A picture of four" in screen.text()
    assert progress.recall("guess", "x.1") == {"guess": "two", "closed": True, "right": False}


def test_an_open_answer_locks_the_guess(learner, screen):
    predict("x.1", "How many?", ["two", "four"])
    reveal("x.1", "four")
    asked = guesses._ASKED["x.1"]
    assert asked.keep("two") is True and asked.keep("four") is False
    assert progress.recall("guess", "x.1")["guess"] == "two"


def test_before_the_answer_a_guess_may_change(learner, screen):
    predict("x.1", "How many?", ["two", "four"])
    asked = guesses._ASKED["x.1"]
    assert asked.keep("two") and asked.keep("four")
    reveal("x.1", "four")
    assert progress.recall("guess", "x.1")["right"] is True


def test_a_question_asked_again_keeps_the_answer_waiting(learner, screen):
    predict("x.1", "How many?", ["two", "four"])
    reveal("x.1", "four", "Count them.")
    predict("x.1", "How many?", ["two", "four"])
    guesses._ASKED["x.1"].keep("four")
    assert "Count them" in screen.text()


@pytest.mark.parametrize(("said", "right"), [(3.6, True), (3.3, True), (3.2, False), (-3.6, False)])
def test_a_number_counts_within_a_tenth(learner, screen, said, right):
    predict("x.1", "How large?", unit="nats")
    reveal("x.1", 3.63)
    guesses._ASKED["x.1"].keep(said)
    assert progress.recall("guess", "x.1")["right"] is right


def test_a_whole_number_can_be_asked_for(learner, screen):
    predict("x.1", "How many tokens?", unit="tokens", close=0.0)
    reveal("x.1", 28)
    guesses._ASKED["x.1"].keep(30.0)
    assert progress.recall("guess", "x.1")["right"] is False


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: predict("x", "?", ["a", "b"]), "a page's name and a number"),
        (lambda: predict("x.1", "?", ["a"]), "2 to 8 different options"),
        (lambda: predict("x.1", "?", ["a", "a"]), "2 to 8 different options"),
        (lambda: reveal("x.2", "a"), "nothing was asked"),
    ],
)
def test_a_wrong_call_says_what_to_do(reader, screen, call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_an_answer_that_is_no_option_is_refused(reader, screen):
    predict("x.1", "?", ["a", "b"])
    with pytest.raises(ValueError, match="is none of"):
        reveal("x.1", "c")


def test_a_wrong_guess_gets_the_sentence_meant_for_it(learner, screen, monkeypatch):
    widgets = []
    monkeypatch.setattr(guesses, "_show", lambda widget, plain: widgets.append(widget))
    predict("x.1", "How many?", ["two", "three", "four"])
    reveal("x.1", "four", "Count them.", instead={"two": "Those are the pairs."})
    guesses._ASKED["x.1"].keep("two")
    assert widgets[-1].value == "You said: a, two. Those are the pairs."
    predict("x.2", "And now?", ["two", "three", "four"])
    reveal("x.2", "four", "Count them.", instead={"two": "Those are the pairs."})
    guesses._ASKED["x.2"].keep("three")
    assert "overlooked" in widgets[-1].value and "pairs" not in screen.text()


def test_the_count_of_guesses_follows_a_guess_made_after_it(learner, screen):
    """Run All shows the count before any guess is made."""
    predict("x.9", "Which?", ["one", "two"])
    reveal("x.9", "one", "It is one.")
    score("x.9")
    line = guesses._counts[("x.9",)]
    assert "0 right, 0 wrong, 1 not made" in line.value
    guesses._ASKED["x.9"].keep("two")
    assert "0 right, 1 wrong, 0 not made" in line.value


def test_a_reader_without_a_kernel_sees_what_a_wrong_guess_is_told(reader, screen):
    predict("x.1", "How many?", ["two", "four"])
    reveal("x.1", "four", "Count them.", instead={"two": "Those are the pairs."})
    assert "Had you said a, two? Those are the pairs." in plain(screen.shown[-1]).replace("*", "")


@pytest.mark.parametrize("strange", ["four", "five"])
def test_a_sentence_for_no_wrong_option_is_refused(reader, screen, strange):
    predict("x.1", "How many?", ["two", "four"])
    with pytest.raises(ValueError, match="no wrong option"):
        reveal("x.1", "four", instead={strange: "?"})


def test_buttons_say_that_a_guess_is_kept_when_the_page_runs_again(learner, screen, monkeypatch):
    widgets = []
    monkeypatch.setattr(guesses, "_show", lambda widget, plain: widgets.append(widget))
    predict("x.1", "How many?", ["two", "four"])
    assert widgets[-1].children[1].value == "Press one before you go on."
    widgets[-1].children[0].value = "two"
    assert widgets[-1].children[1].value == "Kept."
    predict("x.1", "How many?", ["two", "four"])
    assert widgets[-1].children[1].value == "Kept."


# --- tasks


def test_a_task_turns_green_when_its_goal_is_reached_and_stays_green(learner):
    done = task("x.t", one_token.one_token_explorer(), ("Silence it.", one_token.bad_and_silent))
    assert done.solved == [False] and "not yet" in done.lines[0].value
    done.explorer.set(ratio=0.5, A=-1.0)
    assert done.solved == [True] and "that's it" in done.lines[0].value
    done.explorer.set(ratio=1.0)
    assert done.solved == [True]
    again = task("x.t", one_token.one_token_explorer(), ("Silence it.", one_token.bad_and_silent))
    assert again.solved == [True]


def test_a_control_that_the_learner_moves_is_seen(learner):
    done = task("x.t", one_token.one_token_explorer(), ("Silence it.", one_token.bad_and_silent))
    done.explorer.controls["A"].value = -1.0
    done.explorer.controls["ratio"].value = 0.5
    assert done.solved == [True]


def test_a_goal_that_holds_at_the_start_is_refused(reader):
    with pytest.raises(ValueError, match="before anything has moved"):
        task("x.t", one_token.one_token_explorer(), ("Nothing.", lambda data: True))


@pytest.mark.parametrize(
    ("goal", "reached", "missed"),
    [
        (token_gates.four_and_no_other, {"epsilon": 0.27, "dual": 3.0}, {"epsilon": 0.27}),
        (token_gates.four_and_no_other, {"epsilon": 0.25, "dual": 2.0}, {"dual": 3.0}),
        (token_gates.closes_the_door, {"dual": 2.0}, {"dual": 3.5}),
        (token_gates.closes_the_door, {"dual": 3.25}, {"dual": 1.75}),
        (one_token.bad_and_silent, {"ratio": 0.5, "A": -1.0}, {"ratio": 0.5, "A": 1.0}),
        (one_token.comes_back_slowly, {"ratio": 0.5, "A": 1.0}, {"ratio": 2.0, "A": -1.0}),
    ],
)
def test_a_goal_is_reached_where_the_task_says_and_nowhere_near(goal, reached, missed):
    room = one_token if goal.__module__.endswith("one_token") else token_gates
    assert goal(room.compute(**reached)) and not goal(room.compute(**missed))


def test_no_epsilon_alone_closes_the_door():
    for hundredths in range(90):
        assert not token_gates.closes_the_door(token_gates.compute(hundredths / 100))


def test_an_explorer_says_its_numbers_in_a_line():
    explorer = token_gates.token_gates_explorer().set(epsilon=0.3)
    assert explorer.line.value == token_gates.readout(explorer.data)
    assert "0.70 to 1.30" in explorer.line.value


# --- statements


def test_a_statement_is_settled_with_the_ledgers_verdict(reader, screen):
    statement("A06")
    settle("A06", ledger_room.verdict("A06"))
    text = "\n".join(plain(item) for item in screen.shown)
    entry = ledger_room.ledger()["A06"]
    assert entry["statement"] in text and entry["fair"] in text


def test_a_cell_that_finds_another_verdict_than_the_ledger_is_stopped(reader, screen):
    wrong = next(word for word in ledger_room.CHOICES if word != ledger_room.verdict("A06"))
    with pytest.raises(ValueError, match="One of them must change"):
        settle("A06", wrong)


def test_a_guess_on_a_statement_is_kept_and_marked(learner, screen):
    progress.record("statement", "A06", guess=ledger_room.verdict("A06"))
    settle("A06", ledger_room.verdict("A06"))
    assert progress.recall("statement", "A06")["right"] is True


def test_an_unknown_statement_and_a_cited_one_are_refused(reader, screen):
    with pytest.raises(ValueError, match="no statement"):
        statement("Q99")
    paper = next(k for k, entry in ledger_room.ledger().items() if entry["verdict"] == "paper")
    with pytest.raises(ValueError, match="no cell"):
        statement(paper)
