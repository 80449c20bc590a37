"""One reconciler for all kinds: a key comes, its pair is read from caches, decided, and what was decided is written.

The watches of both sides and the audit bring keys of upper objects; which kinds, and how, is the mode's.
"""

import asyncio
import contextlib
import functools
import logging
import random as randomness
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

from hansa.control import audit, controller, events, informer, queue
from hansa.engine import applier, references, side, tending, view, waiting
from hansa.engine.registry import Registry, Route
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import decision, plan, stamp
from hansa.model.mode import Mode
from hansa.model.pair import Key, Link
from hansa.runtime import backoff, clock, errors, metrics, tasks

log = logging.getLogger(__name__)
RETRIES = backoff.Backoff(first=0.02, factor=4.0, most=60.0, jitter=0.2)
AWAY = 1.0  # seconds until a server that gave no answer is asked again; its probe may stop us before
SEVERAL = "several"  # the lane of keys that concern more than one lower cluster


class Problematic(errors.HansaError):
    """A key could not be brought to its end; it is tried again."""


class Syncer:
    """Keeps the lower objects as the upper ones want them, along all routes of the registry.

    `whole` names the resources whose lower objects are all watched, not only ours: others need them anyway, and a name
    that is taken is seen before a write. `period` is the audit's, in seconds.
    """

    def __init__(
        self,
        mode: Mode,
        registry: Registry,
        *,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        whole: Iterable[Resource] = (resources.PODS,),
        workers: int = 48,
        width: int = 16,
        period: float = 300.0,
    ) -> None:
        self._mode, self._registry = mode, registry
        self._clock, self._random, self._metrics = clock, random, metrics
        self._whole = frozenset(whole) | {r.resource for r in mode.rules.values() if r.lifecycle.shares_name}
        self._views: dict[str, view.View] = {}
        self._recorders: dict[str, events.Recorder] = {}
        self._lanes: dict[Key, str] = {}
        self._queue: queue.Queue[Key] = queue.Queue(
            mode.name,
            group=self._lane,
            retries=RETRIES,
            width=width,
            clock=clock,
            random=random,
            metrics=metrics,
        )
        self._waiting = waiting.Waiting(self._queue.add)
        self._applier = applier.Applier(metrics=metrics)
        self._controller = controller.Controller(
            mode.name, self._reconcile, queue=self._queue, metrics=metrics, workers=workers
        )
        self._audit = audit.Audit(self._keys, self._queue.add, period=period, clock=clock)

    async def run(self) -> None:
        """Work until drained."""
        async with self._supervised() as supervisor:
            supervisor.start(
                f"{self._mode.name} uppers",
                lambda: tending.tend(self._uppers, self._registry, supervisor=supervisor),
            )
            supervisor.start(f"{self._mode.name} audit", self._audit.run)
            await self._controller.run()

    def drain(self) -> None:
        """Begin nothing new; `run` returns when what is in hand is done."""
        self._controller.drain()

    # The work on one key.

    async def _reconcile(self, key: Key) -> controller.Outcome:
        seen = self._views.get(key.cluster)
        if seen is None:
            return controller.Done()
        pair = seen.snapshot(key)
        todo = decision.decide(pair, self._mode)
        seen.settle(pair, unsettled=frozenset(a.cluster for a in todo.actions if not isinstance(a, plan.Wait)))
        if not todo.actions:
            return controller.Done()
        problems = await self._applier.apply(todo, key, seen)
        return self._outcome(key, problems, seen) if problems else controller.Done()

    def _outcome(self, key: Key, problems: list[applier.Problem], seen: view.View) -> controller.Outcome:
        for problem in problems:
            match problem:
                case applier.Foreign(_, sentence):
                    self._tell(key, seen, "NameTaken", sentence)
                case applier.Refused(_, sentence):
                    self._tell(key, seen, "Refused", sentence)
        if any(not isinstance(problem, applier.Away) for problem in problems):
            raise Problematic("; ".join(problem.sentence for problem in problems))
        return controller.After(max(AWAY, *(p.seconds for p in problems if isinstance(p, applier.Away))))

    def _tell(self, key: Key, seen: view.View, reason: str, sentence: str) -> None:
        """Put the sentence on the upper object, and on those that wait for it: they are where people look."""
        for one in (key, *self._waiting.keys(key)):
            if (upper := seen.get(one)) is not None:
                subject = events.Subject.of(upper)
                self._recorders[key.cluster].record(subject, reason, sentence, kind=events.Kind.WARNING)

    # The clusters, as they come and go.

    def _uppers(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {name: functools.partial(self._follow_upper, name) for name in self._registry.uppers()}

    def _lowers(self, seen: view.View) -> dict[Route, Callable[[], Awaitable[None]]]:
        return {route: functools.partial(self._follow_lower, seen, route) for route in self._registry.routes(seen.name)}

    async def _follow_upper(self, name: str) -> None:
        cluster = self._registry.clusters[name]
        upper_id = await cluster.identify()
        scopes = [informer.Scope(resource) for resource in self._mode.rules]
        async with side.opened(cluster, scopes) as upper, self._supervised() as supervisor:
            seen = view.View(upper, upper_id, self._mode, waiting=self._waiting)
            with self._entered(seen, supervisor):
                await tending.tend(functools.partial(self._lowers, seen), self._registry, supervisor=supervisor)

    @contextlib.contextmanager
    def _entered(self, seen: view.View, supervisor: tasks.Supervisor) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            recorder = events.Recorder(
                "hansa", seen.upper.cluster.client, clock=self._clock, random=self._random, metrics=self._metrics
            )
            supervisor.start(f"events of {seen.name}", recorder.run)
            self._views[seen.name], self._recorders[seen.name] = seen, recorder
            stack.callback(self._views.pop, seen.name)
            stack.callback(self._recorders.pop, seen.name)
            stack.callback(seen.upper.listen(lambda: self._waiting.come(seen.name)))
            for resource, store in seen.upper.stores.items():
                stack.callback(store.listen(seen.look, functools.partial(_name, resource)))
                stack.callback(store.listen(self._changed, functools.partial(seen.keys_above, resource)))
            yield

    async def _follow_lower(self, seen: view.View, route: Route) -> None:
        cluster = self._registry.clusters[route.lower]
        link = Link(route.upper, seen.upper_id, route.lower, route.settings)
        ours = stamp.selector(seen.upper_id)
        scopes = [informer.Scope(r) if r in self._whole else informer.Scope(r, labels=ours) for r in self._mode.rules]
        async with side.opened(cluster, scopes) as lower:
            with contextlib.ExitStack() as stack:
                seen.attach(link, lower, route.nodes)
                stack.callback(seen.detach, route.lower)
                stack.callback(lower.listen(lambda: self._waiting.come(route.lower)))
                for resource, store in lower.stores.items():
                    stack.callback(store.listen(self._changed, functools.partial(seen.keys_of, resource)))
                await asyncio.get_running_loop().create_future()

    def _changed(self, key: Key) -> None:
        self._queue.add(key)
        self._waiting.come(key)

    def _keys(self) -> Iterator[Key]:
        for seen in tuple(self._views.values()):
            yield from seen.all_keys()

    def _lane(self, key: Key) -> str:
        # The queue asks when a key goes in and when it comes out, in turn. A pod can be bound in between, so the first
        # answer is kept for the second.
        if (lane := self._lanes.pop(key, None)) is None:
            seen = self._views.get(key.cluster)
            concerned = seen.concerned(key) if seen else ()
            lane = self._lanes[key] = concerned[0] if len(concerned) == 1 else SEVERAL
        return lane

    @contextlib.asynccontextmanager
    async def _supervised(self) -> AsyncIterator[tasks.Supervisor]:
        async with tasks.Supervisor(clock=self._clock, random=self._random, metrics=self._metrics) as supervisor:
            yield supervisor


def _name(resource: Resource, obj: Object) -> tuple[references.Name]:
    return (references.Name(resource, obj.key),)
