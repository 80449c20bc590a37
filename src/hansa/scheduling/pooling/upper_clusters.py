"""The upper clusters whose namespaces and pods are scheduled: their caches, and events for the schedulers."""

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
from hansa.engine.registry import ClusterRegistry
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
    def namespace_ref(self) -> NamespaceRef:
        return NamespaceRef(self.upper, self.namespace)

    @property
    def key(self) -> objects.NamespacedName:
        return objects.NamespacedName(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.upper}/{self.namespace}/{self.name}"


class Listener(Protocol):
    """Gets the keys of changed objects."""

    def namespace_changed(self, namespace_ref: NamespaceRef) -> None:
        """A namespace, or a quota in it, changed."""

    def pod_changed(self, pod_ref: PodRef) -> None:
        """A pod changed."""


class Upper:
    """The caches of one upper cluster, and its event recorder."""

    def __init__(self, cluster: Cluster, listener: Listener, recorder: Recorder) -> None:
        self.name, self.client, self._cluster, self._listener = cluster.name, cluster.client, cluster, listener
        self.recorder = recorder
        self._stack = contextlib.AsyncExitStack()

    async def open(self, supervisor: tasks.Supervisor) -> None:
        """Start watching, and writing events."""
        writing = supervisor.start("events", self.recorder.run, cluster=self.name)
        self._stack.push_async_callback(tasks.cancel, writing)

        async def share(resource: Resource) -> Store:
            return await self._stack.enter_async_context(self._cluster.informers.share(Scope(resource)))

        self.namespaces = await share(resources.NAMESPACES)
        self.quotas, self.pods = await share(resources.QUOTAS), await share(resources.PODS)
        self._stack.callback(self._enqueue_all, False)  # when it leaves
        for store in (self.quotas, self.pods):
            store.index(NAMESPACE, _namespace)
        ends = (
            self.namespaces.listen(self._enqueue_namespace, lambda obj: (obj.name,)),
            self.quotas.listen(self._enqueue_namespace, _namespace),
            self.pods.listen(self._enqueue_pod, table.own_key),
            *(store.freshness.listen(self._enqueue_all) for store in (self.namespaces, self.quotas, self.pods)),
        )
        for end in ends:
            self._stack.callback(end)

    async def close(self) -> None:
        """Stop watching."""
        await self._stack.aclose()

    @property
    def is_complete(self) -> bool:
        """Whether all caches have synced once."""
        return all(store.freshness.has_synced for store in (self.namespaces, self.quotas, self.pods))

    @property
    def is_known(self) -> bool:
        """Whether the caches are current, so that an object that is not in them does not exist."""
        return all(store.freshness.is_known for store in (self.namespaces, self.quotas, self.pods))

    @property
    def is_unreachable(self) -> bool:
        """Whether its API server is unreachable."""
        return not self._cluster.health.is_reachable

    def _enqueue_all(self, _is_known: bool) -> None:
        for key in list(self.namespaces):
            self._enqueue_namespace(key.name)
        for key in list(self.pods):
            self._enqueue_pod(key)

    def _enqueue_namespace(self, name: str) -> None:
        self._listener.namespace_changed(NamespaceRef(self.name, name))

    def _enqueue_pod(self, key: objects.NamespacedName) -> None:
        self._listener.pod_changed(PodRef(self.name, key.namespace, key.name))


class Uppers:
    """All upper clusters of a registry."""

    def __init__(
        self,
        registry: ClusterRegistry,
        listener: Listener,
        *,
        recorder: Callable[[Cluster], Recorder],
        supervisor: tasks.Supervisor,
    ) -> None:
        self._registry, self._listener, self._recorder, self._supervisor = registry, listener, recorder, supervisor
        self._uppers: dict[str, Upper] = {}

    async def run(self) -> None:
        """Watch the clusters of the registry."""
        await task_set.maintain(
            "upper", lambda: self._registry.clusters, self._watch, self._registry, supervisor=self._supervisor
        )

    def get(self, name: str) -> Upper | None:
        """The upper cluster of this name, if it is watched."""
        return self._uppers.get(name)

    def all(self) -> list[Upper]:
        """All that are watched."""
        return list(self._uppers.values())

    def have_synced(self) -> bool:
        """Whether each has synced or is unreachable."""
        are_watched = self._registry.clusters.keys() <= self._uppers.keys()
        return are_watched and all(upper.is_complete or upper.is_unreachable for upper in self._uppers.values())

    async def _watch(self, cluster: Cluster) -> None:
        upper = Upper(cluster, self._listener, self._recorder(cluster))
        try:
            await upper.open(self._supervisor)
            self._uppers[cluster.name] = upper
            await asyncio.get_running_loop().create_future()
        finally:
            self._uppers.pop(cluster.name, None)
            await upper.close()


def _namespace(obj: objects.Object) -> tuple[str]:
    return (obj.namespace,)
