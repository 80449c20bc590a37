"""Publishes the resources of this cluster for its sources, as its ClusterSummary. `hansa agent` runs it in each target.

The first change is written at once, and others together, at most one write per pause.
"""

import asyncio
import contextlib
import logging
from typing import Final

from hansa.control import table
from hansa.control.informer import Scope
from hansa.engine.cluster import Cluster
from hansa.federation.api import CLUSTER_SUMMARIES, OTHER_PODS, SUMMARY
from hansa.federation.node_loads import Json, NodeLoads
from hansa.kube import errors, resources
from hansa.kube.objects import NamespacedName, Object
from hansa.runtime import clock

log = logging.getLogger(__name__)
PAUSE: Final = 1.0  # seconds between two writes: a burst of pods costs a write a second, not one a pod
RETRY: Final = 2.0  # seconds after a failed write
LIST_SECONDS: Final = 60.0  # for the first lists
FIELDS: Final = ("capacity", "allocatable", "shapes", "nodes", "version")
NAME: Final = NamespacedName("", SUMMARY)


class SummaryPublisher:
    """Keeps the ClusterSummary of one cluster up to date."""

    def __init__(self, cluster: Cluster, *, clock: clock.Clock, pause: float = PAUSE) -> None:
        self._cluster, self._clock, self._pause = cluster, clock, pause
        self._loads = NodeLoads()
        self._changed = asyncio.Event()
        self._version = ""

    async def run(self) -> None:
        """Publish until cancelled."""
        informers = self._cluster.informers
        async with contextlib.AsyncExitStack() as stack:
            self._nodes = await stack.enter_async_context(informers.share(Scope(resources.NODES)))
            self._pods = await stack.enter_async_context(informers.share(Scope(resources.PODS, fields=OTHER_PODS)))
            self._summaries = await stack.enter_async_context(informers.share(Scope(CLUSTER_SUMMARIES)))
            for store in (self._nodes, self._pods, self._summaries):
                await store.freshness.wait_synced(LIST_SECONDS)
            stack.callback(self._nodes.listen(self._node_changed, table.own_key))
            stack.callback(self._pods.listen(self._pod_changed, table.own_key))
            stack.callback(self._summaries.listen(lambda _: self._changed.set(), table.own_key))
            self._changed.set()
            await self._publish_changes()

    async def _publish_changes(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                pause = self._pause if await self._publish() else 0.0
            except errors.ApiError as error:
                log.warning("cluster summary not written, retrying", extra={"error": str(error)})
                self._changed.set()
                pause = RETRY
            await self._clock.sleep(pause)

    async def _publish(self) -> bool:
        """Write what differs; returns whether anything did."""
        if not self._version:
            self._version = await self._cluster.client.version()
        wanted = self._loads.summary() | {"version": self._version}
        labels = self._loads.labels()
        have = self._summaries.get(NAME)
        if have is None:
            self._summaries.observe(await self._created(wanted, labels))
            return True
        if not (patch := _patch(have, wanted, labels)):
            return False
        self._summaries.observe(await self._cluster.client.patch(CLUSTER_SUMMARIES, SUMMARY, patch))
        return True

    async def _created(self, wanted: Json, labels: dict[str, str]) -> Object:
        head = {"apiVersion": CLUSTER_SUMMARIES.api_version, "kind": CLUSTER_SUMMARIES.kind}
        made = Object.of({**head, "metadata": {"name": SUMMARY, "labels": labels}, **wanted})
        try:
            return await self._cluster.client.create(CLUSTER_SUMMARIES, made)
        except errors.AlreadyExists:
            self._changed.set()
            return await self._cluster.client.get(CLUSTER_SUMMARIES, SUMMARY)

    def _node_changed(self, key: NamespacedName) -> None:
        if self._loads.node(key.name, self._nodes.get(key)):
            self._changed.set()

    def _pod_changed(self, key: NamespacedName) -> None:
        if self._loads.pod(key, self._pods.get(key)):
            self._changed.set()


def _patch(have: Object, wanted: Json, labels: dict[str, str]) -> Json:
    patch: Json = {name: _replacing(have.get(name), wanted[name]) for name in FIELDS if have.get(name) != wanted[name]}
    both = have.labels.keys() | labels.keys()
    changed = {key: labels.get(key) for key in both if have.labels.get(key) != labels.get(key)}
    return patch | ({"metadata": {"labels": changed}} if changed else {})


def _replacing(have: object, wanted: object) -> object:
    """The part of a merge patch that makes a field equal: keys of a mapping that are gone are set to null."""
    if isinstance(have, dict) and isinstance(wanted, dict):
        return dict.fromkeys(have.keys() - wanted.keys()) | wanted
    return wanted
