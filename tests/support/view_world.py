"""An upper and a lower cluster as caches without servers, and the view of both; used by unit tests of `engine.view`."""

import datetime
import types
from typing import Any, cast

import engine_lab as lab
import simulation
from hansa.control.store import Store
from hansa.engine.caches import ClusterCaches
from hansa.engine.cluster import Cluster
from hansa.engine.registry import Route
from hansa.engine.view.topics import ObjectRef
from hansa.engine.view.upper_view import UpperView
from hansa.engine.wakeups import Wakeups
from hansa.kube import resources, watching
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import decision, plan
from hansa.model.mode import Mode
from hansa.model.pair import Key, Pair

PODS, MAPS, NAMESPACES = resources.PODS, resources.CONFIG_MAPS, resources.NAMESPACES
NOW = datetime.datetime(2026, 11, 15, tzinfo=datetime.UTC)


class World:
    """One upper and one lower cluster, joined by a virtual node."""

    def __init__(self, outer: simulation.World, mode: Mode = lab.SMALL) -> None:
        self.outer, self.mode, self.version = outer, mode, 0
        self.woken: list[Key] = []
        self.wakeups = Wakeups(self.woken.append)
        self.upper, self.lower = self.side("up"), self.side("low")
        self.view = UpperView(self.upper, "id", mode, wakeups=self.wakeups, clock=outer.clock)
        self.view.attach(Route("up", "low", nodes=frozenset({"vn"})), self.lower)

    def side(self, name: str) -> ClusterCaches:
        """The caches of a reachable cluster, synced and empty."""
        cluster = types.SimpleNamespace(name=name, client=None, health=types.SimpleNamespace(error=""))
        stores = {r: Store(f"{name} {r}", clock=self.outer.clock, metrics=self.outer.metrics) for r in self.mode.rules}
        for store in stores.values():
            store.apply(watching.Restarted())
            store.apply(watching.Synced("1"))
        return ClusterCaches(cast("Cluster", cluster), stores)

    def put(self, side: ClusterCaches, resource: Resource, obj: Object, **metadata: Any) -> Object:
        """Add an object to a cache as its watch would; the object with its uid and version."""
        self.version += 10
        obj = obj.with_metadata(uid=f"{obj.name}-uid", resource_version=str(self.version), **metadata)
        store = side.stores[resource]
        assert isinstance(store, Store)
        store.apply(watching.Added(obj))
        if side is self.upper:
            self.view.placements.changed(ObjectRef(resource, obj.key))
        return obj

    def decide(self, key: Key) -> tuple[Pair, tuple[plan.Action, ...]]:
        """One reconcile without its writes."""
        snapshot = self.view.snapshot(key)
        todo = decision.decide(snapshot.pair, self.mode)
        with self.wakeups.renewed(key), self.view.decided(snapshot, todo):
            return snapshot.pair, todo.actions


POD, MAP = Key("up", PODS, "default", "p"), Key("up", MAPS, "default", "settings")
MAP_PLACE = NamespacedName("default", "settings")
