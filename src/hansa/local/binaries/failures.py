"""What can go wrong on the way to a binary, and the sentences that say so.

HansaError
├── SourceFailed   this source cannot give it            → try the next source
└── Unavailable    no source can, or a person must act   → tell the person
"""

import contextlib
import errno
from collections.abc import Iterable, Iterator
from pathlib import Path

from hansa.local.binaries.binary import Binary
from hansa.runtime.errors import HansaError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
FULL_TEXTS = ("no space left on device", "disk quota exceeded", "file too large")


class SourceFailed(HansaError):
    """One source cannot give the binary; the next one may."""


class Unavailable(HansaError):
    """The binary cannot be had until a person changes something."""


def nothing_worked(binary: Binary, reasons: Iterable[str]) -> Unavailable:
    """The one sentence that says what was tried and why each attempt failed."""
    tried = "; ".join(reasons)
    way_out = "you can also put it into a folder and name that with --binaries"
    return Unavailable(f"cannot get {binary.label}: {tried}; {way_out}")


def disk_is_full(folder: Path) -> Unavailable:
    """The sentence for a full disk."""
    return Unavailable(f"the disk that holds {folder} is full: free some space there and try again")


def says_disk_is_full(output: str) -> bool:
    """Whether a program's output tells of a full disk."""
    return any(text in output.lower() for text in FULL_TEXTS)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what the disk refuses into a sentence that names the folder."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise disk_is_full(folder) from error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}:
            reason = (error.strerror or "").lower()
            raise Unavailable(
                f"cannot write to {folder} ({reason}): set XDG_CACHE_HOME to a folder of yours"
            ) from error
        raise
