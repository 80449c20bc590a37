"""Atomic file writes, and lock files that the kernel releases when their holder ends.

Used for state folders and caches that several hansa processes share.
"""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator
from pathlib import Path

from hansa.runtime.errors import HansaError

RETRY_SECONDS = 0.05


class Locked(HansaError):
    """Another process holds the lock past the deadline."""


class UnusableState(HansaError):
    """A state folder or a file in it cannot be used."""


def write(path: Path, data: bytes | str, *, mode: int = 0o600) -> None:
    """Replace the file atomically; a file with the same content is not written again."""
    content = data.encode() if isinstance(data, str) else data
    with contextlib.suppress(OSError):
        if path.read_bytes() == content:
            return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content)
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise HansaError(f"cannot write {path}: {error.strerror}") from error


@contextlib.asynccontextmanager
async def lock(path: Path, *, deadline: float) -> AsyncIterator[None]:
    """Hold the lock file, waiting up to `deadline` seconds for another process. The holder may remove the file."""
    fd = await _acquire(path, deadline)
    try:
        yield
    finally:
        os.close(fd)


async def _acquire(path: Path, deadline: float) -> int:
    try:
        async with asyncio.timeout(deadline):
            while (fd := _try(path)) is None:
                await asyncio.sleep(RETRY_SECONDS)
    except TimeoutError:
        raise Locked(
            f"another hansa process has held the lock {path} for {deadline:.0f} s; wait for it or end it"
        ) from None
    except OSError as error:
        raise HansaError(f"cannot lock {path}: {error.strerror}") from error
    return fd


def _try(path: Path) -> int | None:
    """Open and lock the file; None if another process holds it, or removed it after it was opened here."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_ino == path.stat().st_ino:
            return fd
    os.close(fd)
    return None
