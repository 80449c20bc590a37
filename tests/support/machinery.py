"""The parts that every component of `hansa.control` takes, on the real clock, and a check of caches.

Used by integration tests of control, engine and nodes.
"""

import random
from typing import Any, Self

from hansa.control import informer
from hansa.control.store import Store
from hansa.control.table import own_key
from hansa.kube import objects, watching
from hansa.kube.client import Client
from hansa.runtime import backoff, clock, metrics, tasks

QUICK = watching.Patience(idle=90, life=300, backoff=backoff.Backoff(first=0.02, factor=2, most=0.5, jitter=0.5))


class Machine:
    """A clock, a random source, a metrics registry and a supervisor of tasks; an async context manager."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = clock.SystemClock()
        self.random = random.Random(seed)
        self.metrics = metrics.Registry()
        self.supervisor = tasks.Supervisor(clock=self.clock, random=self.random, metrics=self.metrics)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.supervisor.close()

    def informers(self, name: str, client: Client, **options: Any) -> informer.Informers:
        """Shared caches of a cluster."""
        return informer.Informers(name, client, supervisor=self.supervisor, **(self.injected() | options))

    def injected(self) -> dict[str, Any]:
        """The keyword arguments that almost every component takes."""
        return {"clock": self.clock, "random": self.random, "metrics": self.metrics}


class Witness:
    """Records every object of a store that goes back to an older version or comes back after its deletion."""

    def __init__(self, cache: Store) -> None:
        self.cache = cache
        self.wrong: list[tuple[objects.Object | None, objects.Object]] = []
        self.alive: dict[objects.NamespacedName, objects.Object] = {}
        self.dead: set[str] = set()
        cache.listen(self.check, own_key)

    def check(self, key: objects.NamespacedName) -> None:
        """Compare the new version of an object with the one before."""
        obj, before = self.cache.get(key), self.alive.pop(key, None)
        if before and (obj is None or obj.uid != before.uid):
            self.dead.add(before.uid)
        if obj is not None:
            self.alive[key] = obj
            if obj.uid in self.dead or (before and int(obj.version) < int(before.version)):
                self.wrong.append((before, obj))
