"""Errors of getting a binary, and their messages.

HansaError
├── SourceFailed   one source does not have it            → the next source is tried
└── Unavailable    no source has it, or the disk refuses  → shown to the user
"""

import contextlib
import errno
from collections.abc import Iterable, Iterator
from pathlib import Path

from hansa.programs.binaries.binary import Binary
from hansa.runtime.errors import HansaError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
FULL_TEXTS = ("no space left on device", "disk quota exceeded", "file too large")


class SourceFailed(HansaError):
    """One source does not have the binary; the next one may."""


class Unavailable(HansaError):
    """No source has the binary, or the user has to change something first."""


def unavailable(binary: Binary, reasons: Iterable[str]) -> Unavailable:
    """The error that names all attempts and the reason of each failure."""
    tried = "; ".join(reasons)
    remedy = "alternatively put it into a folder and pass that with --binaries"
    return Unavailable(f"cannot get {binary.label}: {tried}; {remedy}")


def disk_is_full(folder: Path) -> Unavailable:
    """The error for a full disk."""
    return Unavailable(f"the disk of {folder} is full; free some space and try again")


def reports_full_disk(output: str) -> bool:
    """Whether the output of a program reports a full disk."""
    return any(text in output.lower() for text in FULL_TEXTS)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn disk errors into Unavailable with the folder and a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise disk_is_full(folder) from error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}:
            reason = (error.strerror or "").lower()
            raise Unavailable(
                f"cannot write to {folder}: {reason}; set XDG_CACHE_HOME to a folder that you can write"
            ) from error
        raise
