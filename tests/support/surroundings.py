"""Lookups of a link for unit tests of translations, from lists of objects.

Any object may be read. Tests with real snapshots check that rules declare what they read.
"""

from collections.abc import Iterable

from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model.lookups import Found, Lookups
from hansa.model.references import Reference


class Surroundings:
    """Upper objects, and their lower copies by their upper names."""

    def __init__(self, above: Iterable[Object] = (), below: Iterable[Object] = ()) -> None:
        self.above = {(obj.kind, obj.key): obj for obj in above}
        self.below = {(obj.kind, obj.key): obj for obj in below}

    def upper(self, resource: Resource, name: NamespacedName) -> Object | None:
        return self.above.get((resource.kind, name))

    def lower(self, resource: Resource, name: NamespacedName) -> Object | None:
        return self.below.get((resource.kind, name))

    def found(self, references: Iterable[Reference]) -> Lookups:
        """The lookups of a snapshot for exactly these references."""
        listed: dict[tuple[Resource, str], tuple[NamespacedName, ...]] = {}
        found: dict[tuple[Resource, NamespacedName], Found] = {}
        for one in references:
            names = [NamespacedName(one.namespace, one.name)]
            if not one.name:
                names = [obj.key for obj in self.uppers(one.resource, one.namespace)]
                listed[one.resource, one.namespace] = tuple(names)
            found |= {(one.resource, n): Found(self.upper(one.resource, n), self.lower(one.resource, n)) for n in names}
        return Lookups(found, listed)

    def uppers(self, resource: Resource, namespace: str) -> Iterable[Object]:
        return [obj for (kind, name), obj in self.above.items() if (kind, name.namespace) == (resource.kind, namespace)]
