"""The target controller: for each Target and ClusterTarget a cluster and a route, a node with a kubelet API, a view.

Targets, their Secrets and kubeconfigs come, change and go at run time; a bad one delays no other. Syncing is left to
the engine, and what happens when a Target is deleted to `leaving`.
"""

import contextlib
import logging
import random as randomness
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from hansa.control import controller, queue
from hansa.control.informer import Scope
from hansa.control.store import Store
from hansa.engine.cluster import Cluster
from hansa.engine.registry import ClusterRegistry
from hansa.federation import api
from hansa.federation.api import CLUSTER_TARGETS, TARGETS, BadObject, Target
from hansa.federation.conditions import Conditions
from hansa.federation.leaving import Leaving
from hansa.federation.owned_objects import OwnedObjects
from hansa.federation.target_connections import Connect, JoinedTarget, MakeCluster, TargetConnections
from hansa.federation.target_member import TargetMember
from hansa.federation.target_views import TargetViews
from hansa.kube import errors, resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.kubelet.node_servers import NodeServers
from hansa.model import keys
from hansa.nodes.controller import VirtualNodes
from hansa.nodes.lower_state import Problem
from hansa.runtime import clock, metrics

log = logging.getLogger(__name__)
MANAGER: Final = "hansa-agent"
WORKERS: Final = 16
PROBLEM_SECONDS: Final = 5.0  # between two reads of the namespace of a Target with a problem, here and in the target
STARTING_SECONDS: Final = 1.0  # between two checks of a target without its first summary
BY_LOGIN: Final = "by-login"  # the index of Targets by the Secret of their kubeconfig


@dataclass(frozen=True, slots=True)
class Source:
    """The cluster of this agent: its name in the registry, its configured name, and its id."""

    cluster: Cluster
    name: str
    id: str


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
        connect: Connect,
        join: MakeCluster,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._registry, self._source, self._views = registry, source, views
        self._nodes, self._kubelet = nodes, kubelet
        self._conditions, self._leaving, self._clock = conditions, leaving, clock
        self._connect, self._make_cluster = connect, join
        self._stores: dict[Resource, Store] = {}
        self._owned = OwnedObjects(source.cluster.client, manager=MANAGER, is_ours=_is_held, stores=self._stores)
        self._joined: dict[NamespacedName, JoinedTarget] = {}
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
            for resource in (TARGETS, CLUSTER_TARGETS):
                store = await stack.enter_async_context(informers.share(Scope(resource)))
                self._stores[resource] = store
                store.index(BY_LOGIN, _secrets)
                stack.callback(store.freshness.listen(lambda _: self._enqueue_all()))
                stack.callback(store.listen(self._queue.add, lambda target: (target.key,)))
            self._secrets = await stack.enter_async_context(informers.share(Scope(resources.SECRETS)))
            self._connections = TargetConnections(
                self._registry, self._source.cluster, self._secrets, connect=self._connect, join=self._make_cluster
            )
            stack.callback(self._secrets.freshness.listen(lambda _: self._enqueue_all()))
            stack.callback(self._secrets.listen(self._secret_changed, lambda secret: (secret.key,)))
            await self._controller.run()

    def drain(self) -> None:
        """Finish the reconciles that run, and start no others."""
        self._controller.drain()

    async def _reconcile(self, key: NamespacedName) -> controller.Outcome:
        store = self._stores[_resource(key)]
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

    async def _serve(self, obj: Object, joined: JoinedTarget | None) -> controller.Outcome:
        try:
            target = api.target(obj)
        except BadObject as error:
            if joined is not None:
                joined.member.set_problem(Problem(error.reason, str(error)))
            await self._conditions.set_not_ready(_resource(obj.key), obj, error.reason, str(error))
            return controller.Done()
        obj = await self._owned.add_finalizer(target.resource, obj, keys.TARGET_FINALIZER)
        joined = joined or self._begin(target)
        joined.member.update(target)
        await self._connections.update(target, joined)
        if joined.member.is_starting:
            return controller.After(STARTING_SECONDS)
        await self._report(target.resource, obj, joined.member)
        if joined.member.problem is None:
            return controller.Done()
        await self._end_with_namespace(target)
        return controller.After(PROBLEM_SECONDS)

    async def _end_with_namespace(self, target: Target) -> None:
        """Delete a Target with a problem whose namespace is being deleted.

        A namespace that is deleted waits for its pods before it deletes other objects, and these wait for the target.
        """
        if not target.key.namespace:
            return
        with contextlib.suppress(errors.NotFound, errors.Denied):
            namespace = await self._source.cluster.client.get(resources.NAMESPACES, target.key.namespace)
            if namespace.is_deleting:
                log.info("target deleted with its namespace", extra={"target": str(target.key)})
                await self._owned.delete(target.resource, target.object)

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

    def _begin(self, target: Target) -> JoinedTarget:
        """Serve the virtual node and the view of a target, whether or not it can be connected."""
        endpoint = self._kubelet.add(target.node)
        member = TargetMember(
            target, kubelet=endpoint, source=self._source.name, source_id=self._source.id, clock=self._clock
        )
        joined = self._joined[target.key] = JoinedTarget(member, target.object.uid)

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

    async def _leave(self, obj: Object, joined: JoinedTarget | None) -> controller.Outcome:
        if keys.TARGET_FINALIZER not in obj.metadata.finalizers:
            if joined is not None:
                await self._forget(obj.key, joined)
            return controller.Done()
        with contextlib.suppress(BadObject):
            target = api.target(obj)
            joined = joined or self._begin(target)
            joined.member.leave()
            await self._connections.update(target, joined)
        if joined is not None:
            was_connected = api.status(obj).is_connected
            rest = await self._leaving.rest(joined.member, was_connected=was_connected)
            if rest is not None:
                await self._conditions.set_not_ready(
                    _resource(obj.key), obj, "Leaving", rest, node=joined.member.node, connected=was_connected
                )
                return controller.After(STARTING_SECONDS)
            await self._forget(obj.key, joined)
        await self._owned.remove_finalizer(_resource(obj.key), obj, keys.TARGET_FINALIZER)
        return controller.Done()

    async def _forget(self, key: NamespacedName, joined: JoinedTarget) -> None:
        """Remove a target: its route, its cluster, its virtual node and its view."""
        await self._connections.disconnect(joined)
        for end in joined.ends:
            end()
        self._views.remove(joined.member.node)
        await self._nodes.remove(joined.member.node)
        await self._kubelet.remove(joined.member.node)
        del self._joined[key]
        log.info("target removed", extra={"target": str(key)})

    async def _close(self) -> None:
        for joined in self._joined.values():
            await self._connections.disconnect(joined)
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


def _is_held(obj: Object) -> bool:
    return keys.TARGET_FINALIZER in obj.metadata.finalizers


def _secrets(obj: Object) -> Iterable[NamespacedName]:
    try:
        secret = api.target(obj).secret
    except BadObject:
        return ()
    return () if secret is None else (secret,)


def _resource(key: NamespacedName) -> Resource:
    return TARGETS if key.namespace else CLUSTER_TARGETS
