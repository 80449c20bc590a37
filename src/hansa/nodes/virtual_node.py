"""One virtual node: creates its Node, renews its Lease and writes its status. The controller calls `sync`."""

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
from hansa.nodes.lower_monitor import Monitor
from hansa.nodes.lower_state import LowerState
from hansa.nodes.settings import NodeSettings
from hansa.runtime import clock, errors, metrics

log = logging.getLogger(__name__)


class NotOurs(errors.HansaError):
    """The Node of that name is not a virtual node, or represents another lower cluster. It is never written."""


class VirtualNode:
    """One Node that this process serves."""

    def __init__(
        self,
        monitor: Monitor,
        client: Client,
        *,
        heartbeat: Heartbeat,
        timing: Timing,
        clock: clock.Clock,
        writes: metrics.Counter,
    ) -> None:
        self.monitor, self.heartbeat = monitor, heartbeat
        self._client, self._timing, self._clock, self._writes = client, timing, clock, writes
        self._lease = lease.NodeLease(client, seconds=timing.lease)
        self._uid = self._problem = ""
        self._lock = asyncio.Lock()
        self._is_closed = False

    @property
    def settings(self) -> NodeSettings:
        """The settings of the node."""
        return self.monitor.settings

    async def close(self) -> None:
        """Finish the sync in progress and make no more writes."""
        self.monitor.close()
        async with self._lock:
            self._is_closed = True
        for what in ("node", "status", "lease"):
            self._writes.remove(self.settings.lower, what)

    async def sync(self, nodes: store.Store) -> float:
        """Write what is due. Returns the seconds until the next sync if nothing changes."""
        async with self._lock:
            have, state = nodes.get(objects.NamespacedName("", self.settings.name)), self.monitor.state()
            if self._is_closed:
                return self._timing.report
            if have is None:
                if state is None or not nodes.freshness.is_known:
                    return self._timing.pause
                have = await self._create(nodes, state)
            _check(have, self.settings)
            await self._renew_lease(have)
            if state is None or have.is_deleting:
                return self._timing.pause
            return await self._sync_status(nodes, have, state)

    async def _create(self, nodes: store.Store, state: LowerState) -> Object:
        name = self.settings.name
        try:
            made = await self._client.create(resources.NODES, manifest.manifest(state, self._clock.wall()))
        except api_errors.AlreadyExists:
            # The informer selects virtual nodes only: it is stale, or the Node is not ours.
            made = await self._client.get(resources.NODES, name)
            _check(made, self.settings)
        else:
            self._wrote("node")
            self.heartbeat.status_written(self._clock.now())
            log.info("virtual node created", extra={"node": name, "lower": self.settings.lower})
        nodes.observe(made)
        return made

    async def _renew_lease(self, node: Object) -> None:
        now = self._clock.now()
        if node.uid == self._uid and not self.heartbeat.is_renewal_due(now):
            return
        await self._lease.renew(node, self._clock.wall())
        self._wrote("lease")
        self._uid = node.uid
        self.heartbeat.renewed(now)

    async def _sync_status(self, nodes: store.Store, have: Object, state: LowerState) -> float:
        now, wall, name = self._clock.now(), self._clock.wall(), self.settings.name
        changes = manifest.changes(have, state, wall, is_report_due=self.heartbeat.is_report_due(now))
        if not changes:
            return self.heartbeat.until_due(now)
        if seconds := self.heartbeat.until_status_allowed(now):
            return seconds
        if changes.node:
            nodes.observe(await self._client.patch(resources.NODES, name, changes.node))
            self._wrote("node")
        if changes.status:
            patched = await self._client.patch(
                resources.NODES, name, changes.status, patch_type=PatchType.STRATEGIC, subresource="status"
            )
            nodes.observe(patched)
            self._wrote("status")
        self.heartbeat.status_written(now)
        self._log_readiness(state)
        return self.heartbeat.until_due(now)

    def _log_readiness(self, state: LowerState) -> None:
        problem = state.problem.message if state.problem else ""
        if problem != self._problem:
            extra = {"node": self.settings.name, "lower": self.settings.lower}
            if problem:
                log.warning("virtual node not ready", extra=extra | {"error": problem})
            else:
                log.info("virtual node ready", extra=extra)
        self._problem = problem

    def _wrote(self, what: str) -> None:
        self._writes.labels(self.settings.lower, what).inc()


async def remove(client: Client, settings: NodeSettings) -> None:
    """Delete a virtual node and its Lease, if they exist."""
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
    owner = f"represents cluster {lower}" if lower and node.labels.get(keys.VIRTUAL_NODE) else "is not a virtual node"
    raise NotOurs(
        f"Node {node.name} already exists and {owner}:"
        f" use another name for the virtual node of cluster {settings.lower}, or delete that Node"
    )
