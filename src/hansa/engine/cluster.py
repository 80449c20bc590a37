"""A cluster that takes part: its name among us, its client, its caches, its health, and an identity that never changes.

What it is to others, upper or lower, is told by links, not here.
"""

import asyncio
import logging
import random as randomness

from hansa.control import informer
from hansa.engine import flights, health
from hansa.kube import client, errors, resources, watching
from hansa.runtime import backoff, clock, metrics, tasks

log = logging.getLogger(__name__)
REQUEST_DEADLINE = 10.0  # seconds; give clients of clusters this one, so that a silent cluster holds a worker no longer
KNOWN_SILENCE = 120.0  # seconds for which a broken watch is believed; the probe notices sooner
IDENTIFYING = backoff.Backoff(first=0.2, factor=2.0, most=5.0, jitter=0.2)


class Cluster:
    """One member. The client stays its owner's; `close` ends the watches."""

    def __init__(
        self,
        name: str,
        client: client.Client,
        *,
        supervisor: tasks.Supervisor,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        watch_patience: watching.Patience | None = None,
    ) -> None:
        self.name, self.client = name, client
        self.health = health.Health(client, clock=clock)
        self.flights = flights.Flights(self.health)
        self.informers = informer.Informers(
            name,
            client,
            supervisor=supervisor,
            clock=clock,
            random=random,
            metrics=metrics,
            patience=KNOWN_SILENCE,
            watch_patience=watch_patience,
        )
        self._clock, self._random = clock, random
        self._id, self._identifying = "", asyncio.Lock()
        self._probe = supervisor.start(f"probe {name}", self.health.run)

    def __repr__(self) -> str:
        return f"Cluster({self.name})"

    async def identify(self) -> str:
        """The cluster's id: the uid of its kube-system namespace. Waits until it can be read."""
        failures = 0
        async with self._identifying:
            while not self._id:
                try:
                    self._id = (await self.client.get(resources.NAMESPACES, "kube-system")).uid
                except errors.ApiError as error:
                    failures += 1
                    log.warning("cannot tell which cluster it is", extra={"cluster": self.name, "error": str(error)})
                    await self._clock.sleep(IDENTIFYING.delay(failures, self._random))
        return self._id

    async def close(self) -> None:
        """It leaves: its watches and its probe end."""
        await tasks.cancel(self._probe)
        await self.informers.close()
