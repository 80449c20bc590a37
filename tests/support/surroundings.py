"""Lookups of a link in tests: objects given by hand, by the name that they have in the upper cluster.

Anything may be read; that rules declare what they read is tested with real snapshots.
"""

from collections.abc import Iterable

from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model.lookups import Found, Lookups
from hansa.model.references import Reference


class Surroundings:
    """Upper objects, and what there is of them below, also by their upper names."""

    def __init__(self, above: Iterable[Object] = (), below: Iterable[Object] = ()) -> None:
        self.above = {(obj.kind, obj.key): obj for obj in above}
        self.below = {(obj.kind, obj.key): obj for obj in below}

    def upper(self, resource: Resource, name: NamespacedName) -> Object | None:
        return self.above.get((resource.kind, name))

    def lower(self, resource: Resource, name: NamespacedName) -> Object | None:
        return self.below.get((resource.kind, name))

    def found(self, references: Iterable[Reference]) -> Lookups:
        """What a snapshot finds for these references, and nothing else."""
        listed, found = {}, {}
        for one in references:
            names = [NamespacedName(one.namespace, one.name)]
            if not one.name:
                names = [obj.key for obj in self.uppers(one.resource, one.namespace)]
                listed[one.resource, one.namespace] = tuple(names)
            found |= {(one.resource, n): Found(self.upper(one.resource, n), self.lower(one.resource, n)) for n in names}
        return Lookups(found, listed)

    def uppers(self, resource: Resource, namespace: str) -> Iterable[Object]:
        return [obj for (kind, name), obj in self.above.items() if (kind, name.namespace) == (resource.kind, namespace)]
