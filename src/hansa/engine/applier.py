"""The only writer of synced objects: carries out plans, and puts the servers' answers into the caches.

Failed writes are returned as problems, one class per reaction of the syncer, which reports and retries them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from hansa.engine import fanout
from hansa.engine.caches import ClusterCaches
from hansa.engine.view.topics import NamespaceQuota
from hansa.engine.view.upper_view import UpperView
from hansa.engine.write_gate import WriteGate
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys, placement, plan, stamp
from hansa.model.pair import Key, Pair
from hansa.runtime import clock, metrics

RECHECK = 0.1  # seconds in which a server frees what a deleted object held


class Verb(StrEnum):
    """What is written: a label of the metric hansa_writes_total."""

    CREATE = "create"
    PATCH = "patch"
    DELETE = "delete"
    BIND = "bind"
    SET_FINALIZERS = "set-finalizers"


VERBS: dict[type[plan.Write], Verb] = {
    plan.Create: Verb.CREATE,
    plan.Patch: Verb.PATCH,
    plan.Delete: Verb.DELETE,
    plan.Bind: Verb.BIND,
    plan.SetFinalizers: Verb.SET_FINALIZERS,
}


@dataclass(frozen=True, slots=True)
class Foreign:
    """The name is taken by an object without our stamp."""

    cluster: str
    message: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The server refused the write: quota, admission, permissions or an invalid object. `quota` may be the cause."""

    cluster: str
    message: str
    quota: NamespaceQuota


@dataclass(frozen=True, slots=True)
class RetryLater:
    """The server did not answer or throttled the write: retry soon."""

    cluster: str
    message: str
    seconds: float = 0.0  # from Retry-After


@dataclass(frozen=True, slots=True)
class Stale:
    """The object changed after the snapshot: decide again."""

    cluster: str
    message: str


@dataclass(frozen=True, slots=True)
class Full:
    """The upper cluster has as many requests in flight there as it may: the key is requeued when one has ended."""

    cluster: str
    message: str


Problem = Foreign | Refused | RetryLater | Stale | Full


class Applier:
    """Writes to all clusters of a view.

    `gate` is asked before each write: of several processes only one may write for an upper cluster. `ended` is called
    with the result of a write that took long, `wake` with a key that waited until fewer requests are in flight.
    `replaced` is called with the key, the cluster and the server's message when a rule's fallback was written instead
    of what the server refused.
    """

    def __init__(
        self,
        *,
        metrics: metrics.Registry,
        gate: WriteGate,
        ended: Callable[[Key, Problem | None], None],
        replaced: Callable[[Key, str, str], None],
        wake: Callable[[Key], None],
        clock: clock.Clock,
        field_manager: str = "hansa",
    ) -> None:
        self._clock = clock
        self._gate, self._replaced, self._field_manager = gate, replaced, field_manager
        self._wake = wake
        self._fanout = fanout.Fanout(ended)
        self._writes = metrics.counter(
            "hansa_writes_total",
            "Write requests, by reason and result.",
            labels=["cluster", "resource", "verb", "reason", "answer"],
        )

    async def apply(self, todo: plan.Plan, decided: Pair, view: UpperView) -> list[Problem]:
        """Apply a plan, in order in each cluster, concurrently in several. Returns the problems."""
        found = [Foreign(one.cluster, one.message) for one in todo.actions if isinstance(one, plan.Conflict)]
        by_cluster: dict[str, list[plan.Write]] = {}
        for write in todo.writes:
            by_cluster.setdefault(write.cluster, []).append(write)
        key, sides = decided.key, {cluster: view.clusters.side(cluster) for cluster in by_cluster}
        if len(decided.lowers) > 1:  # a slow cluster must not delay others
            work = {
                cluster: self._write_all(sides[cluster], writes, key, view) for cluster, writes in by_cluster.items()
            }
            problems = await self._fanout.run(key, work, view.in_flight)
        else:
            problems = [
                await self._write_all(sides[cluster], writes, key, view) for cluster, writes in by_cluster.items()
            ]
        return [*found, *(one for one in problems if one is not None)]

    async def close(self) -> None:
        """Cancel writes in flight."""
        await self._fanout.close()

    async def _write_all(
        self, side: ClusterCaches, writes: Iterable[plan.Write], key: Key, view: UpperView
    ) -> Problem | None:
        for write in writes:
            if not self._gate.may_write(view.name, write.cluster):
                return RetryLater(write.cluster, "another process may write now")
            inflight = side.cluster.inflight
            if not inflight.has_room(view.name, view.usage.most_requests(write.cluster)):
                inflight.wait(view.name, key, self._wake)
                return Full(write.cluster, "the tenant's limit of requests in flight is reached")
            answer = errors.Answer.OK
            try:
                async with self._gate.write(view.name, write.cluster), inflight.request(view.name):
                    problem = await self._write(write, key, side, view)
            except errors.ApiError as error:
                answer = errors.answer_of(error)
                problem = _problem(error, write)
            self._writes.labels(write.cluster, str(key.resource), VERBS[type(write)], write.reason, answer).inc()
            if problem is not None:
                return problem
        return None

    async def _write(self, write: plan.Write, key: Key, side: ClusterCaches, view: UpperView) -> Problem | None:
        match write:
            case plan.Create():
                return await self._create(write, key, side, view)
            case plan.Patch():
                return await self._patch(write, key, side, view)
            case plan.Delete():
                return await self._delete(write, key.resource, side)
            case plan.Bind():
                return await self._bind(write, key.resource, side)
            case plan.SetFinalizers():
                # With the version that was read, so that a finalizer that was added since is not lost.
                patch = {"metadata": {"resourceVersion": write.obj.version, "finalizers": list(write.finalizers)}}
                return await self._patch(plan.Patch(write.cluster, write.obj, patch, write.reason), key, side, view)

    async def _create(self, write: plan.Create, key: Key, side: ClusterCaches, view: UpperView) -> Problem | None:
        resource, store, client = key.resource, side.stores[key.resource], side.cluster.client
        try:
            try:
                made = await self._send(write, key, side, view)
            except errors.NotFound:
                if not write.obj.namespace or not view.mode.creates_namespaces:
                    if resources.NAMESPACES in view.mode.rules or not write.obj.namespace:
                        raise
                    return _without_namespace(write)
                await self._make_namespace(write.obj.namespace, side, view)
                made = await self._send(write, key, side, view)
        except errors.AlreadyExists:
            made = await client.get(resource, write.obj.name, namespace=write.obj.namespace)
            origin = stamp.of(made)
            is_shared = view.mode.rules[resource].lifecycle.may_share(made.name)
            if not is_shared and (origin is None or origin.upper != view.clusters.upper_id):
                return Foreign(write.cluster, plan.conflict_message(resource, made.key, write.cluster))
        store.observe(made)
        return None

    async def _make_namespace(self, name: str, side: ClusterCaches, view: UpperView) -> None:
        metadata = {"name": name, "labels": {keys.UPPER: view.clusters.upper_id}}
        namespace = Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        answer = errors.Answer.OK
        try:
            await side.cluster.client.create(resources.NAMESPACES, namespace, field_manager=self._field_manager)
        except errors.AlreadyExists as error:
            answer = errors.answer_of(error)
        cluster = side.cluster.name
        self._writes.labels(cluster, str(resources.NAMESPACES), Verb.CREATE, plan.Reason.PLACED, answer).inc()

    async def _patch(self, write: plan.Patch, key: Key, side: ClusterCaches, view: UpperView) -> Problem | None:
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

    async def _send(self, write: plan.Create | plan.Patch, key: Key, side: ClusterCaches, view: UpperView) -> Object:
        """Send a write; if the server refuses it twice as invalid, the rule's fallback is written, if there is one."""
        messages: list[str] = []
        is_sure = False
        while True:
            try:
                answer = await self._request(write, key.resource, side)
            except errors.Invalid as error:
                other = _with_fallback(write, error, key, view)
                if other is None:
                    raise
                if not is_sure:  # the object that held the value may just have been deleted
                    await self._clock.sleep(RECHECK)
                    is_sure = True
                    continue
                messages.append(error.with_cluster(write.cluster))
                write = other
            else:
                for message in messages:
                    self._replaced(key, write.cluster, message)
                return answer

    async def _request(self, write: plan.Create | plan.Patch, resource: Resource, side: ClusterCaches) -> Object:
        obj, client = write.obj, side.cluster.client
        if isinstance(write, plan.Create):
            return await client.create(resource, obj, field_manager=self._field_manager)
        # With the uid, the server refuses the patch if another object has the name now.
        return await client.patch(
            resource,
            obj.name,
            {**write.patch, "metadata": {**write.patch.get("metadata", {}), "uid": obj.uid}},
            namespace=obj.namespace,
            subresource=write.subresource,
            field_manager=self._field_manager,
        )

    async def _delete(self, write: plan.Delete, resource: Resource, side: ClusterCaches) -> Problem | None:
        obj, store = write.obj, side.stores[resource]
        try:
            left = await side.cluster.client.delete(
                resource, obj.name, namespace=obj.namespace, uid=obj.uid, grace=write.grace
            )
        except (errors.NotFound, errors.Conflict):  # a conflict: an object with another uid has the name now
            left = None
        if left is None or _is_gone(left):
            store.observe_gone(obj.key, obj.uid)
        else:
            store.observe(left)
        return None

    async def _bind(self, write: plan.Bind, resource: Resource, side: ClusterCaches) -> Problem | None:
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


def _with_fallback(
    write: plan.Create | plan.Patch, error: errors.Invalid, key: Key, view: UpperView
) -> plan.Create | plan.Patch | None:
    """The write with the rule's fallback for the fields that a server refused, if there is one."""
    spec = write.obj.spec if isinstance(write, plan.Create) else write.patch.get("spec") or {}
    refused, deleting = (
        [cause.field for cause in error.causes],
        view.clusters.copies_to_delete(key.resource, write.cluster),
    )
    fallback = view.mode.rules[key.resource].fallback
    other = None if fallback is None else fallback(spec, refused, deleting)
    if other is None:
        return None
    if isinstance(write, plan.Create):
        return replace(write, obj=write.obj.with_fields(spec=other))
    return replace(write, patch={**write.patch, "spec": other})


def _without_namespace(write: plan.Create) -> Refused:
    """The namespace is missing in a cluster where others create it."""
    name = write.obj.namespace
    message = f'namespace "{name}" not found in {write.cluster}; create it there'
    return Refused(write.cluster, message, quota=NamespaceQuota(write.cluster, name))


def _is_gone(answer: Object) -> bool:
    """Whether a deleted object no longer exists, although it is in the answer. Namespaces: finalizers in the spec."""
    metadata = answer.metadata
    is_held = metadata.finalizers or (answer.kind == resources.NAMESPACES.kind and answer.spec.get("finalizers"))
    return not is_held and not metadata.deletion_grace_period_seconds


def _problem(error: errors.ApiError, write: plan.Write) -> Problem:
    cluster, message = write.cluster, error.with_cluster(write.cluster)
    match error:
        case errors.Throttled():
            return RetryLater(cluster, message, seconds=error.retry_after)
        case errors.Unreachable() | errors.Unauthorized() | errors.BadCredentials():
            return RetryLater(cluster, message)
        case errors.Conflict() | errors.NotFound() | errors.Gone():
            return Stale(cluster, message)
    return Refused(cluster, message, quota=NamespaceQuota(cluster, write.obj.namespace))
