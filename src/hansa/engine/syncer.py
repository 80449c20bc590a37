"""The reconciler of all kinds: takes a snapshot of a key, decides, applies the plan, and reports what went wrong.

Watches of both sides and the audit enqueue keys of upper objects. Which kinds are synced, and how, is left to the mode.
"""

import math
import random as randomness
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from hansa.control import audit, controller, queue
from hansa.engine import applier, contested, shared_lowers, upper_views, wakeups, write_gate
from hansa.engine.cluster import Budgets
from hansa.engine.registry import Routes
from hansa.engine.view.clusters import LinkedClusters
from hansa.engine.view.topics import NamespaceQuota
from hansa.engine.view.upper_view import UpperView
from hansa.engine.write_gate import WriteGate
from hansa.kube import resources
from hansa.kube.errors import Forbidden, NotFound
from hansa.kube.objects import Malformed, NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import decision, placement, plan
from hansa.model.limits import MIB
from hansa.model.mode import Mode
from hansa.model.pair import Key, Pair
from hansa.runtime import backoff, clock, errors, listeners, metrics, tasks

RETRIES = backoff.Backoff(first=0.02, factor=4.0, most=60.0, jitter=0.2)
RETRY = 1.0  # seconds until a write to a server that gave no answer is retried
SEVERAL = "several"  # the lower cluster in the group of keys that concern more than one


class QueueGroup(NamedTuple):
    """A group of the fair queue: one upper and one lower cluster, in both directions."""

    upper: str
    lower: str

    def __str__(self) -> str:
        return f"{self.upper} to {self.lower}"


class Incomplete(errors.HansaError):
    """Not all of a plan could be applied; the key is retried."""


class Syncer:
    """Syncs objects along all routes of the registry.

    Of the resources in `watch_all`, all lower objects are watched, not only copies: other components need them anyway,
    and a name that is taken is noticed before a write. `decisions` are placements that are kept outside of upper
    clusters. `period` is the audit's, in seconds. `gate` is asked before each write.
    """

    def __init__(
        self,
        mode: Mode,
        registry: Routes,
        *,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        watch_all: Iterable[Resource] = (resources.PODS,),
        decisions: placement.Decisions | None = None,
        workers: int = 256,
        width: int = 32,
        period: float = 60.0,
        gate: WriteGate = write_gate.OPEN,
    ) -> None:
        self._mode = mode
        self._queue: queue.Queue[Key] = queue.Queue(
            mode.name,
            group=self._group_of,
            weight=self._weight,
            server=_shared,
            retries=RETRIES,
            width=width,
            clock=clock,
            random=random,
            metrics=metrics,
        )
        self._wakeups = wakeups.Wakeups(self._queue.add)
        self._limit_listeners: listeners.Listeners[Callable[[str], None]] = listeners.Listeners()
        self._views = upper_views.UpperViews(
            mode,
            registry,
            watch_all=watch_all,
            wakeups=self._wakeups,
            is_busy=lambda: self._queue.is_busy,
            limits_changed=self._limits_changed,
            decisions=decisions,
            clock=clock,
            random=random,
            metrics=metrics,
        )
        self._applier = applier.Applier(
            metrics=metrics,
            gate=gate,
            ended=self._ended,
            replaced=self._replaced,
            wake=self._queue.add,
            clock=clock,
        )
        self._contested = contested.Contested(clock)
        self._controller = controller.Controller(
            mode.name, self._reconcile, queue=self._queue, metrics=metrics, workers=workers
        )
        self._audit = audit.Audit(
            lambda: (key for view in self._views for key in view.all_keys()),
            self._queue.add,
            period=period,
            clock=clock,
        )
        self._supervisor = tasks.Supervisor(clock=clock, random=random, metrics=metrics)

    async def run(self) -> None:
        """Sync until drained."""
        async with self._supervisor as supervisor:
            supervisor.start("views", self._views.run, mode=self._mode.name)
            supervisor.start("audit", self._audit.run, mode=self._mode.name)
            try:
                await self._controller.run()
            finally:
                await self._applier.close()

    def linked(self, upper: str) -> LinkedClusters | None:
        """The caches of an upper cluster and of its lower ones, for components that read them; None if not synced."""
        view = self._views.get(upper)
        return None if view is None else view.clusters

    def full_limits(self, upper: str) -> list[str]:
        """What of an upper cluster waits because a limit is reached, as sentences."""
        if (view := self._views.get(upper)) is None:
            return []
        budgets = view.clusters.upper.cluster.budgets
        stored = () if budgets is None else _stores_too_much(budgets)
        return [*map(str, view.usage.full()), *stored, *view.waiting_for_answers()]

    def listen_limits(self, notify: Callable[[str], None]) -> Callable[[], None]:
        """Call `notify` with an upper cluster when `full_limits` of it changes. The returned function removes it."""
        return self._limit_listeners.add(notify)

    def drain(self) -> None:
        """Start nothing new; `run` returns when reconciles in progress are done."""
        self._controller.drain()

    async def _reconcile(self, key: Key) -> controller.Outcome:
        view = self._views.get(key.cluster)
        if view is None:
            return controller.Done()
        with self._wakeups.renewed(key):
            return await self._reconcile_in(view, key)

    async def _reconcile_in(self, view: UpperView, key: Key) -> controller.Outcome:
        try:
            snapshot = view.snapshot(key)
            todo = decision.decide(snapshot.pair, self._mode)
            if any(isinstance(one, plan.Read) for one in todo.actions):
                if self._must_wait(view, key):
                    return controller.Done()
                snapshot = view.snapshot(key, whole=await self._read(view, key))
                todo = decision.decide(snapshot.pair, self._mode)
        except Malformed as error:
            self._views.warn(key, "Malformed", str(error))
            return controller.Terminal(str(error))
        if any(isinstance(one, plan.Read) for one in todo.actions):
            return controller.After(RETRY)  # it is gone or has changed, and the cache does not have that yet
        with view.decided(snapshot, todo):
            self._report(view, snapshot.pair, todo)
            problems = await self._applied(self._uncontested(key, todo), snapshot.pair, view)
        self._record_refusals(view, key, todo, problems)
        if problems:
            view.wake_pending(key.resource)  # the place that was reserved for this object is free again
            await self._applied(plan.Plan(tuple(self._refusals(snapshot.pair, problems))), snapshot.pair, view)
            return self._outcome(key, problems)
        self._notify_quota(todo)
        return controller.Done()

    def _uncontested(self, key: Key, todo: plan.Plan) -> plan.Plan:
        """The plan without changes of an object that was written too often; the key is requeued for these."""
        clusters = {one.cluster for one in todo.actions if isinstance(one, plan.Create | plan.Patch)}
        if not clusters:
            return todo
        if any(self._mode.rules[key.resource].computed_from(key)):
            clusters &= {key.cluster}  # copies change as often as what they are computed from
        delays = {one: delay for one in sorted(clusters) if (delay := self._contested.delay(key, one))}
        if not delays:
            return todo
        for cluster, delay in delays.items():
            self._queue.add_after(key, delay)
            self._views.warn(key, "Contested", contested.message(key, cluster, delay))
        changes = plan.Create | plan.Patch
        return plan.Plan(tuple(a for a in todo.actions if not isinstance(a, changes) or a.cluster not in delays))

    def _must_wait(self, view: UpperView, key: Key) -> bool:
        """Whether too many requests to the upper cluster are in flight: the key is requeued when one has ended."""
        inflight = view.clusters.upper.cluster.inflight
        if not (has_room := inflight.has_room(view.name, math.inf)):
            inflight.wait(view.name, key, self._queue.add)
        return not has_room

    async def _read(self, view: UpperView, key: Key) -> Object | None:
        """An upper object whose cache has only an outline; None if it is gone. Other errors are raised: back-off."""
        cluster = view.clusters.upper.cluster
        try:
            async with cluster.inflight.request(view.name):
                return await cluster.client.get(key.resource, key.name, namespace=key.namespace)
        except NotFound:
            return None
        except Forbidden as error:
            remedy = f"grant the credentials for {key.cluster} get of {key.resource}"
            self._views.warn(key, "Refused", f"{error.with_cluster(key.cluster)}; {remedy}")
            raise

    async def _applied(self, todo: plan.Plan, decided: Pair, view: UpperView) -> list[applier.Problem]:
        """Apply a plan; names of the lower cluster in messages are replaced by those of the upper one."""
        if not todo.actions:
            return []
        return [_translated(one, view) for one in await self._applier.apply(todo, decided, view)]

    def _report(self, view: UpperView, decided: Pair, todo: plan.Plan) -> None:
        """Handle the actions that write no object: Events about refusals, and when to requeue the key."""
        key = decided.key
        for action in todo.actions:
            match action:
                case plan.Refuse():
                    self._views.warn(key, "Refused", action.message)
                    name = NamespacedName(key.namespace, key.name)
                    for ref in view.placements.references.names(key.resource, name):
                        self._wakeups.put(key, until=view.clusters.key(ref))  # which may be why it is refused
                    for topic in view.topics_read(decided, action.cluster):
                        self._wakeups.put(key, until=topic)
                case plan.OverLimit():
                    self._views.warn(key, "OverLimit", action.message)
                case plan.Wait(until=Key() as until):
                    self._wakeups.put(key, until=until)
                case plan.Wait(seconds=seconds) if seconds:
                    self._queue.add_after(key, seconds)

    def _refusals(self, decided: Pair, problems: list[applier.Problem]) -> Iterator[plan.Patch]:
        """Patches of an upper object whose copy was refused by a lower cluster."""
        for problem in problems:
            exists = decided.lowers.get(problem.cluster) is not None or problem.cluster == decided.key.cluster
            if isinstance(problem, applier.Refused) and isinstance(decided.upper, Object) and not exists:
                yield from decision.refused(decided.upper, problem.message, decided.key, self._mode)

    def _record_refusals(self, view: UpperView, key: Key, todo: plan.Plan, problems: list[applier.Problem]) -> None:
        """Requeue the keys that wait for this one if it was refused in another way than before: they report why."""
        kinds = plan.Refuse | applier.Refused | applier.Foreign
        refused = (one for one in (*todo.actions, *problems) if isinstance(one, kinds))
        if view.refusals.update(key, {one.cluster: one.message for one in refused}):
            self._wakeups.notify(key)

    def _outcome(self, key: Key, problems: list[applier.Problem]) -> controller.Outcome:
        for problem in problems:
            match problem:
                case applier.Foreign():
                    self._views.warn(key, "NameTaken", problem.message)
                case applier.Refused():
                    self._views.warn(key, "Refused", problem.message)
                    self._wakeups.put(key, until=problem.quota)
        if all(isinstance(problem, applier.Full) for problem in problems):
            return controller.Done()
        if any(not isinstance(problem, applier.RetryLater | applier.Full) for problem in problems):
            raise Incomplete("; ".join(problem.message for problem in problems))
        return controller.After(max(RETRY, *(p.seconds for p in problems if isinstance(p, applier.RetryLater))))

    def _ended(self, key: Key, problem: applier.Problem | None) -> None:
        """A write in the background has ended: reconcile its key again."""
        if isinstance(problem, applier.RetryLater):
            self._queue.add_after(key, max(RETRY, problem.seconds))
        elif not isinstance(problem, applier.Full):
            self._queue.add(key)

    def _notify_quota(self, todo: plan.Plan) -> None:
        """Requeue keys that were refused in a namespace where an object was accepted now."""
        for made in todo.actions:
            if isinstance(made, plan.Create):
                self._wakeups.notify(NamespaceQuota(made.cluster, made.obj.namespace), at_most=shared_lowers.FEW)

    def _replaced(self, key: Key, cluster: str, message: str) -> None:
        """Report that a fallback was written instead of what a server refused."""
        view = self._views.get(key.cluster)
        link = None if view is None else view.clusters.links.get(cluster)
        shown = message if link is None else self._mode.upper_message(message, link)
        self._views.warn(key, "ValueReplaced", f"{shown}; another value is used")

    def _limits_changed(self, upper: str) -> None:
        for notify in self._limit_listeners:
            notify(upper)

    def _group_of(self, key: Key) -> QueueGroup | None:
        """None for a key that needs no decision: most objects of a large cluster concern no lower cluster."""
        view = self._views.get(key.cluster)
        if view is None:
            return None
        concerned = view.placements.concerned(key)
        if not concerned and not view.clusters.upper.unknown_reason and not view.placements.is_held(key):
            view.forget(key)
            return None
        return QueueGroup(key.cluster, concerned[0] if len(concerned) == 1 else SEVERAL)

    def _weight(self, group: Hashable) -> float:
        """The weight of the route; keys that concern several routes have the largest."""
        if not isinstance(group, QueueGroup) or (view := self._views.get(group.upper)) is None:
            return 1.0
        if (route := view.clusters.routes.get(group.lower)) is not None:
            return route.weight
        return max((route.weight for route in view.clusters.routes.values()), default=1.0)


def _translated(problem: applier.Problem, view: UpperView) -> applier.Problem:
    link = view.clusters.links.get(problem.cluster)
    return problem if link is None else replace(problem, message=view.mode.upper_message(problem.message, link))


def _stores_too_much(budgets: Budgets) -> Iterator[str]:
    content, outlines = budgets.large, budgets.outlines
    if content.is_exceeded:
        what = "objects in the control plane, without ConfigMaps and Secrets,"
        yield f"cached content: {what} exceed {content.most / MIB:.0f} MiB; what exceeds that is not synced"
    if outlines.is_exceeded:
        yield f"cached objects: the control plane has more than {outlines.most}; a kind with more is not synced"


def _shared(group: Hashable) -> str:
    """The lower cluster of a group, which the groups of several upper clusters may share."""
    return group.lower if isinstance(group, QueueGroup) else SEVERAL
