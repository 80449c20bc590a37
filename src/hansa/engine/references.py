"""Who uses what: the lower clusters where an upper object is needed because objects that live there refer to it.

Each object's part is remembered and replaced as a whole, so that no count can drift.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model.mode import Mode
from hansa.model.pair import Key, Unknown
from hansa.model.placement import Facts, Named
from hansa.model.references import Missing, Reference

T = TypeVar("T")


class Name(NamedTuple):
    """An upper object of one cluster."""

    resource: Resource
    place: Place


class _Part(NamedTuple):
    """What one object adds: it needs `names` in `clusters`, and its own place depends on the users of `follows`."""

    content: int = 0  # what names and follows were computed from
    names: tuple[Name, ...] = ()
    awaited: tuple[Name, ...] = ()  # of these: those that have to be there above, and those whose place is kept free
    kept_free: tuple[Name, ...] = ()
    follows: tuple[Name, ...] = ()
    clusters: frozenset[str] = frozenset()


_NOTHING = _Part()


class References:
    """The users of every upper object of one cluster. `changed` is told whose place may be another now.

    `also` tells what an object needs besides what its rule says.
    """

    def __init__(
        self,
        upper: str,
        mode: Mode,
        changed: Callable[[Name], None],
        *,
        also: Callable[[Resource, Object], Iterable[Name]] = lambda _resource, _obj: (),
    ) -> None:
        self._upper, self._mode, self._changed, self._also = upper, mode, changed, also
        self._parts: dict[Name, _Part] = {}
        self._users: dict[Name, dict[str, int]] = {}  # how many objects in a cluster need it
        self._followers: dict[Name, dict[Name, None]] = {}
        self._kept_free: dict[Name, dict[Name, None]] = {}  # and for whom

    def users(self, resource: Resource, place: Place) -> frozenset[str]:
        """The lower clusters where something needs this object."""
        return frozenset(self._users.get(Name(resource, place), ()))

    def names(self, resource: Resource, place: Place) -> tuple[Name, ...]:
        """What this object needs where it lives."""
        return self._parts.get(Name(resource, place), _NOTHING).names

    def awaited(self, resource: Resource, place: Place) -> tuple[Name, ...]:
        """What has to be there above before this object is made below."""
        return self._parts.get(Name(resource, place), _NOTHING).awaited

    def readers(self, name: Name) -> Iterator[Name]:
        """Who must find under this name what is there above, or nothing. It takes a look at all."""
        return (one for one, part in self._parts.items() if name in part.awaited or name in part.kept_free)

    def is_kept_free(self, name: Name) -> bool:
        """Whether somebody below must find nothing under this name if it is not there above."""
        return name in self._kept_free

    def look(self, name: Name, obj: Object | None, facts: Facts) -> None:
        """An object is so now, or gone: what it needs, and where, may have changed."""
        before = self._parts.get(name, _NOTHING)
        after = _NOTHING if obj is None else self._part(name, obj, facts, before=before)
        if after is before or after == before:
            return
        if after is _NOTHING:
            del self._parts[name]
        else:
            self._parts[name] = after
        _relist(self._followers, name, before.follows, after.follows)
        _relist(self._kept_free, name, before.kept_free, after.kept_free)
        for one in dict.fromkeys((*self._recount(before, after), *before.kept_free, *after.kept_free)):
            self._changed(one)
            for follower in tuple(self._followers.get(one, ())):
                self._changed(follower)

    def _part(self, name: Name, obj: Object, facts: Facts, *, before: _Part) -> _Part:
        rule = self._mode.rules[name.resource]
        needs = rule.needs(obj, Key(self._upper, name.resource, *name.place), facts)
        clusters = before.clusters if isinstance(needs, Unknown) else _shared(frozenset(needs))
        now = _content(obj) if clusters else 0
        if clusters and now == before.content:
            return before if clusters == before.clusters else before._replace(clusters=clusters)
        follows = _names(rule.follows(obj))
        if not clusters and not follows:
            return _NOTHING  # most objects of a big cluster are not ours
        named = tuple(rule.references(obj)) if clusters else ()
        names = _shared((*_names(named), *self._also(name.resource, obj))) if clusters else ()
        awaited, kept_free = (_shared(_names(_missing(named, case))) for case in (Missing.AWAITED, Missing.KEPT_FREE))
        return _Part(now, names, awaited, kept_free, follows, clusters) if names or follows else _NOTHING

    def _recount(self, before: _Part, after: _Part) -> list[Name]:
        """Replace one part by another; whose users are not the same any more."""
        old = {(name, cluster) for name in before.names for cluster in before.clusters}
        new = {(name, cluster) for name in after.names for cluster in after.clusters}
        changed: dict[Name, None] = {}
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


def _relist(table: dict[Name, dict[Name, None]], name: Name, before: Iterable[Name], after: Iterable[Name]) -> None:
    """Enter a name under others than before."""
    for one in before:
        entered = table[one]
        del entered[name]
        if not entered:
            del table[one]
    for one in after:
        table.setdefault(one, {})[name] = None


def _missing(named: Iterable[Named], case: Missing) -> Iterator[Named]:
    return (one for one in named if isinstance(one, Reference) and one.missing is case)


def _content(obj: Object) -> int:
    """What names and follows are computed from; objects that have a status name others in their spec."""
    return hash((obj.uid, obj.raw("spec"))) if obj.raw("status") else hash((obj.uid, obj.version))


@functools.lru_cache(maxsize=1024)
def _shared(value: T) -> T:
    """Pods of a workload need the same things in the same places, and each kilobyte counts ten thousand times."""
    return value


def _names(named: Iterable[Named]) -> tuple[Name, ...]:
    return tuple(dict.fromkeys(Name(one.resource, Place(one.namespace, one.name)) for one in named))
