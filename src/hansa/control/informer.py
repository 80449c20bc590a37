"""Shared informers of one cluster: one watch and one store per scope, for all readers; it ends with the last reader.

Reconnects and relists are left to `kube.watching`, applying events to the cache to `store`.
"""

import asyncio
import contextlib
import dataclasses
import functools
import random as randomness
from collections.abc import AsyncIterator, Awaitable, Callable

from hansa.control import pace as pacing
from hansa.control import store
from hansa.control.content_budget import ContentBudget
from hansa.control.pace import Pace
from hansa.kube import client, objects, resource, watching
from hansa.kube.language import field_selectors, selectors
from hansa.runtime import clock, errors, metrics, tasks

TURN = 100  # events of one watch in a row, a few milliseconds, before other tasks run


@dataclasses.dataclass(frozen=True)
class Scope:
    """What is watched: a resource, in one namespace or in all, that the selectors match."""

    resource: resource.Resource
    namespace: str = dataclasses.field(default="", kw_only=True)
    labels: str = dataclasses.field(default="", kw_only=True)
    fields: str = dataclasses.field(default="", kw_only=True)

    def __post_init__(self) -> None:
        _ = self._selectors  # raises for an invalid selector where the scope is defined

    def __str__(self) -> str:
        parts = (str(self.resource), self.namespace and f"in {self.namespace}", self.labels, self.fields)
        return " ".join(part for part in parts if part)

    def matches(self, obj: objects.Object) -> bool:
        """Whether an object of the resource is in this scope, as the API server decides it."""
        by_label, by_field = self._selectors
        return (
            self.namespace in ("", obj.namespace)
            and by_label.matches(obj.labels)
            and (not self.fields or by_field.matches_object(obj.to_dict()))
        )

    @functools.cached_property
    def _selectors(self) -> tuple[selectors.Selector, field_selectors.FieldSelector]:
        return selectors.parse(self.labels), field_selectors.parse(self.fields)


class Informers:
    """The informers of one cluster. A cache stays known for `patience` seconds while its watch is interrupted.

    `verify` is awaited before a full list replaces the cache; if it raises, the list does not count and is repeated.
    `budget_of` gives the budget of the cache of a resource, if it has one; `pace` limits how fast changes are applied.
    """

    def __init__(
        self,
        cluster: str,
        client: client.Client,
        *,
        supervisor: tasks.Supervisor,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        patience: float = 120.0,
        watch_patience: watching.Patience | None = None,
        verify: Callable[[], Awaitable[None]] | None = None,
        budget_of: Callable[[resource.Resource], ContentBudget | None] = lambda _: None,
        pace: Pace | None = None,
    ) -> None:
        self._pace = pace
        self.cluster, self._verify, self._budget_of = cluster, verify, budget_of
        self._client, self._supervisor, self._clock, self._random = client, supervisor, clock, random
        self._metrics, self._patience = metrics, patience
        self._watch_patience = dataclasses.replace(watch_patience or watching.Patience(), memory=patience)
        self._informers: dict[Scope, _Informer] = {}
        self._is_closed = False

    @contextlib.asynccontextmanager
    async def share(self, scope: Scope) -> AsyncIterator[store.Store]:
        """The store of a scope, for as long as the caller stays inside."""
        cache = self.acquire(scope)
        try:
            yield cache
        finally:
            await self.release(scope)

    def acquire(self, scope: Scope) -> store.Store:
        """The store of a scope; its watch runs until every reader has released it."""
        if self._is_closed:
            raise errors.HansaError(f"cannot watch {scope}: cluster {self.cluster} was removed")
        informer = self._informers.get(scope)
        if informer is None:
            informer = self._informers[scope] = self._started(scope)
        informer.readers += 1
        return informer.store

    async def release(self, scope: Scope) -> None:
        """Release a store; after the last reader the watch ends and the cache is dropped."""
        informer = self._informers.get(scope)
        if informer is None:
            return
        informer.readers -= 1
        if not informer.readers:
            del self._informers[scope]
            await _end(informer)

    async def close(self) -> None:
        """End all watches, because the cluster was removed, even if stores have readers."""
        self._is_closed = True
        informers, self._informers = list(self._informers.values()), {}
        await _end(*informers)
        self._metrics.forget("cluster", self.cluster)

    @property
    def has_synced(self) -> bool:
        """Whether the first full list of every cache is complete."""
        return all(informer.store.freshness.has_synced for informer in self._informers.values())

    def _started(self, scope: Scope) -> "_Informer":
        cache = store.Store(
            f"{self.cluster} {scope}",
            cluster=self.cluster,
            resource=str(scope.resource),
            clock=self._clock,
            metrics=self._metrics,
            patience=self._patience,
            matches=scope.matches,
            budget=self._budget_of(scope.resource),
        )
        run = functools.partial(self._follow, scope, cache)
        narrowed = {"namespace": scope.namespace, "label_selector": scope.labels, "field_selector": scope.fields}
        bound = {name: value for name, value in narrowed.items() if value}
        task = self._supervisor.start("watch", run, cluster=self.cluster, resource=scope.resource, **bound)
        return _Informer(cache, task)

    async def _follow(self, scope: Scope, cache: store.Store) -> None:
        changes = watching.watch(
            self._client,
            scope.resource,
            namespace=scope.namespace,
            labels=scope.labels,
            fields=scope.fields,
            patience=self._watch_patience,
            clock=self._clock,
            random=self._random,
        )
        count = 0
        try:
            async with contextlib.aclosing(changes):
                async for change in changes:
                    if self._verify is not None and isinstance(change, watching.Synced):
                        await self._verify()
                    cache.apply(change)
                    count += 1
                    if self._pace is not None:
                        await self._paced(change, count, self._pace)
                    elif count % TURN == 0:
                        await asyncio.sleep(0)
        except Exception as error:
            cache.freshness.interrupt(str(error))
            raise

    async def _paced(self, change: watching.Change, count: int, pace: Pace) -> None:
        pace.spend(change)
        if count % pacing.TURN == 0:
            await self._clock.sleep(pace.delay(self._clock.now()))


@dataclasses.dataclass(slots=True)
class _Informer:
    store: store.Store
    task: asyncio.Task[None]
    readers: int = 0


async def _end(*informers: _Informer) -> None:
    await tasks.cancel(*(informer.task for informer in informers))
    for informer in informers:
        informer.store.close()
