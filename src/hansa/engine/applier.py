"""The only writer: carries out plans, reads its own writes, and sorts what servers answer by what is to be done next.

What is not there any more is forgotten, what is refused is told to the user, what cannot be reached is left for later.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from hansa.engine import apart
from hansa.engine.side import Side
from hansa.engine.view import View
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys, placement, plan, stamp
from hansa.model.pair import Key, Pair
from hansa.runtime import clock, metrics

MOMENT = 0.1  # seconds in which a server frees what a deleted object held


@dataclass(frozen=True, slots=True)
class Foreign:
    """The name is taken by an object that is not ours."""

    cluster: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The server does not want it so: a quota, an admission, a right, or a mistake. `room` is where there is none."""

    cluster: str
    sentence: str
    room: tuple[str, str]  # cluster and namespace


@dataclass(frozen=True, slots=True)
class Away:
    """No answer, or one that says nothing: try again soon."""

    cluster: str
    sentence: str
    seconds: float = 0.0  # after which the server wants to be asked again


@dataclass(frozen=True, slots=True)
class Stale:
    """Somebody was faster: what we know is not so any more."""

    cluster: str
    sentence: str


Problem = Foreign | Refused | Away | Stale


class Applier:
    """Writes to all clusters of a view; `field_manager` is under which name.

    `may_write` is asked before each write: of many processes one may. What is left under way wakes its key by `ended`.
    `yielded` is told the key, the cluster and the server's sentence where something else than wanted was written.
    """

    def __init__(
        self,
        *,
        metrics: metrics.Registry,
        may_write: Callable[[], bool],
        ended: Callable[[Key, Problem | None], None],
        yielded: Callable[[Key, str, str], None],
        clock: clock.Clock,
        field_manager: str = "hansa",
    ) -> None:
        self._clock = clock
        self._may_write, self._yielded, self._field_manager = may_write, yielded, field_manager
        self._apart = apart.Apart(ended)
        self._writes = metrics.counter(
            "hansa_writes_total",
            "Requests that write, by what they are for and how they ended.",
            labels=["cluster", "resource", "verb", "reason", "answer"],
        )

    async def apply(self, todo: plan.Plan, decided: Pair, view: View) -> list[Problem]:
        """Carry out a plan: in order in each cluster, side by side in several. What went wrong is the answer."""
        found = [Foreign(one.cluster, one.reason) for one in todo.actions if isinstance(one, plan.Conflict)]
        by_cluster: dict[str, list[plan.Write]] = {}
        for write in todo.writes:
            by_cluster.setdefault(write.cluster, []).append(write)
        key, sides = decided.key, {cluster: view.side(cluster) for cluster in by_cluster}
        if len(decided.lowers) > 1:  # none of them must wait for another
            work = {cluster: self._in(sides[cluster], writes, key, view) for cluster, writes in by_cluster.items()}
            problems = await self._apart.run(key, work, view.under_way)
        else:
            problems = [await self._in(sides[cluster], writes, key, view) for cluster, writes in by_cluster.items()]
        return [*found, *(one for one in problems if one is not None)]

    async def close(self) -> None:
        """End what is under way."""
        await self._apart.close()

    async def _in(self, side: Side, writes: Iterable[plan.Write], key: Key, view: View) -> Problem | None:
        for write in writes:
            if not self._may_write():
                return Away(write.cluster, "this process does not lead any more")
            answer = "ok"
            try:
                async with side.cluster.flights.flight():
                    problem = await self._write(write, key, side, view)
            except errors.ApiError as error:
                answer = type(error).__name__
                problem = _problem(error, write)
            self._writes.of(write.cluster, str(key.resource), type(write).__name__, write.reason, answer).inc()
            if problem is not None:
                return problem
        return None

    async def _write(self, write: plan.Write, key: Key, side: Side, view: View) -> Problem | None:
        match write:
            case plan.Create():
                return await self._create(write, key, side, view)
            case plan.Patch():
                return await self._patch(write, key, side, view)
            case plan.Delete():
                return await self._delete(write, key.resource, side)
            case plan.Bind():
                return await self._bind(write, key.resource, side)

    async def _create(self, write: plan.Create, key: Key, side: Side, view: View) -> Problem | None:
        resource, store, client = key.resource, side.stores[key.resource], side.cluster.client
        try:
            try:
                made = await self._send(write, key, side, view)
            except errors.NotFound:
                if not write.obj.namespace or resources.NAMESPACES in view.mode.rules:
                    raise
                await self._make_namespace(write.obj.namespace, side, view)
                made = await self._send(write, key, side, view)
        except errors.AlreadyExists:
            made = await client.get(resource, write.obj.name, namespace=write.obj.namespace)
            origin = stamp.of(made)
            is_shared = view.mode.rules[resource].lifecycle.shares_name(made.name)
            if not is_shared and (origin is None or origin.upper != view.upper_id):
                return Foreign(write.cluster, f"{resource} {made.key} exists in {write.cluster} and is not ours")
        store.observe(made)
        return None

    async def _make_namespace(self, name: str, side: Side, view: View) -> None:
        metadata = {"name": name, "labels": {keys.UPPER: view.upper_id}}
        namespace = Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        answer = "ok"
        try:
            await side.cluster.client.create(resources.NAMESPACES, namespace, field_manager=self._field_manager)
        except errors.AlreadyExists:
            answer = errors.AlreadyExists.__name__
        cluster = side.cluster.name
        self._writes.of(cluster, str(resources.NAMESPACES), "Create", "an object is wanted in it", answer).inc()

    async def _patch(self, write: plan.Patch, key: Key, side: Side, view: View) -> Problem | None:
        obj, store = write.obj, side.stores[key.resource]
        try:
            answer = await self._send(write, key, side, view)
        except errors.NotFound:
            store.observe_gone(obj.key, obj.uid)
        except errors.Invalid as error:
            if all(cause.field != "metadata.uid" for cause in error.causes):
                raise
            store.observe_gone(obj.key, obj.uid)
        else:
            store.observe(answer)
        return None

    async def _send(self, write: plan.Create | plan.Patch, key: Key, side: Side, view: View) -> Object:
        """Write it; what a server refuses twice is written as the rule would rather have it than not at all."""
        sentences: list[str] = []
        is_sure = False
        while True:
            try:
                answer = await self._request(write, key.resource, side)
            except errors.Invalid as error:
                other = _other(write, error, key, view)
                if other is None:
                    raise
                if not is_sure:  # what held it may have gone while we asked
                    await self._clock.sleep(MOMENT)
                    is_sure = True
                    continue
                sentences.append(str(error))
                write = other
            else:
                for sentence in sentences:
                    self._yielded(key, write.cluster, sentence)
                return answer

    async def _request(self, write: plan.Create | plan.Patch, resource: Resource, side: Side) -> Object:
        obj, client = write.obj, side.cluster.client
        if isinstance(write, plan.Create):
            return await client.create(resource, obj, field_manager=self._field_manager)
        # The uid makes it a patch of this very object: for the next one of that name it is refused.
        return await client.patch(
            resource,
            obj.name,
            {**write.patch, "metadata": {**write.patch.get("metadata", {}), "uid": obj.uid}},
            namespace=obj.namespace,
            subresource=write.subresource,
            field_manager=self._field_manager,
        )

    async def _delete(self, write: plan.Delete, resource: Resource, side: Side) -> Problem | None:
        obj, store = write.obj, side.stores[resource]
        try:
            left = await side.cluster.client.delete(
                resource, obj.name, namespace=obj.namespace, uid=obj.uid, grace=write.grace
            )
        except (errors.NotFound, errors.Conflict):  # a conflict is the uid's: another object has the name now
            left = None
        if left is None or _is_gone(left):
            store.observe_gone(obj.key, obj.uid)
        else:
            store.observe(left)
        return None

    async def _bind(self, write: plan.Bind, resource: Resource, side: Side) -> Problem | None:
        obj, store, client = write.obj, side.stores[resource], side.cluster.client
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": obj.namespace, "name": obj.name, "uid": obj.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": write.node},
        }
        try:
            await client.call(resource, obj.name, "binding", body=Object.of(binding), namespace=obj.namespace)
        except errors.NotFound:
            store.observe_gone(obj.key, obj.uid)
        except errors.Conflict:
            found = await client.get(resource, obj.name, namespace=obj.namespace)
            store.observe(found)
            if (found.uid, placement.node_of(found)) != (obj.uid, write.node):
                raise
        return None


def _other(
    write: plan.Create | plan.Patch, error: errors.Invalid, key: Key, view: View
) -> plan.Create | plan.Patch | None:
    """What may be written instead of what a server refused."""
    spec = write.obj.spec if isinstance(write, plan.Create) else write.patch.get("spec") or {}
    refused, going = [cause.field for cause in error.causes], view.going(key.resource, write.cluster)
    other = view.mode.rules[key.resource].yields(spec, refused, going)
    if other is None:
        return None
    if isinstance(write, plan.Create):
        return replace(write, obj=write.obj.with_fields(spec=other))
    return replace(write, patch={**write.patch, "spec": other})


def _is_gone(answer: Object) -> bool:
    """The server shows what it deleted even if nothing of it is left. A namespace is held by its spec."""
    metadata = answer.metadata
    is_held = metadata.finalizers or (answer.kind == resources.NAMESPACES.kind and answer.spec.get("finalizers"))
    return not is_held and not metadata.deletion_grace_period_seconds


def _problem(error: errors.ApiError, write: plan.Write) -> Problem:
    cluster, sentence = write.cluster, str(error)
    match error:
        case errors.Throttled():
            return Away(cluster, sentence, seconds=error.retry_after)
        case errors.Unreachable() | errors.Unauthorized() | errors.BadCredentials():
            return Away(cluster, sentence)
        case errors.Conflict() | errors.NotFound() | errors.Gone():
            return Stale(cluster, sentence)
    return Refused(cluster, sentence, room=(cluster, write.obj.namespace))
