"""Finds objects and their copies in the caches of one upper cluster and of the lower clusters that it is linked to.

Placement is left to `placements`, and whether a cache is known to `caches`.
"""

import itertools
from collections.abc import Container, Iterator
from typing import NamedTuple

from hansa.engine.caches import ClusterCaches
from hansa.engine.registry import Route
from hansa.engine.view.topics import LowerName, ObjectRef
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys, stamp
from hansa.model.mode import MOST_SELECTING, Mode
from hansa.model.pair import Key, Link

# Indexes of lower caches: by the upper cluster of a copy, and by the upper object of a copy.
BY_UPPER, BY_ORIGIN = "upper", "origin"
BY_NAMESPACE = "namespace"  # an index of upper caches


def by_upper(obj: Object) -> tuple[str, ...]:
    """The upper cluster whose object this is a copy of, if it is one."""
    upper = obj.labels.get(keys.UPPER)
    return (upper,) if upper else ()


def by_origin(obj: Object) -> tuple[tuple[str, str], ...]:
    """The upper cluster, and namespace/name of the object that this is a copy of, if it is one."""
    upper, name = obj.labels.get(keys.UPPER), obj.annotations.get(keys.UPPER_NAME)
    return ((upper, name),) if upper and name else ()


def by_namespace(obj: Object) -> tuple[str]:
    """The namespace of an object."""
    return (obj.namespace,)


class Below(NamedTuple):
    """The lower object that has the lower name of an upper object, and copies of former upper objects of that name."""

    lower: Object | None = None
    leftovers: tuple[Object, ...] = ()


_NOTHING = Below()


class LinkedClusters:
    """The caches of an upper cluster and of its lower ones, which are added and removed at run time."""

    def __init__(self, upper: ClusterCaches, upper_id: str, mode: Mode) -> None:
        self.upper, self.upper_id, self.mode = upper, upper_id, mode
        self.lowers: dict[str, ClusterCaches] = {}
        self.links: dict[str, Link] = {}
        self.routes: dict[str, Route] = {}
        self._selections: dict[ObjectRef, int] = {}  # of objects that select others
        self._selecting = frozenset[Resource]().union(*(rule.selected_by for rule in mode.rules.values()))
        self._own_links: dict[str, Link] = {}  # those that lead to the upper cluster itself
        for resource in {one for rule in mode.rules.values() if rule.reads is not None for one in rule.reads.lists}:
            upper.stores[resource].index(BY_NAMESPACE, by_namespace)

    @property
    def name(self) -> str:
        """The name of the upper cluster."""
        return self.upper.cluster.name

    def has_copies(self, resource: Resource, namespace: str, cluster: str) -> bool:
        """Whether a lower cluster has copies of this kind from a namespace, also of objects that are gone."""
        copies = self.lowers[cluster].stores[resource].find(BY_UPPER, self.upper_id)
        origins = (stamp.of(one) for one in copies)
        return any(origin is not None and origin.namespace == namespace for origin in origins)

    def selecting(self, key: Key) -> int:
        """A hash of the objects that may select an object of their namespace (`Rule.selected_by`)."""
        stores = (self.upper.stores[resource] for resource in self.mode.rules[key.resource].selected_by)
        found = (itertools.islice(store.find(BY_NAMESPACE, key.namespace), MOST_SELECTING) for store in stores)
        return hash(tuple(_selection(one) for objects in found for one in objects))

    def selection_changed(self, ref: ObjectRef) -> bool:
        """Whether an object changed in such a way that it may select others than before."""
        return ref.resource in self._selecting and self._has_changed(ref)

    def selected(self, namespaces: Container[str]) -> Iterator[Key]:
        """The keys in some namespaces that other objects may select."""
        for resource, rule in self.mode.rules.items():
            names = list(self.upper.stores[resource]) if rule.selected_by else ()
            yield from (self.key(ObjectRef(resource, name)) for name in names if name.namespace in namespaces)

    def _has_changed(self, ref: ObjectRef) -> bool:
        obj, before = self.upper.stores[ref.resource].get(ref.name), self._selections.pop(ref, None)
        if obj is not None:
            self._selections[ref] = _selection(obj)
        return before != self._selections.get(ref)

    def add(self, route: Route, side: ClusterCaches) -> None:
        """Link a lower cluster."""
        self.links[route.lower] = Link(self.name, self.upper_id, route.lower, route.settings, route.nodes)
        self.lowers[route.lower], self.routes[route.lower] = side, route
        if route.is_self:
            self._own_links[route.lower] = self.links[route.lower]
        for cache in side.stores.values():
            cache.index(BY_UPPER, by_upper)
            cache.index(BY_ORIGIN, by_origin)

    def remove(self, lower: str) -> None:
        """Unlink a lower cluster; its objects stay."""
        for table in (self.links, self.lowers, self.routes, self._own_links):
            table.pop(lower, None)

    def side(self, cluster: str) -> ClusterCaches:
        """The caches of a cluster, upper or lower."""
        return self.upper if cluster == self.name else self.lowers[cluster]

    def key(self, ref: ObjectRef) -> Key:
        """The key of an object of the upper cluster."""
        return Key(self.name, ref.resource, ref.name.namespace, ref.name.name)

    def get(self, key: Key) -> Object | None:
        """The upper object, if there is one. Where a cluster is linked to itself, copies are not upper objects."""
        cache = self.upper.stores.get(key.resource)
        found = None if cache is None else cache.get(NamespacedName(key.namespace, key.name))
        return None if found is None or self._is_copy(found, key.resource) else found

    def below(self, key: Key, cluster: str, uid: str) -> Below:
        """The lower objects of an upper object with this uid (empty: it is gone), stamped by us or not.

        A copy is found by its stamp, and counts only if it has the name that the mode gives it: a manifest that users
        copied with its stamp to another name is not ours.
        """
        cache = self.lowers[cluster].stores.get(key.resource)
        if cache is None:
            return _NOTHING
        link, lower_name = self.links[cluster], self.mode.lower_name
        stamped = cache.find(BY_ORIGIN, (self.upper_id, f"{key.namespace}/{key.name}"))
        lower = cache.get(lower_name(key, uid, link))
        others = [
            one
            for one in stamped
            if one is not lower and one.key == lower_name(key, one.annotations.get(keys.UPPER_UID, ""), link)
        ]
        if not uid and others and not any(one is lower for one in stamped):
            return Below(others[0], tuple(others[1:]))
        return Below(lower, tuple(others))

    def copy(self, key: Key, cluster: str) -> Object | None:
        """The copy of an upper object in a lower cluster, or a lower object that may be used instead."""
        rule = self.mode.rules.get(key.resource)
        if rule is None or cluster not in self.lowers:
            return None
        upper = self.get(key)
        found = self.below(key, cluster, "" if upper is None else upper.uid).lower
        if found is None or rule.lifecycle.may_share(found.name):
            return found
        return found if found.labels.get(keys.UPPER) == self.upper_id else None

    def copies_to_delete(self, resource: Resource, cluster: str) -> Iterator[Object]:
        """Copies in a lower cluster that are about to be deleted: their upper object is gone or being deleted."""
        lower = self.lowers.get(cluster)
        for copy in () if lower is None else lower.stores[resource].find(BY_UPPER, self.upper_id):
            topic = self.topic(cluster, resource, copy)
            upper = self.get(topic) if isinstance(topic, Key) else None
            if upper is None or upper.is_deleting or upper.uid != copy.annotations.get(keys.UPPER_UID):
                yield copy

    def topic(self, cluster: str, resource: Resource, lower: Object) -> Key | LowerName:
        """The topic of a change of a lower object: its upper object, or its name if it is not ours."""
        origin = stamp.of(lower)
        if origin is None or origin.upper != self.upper_id:
            return LowerName(cluster, resource, lower.key)
        return Key(self.name, resource, origin.namespace, origin.name)

    def all_keys(self) -> Iterator[Key]:
        """The keys of all upper objects, and of copies without one."""
        for resource, cache in self.upper.stores.items():
            yield from (self.key(ObjectRef(resource, name)) for name in cache)
        for cluster, lower in self.lowers.items():
            for resource, cache in lower.stores.items():
                topics = (self.topic(cluster, resource, obj) for obj in cache.find(BY_UPPER, self.upper_id))
                yield from (topic for topic in topics if isinstance(topic, Key) and self.get(topic) is None)

    def _is_copy(self, obj: Object, resource: Resource) -> bool:
        """Whether it is a copy in the upper cluster itself. By its name, not by a cache: the other one may be late."""
        if not self._own_links or (origin := stamp.of(obj)) is None or origin.upper != self.upper_id:
            return False
        key = Key(self.name, resource, origin.namespace, origin.name)
        return any(obj.key == self.mode.lower_name(key, origin.uid, link) for link in self._own_links.values())


def _selection(obj: Object) -> int:
    """A hash of what an object selects: its spec. Statuses change often."""
    return hash((obj.uid, obj.raw("spec")))
