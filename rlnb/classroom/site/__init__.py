"""The course as a folder of web pages that needs no server, no kernel and no network.

Made from the notebooks as they are committed: nothing is executed. `python -m rlnb.classroom.site`
is the command, `make site` calls it.
"""

from __future__ import annotations
