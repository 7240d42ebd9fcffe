"""The folder of a run: new or to be continued, writable, and for one process at a time.

The lock is the operating system's, on an open file: it ends with its process, however that ends,
so a dead one leaves nothing to clear away. The file holds the process's number for the sentence
that a second run gets.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlnb.training.errors import BadInput

__all__ = ["LOCK", "checkpoints", "claim"]

LOCK = ".lock"
_BUSY = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK)
_NAME = re.compile(r"checkpoint-([0-9]+)")


def checkpoints(out: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first. They are complete, but may have been damaged."""
    found = (path for path in out.glob("checkpoint-*") if _NAME.fullmatch(path.name))
    return sorted(found, key=lambda path: int(path.name.partition("-")[2]))


@contextmanager
def claim(out: Path, resume: bool) -> Iterator[Path]:
    """The folder, made if needed, this process's own inside the block.

    Raises BadInput if it cannot be written, if another run is writing to it, if it is in use
    without `resume`, or has no checkpoint with it. A folder that was made here and in which
    nothing was put is removed again.
    """
    if resume and not checkpoints(out):
        raise BadInput(
            f"resume: there is no checkpoint in {str(out)!r}; start without --resume, in an empty "
            "folder"
        )
    made = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        descriptor = _take(out / LOCK)
    except OSError as error:
        raise BadInput(
            f"out: cannot write to {str(out)!r} ({error.strerror}); give a folder you may write to"
        ) from error
    try:
        if not resume and any(path.name != LOCK for path in out.iterdir()):
            raise BadInput(
                f"out: the folder {str(out)!r} is not empty; give a new one, or --resume to "
                "continue the run in it"
            )
        yield out
    finally:
        with contextlib.suppress(OSError):  # removed while it is held: nobody waits for this file
            os.remove(out / LOCK)
        os.close(descriptor)
        if made:
            with contextlib.suppress(OSError):  # not empty: there is a run in it
                out.rmdir()


def _take(path: Path) -> int:
    """A descriptor of the lock file, locked, with this process's number in it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        holder = os.read(descriptor, 32).decode(errors="replace").strip()
        try:
            free = _lock(descriptor, holder)
        except OSError:
            os.close(descriptor)
            raise
        if not free:
            os.close(descriptor)
            raise BadInput(
                f"out: another run is writing to {str(path.parent)!r}"
                f"{f' (process {holder})' if holder else ''}; wait until it has ended, or give "
                "another folder"
            )
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                break
        os.close(descriptor)  # its holder ended and removed it just now: there is a newer file
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, str(os.getpid()).encode())
    return descriptor


def _lock(descriptor: int, holder: str) -> bool:
    """Locks the open file without waiting; False if another process has it."""
    try:
        import fcntl
    except ImportError:  # Windows; a byte far behind the number, which must stay readable
        import msvcrt

        os.lseek(descriptor, 4096, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        # Some network folders know no locks. There the number of a living process is the lock.
        return not _alive(holder)
    return True


def _alive(holder: str) -> bool:
    """Whether a process of this number runs on this machine and is not this one."""
    if not holder.isdecimal() or int(holder) == os.getpid():
        return False
    try:
        os.kill(int(holder), 0)  # sends nothing
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
