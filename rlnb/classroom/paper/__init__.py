"""The course on paper: slides, a printed lesson, the cheat-sheet.

All of it is made from the notebooks as they are committed, so it says what they say. The files are
single HTML pages that need no network; what is printed is printed by a Chromium of this machine.
`python -m rlnb.classroom.paper` is the command.
"""

from __future__ import annotations
