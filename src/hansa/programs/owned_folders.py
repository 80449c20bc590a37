"""Temporary folders that belong to a running process: of one that was killed, a later run removes what is left.

The owner holds a lock on the folder, which the kernel releases with the process. The content is left to callers.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

DRAFT = "hansa-draft-"  # a new folder that is not locked yet


@contextlib.contextmanager
def create(prefix: str) -> Iterator[Path]:
    """A new folder that `abandoned` leaves alone as long as this process lives. The caller removes it."""
    draft = Path(tempfile.mkdtemp(prefix=DRAFT))
    with _locked(draft):  # before another process can find it
        yield draft.rename(draft.with_name(prefix + draft.name.removeprefix(DRAFT)))


def abandoned(prefix: str) -> Iterator[Path]:
    """The folders of this user whose owner was killed, each locked while the caller has it."""
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{prefix}*")):
        with contextlib.suppress(BlockingIOError, FileNotFoundError):  # in use, or removed by another
            if folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.getuid():
                with _locked(folder):
                    yield folder


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)
