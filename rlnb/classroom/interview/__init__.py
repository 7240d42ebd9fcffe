"""Page 20: what a learner does with the question bank.

cards        questions with folded answers; flashcards for Anki
repetition   which question is due, and when it comes back
drill        one question at a time, sixty seconds each
mock         a panel of five, follow-ups, a rubric and a report
derivation   PPO's objective from memory, judged line by line
whiteboard   ten functions against the clock
"""

from __future__ import annotations
