"""Calls back when a process exits, by its pidfd: without polling, and without a task for each process.

The process provisioner uses it to restart components.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Hashable

from hansa.programs.process import Process

_Watch = tuple[int, int, Hashable]  # pid, start time, key of the watcher


class ProcessExits:
    """The processes that are watched."""

    def __init__(self) -> None:
        self._watched: dict[_Watch, int] = {}  # to the pidfd

    def watch(self, process: Process, callback: Callable[[], None], *, key: Hashable) -> None:
        """Call `callback` once when the process exits. A second watch of the same process and key has no effect."""
        known = (process.pid, process.start_time, key)
        if known in self._watched:
            return
        try:
            fd = os.pidfd_open(process.pid)
        except ProcessLookupError:
            callback()
            return
        loop = asyncio.get_running_loop()

        def ended() -> None:
            self._forget(known)
            callback()

        self._watched[known] = fd
        loop.add_reader(fd, ended)

    def close(self) -> None:
        """Stop watching all processes."""
        for known in list(self._watched):
            self._forget(known)

    def _forget(self, known: _Watch) -> None:
        fd = self._watched.pop(known, None)
        if fd is not None:
            with contextlib.suppress(RuntimeError):  # the loop may be closed already
                asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)
