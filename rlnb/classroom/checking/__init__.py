"""The engine of the exercises: it knows how to judge, and no exercise.

exercise       what an exercise is: reference, probes, conventions, mistakes
outcome        a function run on one probe
hidden_output  prints kept off the page, and counted
judge          which known answer gives the same results
wording        standing sentences, likely reasons, how numbers are shown
verdict        what is said in the end
silent_bug     the other way round: the learner writes the test
name_this      the learner names the method

The content is in rlnb/classroom/exercises.
"""

from __future__ import annotations
