"""One virtual node: in its turn it writes what is due of its Node and its Lease. When turns come is left to others."""

import asyncio
import logging

from hansa.control import store
from hansa.kube import errors as api_errors
from hansa.kube import objects, resources
from hansa.kube.client import Client, PatchType
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.nodes import lease, manifest
from hansa.nodes.heartbeat import Heartbeat, Timing
from hansa.nodes.lower_monitor import LowerMonitor
from hansa.nodes.lower_state import LowerState
from hansa.nodes.settings import NodeSettings
from hansa.runtime import clock, errors, metrics

log = logging.getLogger(__name__)


class NotOurs(errors.HansaError):
    """A Node of that name was made by somebody else, or for another lower cluster: it is never touched."""


class VirtualNode:
    """One Node that this process serves."""

    def __init__(
        self,
        follower: LowerMonitor,
        client: Client,
        *,
        pace: Heartbeat,
        timing: Timing,
        clock: clock.Clock,
        writes: metrics.Counter,
    ) -> None:
        self.follower, self.pace = follower, pace
        self._client, self._timing, self._clock, self._writes = client, timing, clock, writes
        self._uid = self._trouble = ""
        self._lock = asyncio.Lock()
        self._is_over = False

    @property
    def settings(self) -> NodeSettings:
        """What the user said about it."""
        return self.follower.settings

    async def end(self) -> None:
        """No more writes: what is in hand is finished, and no turn follows."""
        self.follower.close()
        async with self._lock:
            self._is_over = True
        for what in ("node", "status", "lease"):
            self._writes.remove(self.settings.lower, what)

    async def turn(self, nodes: store.Store) -> float:
        """Write what is due; the answer is in how many seconds to look again, even if nothing changes."""
        async with self._lock:
            have, facts = nodes.get(objects.NamespacedName("", self.settings.name)), self.follower.facts()
            if self._is_over:
                return self._timing.report
            if have is None:
                if facts is None or not nodes.knowledge.is_known:
                    return self._timing.pause
                have = await self._make(nodes, facts)
            _check(have, self.settings)
            await self._beat(have)
            if facts is None or have.is_leaving:
                return self._timing.pause
            return await self._tell(nodes, have, facts)

    async def _make(self, nodes: store.Store, facts: LowerState) -> Object:
        name = self.settings.name
        try:
            made = await self._client.create(resources.NODES, manifest.manifest(facts, self._clock.wall()))
        except api_errors.AlreadyExists:
            # The cache has only nodes of ours: either it lags behind, or this is another's.
            made = await self._client.get(resources.NODES, name)
            _check(made, self.settings)
        else:
            self._wrote("node")
            self.pace.told(self._clock.now())
            log.info("a virtual node was made", extra={"node": name, "lower": self.settings.lower})
        nodes.observe(made)
        return made

    async def _beat(self, node: Object) -> None:
        now = self._clock.now()
        if node.uid == self._uid and not self.pace.is_beat_due(now):
            return
        await lease.renew(self._client, node, self._clock.wall(), seconds=self._timing.lease)
        self._wrote("lease")
        self._uid = node.uid
        self.pace.beaten(now)

    async def _tell(self, nodes: store.Store, have: Object, facts: LowerState) -> float:
        now, wall, name = self._clock.now(), self._clock.wall(), self.settings.name
        changes = manifest.changes(have, facts, wall, is_report_due=self.pace.is_report_due(now))
        if not changes:
            return self.pace.wait(now)
        if rest := self.pace.rest(now):
            return rest
        if changes.node:
            nodes.observe(await self._client.patch(resources.NODES, name, changes.node))
            self._wrote("node")
        if changes.status:
            patched = await self._client.patch(
                resources.NODES, name, changes.status, patch_type=PatchType.STRATEGIC, subresource="status"
            )
            nodes.observe(patched)
            self._wrote("status")
        self.pace.told(now)
        self._say(facts)
        return self.pace.wait(now)

    def _say(self, facts: LowerState) -> None:
        trouble = facts.trouble.message if facts.trouble else ""
        if trouble != self._trouble:
            extra = {"node": self.settings.name, "lower": self.settings.lower}
            if trouble:
                log.warning("a virtual node is not ready", extra=extra | {"error": trouble})
            else:
                log.info("a virtual node is ready again", extra=extra)
        self._trouble = trouble

    def _wrote(self, what: str) -> None:
        self._writes.labels(self.settings.lower, what).inc()


async def remove(client: Client, settings: NodeSettings) -> None:
    """Delete a virtual node of ours and its lease; one that is gone is fine."""
    try:
        node = await client.get(resources.NODES, settings.name)
        _check(node, settings)
        await client.delete(resources.NODES, node.name, uid=node.uid)
    except api_errors.NotFound:
        pass
    await lease.remove(client, settings.name)


def _check(node: Object, settings: NodeSettings) -> None:
    if manifest.is_ours(node, settings):
        return
    lower = node.annotations.get(keys.NODE_LOWER)
    whose = f"stands for cluster {lower}" if lower and node.labels.get(keys.VIRTUAL_NODE) else "is not a virtual node"
    raise NotOurs(
        f"node {node.name} is there and {whose}, so it is left alone:"
        f" give the virtual node of cluster {settings.lower} another name, or delete that node"
    )
