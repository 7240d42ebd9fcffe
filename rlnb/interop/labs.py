"""What labs say they ran, as compositions.

    from rlnb.interop.labs import LABS, lab
    lab("DeepSeek-R1").objective

A row stands for a loss that somebody published, by the authors' text or code ("A"), by a library's
code or documentation ("B"), or by readers' notes that agree ("C"). Numbers that were not printed
are named in `unknown`; in the composition the zoo's stand in for them. Filters, reward shaping,
schedules and routing replay lie outside the loss. Read in November 2026. The models are in
labs_models, methods in labs_methods, parts of their own in labs_row.
"""

from __future__ import annotations

from rlnb.interop.labs_methods import METHODS
from rlnb.interop.labs_models import MODELS
from rlnb.interop.labs_row import Lab, engine_gap_squared

__all__ = ["LABS", "NO_ROW", "Lab", "engine_gap_squared", "lab"]

LABS: tuple[Lab, ...] = MODELS + METHODS

# named in surveys, and not enough was read for a row
NO_ROW: dict[str, str] = {
    "GLM-4.5": "one reader's review: GRPO without KL, mean only; no number of its clip",
    "ProRL": "summaries of arXiv 2505.24864: band 0.2 and 0.4; the KL's coefficient was not found",
    "lambda-GRPO": "summaries of arXiv 2510.06870: r and the first lambda were not found",
    "SSPO": "abstracts of arXiv 2602.19327, three versions: the gate's equation was not read",
}


def lab(who: str) -> Lab:
    """The row of that name. Raises ValueError with the names there are."""
    for row in LABS:
        if row.who == who:
            return row
    raise ValueError(f"no row {who!r}; there are {', '.join(row.who for row in LABS)}.")
