"""The clusters whose namespaces and pods are placed: their caches, opened and closed as clusters come and go."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import NamedTuple, Protocol

from hansa.control import table
from hansa.control.event_recorder import Recorder
from hansa.control.informer import Scope
from hansa.control.store import Store
from hansa.engine import task_set
from hansa.engine.cluster import Cluster
from hansa.engine.registry import Registry
from hansa.kube import objects, resources
from hansa.kube.resource import Resource
from hansa.runtime import tasks

NAMESPACE = "namespace"  # the index of quotas and pods


class NamespaceRef(NamedTuple):
    """A namespace of an upper cluster."""

    upper: str
    name: str

    def __str__(self) -> str:
        return f"{self.upper}/{self.name}"


class PodRef(NamedTuple):
    """A pod of an upper cluster."""

    upper: str
    namespace: str
    name: str

    @property
    def space(self) -> NamespaceRef:
        return NamespaceRef(self.upper, self.namespace)

    @property
    def key(self) -> objects.NamespacedName:
        return objects.NamespacedName(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.upper}/{self.namespace}/{self.name}"


class Listener(Protocol):
    """Who wants to know what to look at."""

    def space_changed(self, space: NamespaceRef) -> None:
        """A namespace, or a quota in it."""

    def pod_changed(self, spot: PodRef) -> None:
        """A pod."""


class Upper:
    """One of them."""

    def __init__(self, cluster: Cluster, ears: Listener, recorder: Recorder) -> None:
        self.name, self.client, self._cluster, self._ears = cluster.name, cluster.client, cluster, ears
        self.recorder = recorder
        self._stack = contextlib.AsyncExitStack()

    async def open(self, supervisor: tasks.Supervisor) -> None:
        """Begin to watch, and to write events."""
        writing = supervisor.start("events", self.recorder.run, cluster=self.name)
        self._stack.push_async_callback(tasks.cancel, writing)

        async def share(resource: Resource) -> Store:
            return await self._stack.enter_async_context(self._cluster.informers.share(Scope(resource)))

        self.namespaces = await share(resources.NAMESPACES)
        self.quotas, self.pods = await share(resources.QUOTAS), await share(resources.PODS)
        self._stack.callback(self._look_at_all, False)  # when it leaves
        for store in (self.quotas, self.pods):
            store.index(NAMESPACE, _namespace)
        ends = (
            self.namespaces.listen(self._look_at_space, lambda obj: (obj.name,)),
            self.quotas.listen(self._look_at_space, _namespace),
            self.pods.listen(self._look_at_pod, table.own_key),
            *(store.knowledge.listen(self._look_at_all) for store in (self.namespaces, self.quotas, self.pods)),
        )
        for end in ends:
            self._stack.callback(end)

    async def close(self) -> None:
        """Watch no longer."""
        await self._stack.aclose()

    @property
    def is_complete(self) -> bool:
        """Whether all was listed once."""
        return all(store.knowledge.is_complete for store in (self.namespaces, self.quotas, self.pods))

    @property
    def is_known(self) -> bool:
        """Whether what is not there can be said to be absent."""
        return all(store.knowledge.is_known for store in (self.namespaces, self.quotas, self.pods))

    @property
    def is_away(self) -> bool:
        """Whether its API server does not answer."""
        return not self._cluster.health.is_reachable

    def _look_at_all(self, _is_known: bool) -> None:
        for key in list(self.namespaces):
            self._look_at_space(key.name)
        for key in list(self.pods):
            self._look_at_pod(key)

    def _look_at_space(self, name: str) -> None:
        self._ears.space_changed(NamespaceRef(self.name, name))

    def _look_at_pod(self, key: objects.NamespacedName) -> None:
        self._ears.pod_changed(PodRef(self.name, key.namespace, key.name))


class Uppers:
    """All of a registry."""

    def __init__(
        self,
        registry: Registry,
        ears: Listener,
        *,
        recorder: Callable[[Cluster], Recorder],
        supervisor: tasks.Supervisor,
    ) -> None:
        self._registry, self._ears, self._recorder, self._supervisor = registry, ears, recorder, supervisor
        self._uppers: dict[str, Upper] = {}

    async def run(self) -> None:
        """Follow the registry."""
        await task_set.maintain(
            "upper", lambda: self._registry.clusters, self._watch, self._registry, supervisor=self._supervisor
        )

    def get(self, name: str) -> Upper | None:
        """One of them, if it takes part."""
        return self._uppers.get(name)

    def all(self) -> list[Upper]:
        """All that take part."""
        return list(self._uppers.values())

    def are_heard(self) -> bool:
        """Whether each was listed, or does not answer."""
        everyone = self._registry.clusters.keys() <= self._uppers.keys()
        return everyone and all(upper.is_complete or upper.is_away for upper in self._uppers.values())

    async def _watch(self, cluster: Cluster) -> None:
        upper = Upper(cluster, self._ears, self._recorder(cluster))
        try:
            await upper.open(self._supervisor)
            self._uppers[cluster.name] = upper
            await asyncio.get_running_loop().create_future()
        finally:
            self._uppers.pop(cluster.name, None)
            await upper.close()


def _namespace(obj: objects.Object) -> tuple[str]:
    return (obj.namespace,)
