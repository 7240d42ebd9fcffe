"""The old name of `python -m rlnb.interop`, kept for one release."""

from __future__ import annotations

import runpy
import sys


def main() -> None:
    """Runs rlnb.interop's command line; by name, because this room knows nothing of that one."""
    print(
        "python -m rlnb.objective is now python -m rlnb.interop; the old name goes with the next "
        "release.",
        file=sys.stderr,
    )
    runpy.run_module("rlnb.interop", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
