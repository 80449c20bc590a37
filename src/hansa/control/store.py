"""The cache of one resource in one cluster: a table that is updated by a watch and by the answers to our own writes.

It never returns to an older state and never restores a deleted object. Running the watch is left to the informer.
"""

from collections.abc import Callable

from hansa.control import content_budget, freshness, table, versions
from hansa.control.content_budget import ContentBudget
from hansa.kube import errors, objects, watching
from hansa.runtime import clock, metrics


class Store(table.Table):
    """A table of objects of one API server. A missing object is absent in the cluster only if `freshness.is_known`.

    The cache stays known for `patience` seconds while its watch is interrupted; `matches` is the filter of the scope.
    Objects that exceed `budget`, which several stores can share, are outlined; too many of them raise Unreachable.
    """

    def __init__(
        self,
        name: str,
        *,
        cluster: str = "",
        resource: str = "",
        clock: clock.Clock,
        metrics: metrics.Registry,
        patience: float = 120.0,
        matches: Callable[[objects.Object], bool] = lambda _: True,
        budget: ContentBudget | None = None,
    ) -> None:
        super().__init__(name, cluster=cluster, resource=resource, metrics=metrics)
        self.freshness = freshness.Freshness(name, clock=clock, patience=patience)
        self._matches = matches
        self._budget, self._content, self._listed = budget, 0, 0
        self._outlines = None if budget is None else budget.outlines
        self._history = versions.History()
        self._listing: dict[objects.NamespacedName, objects.Object] | None = None
        labels = ["cluster", "resource"]
        objects_ = metrics.gauge("hansa_store_objects", "Objects in the cache.", labels=labels)
        fresh = metrics.gauge(
            "hansa_store_fresh",
            "1 while the cache is listed and its watch is not interrupted for too long.",
            labels=labels,
            combine=min,
        )
        self._interruptions = metrics.counter("hansa_watch_interruptions_total", "Interrupted watches.", labels=labels)
        self._lists = metrics.counter("hansa_watch_lists_total", "Full lists, the first one included.", labels=labels)
        self._end_gauges = (
            objects_.read(lambda: {(cluster, resource): len(self)}),
            fresh.read(lambda: {(cluster, resource): self.freshness.is_known}),
        )

    def observe(self, obj: objects.Object) -> None:
        """Read our own writes: apply the server's answer to a write, if it is newer than the cached object."""
        old = self.get(obj.key)
        if not self._history.is_ahead(obj) or (old and not versions.is_newer(obj, old)):
            return
        if self._matches(obj):
            if self._may_add(obj, old):
                self.put(obj.key, obj)
        elif old and old.uid == obj.uid:
            self._history.mark_gone(obj.uid, versions.number(obj.version))
            self.put(obj.key, None)

    def observe_gone(self, key: objects.NamespacedName, uid: str) -> None:
        """Apply the server's answer that this object no longer exists."""
        if (old := self.get(key)) and old.uid == uid:
            self._history.mark_gone(uid)
            self.put(key, None)

    def apply(self, change: watching.Change) -> None:
        """Apply an event of the watch."""
        match change:
            case watching.Added(obj) | watching.Modified(obj):
                self._present(obj)
            case watching.Deleted(obj):
                self._absent(obj)
            case watching.Bookmark(version):
                self._history.reach(version)
            case watching.Restarted():
                self._listing, self._listed = {}, 0
                self._lists.labels(self.cluster, self.resource).inc()
            case watching.Synced(version):
                self._replace(version)
                self.freshness.synced()
            case watching.Interrupted(error):
                # A kind that is not served is as one that may not be read: others of the cluster are not affected.
                is_forbidden = isinstance(error, errors.Forbidden | errors.NotFound)
                self.freshness.interrupt(str(error), is_forbidden=is_forbidden)
                self._interruptions.labels(self.cluster, self.resource).inc()
                return
        if self.freshness.error and self._listing is None:
            self.freshness.resume()

    def put(self, key: objects.NamespacedName, new: objects.Object | None) -> None:
        """Replace or remove an object, and notify the listeners; without its content if there is too much."""
        if (budget := self._budget) is not None:
            new = self._counted(self.get(key), new, budget)
        super().put(key, new)

    def _counted(
        self, old: objects.Object | None, new: objects.Object | None, budget: ContentBudget
    ) -> objects.Object | None:
        """The object as it fits, which is counted in place of the old one. If it raises, nothing is counted."""
        known, outlines = int(old is not None), self._outlines
        if new is not None and outlines is not None:
            outlines.check(new, outlines.used - known)
        before = content_budget.content(old)
        new = None if new is None else budget.fitting(new, besides=before)
        after = content_budget.content(new)
        budget.move(before, after)
        self._content += after - before
        if outlines is not None:
            outlines.used += int(new is not None) - known
        return new

    def close(self) -> None:
        """End the timers and gauges; the store is not used any more."""
        self.freshness.close()
        if self._budget is not None:
            self._budget.move(self._content, 0)
        if self._outlines is not None:
            self._outlines.used -= len(self)
        for end in self._end_gauges:
            end()

    def _may_add(self, obj: objects.Object, old: objects.Object | None) -> bool:
        """Whether there is room for the answer to our own write. If not, that is an error of the watch alone."""
        if (budget := self._budget) is None:
            return True
        if budget.is_strict and not budget.has_room(obj, besides=content_budget.content(old)):
            return False
        return old is not None or self._outlines is None or self._outlines.has_room(obj, self._outlines.used)

    def _present(self, obj: objects.Object) -> None:
        if self._listing is not None:
            self._list(obj, self._listing)
            return
        self._history.reach(obj.version)
        old = self.get(obj.key)
        if self._history.is_before_deletion(obj) or (
            old and (old.version == obj.version or versions.is_newer(old, obj))
        ):
            return
        self.put(obj.key, obj)

    def _list(self, obj: objects.Object, listing: dict[objects.NamespacedName, objects.Object]) -> None:
        """Add an object to a full list, which must not take more memory than the table."""
        if self._outlines is not None:
            others = self._outlines.used - len(self)
            self._outlines.check(obj, others + len(listing) - (obj.key in listing))
        if (budget := self._budget) is not None:
            self._listed -= content_budget.content(listing.pop(obj.key, None))
            obj = budget.fitting(obj, besides=self._content - self._listed)
            self._listed += content_budget.content(obj)
        listing[obj.key] = obj

    def _absent(self, obj: objects.Object) -> None:
        if self._listing is not None:
            self._listing.pop(obj.key, None)
            return
        self._history.reach(obj.version)
        self._history.forget(obj.uid)
        old = self.get(obj.key)
        # The cached object may be newer: the next one of that name, from the answer to its creation.
        if old and not versions.is_newer(old, obj):
            self.put(obj.key, None)

    def _replace(self, version: str) -> None:
        """Make the table equal to the full list, without an await: readers never see a part of it."""
        if self._listing is None:
            self._history.reach(version)  # without a list, nothing is known to be gone
            return
        listed, self._listing = self._listing, None
        if self._outlines is not None:
            self._outlines.is_exceeded = False
        is_rollback = self._history.restart(version, {obj.uid for obj in listed.values()})
        for key, old in self.snapshot().items():
            if key not in listed and (is_rollback or not self._history.is_ahead(old)):
                self.put(key, None)
        for key, obj in listed.items():
            known = self.get(key)
            is_kept = known and (known.version == obj.version or (versions.is_newer(known, obj) and not is_rollback))
            if not is_kept and not self._history.is_before_deletion(obj):
                self.put(key, obj)
