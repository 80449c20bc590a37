"""The statistics of one virtual node: upper pods joined with the readings of their lower pods."""

import asyncio
import datetime
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hansa.engine.cluster import Cluster
from hansa.kube.objects import Object
from hansa.kubelet.pausing import pausing
from hansa.kubelet.pods import LinkedPods, node_of
from hansa.kubelet.usage import stats
from hansa.kubelet.usage.meter import Meter
from hansa.kubelet.usage.readings import Container, Reading, Readings
from hansa.kubelet.usage.source import UsageSource
from hansa.kubelet.usage.stats import ContainerStats, NodeStats, PodStats
from hansa.model import stamp
from hansa.runtime import clock

FRESH_SECONDS = 5.0  # for which an answer is used again; metrics-server asks every 15 seconds


class NodeUsage:
    """Reads when asked, at most once at a time and every few seconds, however many ask."""

    def __init__(self, node: str, pods: LinkedPods, *, clock: clock.Clock) -> None:
        self._node, self._pods, self._clock = node, pods, clock
        self._reading, self._until = asyncio.Lock(), 0.0
        self._stats = NodeStats(node, None, ())
        self._meter = Meter()
        self._source: tuple[Cluster, UsageSource] | None = None

    async def stats(self) -> NodeStats:
        """The present statistics; without pods where the lower cluster has none or can't be reached."""
        async with self._reading:
            if self._clock.now() >= self._until:
                self._stats = await self._read()
                self._until = self._clock.now() + FRESH_SECONDS
            return self._stats

    async def _read(self) -> NodeStats:
        below = self._pods.below(self._node)
        if below is None:
            return NodeStats(self._node, None, ())
        if self._source is None or self._source[0] is not below.cluster:
            selector = stamp.selector(below.upper_id)
            self._source = below.cluster, UsageSource(below.cluster, selector, clock=self._clock)
        pods = [_Pod(upper, lower, stats.running(upper)) async for upper, lower in pausing(below.pairs)]
        found = await self._source[1].read({name for pod in pods if (name := node_of(pod.lower))})
        self._meter.update({key: one for pod in pods for key, one in pod.readings(found)})
        known = tuple(one for pod in pods if (one := pod.stats(self._meter)).containers)
        return NodeStats(self._node, self._meter.node if self._meter.containers else None, known)


class _Pod(NamedTuple):
    upper: Object
    lower: Object
    running: Mapping[str, datetime.datetime]  # by container, when it was started

    def readings(self, found: Readings) -> Iterator[tuple[Container, Reading]]:
        """Those of the containers that run in the upper pod."""
        for name in self.running:
            if (reading := found.get(Container(*self.lower.key, name))) is not None:
                yield self._key(name), reading

    def stats(self, meter: Meter) -> PodStats:
        containers = tuple(
            ContainerStats(name, started, usage)
            for name, started in self.running.items()
            if (usage := meter.containers.get(self._key(name))) is not None
        )
        return PodStats(self.upper.namespace, self.upper.name, self.upper.uid, containers)

    def _key(self, container: str) -> Container:
        """With the uid instead of the name, so that a later pod of that name has counters of its own."""
        return Container(self.upper.namespace, self.upper.uid, container)
