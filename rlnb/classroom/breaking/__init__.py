"""The break-it lab: small functions of a training loop, each with the bugs it was written with.

    from rlnb.classroom.breaking.lab import break_it, code_of

`lab` runs a learner's tests against every bug. The functions and their bugs stand in `advantages`,
`losses` and `averages`.
"""

from __future__ import annotations
