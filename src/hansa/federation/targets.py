"""The target controller: for each Target and ClusterTarget a cluster and a route, a node with a kubelet API, a view.

Targets, their Secrets and kubeconfigs come, change and go at run time; a bad one delays no other. Syncing is left to
the engine, and what happens when a Target is deleted to `leaving`.
"""

import contextlib
import logging
import random as randomness
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from hansa.control import controller, queue
from hansa.control.informer import Scope
from hansa.control.store import Store
from hansa.engine.cluster import Cluster
from hansa.engine.registry import ClusterRegistry, Route
from hansa.federation import api, target_credentials
from hansa.federation.api import CLUSTER_TARGETS, TARGETS, BadObject, Target
from hansa.federation.conditions import Conditions
from hansa.federation.leaving import Leaving
from hansa.federation.target_member import TargetMember
from hansa.federation.target_views import TargetViews
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials.secret import SecretCredentials
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.kubelet.node_servers import NodeServers
from hansa.model import keys
from hansa.nodes.controller import VirtualNodes
from hansa.nodes.lower_state import Problem
from hansa.runtime import clock, metrics

log = logging.getLogger(__name__)
WORKERS: Final = 16
NAMESPACE_NOT_FOUND: Final = "NamespaceNotFound"
NAMESPACE_SECONDS: Final = 5.0  # between looks for a namespace that a target does not have
STARTING_SECONDS: Final = 1.0  # between looks at a target that is on its way to its first summary
BY_LOGIN: Final = "by-login"  # the index of Targets by the Secret of their kubeconfig


@dataclass(frozen=True, slots=True)
class Source:
    """The cluster of this agent: its name in the registry, its configured name, and its id."""

    cluster: Cluster
    name: str
    id: str


@dataclass(slots=True)
class _Joined:
    member: TargetMember
    uid: str
    credentials: SecretCredentials | None = None
    has_namespace: bool = False  # that of the Target was seen in the target
    identity: tuple[object, ...] = ()  # of the connection; a change of it means another connection
    checked: tuple[object, ...] = ()  # the Secret that was found valid: each change of a summary leads here
    ends: list[Callable[[], None]] = field(default_factory=list)


class Targets:
    """Reconciles the registry with the Targets of one cluster. `join` makes a cluster from a name and a client."""

    def __init__(
        self,
        registry: ClusterRegistry,
        source: Source,
        *,
        views: TargetViews,
        nodes: VirtualNodes,
        kubelet: NodeServers,
        conditions: Conditions,
        leaving: Leaving,
        connect: Callable[[SecretCredentials], Client],
        join: Callable[[str, Client, frozenset[str] | None], Cluster],
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._registry, self._source, self._views = registry, source, views
        self._nodes, self._kubelet = nodes, kubelet
        self._conditions, self._leaving, self._clock = conditions, leaving, clock
        self._connect, self._make_cluster = connect, join
        self._joined: dict[NamespacedName, _Joined] = {}
        self._queue: queue.Queue[NamespacedName] = queue.Queue(
            "targets", clock=clock, random=random, metrics=metrics, group=lambda key: key
        )
        self._controller = controller.Controller(
            "targets", self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )

    async def run(self) -> None:
        """Reconcile until drained. Virtual nodes are kept when it ends: a restart must not disturb their pods."""
        informers = self._source.cluster.informers
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._close)
            self._stores: dict[bool, Store] = {}  # by whether its Targets have a namespace
            for resource in (TARGETS, CLUSTER_TARGETS):
                store = await stack.enter_async_context(informers.share(Scope(resource)))
                self._stores[resource.namespaced] = store
                store.index(BY_LOGIN, _secrets)
                stack.callback(store.freshness.listen(lambda _: self._enqueue_all()))
                stack.callback(store.listen(self._queue.add, lambda target: (target.key,)))
            self._secrets = await stack.enter_async_context(informers.share(Scope(resources.SECRETS)))
            stack.callback(self._secrets.freshness.listen(lambda _: self._enqueue_all()))
            stack.callback(self._secrets.listen(self._secret_changed, lambda secret: (secret.key,)))
            await self._controller.run()

    def drain(self) -> None:
        """Finish the reconciles that run, and start no others."""
        self._controller.drain()

    async def _reconcile(self, key: NamespacedName) -> controller.Outcome:
        store = self._stores[bool(key.namespace)]
        if not store.freshness.is_known or not self._secrets.freshness.is_known:
            return controller.Done()  # all keys are queued again when they are
        obj, joined = store.get(key), self._joined.get(key)
        if joined is not None and (obj is None or obj.uid != joined.uid):
            await self._forget(key, joined)
            joined = None
        if obj is None:
            return controller.Done()
        if obj.is_deleting:
            return await self._leave(obj, joined)
        return await self._serve(obj, joined)

    async def _serve(self, obj: Object, joined: _Joined | None) -> controller.Outcome:
        try:
            target = api.target(obj)
        except BadObject as error:
            if joined is not None:
                joined.member.set_problem(Problem(error.reason, str(error)))
            await self._conditions.set_not_ready(_resource(obj), obj, error.reason, str(error))
            return controller.Done()
        obj = await self._with_finalizer(target)
        joined = joined or self._begin(target)
        joined.member.update(target)
        await self._connected(target, joined)
        if joined.member.is_starting:
            return controller.After(STARTING_SECONDS)
        await self._report(target.resource, obj, joined.member)
        problem = joined.member.problem
        is_missing = problem is not None and problem.reason == NAMESPACE_NOT_FOUND
        return controller.After(NAMESPACE_SECONDS) if is_missing else controller.Done()

    async def _report(self, resource: Resource, obj: Object, member: TargetMember) -> None:
        was_connected = api.status(obj).is_connected
        if (problem := member.problem) is None:
            message = "pods can be placed there"
            await self._conditions.set_ready(resource, obj, message, node=member.node, connected=True)
        else:
            reason, message = problem.reason, problem.message
            await self._conditions.set_not_ready(
                resource, obj, reason, message, node=member.node, connected=was_connected
            )

    async def _with_finalizer(self, target: Target) -> Object:
        obj = target.object
        if keys.TARGET_FINALIZER in obj.metadata.finalizers:
            return obj
        patch = {
            "metadata": {
                "finalizers": [*obj.metadata.finalizers, keys.TARGET_FINALIZER],
                "resourceVersion": obj.version,
                "uid": obj.uid,
            }
        }
        client = self._source.cluster.client
        made = await client.patch(target.resource, obj.name, patch, namespace=obj.namespace)
        self._stores[target.resource.namespaced].observe(made)
        return made

    def _begin(self, target: Target) -> _Joined:
        """Serve the virtual node and the view of a target, whether or not it can be connected."""
        endpoint = self._kubelet.add(target.node)
        member = TargetMember(
            target, kubelet=endpoint, source=self._source.name, source_id=self._source.id, clock=self._clock
        )
        joined = self._joined[target.key] = _Joined(member, target.object.uid)

        def watch(changed: Callable[[], None]) -> TargetMember:
            joined.ends.append(member.changed.add(changed))
            return member

        self._nodes.add_monitored(member.node, watch)
        joined.ends.append(member.changed.add(lambda: self._changed(target.key, member)))
        self._changed(target.key, member)
        return joined

    def _changed(self, key: NamespacedName, member: TargetMember) -> None:
        self._views.update(member.view())
        self._queue.add(key)

    async def _connected(self, target: Target, joined: _Joined) -> None:
        """Connect it, or use its newest credentials; without valid ones it has a problem, and keeps its connection."""
        member = joined.member
        identity = (target.is_self, target.spec.kubeconfig_secret)
        if joined.identity != identity:
            await self._disconnect(joined)
        try:
            secret = self._secret_of(target, joined)
        except BadObject as error:
            member.set_problem(Problem(error.reason, str(error)))
            return
        if member.cluster is None:
            joined.identity = identity
            await self._join(target, joined, secret)
        elif joined.credentials is not None and secret is not None:
            joined.credentials.observe(secret)
        member.set_problem(await self._namespace_problem(target, joined))
        self._link(member)

    async def _namespace_problem(self, target: Target, joined: _Joined) -> Problem | None:
        """Whether the target lacks the namespace of the Target. That it is deleted later is reported on pods."""
        cluster, name = joined.member.cluster, target.key.namespace
        if cluster is None or cluster.health.error or target.is_self or not name or joined.has_namespace:
            return None
        try:
            await cluster.client.get(resources.NAMESPACES, name)
        except errors.NotFound:
            return Problem(NAMESPACE_NOT_FOUND, f'namespace "{name}" does not exist in the target: create it there')
        except errors.ApiError as error:
            # Without the right to read it, it is not asked for again.
            joined.has_namespace = isinstance(error, errors.Denied)
        else:
            joined.has_namespace = True
        return None

    def _secret_of(self, target: Target, joined: _Joined) -> Object | None:
        """The Secret with valid credentials; None for this cluster itself."""
        if (name := target.secret) is None:
            return None
        secret = self._secrets.get(name)
        identity = (target.spec.kubeconfig_secret, secret and (secret.uid, secret.version))
        if secret is None or joined.checked != identity:
            secret = target_credentials.checked(target, name, secret)
            joined.checked = identity
        return secret

    async def _join(self, target: Target, joined: _Joined, secret: Object | None) -> None:
        namespaces = frozenset({target.key.namespace}) if target.key.namespace else None
        client, close = self._source.cluster.client, _nothing
        if secret is not None:
            joined.credentials = target_credentials.of(target, secret)
            client = self._connect(joined.credentials)
            close = client.close
        cluster = self._make_cluster(joined.member.node, client, namespaces)
        self._registry.join(cluster)
        await joined.member.connect(cluster, close)

    def _link(self, member: TargetMember) -> None:
        link = member.link()
        route = Route(
            self._source.cluster.name, member.node, link, frozenset({member.node}), is_self=member.target.is_self
        )
        if route not in self._registry.routes(route.upper):
            self._registry.link(route)

    async def _disconnect(self, joined: _Joined) -> None:
        joined.identity, joined.credentials, joined.has_namespace = (), None, False
        if joined.member.cluster is not None:
            await self._registry.leave(joined.member.node)
            await joined.member.disconnect()

    async def _leave(self, obj: Object, joined: _Joined | None) -> controller.Outcome:
        if keys.TARGET_FINALIZER not in obj.metadata.finalizers:
            if joined is not None:
                await self._forget(obj.key, joined)
            return controller.Done()
        with contextlib.suppress(BadObject):
            target = api.target(obj)
            joined = joined or self._begin(target)
            joined.member.leave()
            await self._connected(target, joined)
        if joined is not None:
            was_connected = api.status(obj).is_connected
            rest = await self._leaving.rest(joined.member, was_connected=was_connected)
            if rest is not None:
                await self._conditions.set_not_ready(
                    _resource(obj), obj, "Leaving", rest, node=joined.member.node, connected=was_connected
                )
                return controller.After(STARTING_SECONDS)
            await self._forget(obj.key, joined)
        await self._leaving.release(_resource(obj), obj)
        return controller.Done()

    async def _forget(self, key: NamespacedName, joined: _Joined) -> None:
        """Remove a target: its route, its cluster, its virtual node and its view."""
        await self._disconnect(joined)
        for end in joined.ends:
            end()
        self._views.remove(joined.member.node)
        await self._nodes.remove(joined.member.node)
        await self._kubelet.remove(joined.member.node)
        del self._joined[key]
        log.info("target removed", extra={"target": str(key)})

    async def _close(self) -> None:
        for joined in self._joined.values():
            await self._disconnect(joined)
            for end in joined.ends:
                end()
            await self._nodes.forget(joined.member.node)
        await self._kubelet.close()
        self._joined.clear()

    def _secret_changed(self, secret: NamespacedName) -> None:
        for store in self._stores.values():
            for target in store.find(BY_LOGIN, secret):
                self._queue.add(target.key)

    def _enqueue_all(self) -> None:
        for key in [*self._joined, *(key for store in self._stores.values() for key in store)]:
            self._queue.add(key)


async def _nothing() -> None:
    """The client of this cluster itself is not closed with a target."""


def _secrets(obj: Object) -> Iterable[NamespacedName]:
    try:
        secret = api.target(obj).secret
    except BadObject:
        return ()
    return () if secret is None else (secret,)


def _resource(obj: Object) -> Resource:
    return TARGETS if obj.namespace else CLUSTER_TARGETS
