"""The caches of one cluster that decisions read, and whether they can be believed now.

A cluster that is unreachable, or a resource that is not listed, makes the whole cluster unknown: what a pod refers to
must be known where the pod is. A resource that the credentials may not read makes only that resource unknown.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from hansa.control import freshness, informer, merged_store
from hansa.control.merged_store import Cache
from hansa.engine.cluster import Cluster
from hansa.kube.resource import Resource
from hansa.runtime import listeners

LIST_DEADLINE = 60.0  # seconds for which a list is waited for at a time


class ClusterCaches:
    """The caches of one cluster. `trouble` is why nothing may be concluded from any of them, empty when it may."""

    def __init__(self, cluster: Cluster, stores: Mapping[Resource, Cache]) -> None:
        self.cluster, self.stores = cluster, stores
        self._listeners: listeners.Listeners[Callable[[], None]] = listeners.Listeners()
        self.trouble = self._trouble()
        self._forbidden = self._forbidden_resources()

    def trouble_of(self, resource: Resource) -> str:
        """Why nothing may be concluded from the cache of a resource; empty when it may."""
        return self.trouble or self._forbidden.get(resource, "")

    async def listed(self, resources: Iterable[Resource]) -> None:
        """Wait for the first full list of each of these, however long it takes."""
        for resource in resources:
            cache = self.stores[resource].knowledge
            while not cache.is_complete:
                with contextlib.suppress(freshness.Unlisted):
                    await cache.wait_complete(LIST_DEADLINE)

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` when any trouble begins or ends. The answer ends it."""
        return self._listeners.add(notify)

    def refresh(self) -> None:
        """Find out whether there is trouble now."""
        before = bool(self.trouble), self._forbidden.keys()
        self.trouble, self._forbidden = self._trouble(), self._forbidden_resources()
        if before != (bool(self.trouble), self._forbidden.keys()):
            for notify in self._listeners:
                notify()

    def _trouble(self) -> str:
        if self.cluster.health.trouble:
            return self.cluster.health.trouble
        for resource, cache in self.stores.items():
            if not cache.knowledge.is_known and not cache.knowledge.is_forbidden:
                return f"{resource}: {cache.knowledge.trouble}"
        return ""

    def _forbidden_resources(self) -> dict[Resource, str]:
        caches = ((resource, cache.knowledge) for resource, cache in self.stores.items())
        return {resource: known.trouble for resource, known in caches if known.is_forbidden and not known.is_known}


@contextlib.asynccontextmanager
async def opened(cluster: Cluster, scopes: Iterable[informer.Scope]) -> AsyncIterator[ClusterCaches]:
    """The caches of a cluster, one for each scope's resource, for as long as the caller stays inside."""
    async with contextlib.AsyncExitStack() as stack:
        stores = {scope.resource: await stack.enter_async_context(cache(cluster, scope)) for scope in scopes}
        side = ClusterCaches(cluster, stores)
        stack.callback(cluster.health.listen(side.refresh))
        for store in stores.values():
            stack.callback(store.knowledge.listen(lambda _: side.refresh()))
        yield side


@contextlib.asynccontextmanager
async def cache(cluster: Cluster, scope: informer.Scope) -> AsyncIterator[Cache]:
    """The cache of a scope, limited to the namespaces that the cluster's credentials may read."""
    scopes = cluster.scopes(scope)
    async with contextlib.AsyncExitStack() as stack:
        stores = {one.namespace: await stack.enter_async_context(cluster.informers.share(one)) for one in scopes}
        yield stores[scope.namespace] if scopes == [scope] else merged_store.MergedStore(stores)
