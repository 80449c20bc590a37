"""The controller machine on the real clock, as tests of it need it: what is injected, and shared caches."""

import random

from hansa.control import informer
from hansa.control.store import Store
from hansa.control.table import own_key
from hansa.kube import objects, watching
from hansa.kube.client import Client
from hansa.runtime import backoff, clock, metrics, tasks

QUICK = watching.Patience(idle=90, life=300, backoff=backoff.Backoff(first=0.02, factor=2, most=0.5, jitter=0.5))


class Machine:
    """A clock, randomness, a registry, and an owner of tasks. Use it with `async with`."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = clock.SystemClock()
        self.random = random.Random(seed)
        self.metrics = metrics.Registry()
        self.supervisor = tasks.Supervisor(clock=self.clock, random=self.random, metrics=self.metrics)

    async def __aenter__(self) -> "Machine":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.supervisor.close()

    def informers(self, name: str, client: Client, **options: object) -> informer.Informers:
        """Shared caches of a cluster, whose watches come back quickly."""
        return informer.Informers(name, client, supervisor=self.supervisor, **(self.injected() | options))

    def injected(self) -> dict[str, object]:
        """What almost every part is given."""
        return {"clock": self.clock, "random": self.random, "metrics": self.metrics}


class Witness:
    """Listens to a store and notes every step back and every return from the dead."""

    def __init__(self, cache: Store) -> None:
        self.cache, self.wrong = cache, []
        self.alive: dict[objects.NamespacedName, objects.Object] = {}
        self.dead: set[str] = set()
        cache.listen(self.look, own_key)

    def look(self, key: objects.NamespacedName) -> None:
        obj, before = self.cache.get(key), self.alive.pop(key, None)
        if before and (obj is None or obj.uid != before.uid):
            self.dead.add(before.uid)
        if obj is not None:
            self.alive[key] = obj
            if obj.uid in self.dead or (before and int(obj.version) < int(before.version)):
                self.wrong.append((before, obj))
