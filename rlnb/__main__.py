"""The commands of the course under one name: `rlnb`, or `python -m rlnb`.

    rlnb lab [FLAGS]           your copy of the pages in work/, opened in JupyterLab
    rlnb copy                  only the copy
    rlnb fresh 06              a new copy of page 06; the old one is kept
    rlnb progress              how far you have come, page by page
    rlnb progress export FILE --name NAME    the same for a teacher, as a file
    rlnb class FILE...         such files of a whole class in one table
    rlnb train FLAGS           train a model: python -m rlnb.training grpo
    rlnb base FLAGS            train a base model to start from
    rlnb eval FLAGS            measure a model on held-out problems
    rlnb replay RUN            a recorded run as text
    rlnb explain FILE [FILE]   what a training configuration will do; two: what differs
    rlnb check FILE...         traps, a line each, for a hook or a job of continuous testing
    rlnb rosetta               the same objective in the libraries' words

`rlnb COMMAND --help` says more, where there is more to say.
"""

from __future__ import annotations

import runpy
import sys

__all__ = ["COMMANDS", "main"]

# command: the module that does it, and the words that stand for the command there
COMMANDS = {
    "lab": ("rlnb.classroom.workspace", "open"),
    "copy": ("rlnb.classroom.workspace", "copy"),
    "fresh": ("rlnb.classroom.workspace", "fresh"),
    "progress": ("rlnb.classroom.course", "progress"),
    "class": ("rlnb.classroom.class_table", "class"),
    "train": ("rlnb.training", "grpo"),
    "base": ("rlnb.training", "base"),
    "eval": ("rlnb.training", "eval"),
    "replay": ("rlnb.training", "replay"),
    "explain": ("rlnb.interop", "explain"),
    "check": ("rlnb.interop", "check"),
    "rosetta": ("rlnb.interop", "rosetta"),
}


def main(arguments: list[str] | None = None) -> int:
    """Hands over to the module of the command, which ends the process with its own exit status.

    Without a command, or with an unknown one, the list above: status 0 when it was asked for.
    """
    given = sys.argv[1:] if arguments is None else arguments
    command = given[0] if given else None
    if command in ("-h", "--help"):
        print(__doc__)
        return 0
    if command not in COMMANDS:
        if command:
            print(f"rlnb: there is no command {command!r}", file=sys.stderr)
        print(__doc__, file=sys.stderr)
        return 2
    module, word = COMMANDS[command]
    sys.argv = [module, word, *given[1:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
