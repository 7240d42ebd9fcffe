"""What a run says to who started it: errors that are sentences, and notes beside the progress bar.

`BadInput` is the one exception of this package that means: your input, not our code.
"""

from __future__ import annotations

import sys

__all__ = ["BadInput", "Diverged", "notice"]


class BadInput(ValueError):
    """What came, what was expected, and what to do, in one sentence. The command line prints it."""


class Diverged(BadInput):
    """A number that is not finite, or a policy destroyed: a run cannot go on. Exit status 3."""


def notice(text: str) -> None:
    """A sentence on stderr, on a line of its own even while a progress bar is drawn there."""
    from tqdm import tqdm  # asked for here: reading a run needs the standard library only

    tqdm.write(text, file=sys.stderr)
