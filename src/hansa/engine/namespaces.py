"""What is in namespaces that are somewhere else now: kinds that go with their namespace have to be looked at again."""

from collections.abc import Iterator

from hansa.engine.around import BY_NAMESPACE, by_namespace
from hansa.engine.references import Name
from hansa.engine.side import Side
from hansa.model.mode import Mode
from hansa.model.placement import Intents


class Namespaces:
    """The namespaces of one upper cluster, and where each was seen last. It costs nothing if no kind goes with them."""

    def __init__(self, upper: Side, mode: Mode) -> None:
        kinds = (rule.resource for rule in mode.rules.values() if rule.goes_with_namespace)
        self._caches = {resource: upper.stores[resource] for resource in kinds}
        self._seen: dict[str, Intents] = {}
        for cache in self._caches.values():
            cache.index(BY_NAMESPACE, by_namespace)

    def __bool__(self) -> bool:
        """Whether it matters where namespaces are."""
        return bool(self._caches)

    def look(self, namespace: str, intents: Intents) -> Iterator[Name]:
        """A namespace should be in these clusters now; what in it has to be looked at again."""
        if self._seen.get(namespace, {}) == intents:
            return
        if intents:
            self._seen[namespace] = intents
        else:
            del self._seen[namespace]
        for resource, cache in self._caches.items():
            yield from (Name(resource, obj.key) for obj in cache.find(BY_NAMESPACE, namespace))
