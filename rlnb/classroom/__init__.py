"""What learners touch: explorers, figures, exercise checks, page tools.

Nothing is imported here, and `check` and `explorers` load a part when it is asked for: an explorer
brings matplotlib and ipywidgets, a check only torch.

check, checking, exercises   tasks for learners: the table, the engine, the content
explorer, explorers          a figure with controls; the figures of the pages
figures, pictures            how pictures look; pictures and tables that stand still
questions, interview         the question bank, and what page 20 does with it
live_or_replay, live_plot    page 21 on a GPU, on a CPU or from a recording
pages, workspace             authors build pages; learners work on copies
"""

from __future__ import annotations
