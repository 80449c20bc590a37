"""References between upper objects: in which lower clusters each object is needed, because others there refer to it.

The references of each object are remembered and replaced as a whole, so that no count can drift.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from hansa.engine.view.topics import ObjectRef
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model.mode import Mode
from hansa.model.pair import Key, Unknown
from hansa.model.placement import Intents, PlacementContext, Referable
from hansa.model.references import Missing, Reference

T = TypeVar("T")


class _Part(NamedTuple):
    """The references of one object: it needs `names` in `clusters`, and is placed with the users of `placed_with`."""

    content: int = 0  # a hash of what names and placed_with were computed from
    names: tuple[ObjectRef, ...] = ()
    # Of these: those that must exist in the upper cluster, and those with an empty copy if they don't.
    required: tuple[ObjectRef, ...] = ()
    placeholders: tuple[ObjectRef, ...] = ()
    placed_with: tuple[ObjectRef, ...] = ()
    clusters: frozenset[str] = frozenset()


_NOTHING = _Part()


class References:
    """The users of every object of one upper cluster. `changed` gets objects that may be placed elsewhere now.

    `also` gives objects that one needs in addition to the references of its rule.
    """

    def __init__(
        self,
        upper: str,
        mode: Mode,
        changed: Callable[[ObjectRef], None],
        *,
        also: Callable[[Resource, Object], Iterable[ObjectRef]] = lambda _resource, _obj: (),
    ) -> None:
        self._upper, self._mode, self._changed, self._also = upper, mode, changed, also
        self._parts: dict[ObjectRef, _Part] = {}
        self._users: dict[ObjectRef, dict[str, int]] = {}  # how many objects in a cluster need it
        self._placed_with: dict[ObjectRef, dict[ObjectRef, None]] = {}
        self._placeholders: dict[ObjectRef, dict[ObjectRef, None]] = {}  # with the objects that need it

    def users(self, resource: Resource, name: NamespacedName) -> frozenset[str]:
        """The lower clusters with objects that need this one."""
        return frozenset(self._users.get(ObjectRef(resource, name), ()))

    def needed(self) -> Iterator[ObjectRef]:
        """All objects that others need in some lower cluster, whether they exist or not."""
        return iter(self._users)

    def names(self, resource: Resource, name: NamespacedName) -> tuple[ObjectRef, ...]:
        """What this object needs where it is placed."""
        return self._parts.get(ObjectRef(resource, name), _NOTHING).names

    def required(self, resource: Resource, name: NamespacedName) -> tuple[ObjectRef, ...]:
        """What must exist in the upper cluster before copies of this object are created."""
        return self._parts.get(ObjectRef(resource, name), _NOTHING).required

    def readers(self, name: ObjectRef) -> Iterator[ObjectRef]:
        """The objects that must not read another object than the upper one under this name. It scans all objects."""
        return (one for one, part in self._parts.items() if name in part.required or name in part.placeholders)

    def is_placeholder(self, name: ObjectRef) -> bool:
        """Whether objects in lower clusters must not find another object under this name."""
        return name in self._placeholders

    def update(
        self, name: ObjectRef, obj: Object | None, context: PlacementContext, placed: Intents | None = None
    ) -> None:
        """An object changed or is gone: what it needs, and where, may have changed. `placed` is its placement."""
        before = self._parts.get(name, _NOTHING)
        after = _NOTHING if obj is None else self._part(name, obj, context, placed, before=before)
        if after is before or after == before:
            return
        if after is _NOTHING:
            del self._parts[name]
        else:
            self._parts[name] = after
        _relist(self._placed_with, name, before.placed_with, after.placed_with)
        kept = _relist(self._placeholders, name, before.placeholders, after.placeholders)
        for one in dict.fromkeys((*self._recount(before, after), *kept)):
            self._changed(one)
            for follower in tuple(self._placed_with.get(one, ())):
                self._changed(follower)

    def _part(
        self, name: ObjectRef, obj: Object, context: PlacementContext, placed: Intents | None, *, before: _Part
    ) -> _Part:
        rule = self._mode.rules[name.resource]
        needs = rule.needs(obj, Key(self._upper, name.resource, *name.name), context, placed)
        clusters = before.clusters if isinstance(needs, Unknown) else _shared(frozenset(needs))
        now = _content(obj) if clusters else 0
        if clusters and now == before.content:
            return before if clusters == before.clusters else before._replace(clusters=clusters)
        placed_with = _names(rule.placed_with(obj))
        if not clusters and not placed_with:
            return _NOTHING  # most objects of a large cluster are not synced
        named = tuple(rule.references(obj)) if clusters else ()
        names = _shared((*_names(named), *self._also(name.resource, obj))) if clusters else ()
        cases = (Missing.REQUIRED, Missing.PLACEHOLDER)
        required, placeholders = (_shared(_names(_missing(named, case))) for case in cases)
        return _Part(now, names, required, placeholders, placed_with, clusters) if names or placed_with else _NOTHING

    def _recount(self, before: _Part, after: _Part) -> list[ObjectRef]:
        """Replace one part by another; the objects whose users changed."""
        old = {(name, cluster) for name in before.names for cluster in before.clusters}
        new = {(name, cluster) for name in after.names for cluster in after.clusters}
        changed: dict[ObjectRef, None] = {}
        for name, cluster in new - old:
            users = self._users.setdefault(name, {})
            users[cluster] = users.get(cluster, 0) + 1
            if users[cluster] == 1:
                changed[name] = None
        for name, cluster in old - new:
            users = self._users[name]
            users[cluster] -= 1
            if not users[cluster]:
                del users[cluster]
                changed[name] = None
            if not users:
                del self._users[name]
        return list(changed)


def _relist(
    table: dict[ObjectRef, dict[ObjectRef, None]],
    name: ObjectRef,
    before: tuple[ObjectRef, ...],
    after: tuple[ObjectRef, ...],
) -> list[ObjectRef]:
    """Move an entry to other keys of a table; the keys that are new or gone."""
    if before == after:
        return []
    moved = []
    for one in after:
        if one not in table:
            moved.append(one)
        table.setdefault(one, {})[name] = None
    for one in before:
        if one in after:
            continue
        entered = table[one]
        del entered[name]
        if not entered:
            del table[one]
            moved.append(one)
    return moved


def _missing(named: Iterable[Referable], case: Missing) -> Iterator[Referable]:
    return (one for one in named if isinstance(one, Reference) and one.missing is case)


def _content(obj: Object) -> int:
    """A hash of what references are computed from; objects with a status refer to others in their spec."""
    return hash((obj.uid, obj.raw("spec"))) if obj.raw("status") else hash((obj.uid, obj.version))


@functools.lru_cache(maxsize=1024)
def _shared(value: T) -> T:
    """One copy of equal values: pods of a workload have the same references in the same clusters."""
    return value


def _names(named: Iterable[Referable]) -> tuple[ObjectRef, ...]:
    return tuple(dict.fromkeys(ObjectRef(one.resource, NamespacedName(one.namespace, one.name)) for one in named))
