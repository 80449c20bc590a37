"""Credentials that are kept current: changed files, expired exec credentials and a 401 lead to a new Access.

Files are checked when the access is used, at most once per second: a rotation needs no restart and no file watcher.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from pathlib import Path

from hansa.kube.credentials import access, plugin
from hansa.kube.credentials.access import Access
from hansa.kube.credentials.login import Login
from hansa.kube.errors import BadCredentials
from hansa.runtime.clock import Clock, SystemClock

CHECK_PERIOD = 1.0  # seconds between checks of the files: soon enough for a rotation, without a stat per request
AHEAD = 30.0  # seconds before its expiry at which an exec credential is replaced; less for short-lived ones

_log = logging.getLogger(__name__)
_Stamp = tuple[tuple[int, int, int] | None, ...]


class Credentials:
    """The current credentials of one cluster. `read` returns the login and is called again when its files change."""

    def __init__(
        self, read: Callable[[], Login], *, clock: Clock | None = None, plugin_deadline: float = plugin.DEADLINE
    ) -> None:
        self._read = read
        self._clock = clock or SystemClock()
        self._plugin_deadline = plugin_deadline
        self._access: Access | None = None
        self._stamp: _Stamp | None = None
        self._checked = -math.inf
        self._ends = math.inf
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        return f"Credentials({self._access.login.origin if self._access else 'not read yet'})"

    async def access(self) -> Access:
        """The current access; files that changed are read again."""
        if (current := self._access) is not None and self._clock.now() - self._checked < CHECK_PERIOD:
            return current
        async with self._turn:
            if self._access is None:
                return await self._load()
            if self._clock.now() - self._checked >= CHECK_PERIOD:
                self._checked = self._clock.now()
                if self._is_stale(self._access):
                    return await self._reload_or_keep(self._access)
            return self._access

    async def renew(self, refused: Access) -> Access:
        """The access to use after the server refused one; the same if there is nothing newer."""
        async with self._turn:
            if self._access is None:
                return await self._load()
            if self._access is not refused:
                return self._access  # another request has renewed it already
            return await self._reload(refused)

    def expire(self) -> None:
        """Read everything again at the next use."""
        self._stamp, self._checked = None, -math.inf

    async def _load(self) -> Access:
        login = self._read()
        stamp = _stamp(login.watched_files())
        printed = await plugin.run(login.plugin, login, deadline=self._plugin_deadline) if login.plugin else None
        self._access, self._stamp, self._checked = access.build(login, printed), stamp, self._clock.now()
        self._ends = self._end_of(self._access)
        return self._access

    async def _reload(self, current: Access) -> Access:
        fresh = await self._load()
        if fresh.content == current.content and fresh.login == current.login:
            self._access = current  # nothing changed: keep the connections
        return self._access or fresh

    async def _reload_or_keep(self, current: Access) -> Access:
        """Reload; if the new files are invalid, as in the middle of a rotation, keep the current access."""
        try:
            return await self._reload(current)
        except BadCredentials as error:
            if current.fresh_until is not None and current.fresh_until <= self._clock.wall():
                raise
            _log.warning("credentials not reloaded, keeping the current ones", extra={"error": str(error)})
            return current

    def _is_stale(self, current: Access) -> bool:
        return self._clock.now() >= self._ends or self._stamp != _stamp(current.login.watched_files())

    def _end_of(self, current: Access) -> float:
        if current.fresh_until is None:
            return math.inf
        life = (current.fresh_until - self._clock.wall()).total_seconds()
        return self._clock.now() + life - min(AHEAD, life / 5)


def _stamp(paths: tuple[Path, ...]) -> _Stamp:
    return tuple(_stamp_of(path) for path in paths)


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_ino, stat.st_mtime_ns, stat.st_size)
