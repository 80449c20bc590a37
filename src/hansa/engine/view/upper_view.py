"""One upper cluster with its lower ones: takes snapshots, and records the effects of decisions on later ones.

The syncer has one for each upper cluster. Nothing here writes to a cluster or awaits.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator

from hansa.engine import wakeups
from hansa.engine.caches import ClusterCaches
from hansa.engine.registry import Route
from hansa.engine.view import forced_deletions, in_sync, pending_limit, placements, refusals, retention, usage
from hansa.engine.view.clusters import LinkedClusters
from hansa.engine.view.snapshot import Snapshot, Snapshots
from hansa.engine.view.topics import LowerName, ObjectRef, Topic
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import placement, plan
from hansa.model.mode import Mode
from hansa.model.pair import Key, Pair, Unknown
from hansa.runtime import clock


class UpperView:
    """The state that is kept for one upper cluster; updated when it is linked and after each decision."""

    def __init__(
        self,
        upper: ClusterCaches,
        upper_id: str,
        mode: Mode,
        *,
        wakeups: wakeups.Wakeups,
        clock: clock.Clock,
        limits_changed: Callable[[], None] = lambda: None,
        decisions: placement.Decisions | None = None,
    ) -> None:
        self.mode, self._wakeups = mode, wakeups
        self.clusters = LinkedClusters(upper, upper_id, mode)
        self.placements = placements.Placements(self.clusters, wakeups.wake, decisions=decisions)
        self.in_flight: set[tuple[Key, str]] = set()
        self.refusals = refusals.Refusals()
        self.usage = usage.Usage(self.clusters, wakeups.wake, limits_changed)
        self._in_sync = in_sync.InSync(mode, self.clusters.selecting)
        self._pending = pending_limit.PendingLimit(upper_id)
        self._retention = retention.Retention(clock)
        self._forced = forced_deletions.ForcedDeletions()
        self._snapshots = Snapshots(
            self.clusters,
            self.placements,
            self._in_sync,
            self._pending,
            self._retention,
            self._forced,
            self.refusals,
            self.usage,
            self.in_flight,
            clock,
        )

    @property
    def name(self) -> str:
        """The name of the upper cluster."""
        return self.clusters.name

    def attach(self, route: Route, side: ClusterCaches) -> None:
        """Link a lower cluster."""
        self.clusters.add(route, side)
        self.usage.attach(route.lower)
        for resource, cache in side.stores.items():
            if (pending_of := self.mode.rules[resource].pending_of) is not None:
                self._pending.add(resource, route.lower, cache, pending_of)
        self.placements.links_changed()

    def detach(self, lower: str) -> None:
        """Unlink a lower cluster; its objects stay."""
        self.clusters.remove(lower)
        self.usage.detach(lower)
        self._in_sync.forget(lower)
        self._pending.remove(lower)
        self.refusals.forget(lower)
        self.placements.links_changed()

    def watch_forced_deletions(self) -> Iterator[Callable[[], None]]:
        """Note force-deleted upper objects of kinds that run once; yields functions that end it."""
        for resource, cache in self.clusters.upper.stores.items():
            if self.mode.rules[resource].lifecycle.runs_once:
                yield self._forced.watch(cache, functools.partial(self._has_copy, resource))

    def _has_copy(self, resource: Resource, upper: Object) -> bool:
        key = self.clusters.key(ObjectRef(resource, upper.key))
        return any(any(self.clusters.below(key, name, upper.uid)) for name in self.clusters.lowers)

    def all_keys(self) -> Iterator[Key]:
        """The keys of everything that is synced or has a copy, each once."""
        generated = dict.fromkeys(self.placements.generated())
        yield from generated
        yield from (key for key in self.clusters.all_keys() if key not in generated)

    def snapshot(self, key: Key, *, whole: Object | None = None) -> Snapshot:
        """All that a decision on the key reads; with the content of its upper object, if that was read."""
        return self._snapshots.of(key, whole=whole)

    @contextlib.contextmanager
    def decided(self, taken: Snapshot, todo: plan.Plan) -> Iterator[None]:
        """Record a decision; objects that it creates count as pending while the caller stays inside."""
        key = taken.pair.key
        for topic in taken.topics:
            self._wakeups.put(key, until=topic)
        written = frozenset(one.cluster for one in todo.actions if not isinstance(one, plan.Wait))
        self._in_sync.update(taken.pair, written=written)
        if self.mode.rules[key.resource].lifecycle.retention:
            intents = taken.pair.intents
            self._retention.update(key, taken.pair.lowers, () if isinstance(intents, Unknown) else intents)
        self.placements.forget(key)
        self._pending.update(key, taken.pending)
        self.usage.update(key, todo.actions)
        creating = [one.cluster for one in todo.actions if isinstance(one, plan.Create)]
        with self._pending.creating(key.resource, creating), self.usage.writing(todo.actions, key.resource):
            self.wake_pending(key.resource)
            yield

    def topics_read(self, decided: Pair, cluster: str) -> Iterator[Topic]:
        """The topics of what a decision read beside its pair in one lower cluster, on both sides."""
        link, lower = decided.links[cluster], self.clusters.lowers.get(cluster)
        for resource, name in link.lookups.objects:
            read = self.clusters.key(ObjectRef(resource, name))
            yield read
            if lower is not None and resource in lower.stores:
                yield LowerName(cluster, resource, self.mode.lower_name(read, "", link))

    def forget(self, key: Key) -> None:
        """Forget an object that concerns no lower cluster: it will not be reconciled, and is often gone."""
        self._wakeups.forget_key(key)
        self.placements.forget(key)
        self._in_sync.forget_key(key)
        self._pending.update(key, ())
        self.usage.update(key, ())
        self._retention.update(key, {}, ())
        self.refusals.update(key, {})

    def waiting_for_answers(self) -> Iterator[str]:
        """Where objects wait because too many requests are in flight, as sentences."""
        upper = self.clusters.upper.cluster
        found = {upper.name: (upper.inflight.waiting(), upper.inflight.most)}
        for name, side in self.clusters.lowers.items():
            found[name] = side.cluster.inflight.waiting(self.name), self.usage.most_requests(name)
        for name, (number, most) in found.items():
            if number:
                where = "the control plane" if name == upper.name else name
                yield f"requests: {most:g} of {most:g} to {where} have no answer yet, {number} object(s) wait"

    def wake_pending(self, resource: Resource) -> None:
        """Requeue the keys for which the pending limit has room now."""
        for key in self._pending.next(resource, lambda key, cluster: cluster in self.placements.concerned(key)):
            self._wakeups.wake(key)
