"""The views of all upper clusters, kept as the registry says: caches are opened and closed as clusters come and go."""

import asyncio
import contextlib
import functools
import random as randomness
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from hansa.control import events, informer
from hansa.engine import echo, hearing, lowers, side, tending, tokens, waiting
from hansa.engine.cluster import Cluster
from hansa.engine.references import Name
from hansa.engine.registry import Route, Routes
from hansa.engine.view import Area, Spot, View
from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model.mode import Mode
from hansa.model.pair import Key
from hansa.runtime import clock, metrics, tasks

TOKENS_NEED = {resources.PODS, resources.SECRETS, resources.SERVICE_ACCOUNTS}  # what must travel for tokens to do


class Views:
    """All views. What changes wakes keys in `waiting`; `whole` names the resources that are watched whole below.

    While it `is_busy` with that, words about objects give way.
    """

    def __init__(
        self,
        mode: Mode,
        registry: Routes,
        *,
        whole: Iterable[Resource],
        waiting: waiting.Waiting,
        is_busy: Callable[[], bool],
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._mode, self._registry, self._waiting = mode, registry, waiting
        self._clock, self._random, self._metrics = clock, random, metrics
        self._views: dict[str, View] = {}
        self._recorders: dict[str, events.Recorder] = {}
        self._manners = echo.Manners(is_busy, clock=clock)
        self._echoes: dict[str, echo.Echo] = {}  # by the id of the upper cluster
        self._lowers = lowers.Lowers(
            mode,
            self._changed,
            self._heard,
            whole=whole,
            waiting=waiting,
            clock=clock,
            random=random,
            metrics=metrics,
        )

    def __iter__(self) -> Iterator[View]:
        return iter(tuple(self._views.values()))

    def get(self, upper: str) -> View | None:
        """The view of an upper cluster, if it takes part."""
        return self._views.get(upper)

    def tell(self, key: Key, reason: str, sentence: str) -> None:
        """Put a warning on the upper object, and on those that wait for it: they are where people look."""
        view, recorder = self._views.get(key.cluster), self._recorders.get(key.cluster)
        if view is None or recorder is None:
            return
        for one in (key, *self._waiting.keys(key)):
            if (upper := view.get(one)) is not None:
                recorder.record(events.Subject.of(upper), reason, sentence, kind=events.Kind.WARNING)

    async def run(self) -> None:
        """Follow the registry until cancelled."""
        async with self._supervised() as supervisor:
            await tending.tend(self._uppers, self._follow_upper, self._registry, supervisor=supervisor)

    def _uppers(self) -> dict[str, Cluster]:
        return {name: self._registry.clusters[name] for name in self._registry.uppers()}

    def _routes(self, upper: str) -> dict[str, tuple[Route, Cluster]]:
        routes = self._registry.routes(upper)
        return {str(route): (route, self._registry.clusters[route.lower]) for route in routes}

    async def _follow_upper(self, cluster: Cluster) -> None:
        upper_id = await cluster.identify()
        scopes = [informer.Scope(rule.resource, labels=rule.watched) for rule in self._mode.rules.values()]
        async with contextlib.AsyncExitStack() as stack:
            upper = await stack.enter_async_context(side.opened(cluster, scopes))
            supervisor = await stack.enter_async_context(self._supervised())
            view = View(upper, upper_id, self._mode, waiting=self._waiting, clock=self._clock)
            if self._mode.rules.keys() >= TOKENS_NEED:
                view.tokens = stack.enter_context(contextlib.closing(self._tokens(view)))
                supervisor.start(f"tokens of {view.name}", view.tokens.run)
            with self._entered(view, supervisor):
                await tending.tend(
                    functools.partial(self._routes, view.name),
                    functools.partial(self._follow_lower, view),
                    self._registry,
                    supervisor=supervisor,
                )

    def _tokens(self, view: View) -> tokens.Tokens:
        def key(place: Place) -> Key:
            return view.key(Name(resources.SECRETS, place))

        return tokens.Tokens(
            view.upper,
            view.upper_id,
            copies=lambda place: view.copies(key(place)),
            made=lambda place: self._changed(key(place)),
            refused=lambda place, sentence: self.tell(key(place), "Refused", sentence),
            clock=self._clock,
            random=self._random,
            metrics=self._metrics,
        )

    @contextlib.contextmanager
    def _entered(self, view: View, supervisor: tasks.Supervisor) -> Iterator[None]:
        recorder = events.Recorder(
            "hansa", view.upper.cluster.client, clock=self._clock, random=self._random, metrics=self._metrics
        )
        echoing = echo.Echo(view, manners=self._manners, metrics=self._metrics)
        supervisor.start(f"events of {view.name}", recorder.run)
        supervisor.start(f"echo in {view.name}", echoing.run)
        with contextlib.ExitStack() as stack:
            self._views[view.name], self._recorders[view.name] = view, recorder
            self._echoes[view.upper_id] = echoing
            stack.callback(self._waiting.forget, view.name)
            stack.callback(self._views.pop, view.name)
            stack.callback(self._recorders.pop, view.name)
            stack.callback(self._echoes.pop, view.upper_id)
            stack.callback(view.upper.listen(functools.partial(self._waiting.come, view.name)))
            for resource, store in view.upper.stores.items():
                changed = functools.partial(self._changed_above, view)
                stack.callback(store.listen(changed, functools.partial(_name, resource)))
            yield

    async def _follow_lower(self, view: View, there: tuple[Route, Cluster]) -> None:
        route, cluster = there
        async with self._lowers.shared(cluster, view.upper_id) as lower:
            with lower.led_to(view, route, self._changed), contextlib.ExitStack() as stack:
                if view.tokens is not None:
                    stack.callback(lower.side.listen(view.tokens.lower_changed))
                await asyncio.get_running_loop().create_future()

    def _heard(self, heard: hearing.Heard) -> None:
        if (echoing := self._echoes.get(heard.origin.upper)) is not None:
            echoing.take(heard)

    def _changed_above(self, view: View, name: Name) -> None:
        view.look(name)
        self._changed(view.key(name))

    def _changed(self, topic: Key | Spot) -> None:
        if isinstance(topic, Key) and (view := self._views.get(topic.cluster)) is not None:
            if view.upper.trouble:  # as while it is being listed: it would be looked at for nothing
                self._waiting.put(topic, until=view.name)
            else:
                self._waiting.wake(topic)
            self._waiting.come(Area(topic.cluster, topic.resource, topic.namespace))
        self._waiting.come(topic)

    @contextlib.asynccontextmanager
    async def _supervised(self) -> AsyncIterator[tasks.Supervisor]:
        async with tasks.Supervisor(clock=self._clock, random=self._random, metrics=self._metrics) as supervisor:
            yield supervisor


def _name(resource: Resource, obj: Object) -> tuple[Name]:
    return (Name(resource, obj.key),)
