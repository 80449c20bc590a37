"""Objects in namespaces that are placed elsewhere now: kinds that follow their namespace are placed again."""

from collections.abc import Iterator

from hansa.engine.caches import ClusterCaches
from hansa.engine.view.clusters import BY_NAMESPACE, by_namespace
from hansa.engine.view.topics import ObjectRef
from hansa.model.mode import Mode
from hansa.model.placement import Intents


class Namespaces:
    """The last placement of each namespace of one upper cluster. It is empty if no kind follows its namespace."""

    def __init__(self, upper: ClusterCaches, mode: Mode) -> None:
        kinds = (rule.resource for rule in mode.rules.values() if rule.follows_namespace)
        self._caches = {resource: upper.stores[resource] for resource in kinds}
        self._placed: dict[str, Intents] = {}
        for cache in self._caches.values():
            cache.index(BY_NAMESPACE, by_namespace)

    def __bool__(self) -> bool:
        """Whether any kind follows its namespace."""
        return bool(self._caches)

    def update(self, namespace: str, intents: Intents) -> Iterator[ObjectRef]:
        """Record where a namespace is placed; the objects in it that have to be placed again."""
        if self._placed.get(namespace, {}) == intents:
            return
        if intents:
            self._placed[namespace] = intents
        else:
            del self._placed[namespace]
        for resource, cache in self._caches.items():
            yield from (ObjectRef(resource, obj.key) for obj in cache.find(BY_NAMESPACE, namespace))
