"""The break-it lab: small functions of a training loop, and the bugs that were found in the field.

    from rlnb.classroom.breaking.lab import break_it, code_of

`lab` runs a learner's tests against every bug. The functions and their bugs stand in `advantages`,
`losses` and `averages`.
"""

from __future__ import annotations
