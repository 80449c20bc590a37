"""One reconciler for all kinds: a key comes, its pair is read from caches, decided, and what was decided is written.

The watches of both sides and the audit bring keys of upper objects; which kinds, and how, is the mode's.
"""

import random as randomness
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from hansa.control import audit, controller, queue
from hansa.engine import applier, lowers, views, waiting
from hansa.engine.registry import Routes
from hansa.engine.view import View
from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import decision, plan
from hansa.model.mode import Mode
from hansa.model.pair import Key, Pair
from hansa.runtime import backoff, clock, errors, metrics, tasks

RETRIES = backoff.Backoff(first=0.02, factor=4.0, most=60.0, jitter=0.2)
AWAY = 1.0  # seconds until a server that gave no answer is asked again; its probe may stop us before
SEVERAL = "several"  # the lower cluster in the lane of keys that are about more than one


class Lane(NamedTuple):
    """What is served fairly: the way between an upper and a lower cluster, in both directions."""

    upper: str
    lower: str

    def __str__(self) -> str:
        return f"{self.upper} to {self.lower}"


class Problematic(errors.HansaError):
    """A key could not be brought to its end; it is tried again."""


class Syncer:
    """Keeps the lower objects as the upper ones want them, along all routes of the registry.

    `whole` names the resources whose lower objects are all watched, not only ours: others need them anyway, and a name
    that is taken is seen before a write. `period` is the audit's, in seconds. `may_write` is asked before each write.
    """

    def __init__(
        self,
        mode: Mode,
        registry: Routes,
        *,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        whole: Iterable[Resource] = (resources.PODS,),
        workers: int = 256,
        width: int = 32,
        period: float = 60.0,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self._mode = mode
        self._queue: queue.Queue[Key] = queue.Queue(
            mode.name,
            group=self._lane,
            weight=self._weight,
            server=_shared,
            retries=RETRIES,
            width=width,
            clock=clock,
            random=random,
            metrics=metrics,
        )
        self._waiting = waiting.Waiting(self._wake)
        self._views = views.Views(
            mode,
            registry,
            whole=whole,
            waiting=self._waiting,
            is_busy=lambda: self._queue.is_busy,
            clock=clock,
            random=random,
            metrics=metrics,
        )
        self._applier = applier.Applier(
            metrics=metrics, may_write=may_write, ended=self._ended, yielded=self._yielded, clock=clock
        )
        self._controller = controller.Controller(
            mode.name, self._reconcile, queue=self._queue, metrics=metrics, workers=workers
        )
        self._audit = audit.Audit(
            lambda: (key for view in self._views for key in view), self._wake, period=period, clock=clock
        )
        self._supervisor = tasks.Supervisor(clock=clock, random=random, metrics=metrics)

    async def run(self) -> None:
        """Work until drained."""
        async with self._supervisor as supervisor:
            supervisor.start(f"{self._mode.name}: clusters", self._views.run)
            supervisor.start(f"{self._mode.name}: audit", self._audit.run)
            try:
                await self._controller.run()
            finally:
                await self._applier.close()

    def drain(self) -> None:
        """Begin nothing new; `run` returns when what is in hand is done."""
        self._controller.drain()

    async def _reconcile(self, key: Key) -> controller.Outcome:
        view = self._views.get(key.cluster)
        if view is None:
            return controller.Done()
        pair = view.snapshot(key)
        todo = decision.decide(pair, self._mode)
        view.settle(pair, unsettled=frozenset(a.cluster for a in todo.actions if not isinstance(a, plan.Wait)))
        with view.coming(key.resource, [made.cluster for made in todo.actions if isinstance(made, plan.Create)]):
            view.let_in(key.resource)
            if not todo.actions:
                return controller.Done()
            self._note(view, key, todo)
            problems = [_retold(one, view) for one in await self._applier.apply(todo, pair, view)]
        self._make_room(todo, problems)
        if not problems:
            return controller.Done()
        view.let_in(key.resource)  # who should have taken the room did not
        if refused := tuple(self._refused(pair, problems)):
            await self._applier.apply(plan.Plan(refused), pair, view)
        return self._outcome(key, problems)

    def _note(self, view: View, key: Key, todo: plan.Plan) -> None:
        """What no write follows from: what is refused is told, what is waited for wakes the key."""
        for action in todo.actions:
            match action:
                case plan.Refuse():
                    self._views.tell(key, "Refused", action.reason)
                    for name in view.references.names(key.resource, Place(key.namespace, key.name)):
                        self._waiting.put(key, until=view.key(name))  # with it there, there may be no objection
                case plan.Wait(until=Key() as until):
                    self._waiting.put(key, until=until)
                case plan.Wait(seconds=seconds) if seconds:
                    self._queue.add_after(key, seconds)

    def _refused(self, decided: Pair, problems: list[applier.Problem]) -> Iterator[plan.Patch]:
        """What an upper object is told whose copy could not be made."""
        for problem in problems:
            is_made = decided.lowers.get(problem.cluster) is not None or problem.cluster == decided.key.cluster
            if isinstance(problem, applier.Refused) and isinstance(decided.upper, Object) and not is_made:
                yield from decision.refused(decided.upper, problem.sentence, decided.key, self._mode)

    def _outcome(self, key: Key, problems: list[applier.Problem]) -> controller.Outcome:
        for problem in problems:
            match problem:
                case applier.Foreign():
                    self._views.tell(key, "NameTaken", problem.sentence)
                case applier.Refused():
                    self._views.tell(key, "Refused", problem.sentence)
                    self._waiting.put(key, until=problem.room)
        if any(not isinstance(problem, applier.Away) for problem in problems):
            raise Problematic("; ".join(problem.sentence for problem in problems))
        return controller.After(max(AWAY, *(p.seconds for p in problems if isinstance(p, applier.Away))))

    def _ended(self, key: Key, problem: applier.Problem | None) -> None:
        """A write that was left under way has ended: what it met is met again at the next look."""
        if isinstance(problem, applier.Away):
            self._queue.add_after(key, max(AWAY, problem.seconds))
        else:
            self._wake(key)

    def _make_room(self, todo: plan.Plan, problems: list[applier.Problem]) -> None:
        """Where one more was accepted there may be room for others who were refused."""
        if not problems:
            for made in todo.actions:
                if isinstance(made, plan.Create):
                    self._waiting.come((made.cluster, made.obj.namespace), at_most=lowers.FEW)

    def _yielded(self, key: Key, cluster: str, sentence: str) -> None:
        """Something else than was wanted stands below now, or above."""
        view = self._views.get(key.cluster)
        link = None if view is None else view.links.get(cluster)
        told = sentence if link is None else self._mode.retold(sentence, link)
        self._views.tell(key, "Taken", f"what was asked for cannot be had, so something else is used: {told}")

    def _wake(self, key: Key) -> None:
        """Have a key looked at, unless it is about no lower cluster: most objects of a big cluster are not ours."""
        view = self._views.get(key.cluster)
        if view is not None and (view.upper.trouble or view.concerned(key)):
            self._queue.add(key)

    def _lane(self, key: Key) -> Lane:
        view = self._views.get(key.cluster)
        concerned = view.concerned(key) if view else ()
        return Lane(key.cluster, concerned[0] if len(concerned) == 1 else SEVERAL)

    def _weight(self, lane: Hashable) -> float:
        """A route's own; what goes along several has that of the heaviest."""
        if not isinstance(lane, Lane) or (view := self._views.get(lane.upper)) is None:
            return 1.0
        if (route := view.routes.get(lane.lower)) is not None:
            return route.weight
        return max((route.weight for route in view.routes.values()), default=1.0)


def _retold(problem: applier.Problem, view: View) -> applier.Problem:
    """Sentences of a lower cluster as they are read above."""
    link = view.links.get(problem.cluster)
    return problem if link is None else replace(problem, sentence=view.mode.retold(problem.sentence, link))


def _shared(lane: Hashable) -> str:
    """The cluster that the lanes of several upper clusters have in common."""
    return lane.lower if isinstance(lane, Lane) else SEVERAL
