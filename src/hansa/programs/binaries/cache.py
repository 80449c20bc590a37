"""The folder that keeps binaries between runs. One process at a time fills an entry, atomically.

Downloading and building are left to `downloading` and `building`.
"""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hansa.programs import files
from hansa.programs.binaries import failures
from hansa.programs.binaries.binary import Binary, Platform

WORK_PREFIX = "work-"
LOCK_SECONDS = 3600.0  # a first build in another process takes minutes; after an hour it is stuck


def default_cache() -> Path:
    """`hansa/bin` in the user's cache folder."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    home = configured if configured.is_absolute() else Path.home() / ".cache"  # as the XDG specification requires
    return home / "hansa" / "bin"


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A folder of the cache for one binary. Its name contains the version, so the binary is not run to get it."""

    folder: Path
    name: str

    @property
    def item(self) -> Path:
        """The path of the cached file or folder, whether or not it exists."""
        return self.folder / self.name

    @contextlib.asynccontextmanager
    async def locked(self, on_wait: Callable[[], None]) -> AsyncIterator[None]:
        """Hold the lock of the entry; `on_wait` is called if another process holds it. It ends with this process."""
        async with contextlib.AsyncExitStack() as stack:
            lock = self.folder / "lock"
            with failures.writing(self.folder.parent):
                try:
                    await stack.enter_async_context(files.lock(lock, deadline=0))
                except files.Locked:
                    on_wait()
                    await stack.enter_async_context(files.lock(lock, deadline=LOCK_SECONDS))
            yield

    @contextlib.contextmanager
    def work(self) -> Iterator[Path]:
        """A temporary folder on the file system of the entry, so that one rename puts the finished item in place."""
        with failures.writing(self.folder):
            folder = Path(tempfile.mkdtemp(prefix=WORK_PREFIX, dir=self.folder))
        try:
            with failures.writing(self.folder):
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def put(self, made: Path) -> Path:
        """Move a finished file or folder into place."""
        # Content is synced before the rename: otherwise a power cut could leave an empty file in place.
        if made.is_file():
            made.chmod(0o755)
            await asyncio.to_thread(_flush, made)
        else:
            await asyncio.to_thread(os.sync)  # thousands of files: one sync is faster than one fsync for each
        made.rename(self.item)
        await asyncio.to_thread(_flush, self.folder)
        return self.item


def entry(root: Path, binary: Binary, here: Platform) -> CacheEntry:
    """The cache entry of the binary."""
    return CacheEntry(root / f"{binary.name}-{binary.version}-{here.os}-{here.arch}", binary.name)


async def remove_leftovers(root: Path) -> None:
    """Remove work folders of processes that ended; entries that another process has locked are skipped."""
    for leftover in root.glob(f"*/{WORK_PREFIX}*"):
        with contextlib.suppress(files.Locked, OSError):
            async with files.lock(leftover.parent / "lock", deadline=0):
                shutil.rmtree(leftover, ignore_errors=True)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
