"""A cluster: its name in the registry, its client, its informers, its reachability, and an id that never changes.

Whether it is an upper or a lower cluster, or both, is defined by routes.
"""

import asyncio
import dataclasses
import logging
import random as randomness

from hansa.control import informer
from hansa.control.content_budget import ContentBudget, OutlineBudget
from hansa.control.pace import Pace
from hansa.engine import inflight, probing
from hansa.kube import client, errors, resources, watching
from hansa.kube.resource import Resource
from hansa.runtime import backoff, clock, metrics, tasks

log = logging.getLogger(__name__)
REQUEST_DEADLINE = 10.0  # seconds; for clients of clusters, so that an unresponsive one holds no worker for longer
CACHE_PATIENCE = 120.0  # seconds for which a cache is known while its watch is interrupted; the probe is faster
IDENTIFYING = backoff.Backoff(first=0.2, factor=2.0, most=5.0, jitter=0.2)


@dataclasses.dataclass(slots=True)
class Budgets:
    """The budgets of a cluster's caches: of resources whose content is read again when it is needed, and of others.

    `outlines` is that of both, `pace` that of its watches.
    """

    read_again: frozenset[Resource]
    small: ContentBudget
    large: ContentBudget
    outlines: OutlineBudget
    pace: Pace

    def of(self, resource: Resource) -> ContentBudget:
        """The budget of the caches of a resource."""
        return self.small if resource in self.read_again else self.large


class Cluster:
    """One cluster. `namespaces` are those that its credentials may read, None if they may read all of them.

    `cluster_id` is given for a cluster whose credentials may not read the Namespace kube-system.

    With `is_verified`, a full list counts only if the cluster still has the id that it had: after a loss of its data,
    all of its objects would seem to be deleted.

    `budgets` bound its caches, of a cluster that is not trusted. The client belongs to the caller; `close` ends the
    watches.
    """

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
        namespaces: frozenset[str] | None = None,
        cluster_id: str = "",
        is_verified: bool = False,
        budgets: Budgets | None = None,
    ) -> None:
        self.name, self.client, self.namespaces, self.budgets = name, client, namespaces, budgets
        self.health = probing.ReachabilityProbe(name, client, clock=clock)
        self.inflight = inflight.InflightRequests(self.health)
        self.informers = informer.Informers(
            name,
            client,
            supervisor=supervisor,
            clock=clock,
            random=random,
            metrics=metrics,
            patience=CACHE_PATIENCE,
            watch_patience=watch_patience,
            verify=self._verify if is_verified else None,
            budget_of=self._budget_of,
            pace=None if budgets is None else budgets.pace,
        )
        self._clock, self._random = clock, random
        self._id, self._identifying = cluster_id, asyncio.Lock()
        self._probe = supervisor.start("probe", self.health.run, cluster=name)

    def __repr__(self) -> str:
        return f"Cluster({self.name})"

    def scopes(self, scope: informer.Scope) -> list[informer.Scope]:
        """The scopes to watch for one of the whole cluster: one per namespace where only some may be read."""
        if self.namespaces is None or not scope.resource.namespaced:
            return [scope]
        return [dataclasses.replace(scope, namespace=namespace) for namespace in sorted(self.namespaces)]

    async def identify(self) -> str:
        """The cluster's id: the uid of its Namespace kube-system, unless it was given. Waits until it can be read."""
        failures = 0
        async with self._identifying:
            while not self._id:
                try:
                    self._id = (await self.client.get(resources.NAMESPACES, "kube-system")).uid
                except errors.ApiError as error:
                    failures += 1
                    log.warning("cluster id not read", extra={"cluster": self.name, "error": str(error)})
                    await self._clock.sleep(IDENTIFYING.delay(failures, self._random))
        return self._id

    def _budget_of(self, resource: Resource) -> ContentBudget | None:
        return None if self.budgets is None else self.budgets.of(resource)

    async def _verify(self) -> None:
        if not self._id:
            return  # nothing was concluded from it yet
        found = (await self.client.get(resources.NAMESPACES, "kube-system")).uid
        if found != self._id:
            message = f"it is another cluster: the uid of its namespace kube-system was {self._id} and is {found}"
            self.health.mark_replaced(message)
            raise errors.Unreachable(message)

    async def close(self) -> None:
        """End its watches and its probe."""
        await tasks.cancel(self._probe)
        await self.informers.close()
