"""A lower cluster for its virtual node: the caches of its nodes and pods, its health, and its version."""

import asyncio
import contextlib
from collections.abc import Callable

from hansa.control import informer
from hansa.engine import cluster
from hansa.kube import errors, resources
from hansa.runtime import listeners

SCOPES = (informer.Scope(resources.NODES), informer.Scope(resources.PODS))
# Seconds between reads of the version: API servers behind a load balancer are upgraded without an outage.
VERSION_PERIOD = 3600.0
VERSION_RETRY = 5.0  # seconds


class LowerCluster:
    """Watches a member cluster until closed; `run` keeps the version up to date."""

    def __init__(self, member: cluster.Cluster) -> None:
        self._member = member
        self.nodes, self.pods = (member.informers.acquire(scope) for scope in SCOPES)
        self.version = ""
        self._listeners: listeners.Listeners[Callable[[], None]] = listeners.Listeners()
        self._changed = asyncio.Event()
        self._end = member.health.listen(self._health_changed)

    @property
    def error(self) -> str:
        """Why it is unreachable; empty while it is reachable."""
        return self._member.health.error

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` when version or error changes. Returns a function that ends this."""
        return self._listeners.add(notify)

    async def run(self) -> None:
        """Read the version at the start, when the cluster becomes reachable, and once per period."""
        while True:
            self._changed.clear()
            wait = VERSION_PERIOD
            if not self.error:
                wait = VERSION_PERIOD if await self._read() else VERSION_RETRY
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    async def close(self) -> None:
        """Stop watching."""
        self._end()
        for scope in SCOPES:
            await self._member.informers.release(scope)

    async def _read(self) -> bool:
        try:
            version = await self._member.client.version()
        except errors.ApiError:
            return False  # the health has the error
        if version != self.version:
            self.version = version
            self._notify()
        return True

    def _health_changed(self) -> None:
        self._changed.set()
        self._notify()

    def _notify(self) -> None:
        for notify in self._listeners:
            notify()
