"""The lower clusters that views lead to: each is opened once, for all of them, and closed when none is left."""

import contextlib
import dataclasses
import functools
import random as randomness
from collections.abc import AsyncIterator, Callable, Iterable

from hansa.control import informer
from hansa.engine import hearing, side
from hansa.engine.cluster import Cluster
from hansa.engine.lower import Lower
from hansa.engine.view import BY_UPPER, Spot, by_upper
from hansa.engine.waiting import Waiting
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.kube.resources import QUOTAS
from hansa.model import stamp
from hansa.model.mode import Mode
from hansa.model.pair import Key
from hansa.runtime import clock, metrics, tasks

FEW = 4  # who is woken by one change of a quota; those who succeed wake others


class Lowers:
    """What changes below is told to `changed`, Events about copies to `heard`.

    `whole` names the resources that are watched whole: also those objects that bear no mark.
    """

    def __init__(
        self,
        mode: Mode,
        changed: Callable[[Key | Spot], None],
        heard: Callable[[hearing.Heard], None],
        *,
        whole: Iterable[Resource],
        waiting: Waiting,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._mode, self._changed, self._heard, self._waiting = mode, changed, heard, waiting
        self._whole = frozenset(whole) | {r.resource for r in mode.rules.values() if r.lifecycle.may_share}
        self._clock, self._random, self._metrics = clock, random, metrics
        self._open: dict[tuple[Cluster, str], _Open] = {}

    @contextlib.asynccontextmanager
    async def shared(self, cluster: Cluster, upper_id: str) -> AsyncIterator[Lower]:
        """A lower cluster for a view, as long as the caller stays inside."""
        marked = stamp.selector() if self._mode.shares_lowers else stamp.selector(upper_id)
        where = cluster, marked
        if (opened := self._open.get(where)) is None:
            stack = contextlib.AsyncExitStack()
            # Nothing waits in there: nobody else can come between.
            lower = await stack.enter_async_context(self._opened(cluster, marked))
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
    async def _opened(self, cluster: Cluster, marked: str) -> AsyncIterator[Lower]:
        resources = [rule.resource for rule in self._mode.rules.values() if rule.travels]
        scopes = [informer.Scope(r, labels="" if r in self._whole else marked) for r in resources]
        async with contextlib.AsyncExitStack() as stack:
            lower = Lower(await stack.enter_async_context(side.opened(cluster, scopes)))
            stack.callback(lower.side.listen(functools.partial(self._waiting.come, lower.name)))
            for resource, cache in lower.side.stores.items():
                cache.index(BY_UPPER, by_upper)
                stack.callback(cache.listen(self._changed, functools.partial(lower.topics, resource)))
            if any(resource.namespaced for resource in resources):
                quotas = await stack.enter_async_context(cluster.informers.share(informer.Scope(QUOTAS)))
                room = functools.partial(_room, lower.name)
                stack.callback(quotas.listen(functools.partial(self._waiting.come, at_most=FEW), room))
            if self._mode.echoes and any(rule.tells for rule in self._mode.rules.values()):
                self._listen(lower, await stack.enter_async_context(self._supervisor()))
            yield lower

    def _listen(self, lower: Lower, supervisor: tasks.Supervisor) -> None:
        listener = hearing.Hearing(lower.side, self._mode, self._heard, clock=self._clock, random=self._random)
        supervisor.start(f"events of {lower.name}", listener.run)

    def _supervisor(self) -> tasks.Supervisor:
        return tasks.Supervisor(clock=self._clock, random=self._random, metrics=self._metrics)


@dataclasses.dataclass(slots=True)
class _Open:
    lower: Lower
    stack: contextlib.AsyncExitStack
    readers: int = 0


def _room(cluster: str, quota: Object) -> tuple[tuple[str, str]]:
    """What refused objects wait for: room in their namespace."""
    return ((cluster, quota.namespace),)
