"""A member cluster as a virtual node needs it: the caches of its nodes and pods, its health, its version."""

import asyncio
import contextlib
from collections.abc import Callable

from hansa.control import informer
from hansa.engine import cluster
from hansa.kube import errors, resources
from hansa.runtime import listeners

SCOPES = (informer.Scope(resources.NODES), informer.Scope(resources.PODS))
AGAIN = 3600.0  # seconds until the version is read again: servers behind one address are upgraded without an outage
AFTER_FAILURE = 5.0


class LowerCluster:
    """Reads a member until closed; `run` keeps the version."""

    def __init__(self, member: cluster.Cluster) -> None:
        self._member = member
        self.nodes, self.pods = (member.informers.acquire(scope) for scope in SCOPES)
        self.version = ""
        self._listeners: listeners.Listeners[Callable[[], None]] = listeners.Listeners()
        self._changed = asyncio.Event()
        self._end = member.health.listen(self._tell)

    @property
    def trouble(self) -> str:
        """Why it cannot be reached; empty while it can."""
        return self._member.health.trouble

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Tell `notify` when the version or the trouble changes. The answer ends it."""
        return self._listeners.add(notify)

    async def run(self) -> None:
        """Read the version now, whenever the cluster is back, and now and then."""
        while True:
            self._changed.clear()
            wait = AGAIN
            if not self.trouble:
                wait = AGAIN if await self._read() else AFTER_FAILURE
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    async def close(self) -> None:
        """Read no longer."""
        self._end()
        for scope in SCOPES:
            await self._member.informers.release(scope)

    async def _read(self) -> bool:
        try:
            version = await self._member.client.version()
        except errors.ApiError:
            return False  # the health says why
        if version != self.version:
            self.version = version
            self._tell_others()
        return True

    def _tell(self) -> None:
        self._changed.set()
        self._tell_others()

    def _tell_others(self) -> None:
        for notify in self._listeners:
            notify()
