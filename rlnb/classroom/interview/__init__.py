"""Page 20: what a learner does with the question bank.

cards        questions with folded answers; flashcards for Anki
repetition   which question is due, and when it comes back
plan         what an evening holds: a core first, an end before the interview
drill        one question at a time, sixty seconds each
mock         a panel of five, follow-ups alone, a rubric with anchors and a report
marking      the ticks a key lists, the points they give, the advice on what was not ticked
boards       the lines of REINFORCE, of PPO's objective and of DPO's loss, and their numbers
derivation   a board from memory, judged line by line
whiteboard   ten functions against the clock
desk         the clock and the text box that they share
"""

from __future__ import annotations
