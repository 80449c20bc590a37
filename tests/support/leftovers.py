"""Folders of test runs: each is owned by the run that holds its lock, so that a killed run can be cleaned up."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hansa.local import Fleet, State

PREFIX, DRAFT = "hansa-test-", "hansa-draft-"


@contextlib.contextmanager
def owned_folder() -> Iterator[Path]:
    """A new folder that `sweep` leaves alone as long as this process lives."""
    draft = Path(tempfile.mkdtemp(prefix=DRAFT))
    with _locked(draft):  # before another run's sweep can see it
        folder = draft.rename(draft.with_name(PREFIX + draft.name.removeprefix(DRAFT)))
        yield folder
        shutil.rmtree(folder)


async def sweep() -> None:
    """End the clusters of test runs that were killed, and remove their folders."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(BlockingIOError, FileNotFoundError), _locked(folder):  # in use, or swept by another
            fleet = Fleet(State(folder / "state"))
            await fleet.down(fleet.names())
            shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)
