"""The folder where binaries stay between runs. A place in it is filled by one process at a time, whole or not at all.

How a binary comes into being is left to the sources.
"""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hansa.local import files
from hansa.local.binaries import failures
from hansa.local.binaries.binary import Binary, Platform

WORK = "work-"
OTHERS_BUILD_SECONDS = 3600.0  # a first build takes minutes; who holds a place for an hour has lost its way


def default_cache() -> Path:
    """`hansa/bin` in the user's cache folder."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    home = configured if configured.is_absolute() else Path.home() / ".cache"  # as the XDG specification asks
    return home / "hansa" / "bin"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of the cache for one thing. The name says the version, so what lies there is never asked for it."""

    folder: Path
    name: str

    @property
    def item(self) -> Path:
        """Where the thing lies when it is there."""
        return self.folder / self.name

    @contextlib.asynccontextmanager
    async def held(self, on_wait: Callable[[], None]) -> AsyncIterator[None]:
        """Keep other processes out. The lock ends with this process, however it ends."""
        async with contextlib.AsyncExitStack() as stack:
            lock = self.folder / "lock"
            with failures.writing(self.folder.parent):
                try:
                    await stack.enter_async_context(files.lock(lock, deadline=0))
                except files.Locked:
                    on_wait()
                    await stack.enter_async_context(files.lock(lock, deadline=OTHERS_BUILD_SECONDS))
            yield

    @contextlib.contextmanager
    def work(self) -> Iterator[Path]:
        """A folder for what is not finished; it lies beside the item so that one rename puts the item in place."""
        with failures.writing(self.folder):
            folder = Path(tempfile.mkdtemp(prefix=WORK, dir=self.folder))
        try:
            with failures.writing(self.folder):
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def put(self, made: Path) -> Path:
        """Move a finished file or folder into place."""
        # The disk must have the content before the name, or a power cut leaves an empty file under a good name.
        if made.is_file():
            made.chmod(0o755)
            await asyncio.to_thread(_flush, made)
        else:
            await asyncio.to_thread(os.sync)  # thousands of files: one call is quicker than one for each
        made.rename(self.item)
        await asyncio.to_thread(_flush, self.folder)
        return self.item


def place(root: Path, binary: Binary, here: Platform) -> Place:
    """Where the cache keeps the binary."""
    return Place(root / f"{binary.name}-{binary.version}-{here.os}-{here.arch}", binary.name)


async def sweep(root: Path) -> None:
    """Remove what dead processes left half done; a place that somebody holds is left alone."""
    for left in root.glob(f"*/{WORK}*"):
        with contextlib.suppress(files.Locked, OSError):
            async with files.lock(left.parent / "lock", deadline=0):
                shutil.rmtree(left, ignore_errors=True)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
