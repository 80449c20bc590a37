"""Stores of objects on simulated time, for tests of them."""

from typing import Any

import simulation
from hansa.control import store
from hansa.kube import objects, watching


def an_object(name: str, version: int, *, uid: str = "", labels: dict[str, str] | None = None) -> objects.Object:
    """An object with an identity, and nothing else."""
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return objects.Object.of({"metadata": metadata | {"labels": labels or {}}})


def key(name: str) -> objects.NamespacedName:
    """Its key."""
    return objects.NamespacedName("ns", name)


def make(world: simulation.World, **options: Any) -> store.Store:
    """A store."""
    return store.Store("pods of r1", cluster="r1", resource="pods", clock=world.clock, metrics=world.metrics, **options)


def listed(cache: store.Store, version: int, *objs: objects.Object) -> None:
    """Give a store a full list."""
    cache.apply(watching.Restarted())
    for one in objs:
        cache.apply(watching.Added(one))
    cache.apply(watching.Synced(str(version)))


def versions(cache: store.Store) -> dict[str, int]:
    """The versions of the objects in a store, by name."""
    return {one.name: int(obj.version) for one, obj in cache.snapshot().items()}
