"""Writes the Lease of one member, and deletes those of members that are gone.

Each write names the version that it changes, so that one that arrives late changes nothing.
"""

import asyncio
import logging

from hansa.control import store
from hansa.control.sharding.leases import Group
from hansa.control.sharding.share import Peer
from hansa.kube import client, errors, objects, resources
from hansa.runtime import clock, metrics

log = logging.getLogger(__name__)
RELEASE_SECONDS = 3.0  # for deleting the Lease at the end; after that it expires by itself


class MemberLease:
    """The Lease of one member."""

    def __init__(
        self, group: Group, name: str, client: client.Client, *, clock: clock.Clock, metrics: metrics.Registry
    ) -> None:
        self.key = objects.NamespacedName(group.namespace, name)
        self._group, self._client, self._clock = group, client, clock
        self._writes = metrics.counter(
            "hansa_member_lease_writes_total", "Writes of this replica's Lease.", labels=["group", "answer"]
        )

    async def write(
        self, leases: store.Store, claims: int, *, is_leaving: bool, seconds: float, deadline: float
    ) -> bool:
        """Write the Lease; whether that succeeded."""
        now = self._clock.wall()
        made = self._group.lease(self.key.name, claims, is_leaving=is_leaving, seconds=seconds, now=now)
        answer = errors.Answer.OK
        try:
            async with asyncio.timeout(deadline):
                leases.observe(await self._send(leases.get(self.key), made))
        except (TimeoutError, errors.ApiError) as error:
            answer = errors.answer_of(error)
            log.warning("member's Lease not written", extra={"lease": str(self.key), "error": str(error) or "timeout"})
            if isinstance(error, errors.Conflict | errors.NotFound):
                await self._read(leases, deadline)
        self._writes.labels(self._group.name, answer).inc()
        return answer == errors.Answer.OK

    async def _send(self, known: objects.Object | None, made: objects.Object) -> objects.Object:
        if known is None:
            return await self._client.create(resources.LEASES, made)
        versioned = made.to_dict()
        versioned["metadata"] |= {"uid": known.uid, "resourceVersion": known.version}
        return await self._client.update(resources.LEASES, objects.Object.of(versioned))

    async def _read(self, leases: store.Store, deadline: float) -> None:
        """Read the Lease from the server: an earlier write may have succeeded without an answer."""
        known = leases.get(self.key)
        try:
            async with asyncio.timeout(deadline):
                leases.observe(await self._client.get(resources.LEASES, self.key.name, namespace=self.key.namespace))
        except errors.NotFound:
            leases.observe_gone(self.key, known.uid if known else "")
        except (TimeoutError, errors.ApiError) as error:
            log.warning("member's Lease not read", extra={"lease": str(self.key), "error": str(error) or "timeout"})

    async def release(self, leases: store.Store) -> None:
        """Delete the Lease, so that other members need not wait until it expires."""
        if (known := leases.get(self.key)) is None:
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._client.delete(resources.LEASES, self.key.name, namespace=self.key.namespace, uid=known.uid)
        except errors.NotFound:
            pass
        except (TimeoutError, errors.ApiError) as error:
            log.warning("member's Lease not released", extra={"lease": str(self.key), "error": str(error) or "timeout"})

    async def forget(self, peer: Peer, *, deadline: float) -> None:
        """Delete the Lease of a member that is gone, unless it was renewed meanwhile."""
        uid, _, version = peer.version.partition(" ")
        try:
            async with asyncio.timeout(deadline):
                await self._client.delete(
                    resources.LEASES, peer.name, namespace=self.key.namespace, uid=uid, version=version
                )
        except (TimeoutError, errors.ApiError) as error:
            log.info("expired Lease not deleted", extra={"lease": peer.name, "error": str(error) or "timeout"})
        else:
            log.info("expired Lease deleted", extra={"lease": peer.name})
