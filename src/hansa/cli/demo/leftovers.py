"""Removes what a demo left that was killed: its programs, clusters, control planes of tenants, and its folder.

`hansa demo` and `hansa local down` do so. The folder of a demo that runs is locked, and is left alone.
"""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

from hansa.local import Fleet, State
from hansa.programs import owned_folders, process

PREFIX = "hansa-demo-"
STATE, TENANTS = "state", "tenants"  # folders of local clusters, and of tenants' control planes
MARK = "HANSA_DEMO"  # environment variable of everything that a demo starts: its folder
KILL_SECONDS = 10.0


async def sweep() -> list[Path]:
    """Remove what is left of all killed demos of this user; their folders."""
    swept = []
    for folder in owned_folders.abandoned(PREFIX):
        await remove(folder)
        swept.append(folder)
    return swept


async def remove(folder: Path) -> None:
    """End everything of a demo and remove its folder."""
    _kill(folder)  # first, since vc-manager would start again what ends
    await asyncio.gather(*(_end(one) for one in process.running(folder / TENANTS).values()))
    fleet = Fleet(State(folder / STATE))
    await fleet.down(fleet.names())
    shutil.rmtree(folder, ignore_errors=True)


def _kill(folder: Path) -> None:
    for pid in _programs(folder):
        with contextlib.suppress(ProcessLookupError):
            fd = os.pidfd_open(pid)
            try:
                if _is_of(pid, folder):  # the pid may be that of another process by now
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
            finally:
                os.close(fd)


def _programs(folder: Path) -> Iterator[int]:
    """The processes that a demo started, without those of clusters and control planes, which have their own marks."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _is_of(int(entry.name), folder):
            yield int(entry.name)


def _is_of(pid: int, folder: Path) -> bool:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    is_marked = any(one.startswith(process.MARK.encode() + b"=") for one in variables)
    return f"{MARK}={folder}".encode() in variables and not is_marked


async def _end(one: process.Process) -> None:
    one.signal(signal.SIGKILL)  # its data is removed next
    await one.ended(KILL_SECONDS)
