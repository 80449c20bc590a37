"""What one upper cluster has in its lower ones, and the objects that wait because a limit is reached.

The amounts are sums of the caches. An object that waits is requeued when there is room, objects in use first.
"""

import collections
import contextlib
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from hansa.engine.view.clusters import LinkedClusters
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys, limits, plan
from hansa.model.limits import Amounts, Limit, Limits, Room
from hansa.model.pair import Key

USAGE = "usage"  # the totals of lower caches: by upper cluster, and by upper cluster and namespace
SCANNED = 64  # waiting objects that one change tries: those that do not fit go to the end of the line
LARGEST = 3  # kinds and namespaces that a report names


@dataclass(slots=True)
class _Line:
    """The objects that wait for room in one lower cluster, with what they need; those in use come first."""

    used: dict[Key, plan.OverLimit] = field(default_factory=dict)
    unused: dict[Key, plan.OverLimit] = field(default_factory=dict)
    waiting: collections.Counter[Limit] = field(default_factory=collections.Counter)

    @property
    def limits(self) -> set[Limit]:
        return {limit for limit, number in self.waiting.items() if number}

    def pop(self, key: Key) -> bool:
        found = self.used.pop(key, None) or self.unused.pop(key, None)
        if found is not None:
            self.waiting[found.limit] -= 1
        return found is not None

    def put(self, key: Key, over: plan.OverLimit) -> None:
        self.pop(key)
        (self.used if over.room.is_used else self.unused)[key] = over
        self.waiting[over.limit] += 1

    def first(self, number: int) -> list[tuple[Key, plan.OverLimit]]:
        return list(itertools.islice(itertools.chain(self.used.items(), self.unused.items()), number))


@dataclass(frozen=True, slots=True)
class FullLimit:
    """A limit that is reached in a lower cluster, and what uses most of it."""

    cluster: str
    limit: Limit
    used: int
    most: int
    waiting: int
    kinds: tuple[tuple[str, int], ...]
    namespaces: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        def largest(parts: tuple[tuple[str, int], ...]) -> str:
            return ", ".join(f"{name} {limits.shown(self.limit, amount)}" for name, amount in parts) or "none"

        return (
            f"{self.limit}: {limits.shown(self.limit, self.used)} of {limits.shown(self.limit, self.most)} in"
            f" {self.cluster} are used, {self.waiting} object(s) wait; largest kinds: {largest(self.kinds)}; largest"
            f" namespaces: {largest(self.namespaces)}"
        )


class Usage:
    """The usage of one upper cluster. `changed` is called when a limit is reached, and when nothing waits any more."""

    def __init__(self, clusters: LinkedClusters, wake: Callable[[Key], None], changed: Callable[[], None]) -> None:
        self._clusters, self._wake, self._changed = clusters, wake, changed
        self._writing: dict[str, Amounts] = {}
        self._lines: dict[str, _Line] = {}
        self._last: dict[str, Amounts] = {}

    def attach(self, cluster: str) -> None:
        """A lower cluster was linked."""
        if self._limits(cluster) is not None:
            for resource, cache in self._clusters.lowers[cluster].stores.items():
                cache.total(USAGE, _amounts_of(resource))

    def detach(self, cluster: str) -> None:
        """A lower cluster was unlinked."""
        self._last.pop(cluster, None)
        if self._lines.pop(cluster, None):
            self._changed()

    def room(self, cluster: str, *, is_used: bool) -> Room | None:
        """The limits and the usage in a lower cluster, for an object that is in use or not; None without limits."""
        most = self._limits(cluster)
        return None if most is None else Room(most, self._used(cluster), is_used)

    def most_requests(self, cluster: str) -> float:
        """How many requests to a lower cluster may be in flight."""
        most = self._limits(cluster)
        return math.inf if most is None else max(1, most.requests)

    @contextlib.contextmanager
    def writing(self, actions: tuple[plan.Action, ...], resource: Resource) -> Iterator[None]:
        """Count what is being written, for as long as the caller stays inside."""
        made = (one for one in actions if isinstance(one, plan.Create | plan.Patch))
        written = [(one.cluster, added) for one in made if any(added := self._added(one, resource))]
        for cluster, added in written:
            self._writing[cluster] = limits.total((self._writing.get(cluster, ()), added))
        try:
            yield
        finally:
            for cluster, added in written:
                self._writing[cluster] = limits.difference(self._writing[cluster], added)
                self._sweep(cluster)  # it may have failed, and it was counted twice when the cache had it

    def update(self, key: Key, actions: tuple[plan.Action, ...]) -> None:
        """A key was decided: it waits where it exceeds a limit, and nowhere else."""
        over = {one.cluster: one for one in actions if isinstance(one, plan.OverLimit)}
        for cluster in tuple(self._lines.keys() | over.keys()):
            line = self._lines.setdefault(cluster, _Line())
            before = line.limits
            if cluster in over:
                self._last.setdefault(cluster, self._used(cluster))
                line.put(key, over[cluster])
            elif line.pop(key):
                self._sweep(cluster)  # it may be smaller than the room that it was requeued for
            if line.limits != before:
                self._changed()
            if not line.limits:
                del self._lines[cluster]
                self._last.pop(cluster, None)

    def copies_changed(self) -> None:
        """A copy changed: where there is more room now, requeue what fits."""
        for cluster in tuple(self._lines):
            before, now = self._last[cluster], self._used(cluster)
            self._last[cluster] = now
            if any(one < other for one, other in zip(now, before, strict=True)):
                self._sweep(cluster)

    def full(self) -> list[FullLimit]:
        """The limits that objects wait for."""
        found = []
        for cluster, line in self._lines.items():
            if (most := self._limits(cluster)) is None:
                continue
            for limit in sorted(line.limits):
                used = self._used(cluster).of(limit)
                kinds, namespaces = self._largest(cluster, limit)
                found.append(FullLimit(cluster, limit, used, most.of(limit), line.waiting[limit], kinds, namespaces))
        return found

    def _sweep(self, cluster: str) -> None:
        """Requeue the objects for which there is room, up to a number; the others go to the end of the line."""
        if (line := self._lines.get(cluster)) is None:
            return
        planned = self._used(cluster)
        for key, one in line.first(SCANNED):
            room = Room(one.room.limits, planned, one.room.is_used)
            if room.exceeded(one.needs) is None:
                planned = limits.total((planned, one.needs))
                self._wake(key)
            else:
                line.put(key, one)

    def _added(self, action: plan.Create | plan.Patch, resource: Resource) -> Amounts:
        """What a write adds to the copies in a lower cluster; for a patch, at most its own size."""
        if self._limits(action.cluster) is None:
            return limits.NOTHING
        if isinstance(action, plan.Create):
            return limits.amounts(resource, action.obj)
        return limits.NOTHING if action.subresource else Amounts(len(msgspec.json.encode(action.patch)))

    def _limits(self, cluster: str) -> Limits | None:
        link = self._clusters.links.get(cluster)
        return None if link is None else self._clusters.mode.limits_of(link)

    def _used(self, cluster: str) -> Amounts:
        stores, group = self._clusters.lowers[cluster].stores.values(), self._clusters.upper_id
        return limits.total((*(cache.sum(USAGE, group) for cache in stores), self._writing.get(cluster, ())))

    def _largest(self, cluster: str, limit: Limit) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
        kinds: collections.Counter[str] = collections.Counter()
        namespaces: collections.Counter[str] = collections.Counter()
        upper = self._clusters.upper_id
        names = [key.name for key in self._clusters.upper.stores.get(resources.NAMESPACES, ())]
        for resource, cache in self._clusters.lowers[cluster].stores.items():
            kinds[str(resource)] = Amounts(*cache.sum(USAGE, upper)).of(limit)
            for name in names:
                namespaces[name] += Amounts(*cache.sum(USAGE, (upper, name))).of(limit)
        first = [tuple((k, v) for k, v in one.most_common(LARGEST) if v) for one in (kinds, namespaces)]
        return first[0], first[1]


def _amounts_of(resource: Resource) -> Callable[[Object], tuple[tuple[object, Amounts], ...]]:
    def amounts_of(obj: Object) -> tuple[tuple[object, Amounts], ...]:
        upper = obj.labels.get(keys.UPPER)
        if not upper:
            return ()
        amounts = limits.amounts(resource, obj)
        namespace = obj.annotations.get(keys.UPPER_NAME, "").partition("/")[0]
        return ((upper, amounts), ((upper, namespace), amounts))

    return amounts_of
