"""The views of all upper clusters of the registry: their caches are opened and closed as clusters join and leave."""

import asyncio
import contextlib
import functools
import random as randomness
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from hansa.control import event_recorder, informer
from hansa.engine import caches, shared_lowers, task_set, tokens, wakeups
from hansa.engine.cluster import Cluster
from hansa.engine.events import mirror, watch
from hansa.engine.registry import Route, Routes
from hansa.engine.view.topics import LowerName, NamespaceScope, ObjectRef
from hansa.engine.view.upper_view import UpperView
from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import placement
from hansa.model.mode import Mode
from hansa.model.pair import Key
from hansa.runtime import clock, metrics, tasks

# How many objects that are computed from others of a namespace one change requeues; the audit requeues all.
MOST_COMPUTED = 64
# Seconds in which changes of objects that select others are gathered: each may concern all objects of its namespace.
SELECTION_SECONDS = 0.2


class UpperViews:
    """The views of all upper clusters. Changes requeue keys through `wakeups`; `watch_all` as in `SharedLowers`.

    While `is_busy`, Normal events are throttled. `limits_changed` is called when an upper cluster reaches a limit, or
    none any more.
    """

    def __init__(
        self,
        mode: Mode,
        registry: Routes,
        *,
        watch_all: Iterable[Resource],
        wakeups: wakeups.Wakeups,
        is_busy: Callable[[], bool],
        limits_changed: Callable[[str], None],
        decisions: placement.Decisions | None,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._limits_changed, self._decisions = limits_changed, decisions
        self._mode, self._registry, self._wakeups = mode, registry, wakeups
        self._clock, self._random, self._metrics = clock, random, metrics
        self._views: dict[str, UpperView] = {}
        self._recorders: dict[str, event_recorder.Recorder] = {}
        # By upper cluster: the namespaces in which objects may be selected by others than before.
        self._selections: dict[str, set[str]] = {}
        self._throttle = mirror.EventThrottle(is_busy, clock=clock)
        self._mirrors: dict[str, mirror.EventMirror] = {}  # by the id of the upper cluster
        self._lowers = shared_lowers.SharedLowers(
            mode,
            self._changed,
            self._mirror,
            watch_all=watch_all,
            wakeups=wakeups,
            clock=clock,
            random=random,
            metrics=metrics,
        )

    def __iter__(self) -> Iterator[UpperView]:
        return iter(tuple(self._views.values()))

    def get(self, upper: str) -> UpperView | None:
        """The view of an upper cluster, if it has one."""
        return self._views.get(upper)

    def warn(self, key: Key, reason: str, message: str) -> None:
        """Record a warning on the upper object, and on those that wait for it: that is where users look."""
        view, recorder = self._views.get(key.cluster), self._recorders.get(key.cluster)
        if view is None or recorder is None:
            return
        for one in (key, *self._wakeups.keys(key)):
            if (upper := view.clusters.get(one)) is not None:
                recorder.record(
                    event_recorder.InvolvedObject.of(upper),
                    reason,
                    message,
                    event_type=event_recorder.EventType.WARNING,
                )

    async def run(self) -> None:
        """Follow the registry until cancelled."""
        async with contextlib.AsyncExitStack() as stack:
            supervisor = await stack.enter_async_context(self._supervised())
            if self._decisions is not None:
                stack.callback(self._decisions.listen(self._decision_changed))
            await task_set.maintain("upper", self._uppers, self._follow_upper, self._registry, supervisor=supervisor)

    def _uppers(self) -> dict[str, Cluster]:
        return {name: self._registry.clusters[name] for name in self._registry.uppers()}

    def _routes(self, upper: str) -> dict[str, tuple[Route, Cluster]]:
        routes = self._registry.routes(upper)
        return {str(route): (route, self._registry.clusters[route.lower]) for route in routes}

    async def _follow_upper(self, cluster: Cluster) -> None:
        upper_id = await cluster.identify()
        scopes = [
            informer.Scope(rule.resource, labels=rule.selector, fields=rule.fields)
            for rule in self._mode.rules.values()
        ]
        async with contextlib.AsyncExitStack() as stack:
            upper = await stack.enter_async_context(caches.opened(cluster, scopes))
            supervisor = await stack.enter_async_context(self._supervised())
            view = UpperView(
                upper,
                upper_id,
                self._mode,
                wakeups=self._wakeups,
                clock=self._clock,
                limits_changed=functools.partial(self._limits_changed, cluster.name),
                decisions=self._decisions,
            )
            if self._mode.mints_tokens:
                minted = stack.enter_context(contextlib.closing(self._tokens(view)))
                view.placements.tokens = minted
                supervisor.start("tokens", minted.run, cluster=view.name)
            with self._entered(view, supervisor):
                await task_set.maintain(
                    "route",
                    functools.partial(self._routes, view.name),
                    functools.partial(self._follow_lower, view),
                    self._registry,
                    supervisor=supervisor,
                    field="route",
                )

    def _tokens(self, view: UpperView) -> tokens.Tokens:
        def key(name: NamespacedName) -> Key:
            return view.clusters.key(ObjectRef(resources.SECRETS, name))

        return tokens.Tokens(
            view.clusters.upper,
            view.clusters.upper_id,
            copies=lambda name: view.placements.copies(key(name)),
            issued=lambda name: self._changed(key(name)),
            refused=lambda name, message: self.warn(key(name), "Refused", message),
            clock=self._clock,
            random=self._random,
            metrics=self._metrics,
        )

    @contextlib.contextmanager
    def _entered(self, view: UpperView, supervisor: tasks.Supervisor) -> Iterator[None]:
        upper, upper_id = view.clusters.upper, view.clusters.upper_id
        recorder = event_recorder.Recorder(
            "hansa", upper.cluster.client, clock=self._clock, random=self._random, metrics=self._metrics
        )
        mirrored = mirror.EventMirror(view, throttle=self._throttle, metrics=self._metrics)
        supervisor.start("events", recorder.run, cluster=view.name)
        supervisor.start("event-mirror", mirrored.run, cluster=view.name)
        with contextlib.ExitStack() as stack:
            self._views[view.name], self._recorders[view.name] = view, recorder
            self._mirrors[upper_id] = mirrored
            stack.callback(self._wakeups.forget, view.name)
            stack.callback(self._views.pop, view.name)
            stack.callback(self._recorders.pop, view.name)
            stack.callback(self._mirrors.pop, upper_id)
            stack.callback(upper.listen(functools.partial(self._wakeups.notify, view.name)))
            stack.callback(upper.cluster.inflight.listen(lambda _: self._limits_changed(view.name)))
            for end in view.watch_forced_deletions():
                stack.callback(end)
            for resource, store in upper.stores.items():
                changed = functools.partial(self._upper_changed, view)
                stack.callback(store.listen(changed, functools.partial(_ref, resource)))
            yield

    async def _follow_lower(self, view: UpperView, there: tuple[Route, Cluster]) -> None:
        route, cluster = there
        async with self._lowers.shared(cluster, view.clusters.upper_id) as lower:
            with lower.linked(view, route, self._changed), contextlib.ExitStack() as stack:
                waits = functools.partial(self._waits, view.name)
                stack.callback(cluster.inflight.listen(waits))
                if view.placements.tokens is not None:
                    stack.callback(lower.side.listen(view.placements.tokens.lower_changed))
                await asyncio.get_running_loop().create_future()

    def _waits(self, name: str, upper: str) -> None:
        if name == upper:
            self._limits_changed(name)

    def _mirror(self, event: watch.LowerEvent) -> None:
        if (mirrored := self._mirrors.get(event.origin.upper)) is not None:
            mirrored.add(event)

    def _decision_changed(self, upper: str, namespace: str) -> None:
        if (view := self._views.get(upper)) is not None:
            view.placements.decision_changed(namespace)

    def _upper_changed(self, view: UpperView, ref: ObjectRef) -> None:
        view.placements.changed(ref)
        self._changed(view.clusters.key(ref))
        if view.clusters.selection_changed(ref):
            if view.name not in self._selections:
                asyncio.get_running_loop().call_later(SELECTION_SECONDS, self._wake_selected, view.name)
            self._selections.setdefault(view.name, set()).add(ref.name.namespace)

    def _wake_selected(self, upper: str) -> None:
        namespaces = self._selections.pop(upper, set())
        if (view := self._views.get(upper)) is not None:
            for key in view.clusters.selected(namespaces):
                self._changed(key)

    def _changed(self, topic: Key | LowerName) -> None:
        if isinstance(topic, Key) and (view := self._views.get(topic.cluster)) is not None:
            if view.clusters.upper.unknown_reason:  # such as during the first list: a reconcile could decide nothing
                self._wakeups.put(topic, until=view.name)
            else:
                self._wakeups.wake(topic)
            view.usage.copies_changed()
            scope = NamespaceScope(topic.cluster, topic.resource, topic.namespace)
            self._wakeups.notify(scope, at_most=MOST_COMPUTED)
        self._wakeups.notify(topic)

    @contextlib.asynccontextmanager
    async def _supervised(self) -> AsyncIterator[tasks.Supervisor]:
        async with tasks.Supervisor(clock=self._clock, random=self._random, metrics=self._metrics) as supervisor:
            yield supervisor


def _ref(resource: Resource, obj: Object) -> tuple[ObjectRef]:
    return (ObjectRef(resource, obj.key),)
