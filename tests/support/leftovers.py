"""Folders of test runs: each is owned by the run that holds its lock, so that a killed run can be cleaned up."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from hansa.local import Fleet, State
from hansa.programs import owned_folders

PREFIX = "hansa-test-"


@contextlib.contextmanager
def owned_folder() -> Iterator[Path]:
    """A new folder that `sweep` leaves alone as long as this process lives."""
    with owned_folders.create(PREFIX) as folder:
        yield folder
        shutil.rmtree(folder)


async def sweep() -> None:
    """End the clusters of test runs that were killed, and remove their folders."""
    for folder in owned_folders.abandoned(PREFIX):
        with contextlib.suppress(FileNotFoundError):
            fleet = Fleet(State(folder / "state"))
            await fleet.down(fleet.names())
            shutil.rmtree(folder)
