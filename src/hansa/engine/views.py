"""The views of all upper clusters, kept as the registry says: caches are opened and closed as clusters come and go."""

import asyncio
import contextlib
import functools
import random as randomness
from collections.abc import AsyncIterator, Iterable, Iterator

from hansa.control import events, informer
from hansa.engine import echo, side, tending, tokens, waiting
from hansa.engine.references import Name
from hansa.engine.registry import Route, Routes
from hansa.engine.view import Spot, View
from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import stamp
from hansa.model.mode import Mode
from hansa.model.pair import Key
from hansa.runtime import clock, metrics, tasks

QUOTAS = Resource("", "v1", "resourcequotas", kind="ResourceQuota")
TOKENS_NEED = {resources.PODS, resources.SECRETS, resources.SERVICE_ACCOUNTS}  # what must travel for tokens to do
FEW = 4  # who is woken by one change of a quota; those who succeed wake others


class Views:
    """All views. What changes wakes keys in `waiting`; `whole` names the resources that are watched whole below."""

    def __init__(
        self,
        mode: Mode,
        registry: Routes,
        *,
        whole: Iterable[Resource],
        waiting: waiting.Waiting,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._mode, self._registry, self._waiting = mode, registry, waiting
        self._whole = frozenset(whole) | {r.resource for r in mode.rules.values() if r.lifecycle.shares_name}
        self._clock, self._random, self._metrics = clock, random, metrics
        self._views: dict[str, View] = {}
        self._recorders: dict[str, events.Recorder] = {}

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
            await tending.tend(self._registry.uppers, self._follow_upper, self._registry, supervisor=supervisor)

    async def _follow_upper(self, name: str) -> None:
        cluster = self._registry.clusters[name]
        upper_id = await cluster.identify()
        scopes = [informer.Scope(resource) for resource in self._mode.rules]
        async with side.opened(cluster, scopes) as upper, self._supervised() as supervisor:
            view = View(upper, upper_id, self._mode, waiting=self._waiting)
            if self._mode.rules.keys() >= TOKENS_NEED:
                view.tokens = self._tokens(view)
                supervisor.start(f"tokens of {name}", view.tokens.run)
            with self._entered(view, supervisor):
                await tending.tend(
                    functools.partial(self._registry.routes, name),
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
            made=lambda place: self._changed(view, key(place)),
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
        supervisor.start(f"events of {view.name}", recorder.run)
        with contextlib.ExitStack() as stack:
            self._views[view.name], self._recorders[view.name] = view, recorder
            stack.callback(self._views.pop, view.name)
            stack.callback(self._recorders.pop, view.name)
            stack.callback(view.upper.listen(functools.partial(self._waiting.come, view.name)))
            for resource, store in view.upper.stores.items():
                changed = functools.partial(self._changed_above, view)
                stack.callback(store.listen(changed, functools.partial(_name, resource)))
            yield

    async def _follow_lower(self, view: View, route: Route) -> None:
        cluster = self._registry.clusters[route.lower]
        ours = stamp.selector(view.upper_id)
        travelling = [rule.resource for rule in self._mode.rules.values() if rule.travels]
        scopes = [informer.Scope(r) if r in self._whole else informer.Scope(r, labels=ours) for r in travelling]
        async with side.opened(cluster, scopes) as lower, cluster.informers.share(informer.Scope(QUOTAS)) as quotas:
            with contextlib.ExitStack() as stack:
                view.attach(route, lower)
                stack.callback(view.detach, route.lower)
                stack.callback(lower.listen(functools.partial(self._waiting.come, route.lower)))
                if view.tokens is not None:
                    stack.callback(lower.listen(view.tokens.lower_changed))
                room = functools.partial(_room, route.lower)
                stack.callback(quotas.listen(functools.partial(self._waiting.come, at_most=FEW), room))
                for resource, store in lower.stores.items():
                    topics = functools.partial(view.topics, route.lower, resource)
                    stack.callback(store.listen(functools.partial(self._changed, view), topics))
                echoed = echo.Echo(view, lower, clock=self._clock, random=self._random, metrics=self._metrics)
                async with self._supervised() as supervisor:
                    supervisor.start(f"events of {route}", echoed.run)
                    await asyncio.get_running_loop().create_future()

    def _changed_above(self, view: View, name: Name) -> None:
        view.look(name)
        self._changed(view, view.key(name))

    def _changed(self, view: View, topic: Key | Spot) -> None:
        if isinstance(topic, Spot):
            pass
        elif view.upper.trouble:  # as while it is being listed: it would be looked at for nothing
            self._waiting.put(topic, until=view.name)
        else:
            self._waiting.wake(topic)
        self._waiting.come(topic)

    @contextlib.asynccontextmanager
    async def _supervised(self) -> AsyncIterator[tasks.Supervisor]:
        async with tasks.Supervisor(clock=self._clock, random=self._random, metrics=self._metrics) as supervisor:
            yield supervisor


def _name(resource: Resource, obj: Object) -> tuple[Name]:
    return (Name(resource, obj.key),)


def _room(cluster: str, quota: Object) -> tuple[tuple[str, str]]:
    """What refused objects wait for: room in their namespace."""
    return ((cluster, quota.namespace),)
