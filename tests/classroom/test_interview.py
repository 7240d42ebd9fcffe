"""Page 20 without a browser: what a learner presses, and what is kept of it."""

from __future__ import annotations

import random
import re
from datetime import date, timedelta
from pathlib import Path

import pytest

from rlnb.classroom import progress
from rlnb.classroom.interview import cards, marking, mock, plan
from rlnb.classroom.interview.drill import Drill, drill
from rlnb.classroom.interview.marking import Marks
from rlnb.classroom.interview.plan import core, default, forecast, known, tonight
from rlnb.classroom.interview.repetition import WAIT, Card, after, draw, squeezed, waiting
from rlnb.classroom.questions import bank, first_sentence, pick, topics

TODAY = date(2026, 3, 1)
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


# --- repetition


def test_what_is_known_comes_back_ever_later_and_what_is_not_at_once():
    card, waits = None, []
    for _ in range(len(WAIT) + 1):
        card = after(card, "knew", TODAY)
        waits.append((card.due - TODAY).days)
    assert waits == [1, 3, 7, 16, 35, 80, 80, 80]
    assert after(card, "partly", TODAY).facts()["due"] == "2026-03-02"
    assert after(card, "no", TODAY) == Card(0, TODAY, TODAY)
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
    card = Card(3, TODAY, TODAY, 2, TODAY)
    assert Card.of(card.facts()) == card
    assert Card.of(Card().facts()) == Card()
    assert Card.of({"box": 99, "due": "2026-03-01"}).box == len(WAIT) - 1


def test_a_card_is_known_after_two_different_days():
    once = after(None, "knew", TODAY)
    assert not once.known and not after(once, "knew", TODAY).known, "twice on one evening"
    twice = after(once, "knew", TODAY + timedelta(days=1))
    assert twice.known and not after(twice, "partly", twice.due).known
    again = after(after(twice, "partly", twice.due), "knew", twice.due + timedelta(days=1))
    assert again.known, "partly takes one day back"
    assert after(twice, "no", twice.due).good == 0


@pytest.mark.parametrize(
    ("facts", "good", "good_on"),
    [
        ({"box": 2, "due": "2026-03-04", "grade": "knew"}, 2, "2026-03-01"),
        ({"box": 1, "due": "2026-03-02", "grade": "knew", "on": "2026-03-01"}, 1, "2026-03-01"),
        ({"box": 0, "due": "2026-03-01", "grade": "no", "on": "2026-03-01"}, 0, None),
        ({"box": 6, "due": "0001-01-02"}, 2, "0001-01-01"),
    ],
)
def test_an_older_file_is_upgraded(learner, facts, good, good_on):
    card = Card.of(facts)
    day = date.fromisoformat(good_on) if good_on else None
    assert (card.good, card.good_on) == (good, day)
    assert Card.of(card.facts()) == card
    asked = core()[0].id
    progress.record("question", asked, **facts)
    room = Drill(seed=1, today=lambda: TODAY + timedelta(days=9), first=(asked,))
    assert known(core(), room.cards) == (int(good == 2), 114)
    room.draw(), room.reveal(), room.grade("knew")
    kept = progress.recall("question", asked)
    assert kept["good"] == min(good + 1, 2) and kept["good_on"] == "2026-03-10"


# --- the plan


def test_no_rest_is_longer_than_a_week_or_goes_past_the_interview():
    day = TODAY + timedelta(days=20)
    card, waits = None, []
    for _ in range(5):
        card = after(card, "knew", TODAY, day)
        waits.append((card.due - TODAY).days)
    assert waits == [1, 3, 7, 7, 7]
    near = TODAY + timedelta(days=2)
    assert after(Card(4), "knew", TODAY, near).due == near
    assert after(Card(4), "knew", TODAY, TODAY).due > TODAY, (
        "an interview that is over binds nobody"
    )


def test_a_card_of_an_older_file_is_called_back_before_the_interview():
    day = TODAY + timedelta(days=30)
    long = Card(6, TODAY + timedelta(days=60))  # asked 20 days ago, and to rest 80
    assert squeezed(long, TODAY, None) == long
    once = squeezed(long, TODAY, day)
    assert once.due == TODAY - timedelta(days=13)
    assert squeezed(once, TODAY, day).due <= TODAY
    fresh = after(Card(5), "knew", TODAY, day)
    assert squeezed(fresh, TODAY + timedelta(days=1), day) == fresh, (
        "it does not come at once again"
    )


def test_the_core_is_three_screen_and_three_onsite_questions_of_each_page():
    pages = [topic for topic in topics() if topic[:2] != "21"]
    assert len(core()) == 6 * len(pages) == 114
    for topic in pages:
        for level in ("screen", "onsite"):
            of_page = [q for q in core() if (q.topic, q.level) == (topic, level)]
            assert of_page == list(pick(topic, level)[:3])
    assert {q.topic[:2] for q in default()} == {f"{page:02}" for page in range(1, 20)}


def test_an_evening_has_what_is_due_first_and_new_ones_of_the_core():
    cards = {q.id: Card(1, TODAY - timedelta(days=1)) for q in core()[:3]}
    cards |= {q.id: Card(1, TODAY + timedelta(days=1)) for q in core()[3:6]}
    sitting = tonight(default(), cards, TODAY, 15)
    assert set(sitting.due) == {q.id for q in core()[:3]} and len(sitting.new) == 12
    assert set(sitting.new) <= {q.id for q in core()} - set(cards)
    many = {q.id: Card(1, TODAY) for q in core()[:60]}
    assert len(tonight(default(), many, TODAY, 15).new) == 5, "a third is new all the same"
    late = tonight(default(), many, TODAY, 30, TODAY + timedelta(days=4))
    assert len(late.new) == 19, "54 unseen in 4 days of 5/7 evenings"
    tight = tonight(default(), many, TODAY, 9, TODAY + timedelta(days=4))
    assert len(tight.new) == 6, "two thirds at most: the others come back"
    assert tonight(default(), {}, TODAY, 0).ids == ()
    every = {q.id: Card(1, TODAY + timedelta(days=1)) for q in core()}
    assert not set(tonight(default(), every, TODAY, 15).new) & {q.id for q in core()}


@pytest.mark.parametrize("seed", range(3))
def test_three_weeks_of_twenty_minutes_see_the_core_before_the_interview(seed):
    dice, cards, asked = random.Random(seed), {}, {}
    day = TODAY + timedelta(days=21)
    for evening in range(21):
        today, room, last = TODAY + timedelta(days=evening), 10, ""
        sitting = tonight(default(), cards, today, room, day, dice)
        while room and (drawn := draw(sitting.ids, cards, today, dice, last, room)):
            right = dice.random() < (0.8 if drawn in asked else 0.5)
            cards[drawn] = after(cards.get(drawn), "knew" if right else "no", today, day)
            asked[drawn], last, room = asked.get(drawn, 0) + 1, drawn, room - 1
    seen = [asked.get(q.id, 0) for q in core()]
    assert min(seen) >= 1 and sum(n > 1 for n in seen) >= len(seen) // 2
    assert max(card.due for card in cards.values()) <= day


@pytest.mark.parametrize(("minutes", "days"), [(20, 10), (20, 21), (45, 10)])
def test_the_forecast_is_what_the_drill_itself_asks(reader, minutes, days):
    """The room, pressed evening by evening, two minutes a card, against the count it shows."""
    day = TODAY + timedelta(days=days)
    told = forecast(default(), {}, TODAY, day, minutes)
    kept, dice, clock = {}, random.Random(9), Clock()
    for evening in range(days):
        now = TODAY + timedelta(days=evening)
        room = Drill(seed=evening, minutes=minutes, interview=day, today=lambda now=now: now)
        room.cards, room.clock = dict(kept), clock
        room._plan()
        while room.draw() if room.question is None and not room.over else room.question:
            old = room.question.id in room.cards
            room.reveal()
            clock.now += 120
            room.grade("knew" if dice.random() < (0.8 if old else 0.5) else "no")
        kept = room.cards
    met = sum(q.id in kept for q in core())
    assert abs(met - told.met) <= 3 and told.of == 114 and told.evenings == days
    assert abs(known(core(), kept)[0] - told.known) <= 12


def test_the_page_s_sentences_on_the_plan_hold(monkeypatch):
    shown = []
    monkeypatch.setattr(plan, "display", shown.append)
    plan.coverage()
    lines = shown[0].data["text/markdown"].splitlines()
    assert lines[0] == "| an evening | core cards | 5 evenings | 10 evenings | 21 evenings |"
    start = date(2026, 1, 1)
    ten = forecast(default(), {}, start, start + timedelta(days=10), 20)
    assert ten.met < 114 and f"| {ten.met} met, {ten.known} known |" in lines[2]
    assert "| 114 met" in lines[2], "three weeks reach the core"
    page = (Path(__file__).parents[2] / "notebooks/text/20_interview.py").read_text("utf-8")
    assert f'drill("{plan.SHORT}")' in page, "the sentence names the pages of the row"
    for minutes, pages, row in ((20, plan.SHORT, 3), (20, "", 2), (45, plan.SHORT, 4), (45, "", 5)):
        asked = [q for q in default() if not pages or q.topic[:2] in pages.split()]
        told = forecast(asked, {}, start, start + timedelta(days=21), minutes)
        assert lines[row].endswith(f"| {told.met} met, {told.known} known |")
    assert "| 36 | 36 met" in lines[3], "six pages have six core cards each, met in one week"


# --- the drill


def test_a_draw_can_be_repeated_and_keeps_to_its_filter(reader):
    def order(seed):
        room = Drill("ppo", "onsite", seed, today=lambda: TODAY)
        out = [room.draw().id]
        for _ in range(4):
            room.reveal()
            room.grade("knew")
            out.append(room.question.id)
        return out

    assert order(1) == order(1) != order(2)
    assert set(order(1)) <= {q.id for q in pick("ppo", "onsite")} and len(set(order(1))) == 5


def test_the_clock_runs_from_the_draw_to_the_reveal_and_a_grade_asks_the_next(reader):
    clock = Clock()
    room = Drill(seed=1, clock=clock)
    assert room.show.disabled and all(mark.disabled for mark in room.marks.values())
    room.next.click()
    asked = room.question
    assert room.timer.ticks.playing and not room.show.disabled
    assert cards.typeset(asked.question) in room.asked.value
    assert "rlnb-said" in room.asked._dom_classes, "screen readers hear the question"
    assert room.answer.value == ""
    clock.now = 75.0
    room.sentence.value = "Mine < theirs."
    room.show.click()
    assert not room.timer.ticks.playing and room.seconds == 75.0
    assert "75 seconds: too long" in room.status.value
    assert "Mine &lt; theirs." in room.answer.value and "A weak answer" in room.answer.value
    key = cards.typeset(asked.follow_ups[0].key)
    folded = re.search("<details><summary>They ask on.*?</details>", room.answer.value)[0]
    assert key in folded.partition("</summary>")[2], "the follow-up stands without its key"
    assert not any(mark.disabled for mark in room.marks.values())
    room.marks["no"].click()
    assert room.grades == ["no"] and "comes back tonight" in room.status.value
    assert room.question != asked and room.timer.ticks.playing and room.sentence.value == ""
    room.marks["knew"].click()
    assert room.grades == ["no"], "no grade before the answer was shown"


@pytest.mark.parametrize(("typed", "grade"), [("1", "no"), ("2", "partly"), ("3", "knew")])
def test_a_digit_grades(reader, typed, grade):
    room = Drill("kl", seed=1)
    room.draw()
    room.key.value = typed
    assert room.grades == [] and room.key.value == "", "nothing is open yet"
    room.sentence._handle_custom_msg({"event": "submit"}, [])  # Enter in the box
    assert room.open and "nothing written" in room.answer.value
    room.sentence.value = "Late letters."
    assert "Late letters." in room.answer.value, "they may come after Enter"
    room.key.value = "x"
    room.key.value = typed
    assert room.grades == [grade] and room.key.value == ""


def test_the_learners_file_remembers_across_sessions(learner):
    first = Drill("kl", seed=3, today=lambda: TODAY)
    asked = first.draw().id
    first.reveal()
    first.grade("knew")
    kept = {"box": 1, "due": "2026-03-02", "grade": "knew", "on": "2026-03-01"}
    assert progress.recall("question", asked) == kept | {"good": 1, "good_on": "2026-03-01"}
    again = Drill("kl", seed=3, today=lambda: TODAY)
    assert again.asked_today == 1 and len(again.sitting.ids) == len(first.sitting.ids) - 1
    later = Drill("kl", seed=3, today=lambda: TODAY + timedelta(days=1))
    assert later.cards[asked] == Card(1, TODAY + timedelta(days=1), TODAY, 1, TODAY)
    missed = later.draw().id
    later.reveal()
    later.grade("no")
    assert progress.recall("question", missed)["box"] == 0


def test_the_evening_ends_by_cards_or_by_the_clock(reader):
    clock = Clock()
    room = Drill(seed=1, minutes=6, clock=clock, today=lambda: TODAY)
    assert "Tonight 3 new, 0 due; core: 0 of 114 known on two days." == room.plan.value
    room.draw()
    for _ in range(3):
        room.reveal()
        room.grade("knew")
    assert room.question is None and "cards are done: 3 answers, 3 known" in room.status.value
    assert "core: 0 of 114" in room.plan.value, "known once is not known"
    assert all(room.cards[i].good == 1 for i in room.cards)
    assert room.draw() is not None, "pressed once more it goes on"
    room = Drill(seed=1, minutes=6, clock=clock, today=lambda: TODAY)
    room.draw()
    clock.now = 361.0
    room.reveal()
    room.grade("no")
    assert room.question is None and "6 minutes are over" in room.status.value


def test_the_plan_says_how_much_of_the_page_is_known(reader):
    room = Drill("ppo", seed=1, today=lambda: TODAY)
    for number, question in enumerate(q for q in core() if q.topic == "06_ppo"):
        good = 2 if number < 3 else 1
        room.cards[question.id] = Card(1, TODAY + timedelta(days=1), good=good)
    room._say_plan()
    assert "page 06: 50 % known" in room.plan.value
    assert known(core(), room.cards) == (3, 114)


def test_the_interview_s_day_is_remembered_and_squeezes_the_rests(learner):
    day = date.today() + timedelta(days=5)
    room = drill(minutes=30, interview=day.isoformat())
    assert (
        room.interview == day and "5 evenings x 30 minutes: you will meet about" in room.ahead.value
    )
    assert "of 114" in room.ahead.value and " With 45 minutes: " in room.ahead.value
    later = drill()
    assert later.interview == day and later.minutes.value == 30
    later.draw()
    asked = later.question.id
    later.cards[asked] = Card(5, date.today())
    later.reveal()
    later.grade("knew")
    assert progress.recall("question", asked)["due"] == day.isoformat()
    assert "4 evening" not in later.ahead.value
    later.day.value = None
    assert "Set the day" in later.ahead.value
    assert drill().interview is None, "taken out by hand"
    with pytest.raises(ValueError, match="'13 December' is no day"):
        drill(interview="13 December")
    with pytest.raises(ValueError, match="minutes is 1"):
        drill(minutes=1)


def test_ids_name_the_questions_that_come_first(reader):
    room = drill("rewards.10 grpo_for_real.5")
    assert room.draw().id == "rewards.10"
    room.reveal()
    room.grade("knew")
    assert room.question.id == "grpo_for_real.5"
    room.reveal()
    room.grade("knew")
    assert room.question.topic[:2] != "21"


def test_several_pages_narrow_the_drill_and_its_count(reader):
    day = date.today() + timedelta(days=5)
    room = drill("06 grpo 15", interview=day)
    assert {q.topic[:2] for q in room.chosen} == {"06", "08", "15"}
    assert "meet about 18 of 18" in room.ahead.value
    assert room.draw() is not None
    with pytest.raises(ValueError, match="no questions on 'poetry'"):
        drill("06 poetry")


def test_known_after_a_few_seconds_is_doubted_and_one_second_is_one(reader):
    clock = Clock()
    room = Drill("kl", seed=1, clock=clock)
    room.draw()
    clock.now += 1
    room.reveal()
    assert room.status.value.startswith("1 second.") and room.timer.ticks.value == 1
    room.grade("knew")
    assert "after 1 second: was it said aloud?" in room.status.value
    clock.now += 30
    room.reveal()
    room.grade("knew")
    assert "aloud?" not in room.status.value


def test_page_21_comes_only_when_it_is_asked_for(reader):
    assert not {q.topic for q in Drill().chosen} & {"21_grpo_for_real"}
    assert {q.topic for q in Drill("21").chosen} == {"21_grpo_for_real"}


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
    named = [room.topic, room.level, room.minutes, room.day, room.next, room.show, room.sentence]
    named += [room.key, room.timer.number, *room.marks.values()]
    assert all(control.description for control in named)
    assert len(room.topic.options) == 21 and ("10 Dr. GRPO", "10_dr_grpo") in room.topic.options
    with pytest.raises(ValueError, match="no questions on"):
        drill("poetry")


# --- the mock interview


def graded(seed=7, points=2):
    interview = mock.mock(seed).interview
    for _ in interview.rounds:
        key = marking.ticks(interview.rounds[len(interview.marks)].question)
        count = {0: 0, 2: len(key.reasons)}[points]
        interview.grade(Marks(points, points, range(count), own=(0,) if points else ()))
    return interview


@pytest.mark.parametrize("level", ["screen", "onsite", "research"])
def test_the_panel_is_of_five_and_goes_by_the_seed(level):
    one, same, other = (mock.panel(seed, level) for seed in (7, 7, 8))
    assert one == same != other
    assert [r.panelist for r in one] == list(mock.PANEL)
    for seed in range(60):
        asked = mock.panel(seed, level)
        assert len({r.question.id for r in asked}) == 5, "no question twice"
        for r in asked:
            assert r.question.level == level and r.follow_up in r.question.follow_ups
            assert r.question.topic[:2] in r.panelist.topics
            assert not r.panelist.only or r.question.id in r.panelist.only


def test_somebody_asks_about_every_page_of_the_default():
    free = {page for who in mock.PANEL if not who.only for page in who.topics}
    assert free == {q.topic[:2] for q in default()}
    known_ids = {q.id for q in bank()}
    assert all(set(who.only) <= known_ids for who in mock.PANEL)


def test_the_report_adds_up_and_says_a_line_for_every_lost_point():
    text = graded().report()
    assert "40 of 40" in text and "You would pass" in text and "lost on" in text
    assert "drill(" not in text
    poor = graded(points=0)
    said = poor.report()
    assert "0 of 40" in said and said.count("Weak would be") == 5 and "Not yet" in said
    assert "A pass begins at 32; from 24 on it is close." in said
    assert f'drill("{" ".join(poor.again)}")' in said and len(poor.again) == 5
    assert drill(" ".join(poor.again)).draw().id == poor.again[0]
    mixed = mock.mock(7).interview
    asked, key = mixed.rounds[0].question, marking.ticks(mixed.rounds[0].question)
    mixed.grade(Marks(2, 2, range(len(key.reasons)), own=(1,)))
    assert mixed.total == 7 and "1 of 5 rounds" in mixed.report()
    (line,) = [x for x in mixed.report().splitlines() if x.startswith("- **")]
    assert "vidence" in line or "A number to bring" in line
    assert asked.id in line and "You did not tick" not in line


def test_ticks_are_the_sentences_of_the_key_and_give_the_points():
    for question in bank():
        key = marking.ticks(question)
        assert key.reasons and all(len(s) > 3 for s in key.reasons + key.numbers)
        text = f"{question.short} {question.full}"
        assert all(s in text for s in key.reasons + key.numbers), question.id
    ipo = next(q for q in bank() if q.id == "preferences.12")
    key = marking.ticks(ipo)
    for count in range(len(key.reasons) + 1):
        got = Marks(2, 2, range(count)).points(ipo)["reasons"]
        assert got == (0 if not count else 2 if count >= 2 * len(key.reasons) / 3 else 1)
    assert [Marks(0, 0, own=own).points(ipo)["evidence"] for own in ((), (1,), (0,), (0, 1))] == [
        0, 1, 2, 2,
    ]  # fmt: skip


def test_the_advice_names_in_the_key_s_words_what_was_not_ticked():
    said = set()
    for question in bank():
        key, push = marking.ticks(question), question.follow_ups[0]
        line = marking.advice(Marks(0, 0), question, push)
        assert cards.markdown(key.reasons[0]) in line and cards.markdown(push.key) in line
        assert cards.markdown(first_sentence(question.short)) in line
        if key.numbers:
            assert cards.markdown(key.numbers[0]) in line
        whole = Marks(2, 2, range(len(key.reasons)), own=(0,), seconds=(60, 20))
        assert marking.advice(whole, question, push) == ""
        said.add(line)
    assert len(said) == len(bank()), "no advice stands twice"


def test_a_full_mark_after_a_few_seconds_is_doubted_once_and_reported():
    question = mock.panel(20, "onsite")[0].question
    whole = range(len(marking.ticks(question).reasons))
    assert "the answer took 2 seconds" in marking.hasty(
        Marks(1, 1, whole, seconds=(2, 2)), question
    )
    assert "the reply took 1 second" in marking.hasty(Marks(1, 2, seconds=(2, 1)), question)
    assert marking.hasty(Marks(1, 1, seconds=(2, 2)), question) == "", "few points, few seconds"
    assert marking.hasty(Marks(2, 2, whole, seconds=(40, 9)), question) == ""
    clock = Clock()
    room = mock.Room(mock.mock(seed=20).interview, clock)
    for _ in range(3):
        clock.now += 2
        room.go_on()
    for mark in room.marks.values():
        mark.value = 2
    for box in room.ticks["reasons"]:
        box.value = True
    room.next.click()
    assert room.state == "key" and room.status.value.startswith(
        "Points came fast: the answer took 2"
    )
    room.next.click()
    assert room.state == "asked" and len(room.interview.marks) == 1
    assert "Points came fast:" in room.interview.report()


def test_grades_that_are_none_are_refused():
    interview = graded()
    with pytest.raises(ValueError, match="all rounds are graded"):
        interview.grade(Marks(1, 1))
    with pytest.raises(ValueError, match="own has 3 ticks"):
        mock.mock().interview.grade(Marks(1, 1, own=(3,)))
    with pytest.raises(ValueError, match="0, 1 or 2"):
        mock.mock().interview.grade(Marks(3, 1))
    with pytest.raises(ValueError, match="level is 'easy'"):
        mock.mock(level="easy")


def test_the_room_leads_through_four_states_five_times_to_the_report(monkeypatch):
    shown = []

    class Handle:
        def update(self, item):
            shown.append(item.data["text/markdown"])

    def seen(room):
        return room.asked.value + room.key.value + room.reply_key.value + room.status.value

    monkeypatch.setattr(mock, "display", lambda item, display_id=None: Handle())
    clock = Clock()
    room = mock.Room(mock.mock(seed=3).interview, clock)
    room._ipython_display_()
    room.next.click()
    for number in range(5):
        r = room.round
        push, key = cards.typeset(r.follow_up.ask), cards.typeset(r.follow_up.key)
        full = cards.typeset(r.question.weak)
        assert room.state == "asked" and f"{number + 1} of 5" in room.asked.value
        assert room.timer.limit == 90 and room.timer.ticks.playing
        assert push not in seen(room) and full not in seen(room)
        room.sentence.value = "My sentence."
        clock.now += 80
        room.sentence._handle_custom_msg({"event": "submit"}, [])
        assert room.state == "pushed" and room.timer.limit == 45
        assert push in seen(room) and key not in seen(room) and full not in seen(room)
        assert room.sentence.layout.display == "none"
        clock.now += 30
        room.next.click()
        room.reply.value = "My point."  # its letters may come after Enter
        assert room.state == "key" and not room.timer.ticks.playing
        listed = [box.description for row in room.ticks.values() for box in row]
        whole = marking.ticks(r.question)
        assert listed == [*whole.reasons, *whole.numbers, *(text for text, _ in marking.OWN)]
        assert key in room.reply_key.value and not any(b.value for b in room.ticks["reasons"])
        assert "My sentence." in room.key.value and "My point." in room.reply_key.value
        assert "80 of 90 s and 30 of 45 s" in room.status.value
        room.next.click()
        assert "Not graded yet" in room.status.value and room.state == "key"
        for mark in room.marks.values():
            mark.value = 1
        room.ticks["own"][1].value = True
        room.next.click()
    assert room.done and room.next.disabled and "15 of 40" in shown[-1]
    room.go_on()
    assert len(room.interview.points) == 5


def test_every_point_has_its_anchor_and_the_page_says_the_same(reader):
    room = mock.mock()
    page = (NOTEBOOKS / "text/20_interview.py").read_text(encoding="utf-8")
    for name, anchors in marking.RUBRIC.items():
        if name in room.marks:
            options = tuple((f"{i} · {x}", i) for i, x in enumerate(anchors))
            assert room.marks[name].options == options
        assert f"# | {name} | {' | '.join(anchors)} |" in page


# --- cards


def test_anki_reads_four_columns_and_five_headers(tmp_path):
    path = cards.write_anki(tmp_path / "cards.txt")
    lines = path.read_text(encoding="utf-8").splitlines()
    head, rows = lines[:5], [line.split("\t") for line in lines[5:]]
    assert all(line.startswith("#") for line in head) and "#separator:tab" in head
    assert len(rows) == len(bank()) and all(len(row) == 4 for row in rows)
    assert len({row[0] for row in rows}) == len(rows), "the id updates a card"
    assert all(re.fullmatch(r"\d\d_\w+ (screen|onsite|research)", row[3]) for row in rows)
    assert not any(re.search(r"<(?!/?(?:b|i|br|code|sup)>)", row[2]) for row in rows), "escaped"
    with pytest.raises(FileExistsError, match="is kept"):
        cards.write_anki(path)


def test_markdown_takes_no_star_or_dollar_for_markup():
    assert cards.markdown("0.9^8, e^(−0.8)") == "0.9<sup>8</sup>, e<sup>−0.8</sup>"
    assert cards.typeset("p^G − (1−p)^G < `a^b`") == (
        "p<sup>G</sup> − (1−p)<sup>G</sup> &lt; <code>a^b</code>"
    )
    assert cards.markdown("b* costs $5 if x < 1, `a*b`") == r"b\* costs \$5 if x \< 1, `a*b`"


def test_every_answer_can_be_shown_and_a_page_shows_each_level(monkeypatch):
    shown = []
    monkeypatch.setattr(cards, "display", shown.append)
    for question in bank():
        text = cards.answer(question)
        assert cards.markdown(question.full) in text
        assert "Computed in: " in text
    cards.folded("ppo")
    text = shown[0].data["text/markdown"]
    pushes = sum(len(q.follow_ups) for q in cards.sample("ppo"))
    assert text.count("<details>") == 1 + 3 + pushes == text.count("</details>")
    assert "<summary>06 PPO</summary>" in text
    cards.folded("ppo", "kl", everything=True)
    asked = (*pick("ppo"), *pick("kl"))
    both = len(asked) + sum(len(q.follow_ups) for q in asked) + 2
    assert shown[1].data["text/markdown"].count("<details>") == both
