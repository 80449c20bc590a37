"""The lower clusters in use: each is opened once for all upper clusters linked to it, and closed after the last."""

import contextlib
import dataclasses
import functools
import random as randomness
from collections.abc import AsyncIterator, Callable, Iterable

from hansa.control import informer
from hansa.engine import caches
from hansa.engine.cluster import Cluster
from hansa.engine.events import watch
from hansa.engine.shared_lower import SharedLower
from hansa.engine.view.clusters import BY_UPPER, by_upper
from hansa.engine.view.topics import LowerName, NamespaceQuota
from hansa.engine.wakeups import Wakeups
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.kube.resources import QUOTAS
from hansa.model import stamp
from hansa.model.mode import Mode
from hansa.model.pair import Key
from hansa.runtime import clock, metrics, tasks

FEW = 4  # keys that one change of a quota requeues; each that succeeds requeues others


class SharedLowers:
    """Calls `changed` for changes of lower objects, and `on_event` for lower Events about copies.

    Of the resources in `watch_all` all lower objects are watched, not only copies.
    """

    def __init__(
        self,
        mode: Mode,
        changed: Callable[[Key | LowerName], None],
        on_event: Callable[[watch.LowerEvent], None],
        *,
        watch_all: Iterable[Resource],
        wakeups: Wakeups,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._mode, self._changed, self._on_event, self._wakeups = mode, changed, on_event, wakeups
        self._watch_all = frozenset(watch_all) | {r.resource for r in mode.rules.values() if r.lifecycle.shares_name}
        self._clock, self._random, self._metrics = clock, random, metrics
        self._open: dict[tuple[Cluster, str], _Open] = {}

    @contextlib.asynccontextmanager
    async def shared(self, cluster: Cluster, upper_id: str) -> AsyncIterator[SharedLower]:
        """A lower cluster for an upper one, for as long as the caller stays inside."""
        selector = stamp.selector() if self._mode.shares_lowers else stamp.selector(upper_id)
        where = cluster, selector
        if (opened := self._open.get(where)) is None:
            stack = contextlib.AsyncExitStack()
            # Opening does not wait, so no other task can open the same cluster in between.
            lower = await stack.enter_async_context(self._opened(cluster, selector))
            opened = self._open[where] = _Open(lower, stack)
        opened.readers += 1
        try:
            yield opened.lower
        finally:
            opened.readers -= 1
            if not opened.readers:
                del self._open[where]
                await opened.stack.aclose()

    @contextlib.asynccontextmanager
    async def _opened(self, cluster: Cluster, selector: str) -> AsyncIterator[SharedLower]:
        resources = [rule.resource for rule in self._mode.rules.values() if rule.is_synced]
        scopes = [informer.Scope(r, labels="" if r in self._watch_all else selector) for r in resources]
        async with contextlib.AsyncExitStack() as stack:
            lower = SharedLower(await stack.enter_async_context(caches.opened(cluster, scopes)))
            stack.callback(lower.side.listen(functools.partial(self._wakeups.notify, lower.name)))
            for resource, cache in lower.side.stores.items():
                cache.index(BY_UPPER, by_upper)
                stack.callback(cache.listen(self._changed, functools.partial(lower.topics, resource)))
            if any(resource.namespaced for resource in resources):
                quotas = await stack.enter_async_context(caches.cache(cluster, informer.Scope(QUOTAS)))
                topic_of = functools.partial(_quota_topic, lower.name)
                stack.callback(quotas.listen(functools.partial(self._wakeups.notify, at_most=FEW), topic_of))
            if self._mode.mirrors_events and any(rule.up_patches for rule in self._mode.rules.values()):
                self._listen(lower, await stack.enter_async_context(self._supervisor()))
            yield lower

    def _listen(self, lower: SharedLower, supervisor: tasks.Supervisor) -> None:
        listener = watch.EventWatch(lower.side, self._mode, self._on_event, clock=self._clock, random=self._random)
        supervisor.start("event-watch", listener.run, cluster=lower.name)

    def _supervisor(self) -> tasks.Supervisor:
        return tasks.Supervisor(clock=self._clock, random=self._random, metrics=self._metrics)


@dataclasses.dataclass(slots=True)
class _Open:
    lower: SharedLower
    stack: contextlib.AsyncExitStack
    readers: int = 0


def _quota_topic(cluster: str, quota: Object) -> tuple[NamespaceQuota]:
    return (NamespaceQuota(cluster, quota.namespace),)
