"""The caches of one cluster that decisions read, and whether they can be believed now: all of them or none.

One verdict for a cluster keeps decisions simple: what a pod refers to is seen if the pod is.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from hansa.control import informer, knowledge, store
from hansa.engine.cluster import Cluster
from hansa.kube.resource import Resource
from hansa.runtime import listeners

PATIENCE = 60.0  # seconds for which a list is waited for at a time


class Side:
    """What is known of one cluster; `trouble` is why nothing may be concluded from it now, empty when all may."""

    def __init__(self, cluster: Cluster, stores: Mapping[Resource, store.Store]) -> None:
        self.cluster, self.stores = cluster, stores
        self._listeners: listeners.Listeners[Callable[[], None]] = listeners.Listeners()
        self.trouble = self._found()

    async def listed(self, resources: Iterable[Resource]) -> None:
        """Wait for the first full list of each of these, however long it takes."""
        for resource in resources:
            cache = self.stores[resource].knowledge
            while not cache.is_complete:
                with contextlib.suppress(knowledge.Unlisted):
                    await cache.wait_complete(PATIENCE)

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Tell `notify` when `trouble` comes or goes. The answer ends it."""
        return self._listeners.add(notify)

    def look(self) -> None:
        """See whether there is trouble now."""
        before, self.trouble = self.trouble, self._found()
        if bool(before) != bool(self.trouble):
            for notify in self._listeners:
                notify()

    def _found(self) -> str:
        if self.cluster.health.trouble:
            return self.cluster.health.trouble
        for resource, cache in self.stores.items():
            if not cache.knowledge.is_known:
                return f"{resource}: {cache.knowledge.trouble}"
        return ""


@contextlib.asynccontextmanager
async def opened(cluster: Cluster, scopes: Iterable[informer.Scope]) -> AsyncIterator[Side]:
    """The side of a cluster with these caches, one for each resource, for as long as the caller stays inside."""
    async with contextlib.AsyncExitStack() as stack:
        stores = {scope.resource: await stack.enter_async_context(cluster.informers.share(scope)) for scope in scopes}
        side = Side(cluster, stores)
        stack.callback(cluster.health.listen(side.look))
        for cache in stores.values():
            stack.callback(cache.knowledge.listen(lambda _: side.look()))
        yield side
