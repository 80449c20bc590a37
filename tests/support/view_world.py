"""An upper and a lower cluster as caches, and the view of both."""

import datetime
import types

import engine_lab as lab
from hansa.control.store import Store
from hansa.engine.caches import ClusterCaches
from hansa.engine.registry import Route
from hansa.engine.view.topics import ObjectRef
from hansa.engine.view.upper_view import UpperView
from hansa.engine.wakeups import Wakeups
from hansa.kube import resources, watching
from hansa.kube.objects import NamespacedName
from hansa.model import decision
from hansa.model.pair import Key

PODS, MAPS, NAMESPACES = resources.PODS, resources.CONFIG_MAPS, resources.NAMESPACES
NOW = datetime.datetime(2026, 11, 15, tzinfo=datetime.UTC)


class World:
    """An upper and a lower cluster as caches, without servers."""

    def __init__(self, outer, mode=lab.SMALL):
        self.outer, self.mode, self.woken, self.version = outer, mode, [], 0
        self.waiting = Wakeups(self.woken.append)
        self.upper, self.lower = self.side("up"), self.side("low")
        self.view = UpperView(self.upper, "id", mode, waiting=self.waiting, clock=outer.clock)
        self.view.attach(Route("up", "low", nodes=frozenset({"vn"})), self.lower)

    def side(self, name):
        cluster = types.SimpleNamespace(name=name, health=types.SimpleNamespace(trouble=""))
        stores = {r: Store(f"{name} {r}", clock=self.outer.clock, metrics=self.outer.metrics) for r in self.mode.rules}
        for store in stores.values():
            store.apply(watching.Restarted())
            store.apply(watching.Synced("1"))
        return ClusterCaches(cluster, stores)

    def put(self, side, resource, obj, **metadata):
        self.version += 10
        obj = obj.with_metadata(uid=f"{obj.name}-uid", resource_version=str(self.version), **metadata)
        side.stores[resource].apply(watching.Added(obj))
        if side is self.upper:
            self.view.placements.changed(ObjectRef(resource, obj.key))
        return obj

    def decide(self, key):
        """One reconcile without its writes."""
        snapshot = self.view.snapshot(key)
        todo = decision.decide(snapshot.pair, self.mode)
        with self.view.decided(snapshot, todo):
            return snapshot.pair, todo.actions


POD, MAP = Key("up", PODS, "default", "p"), Key("up", MAPS, "default", "settings")
MAP_PLACE = NamespacedName("default", "settings")
