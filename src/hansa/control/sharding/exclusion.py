"""Keeps replicas that share their work and processes that elect one leader for all of it from working side by side.

Both kinds use the Lease of the leader election. Members hold it in common: one of them renews it, and all of them work
while its holder is a member. So a rolling upgrade between the two kinds, in either direction, has no time with both.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable
from typing import Final

from hansa.control import informer, table
from hansa.control.election import Election
from hansa.kube import objects, resources
from hansa.runtime import clock

log = logging.getLogger(__name__)
PREFIX: Final = "shared-"  # of the holder's identity, if it is a member
UNKNOWN: Final = ("", math.inf)  # the version that was seen, and when it expires


class Exclusion:
    """Takes part in an election, with an identity that has the prefix.

    `block` is called with whether a process of the other kind leads.
    """

    def __init__(
        self,
        election: Election,
        lease: objects.NamespacedName,
        *,
        informers: informer.Informers,
        block: Callable[[bool], None],
        clock: clock.Clock,
    ) -> None:
        self._election, self._key, self._informers, self._block, self._clock = election, lease, informers, block, clock
        self._scope = informer.Scope(resources.LEASES, namespace=lease.namespace, fields=f"metadata.name={lease.name}")
        self._seen = UNKNOWN
        self._is_blocked = True
        block(True)

    async def run(self) -> None:
        """Take part until cancelled."""
        async with asyncio.TaskGroup() as group:  # a failure of one ends both, and is reported
            group.create_task(self._election.lead(_forever))
            group.create_task(self._follow())

    async def _follow(self) -> None:
        async with self._informers.share(self._scope) as leases:
            changed = asyncio.Event()
            with contextlib.ExitStack() as stack:
                stack.callback(leases.listen(lambda _: changed.set(), table.own_key))
                stack.callback(leases.freshness.listen(lambda _: changed.set()))
                while True:
                    changed.clear()
                    if leases.freshness.has_synced:
                        self._check(leases.get(self._key))
                    await self._wait(changed)

    def _check(self, lease: objects.Object | None) -> None:
        spec, now = {} if lease is None else lease.spec, self._clock.now()
        holder = str(spec.get("holderIdentity") or "")
        is_other = bool(holder) and not holder.startswith(PREFIX)
        if lease is None or not is_other:
            self._seen = UNKNOWN
        elif lease.version != self._seen[0]:
            self._seen = lease.version, now + float(spec.get("leaseDurationSeconds") or 0)
        is_blocked = is_other and now < self._seen[1]
        if is_blocked and not self._is_blocked:
            log.error("another process leads without sharing, serving nothing", extra={"leader": holder})
        self._is_blocked = is_blocked
        self._block(is_blocked)

    async def _wait(self, changed: asyncio.Event) -> None:
        rest = self._seen[1] - self._clock.now() if self._is_blocked else math.inf
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if rest == math.inf else max(rest, 0.0)):
                await changed.wait()


async def _forever() -> None:
    await asyncio.get_running_loop().create_future()
