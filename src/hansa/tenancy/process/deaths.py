"""Tells when a process ends, without asking: the kernel makes its pidfd readable. No task waits meanwhile."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Hashable

from hansa.local.process import Process

_Watch = tuple[int, int, Hashable]  # pid, birth, and for whom


class Deaths:
    """The processes that somebody wants to hear of."""

    def __init__(self) -> None:
        self._watched: dict[_Watch, int] = {}  # to the pidfd

    def watch(self, process: Process, tell: Callable[[], None], *, whom: Hashable) -> None:
        """Call `tell` once when the process is gone. Asking again for the same one and the same `whom` is fine."""
        known = (process.pid, process.born, whom)
        if known in self._watched:
            return
        try:
            fd = os.pidfd_open(process.pid)
        except ProcessLookupError:
            tell()
            return
        loop = asyncio.get_running_loop()

        def ended() -> None:
            self._forget(known)
            tell()

        self._watched[known] = fd
        loop.add_reader(fd, ended)

    def close(self) -> None:
        """Watch nothing any more."""
        for known in list(self._watched):
            self._forget(known)

    def _forget(self, known: _Watch) -> None:
        fd = self._watched.pop(known, None)
        if fd is not None:
            with contextlib.suppress(RuntimeError):  # the loop may be gone before us
                asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)
