"""The cache of one resource in one cluster: a table that follows a watch and the answers to our own writes.

It never steps back, brings back nothing that was deleted, and says when it does not know. Watching is the informer's.
"""

from collections.abc import Callable

from hansa.control import knowledge, table, versions
from hansa.kube import objects, watching
from hansa.runtime import clock, metrics


class Store(table.Table):
    """A table of what one API server has. An object that is not in it is absent only if `knowledge.is_known`.

    `patience` is how many seconds a silent watch is believed; `matches` tells which objects belong here.
    """

    def __init__(
        self,
        name: str,
        *,
        clock: clock.Clock,
        metrics: metrics.Registry,
        patience: float = 120.0,
        matches: Callable[[objects.Object], bool] = lambda _: True,
    ) -> None:
        super().__init__(name, metrics=metrics)
        self.knowledge = knowledge.Knowledge(name, clock=clock, patience=patience)
        self._matches = matches
        self._history = versions.History()
        self._listing: dict[objects.Key, objects.Object] | None = None
        of = ["store"]
        sizes = metrics.gauge("hansa_store_objects", "Objects in the cache.", labels=of)
        known = metrics.gauge("hansa_store_known", "1 while the cache can be believed.", labels=of)
        self._interruptions = metrics.counter("hansa_watch_interruptions_total", "Broken watches.", labels=of)
        self._lists = metrics.counter("hansa_watch_lists_total", "Full lists, the first one included.", labels=of)
        self._end_gauges = (
            sizes.read(lambda: {(name,): len(self)}),
            known.read(lambda: {(name,): self.knowledge.is_known}),
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

    def observe_gone(self, key: objects.Key, uid: str) -> None:
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
                self._lists.of(self.name).inc()
            case watching.Synced(version):
                self._replace(version)
                self.knowledge.complete()
            case watching.Interrupted(error):
                self.knowledge.interrupt(str(error))
                self._interruptions.of(self.name).inc()
                return
        if self.knowledge.trouble and self._listing is None:
            self.knowledge.resume()

    def close(self) -> None:
        """Nobody reads it any more."""
        self.knowledge.close()
        for end in self._end_gauges:
            end()
        for counter in (self._interruptions, self._lists):
            counter.drop(self.name)

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
