"""What translation steps may look up along a link: the caches of a view, read only and without waiting."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hansa.engine.references import Name
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys

if TYPE_CHECKING:  # a view makes these for its links
    from hansa.engine.view import View

BY_NAMESPACE = "namespace"


def by_namespace(obj: Object) -> tuple[str]:
    """The namespace of an object."""
    return (obj.namespace,)


class Around:
    """The caches of a view and of one of its lower clusters. Kinds that the mode does not know are not there."""

    def __init__(self, view: "View", lower: str) -> None:
        self._view, self._lower = view, lower

    def upper(self, resource: Resource, place: Place) -> Object | None:
        """The upper object in this place, as far as it is known."""
        cache = self._view.upper.stores.get(resource)
        return None if cache is None else cache.get(place)

    def lower(self, resource: Resource, place: Place) -> Object | None:
        """The copy of the upper object in this place, in the link's lower cluster, or what serves as well there."""
        rule = self._view.mode.rules.get(resource)
        if self._lower not in self._view.lowers or rule is None:
            return None
        there = self._view.lower(self._view.key(Name(resource, place)), self._lower)
        if there is None or rule.lifecycle.shares_name(there.name):
            return there
        return there if there.labels.get(keys.UPPER) == self._view.upper_id else None

    def uppers(self, resource: Resource, namespace: str) -> Iterable[Object]:
        """The upper objects of one kind in a namespace."""
        cache = self._view.upper.stores.get(resource)
        if cache is None:
            return ()
        cache.index(BY_NAMESPACE, by_namespace)  # made when it is first asked for: most kinds need none
        return cache.find(BY_NAMESPACE, namespace)
