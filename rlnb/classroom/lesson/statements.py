"""True, false, or it depends? A statement as one hears it, a guess, and the cell that decides.

    statement("A06")          # the sentence, and three buttons
    ...                       # the deciding cell: it computes and asserts
    settle("A06", "false")    # the verdict, and the sentence one can defend

The sentences, verdicts and fair wordings stand in data/claims.yaml; `settle` is given the verdict
that its cell computed and raises when the file says another.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from rlnb.classroom import progress
from rlnb.classroom.figures import Bundle
from rlnb.classroom.notebook_display import display, ipywidgets, spoken_line, widget_view
from rlnb.shipped import data_folder

__all__ = ["VERDICTS", "ledger", "settle", "statement", "verdict"]

# what a learner can press, for each verdict of the ledger
VERDICTS = {"true": "true", "conditional": "it depends", "sloppy": "it depends", "wrong": "false"}
CHOICES = ("true", "it depends", "false")
# said after the verdict word, where two verdicts share one
NUANCE = {
    "sloppy": "The idea is right and a word is not.",
    "conditional": "It needs its condition.",
}


@cache
def ledger() -> dict[str, dict[str, Any]]:
    """Every statement of data/claims.yaml by its id."""
    import yaml

    text = (data_folder() / "claims.yaml").read_text(encoding="utf-8")
    return {entry["id"]: entry for entry in yaml.safe_load(text)}


def verdict(identity: str) -> str:
    """'true', 'it depends' or 'false'. Raises ValueError for an unknown id, or one only cited."""
    entry = _entry(identity)
    if entry["verdict"] not in VERDICTS:
        raise ValueError(
            f"{identity} is {entry['verdict']!r} in data/claims.yaml: a report that no cell can "
            "decide. Cite it instead."
        )
    return VERDICTS[entry["verdict"]]


def statement(identity: str) -> None:
    """The sentence as one hears it, and three buttons. Press before you run the cell below it."""
    verdict(identity)
    sentence = _entry(identity)["statement"]
    text = f"**{identity}.** “{sentence}”"
    display(Bundle({"text/markdown": text, "text/plain": f"{identity}. {sentence}"}))
    before = progress.recall("statement", identity)
    guess = before.get("guess")
    buttons = ipywidgets.ToggleButtons(
        options=list(CHOICES),
        value=guess if guess in CHOICES else None,
        disabled=bool(before.get("settled")) and guess in CHOICES,
    )
    note = spoken_line()

    def pressed(change) -> None:
        if change["new"] is None:
            return
        if progress.recall("statement", identity).get("settled"):
            note.value = "Too late: it has been settled."
            return
        progress.record("statement", identity, guess=change["new"])
        note.value = "Kept. Run the next cell."

    buttons.observe(pressed, "value")
    data = widget_view(ipywidgets.VBox([buttons, note]))
    data["text/plain"] = "[true, it depends, or false? Run the page to press one]"
    display(Bundle(data))


def settle(identity: str, found: str) -> None:
    """The verdict that the cell above computed, and the sentence one can defend.

    found: "true", "it depends" or "false". Raises ValueError when data/claims.yaml says another:
    then the cell or the ledger is wrong, and nobody may read on.
    """
    if found not in CHOICES:
        raise ValueError(
            f"settle({identity!r}): found must be one of {list(CHOICES)}, got {found!r}."
        )
    entry, says = _entry(identity), verdict(identity)
    if says != found:
        raise ValueError(
            f"settle({identity!r}): this cell finds {found!r}, data/claims.yaml says {says!r} "
            f"({entry['verdict']}). One of them must change."
        )
    word = found[0].upper() + found[1:]
    nuance = NUANCE.get(entry["verdict"], "")
    text = f"**{word}.** {nuance + ' ' if nuance else ''}Say instead: {entry['fair']}"
    if found == "true":
        text = f"**{word}.** {entry['fair']}"
    display(Bundle({"text/markdown": text, "text/plain": text.replace("**", "")}))
    guess = progress.recall("statement", identity).get("guess")
    if guess is None:
        said, color = "You had not said anything.", "wrong"
    else:
        right = guess == found
        said, color = f"You said: {guess}.", "done" if right else "wrong"
        progress.record("statement", identity, settled=True, right=right)
    label = spoken_line(said, color)
    data = widget_view(label)
    data["text/plain"] = "[your guess beside it]"
    display(Bundle(data))


def _entry(identity: str) -> dict[str, Any]:
    try:
        return ledger()[identity]
    except KeyError:
        raise ValueError(f"There is no statement {identity!r} in data/claims.yaml.") from None
