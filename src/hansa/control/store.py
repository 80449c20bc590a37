"""The cache of one resource in one cluster: a table that follows a watch and the answers to our own writes.

It never steps back, brings back nothing that was deleted, and says when it does not know. Watching is the informer's.
"""

from collections.abc import Callable

from hansa.control import freshness, table, versions
from hansa.kube import errors, objects, watching
from hansa.runtime import clock, metrics


class Store(table.Table):
    """A table of what one API server has. An object that is not in it is absent only if `knowledge.is_known`.

    `patience` is how many seconds a silent watch is believed; `matches` tells which objects belong here.
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
    ) -> None:
        super().__init__(name, cluster=cluster, resource=resource, metrics=metrics)
        self.knowledge = freshness.Freshness(name, clock=clock, patience=patience)
        self._matches = matches
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
            fresh.read(lambda: {(cluster, resource): self.knowledge.is_known}),
        )

    def observe(self, obj: objects.Object) -> None:
        """Read our own writes: take the server's answer, if it is newer than what we know."""
        old = self.get(obj.key)
        if not self._history.is_ahead(obj) or (old and not versions.is_newer(obj, old)):
            return
        if self._matches(obj):
            self.put(obj.key, obj)
        elif old and old.uid == obj.uid:
            self._history.leave(obj.uid, versions.number(obj.version))
            self.put(obj.key, None)

    def observe_gone(self, key: objects.NamespacedName, uid: str) -> None:
        """The server told us that this object is gone for good."""
        if (old := self.get(key)) and old.uid == uid:
            self._history.leave(uid)
            self.put(key, None)

    def apply(self, change: watching.Change) -> None:
        """Take what the watch tells."""
        match change:
            case watching.Added(obj) | watching.Modified(obj):
                self._present(obj)
            case watching.Deleted(obj):
                self._absent(obj)
            case watching.Bookmark(version):
                self._history.reach(version)
            case watching.Restarted():
                self._listing = {}
                self._lists.labels(self.cluster, self.resource).inc()
            case watching.Synced(version):
                self._replace(version)
                self.knowledge.complete()
            case watching.Interrupted(error):
                self.knowledge.interrupt(str(error), is_forbidden=isinstance(error, errors.Forbidden))
                self._interruptions.labels(self.cluster, self.resource).inc()
                return
        if self.knowledge.trouble and self._listing is None:
            self.knowledge.resume()

    def close(self) -> None:
        """Nobody reads it any more."""
        self.knowledge.close()
        for end in self._end_gauges:
            end()

    def _present(self, obj: objects.Object) -> None:
        if self._listing is not None:
            self._listing[obj.key] = obj
            return
        self._history.reach(obj.version)
        old = self.get(obj.key)
        if self._history.has_left(obj) or (old and (old.version == obj.version or versions.is_newer(old, obj))):
            return
        self.put(obj.key, obj)

    def _absent(self, obj: objects.Object) -> None:
        if self._listing is not None:
            self._listing.pop(obj.key, None)
            return
        self._history.reach(obj.version)
        self._history.forget(obj.uid)
        old = self.get(obj.key)
        # What we hold may be newer: the next object of that name, from the answer to its creation.
        if old and not versions.is_newer(old, obj):
            self.put(obj.key, None)

    def _replace(self, version: str) -> None:
        """Make the table equal to the full list, all at once: nobody sees half of it."""
        listed, self._listing = self._listing or {}, None
        is_step_back = self._history.restart(version, {obj.uid for obj in listed.values()})
        for key, old in self.snapshot().items():
            if key not in listed and (is_step_back or not self._history.is_ahead(old)):
                self.put(key, None)
        for key, obj in listed.items():
            known = self.get(key)
            is_kept = known and (known.version == obj.version or (versions.is_newer(known, obj) and not is_step_back))
            if not is_kept and not self._history.has_left(obj):
                self.put(key, obj)
