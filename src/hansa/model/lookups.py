"""Objects beside a pair that its rule reads, such as the DNS Service for a pod's dnsConfig.

A rule declares them (`Rule.reads`), the snapshot finds them, and translation steps read them from their link. A step
that reads what its rule does not declare gets an error: it would make a decision depend on more than its pair.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model.references import Reference
from hansa.runtime import errors


class Undeclared(errors.HansaError):
    """A step reads an object that its rule does not declare."""


class Found(NamedTuple):
    """An upper object and its copy in the link's lower cluster, each None if it does not exist."""

    upper: Object | None
    lower: Object | None


@dataclass(frozen=True, slots=True)
class Lookups:
    """What a snapshot found for one object along one link."""

    objects: Mapping[tuple[Resource, NamespacedName], Found] = field(default_factory=dict)
    # The kinds of which all upper objects of a namespace are in `objects`.
    listed: Mapping[tuple[Resource, str], tuple[NamespacedName, ...]] = field(default_factory=dict)

    def upper(self, resource: Resource, name: NamespacedName) -> Object | None:
        """The upper object of this name."""
        return self._found(resource, name).upper

    def lower(self, resource: Resource, name: NamespacedName) -> Object | None:
        """The copy of the upper object of this name."""
        return self._found(resource, name).lower

    def uppers(self, resource: Resource, namespace: str) -> Iterable[Object]:
        """All upper objects of a kind in a namespace."""
        if (resource, namespace) not in self.listed:
            raise Undeclared(f"{resource} in {namespace} are read, but Rule.reads does not declare them")
        found = (self.objects[resource, name].upper for name in self.listed[resource, namespace])
        return [upper for upper in found if upper is not None]

    def _found(self, resource: Resource, name: NamespacedName) -> Found:
        found = self.objects.get((resource, name))
        if found is None:
            raise Undeclared(f"{resource} {name} is read, but Rule.reads does not declare it")
        return found


NO_LOOKUPS = Lookups()


@dataclass(frozen=True, slots=True)
class Reads:
    """What a rule reads beside its pair: `objects` names it, of these `kinds`.

    Of the kinds in `lists`, a reference without a name means all objects of a namespace. Where the way up does not read
    them, they are not looked up for a copy that is in sync.
    """

    kinds: frozenset[Resource]
    objects: Callable[[Object], Iterable[Reference]]
    lists: frozenset[Resource] = frozenset()
    by_way_up: bool = False
