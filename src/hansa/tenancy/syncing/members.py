"""Which tenants take part: VirtualClusters of the meta cluster that run become clusters of the registry, and links.

Credentials that change are used from the next request on. What travels along the links is the engine's.
"""

import asyncio
import contextlib
import functools
import logging
import random as randomness
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from hansa.control import controller, queue, store
from hansa.control.informer import Informers, Scope
from hansa.engine.cluster import Cluster
from hansa.engine.registry import Registry, Route
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.runtime import clock, metrics
from hansa.runtime.errors import HansaError
from hansa.tenancy import api
from hansa.tenancy.api import VIRTUAL_CLUSTERS
from hansa.tenancy.syncing import credentials
from hansa.tenancy.syncing.claims import Claims
from hansa.tenancy.syncing.conditions import TenantConditions
from hansa.tenancy.syncing.credentials import Given, TenantCredentials
from hansa.tenancy.syncing.owners import Owner

log = logging.getLogger(__name__)
WORKERS = 16  # tenants that are joined at once
LOOK_AGAIN = 300.0  # seconds, after which what a tenant says of its service ranges is read again
SOON = 1.0  # seconds, after which a cluster that does not tell who it is counts as away
FIRST_LIST = 10.0  # seconds for the first list of Secrets
NOT_YET = frozenset({api.Phase.NEW, api.Phase.PENDING})  # phases in which there is no control plane yet
KEY = "key"  # the index of VirtualClusters by their key


@dataclass(frozen=True, slots=True)
class Tenancy:
    """What is known of a tenant that answers: all that its route is made of."""

    vc: Object
    owner: Owner
    server: str  # the URL of its API server, as we reach it


Routes = Callable[[Tenancy, Client], Awaitable[Iterable[Route]]]


class NotSynced(HansaError):
    """A tenant cannot take part now; `reason` is one word for its condition."""

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Member:
    owner: Owner
    credentials: TenantCredentials
    client: Client
    cluster: Cluster
    end_listening: Callable[[], None]


class Members:
    """Keeps the registry as the VirtualClusters say: a cluster named by the key of each, and its routes.

    `connect` makes a client of credentials, `join` a cluster of a name and a client, `routes` those of a tenant.
    """

    def __init__(
        self,
        registry: Registry,
        meta: Informers,
        meta_id: str,
        *,
        telling: TenantConditions,
        connect: Callable[[TenantCredentials], Client],
        join: Callable[[str, Client], Cluster],
        routes: Routes,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._registry, self._meta, self._meta_id = registry, meta, meta_id
        self._telling = telling
        self._connect, self._make_cluster, self._routes = connect, join, routes
        self._known: Iterable[NamespacedName] = ()
        self._members: dict[NamespacedName, _Member] = {}
        self._places: dict[str, NamespacedName] = {}  # who has a key: two VirtualClusters must not share one
        self._claims = Claims()
        self._secrets: dict[str, store.Store] = {}  # by the name that they have in every root namespace
        self._queue: queue.Queue[NamespacedName] = queue.Queue("tenants", clock=clock, random=random, metrics=metrics)
        self._controller = controller.Controller(
            "tenants", self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )

    async def run(self) -> None:
        """Follow the VirtualClusters until drained; then all tenants leave."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._leave_all)
            self._stack = stack
            self._vcs = await stack.enter_async_context(self._meta.share(Scope(VIRTUAL_CLUSTERS)))
            self._vcs.index(KEY, _keys)
            self._known = self._vcs
            stack.callback(self._vcs.knowledge.listen(lambda _: self.look_at_all()))
            stack.callback(self._vcs.listen(self._queue.add, lambda vc: (vc.key,)))
            await self._controller.run()

    def drain(self) -> None:
        """Begin nothing new."""
        self._controller.drain()

    async def first_look(self, deadline: float) -> None:
        """Wait until all VirtualClusters are known, so many seconds."""
        async with self._meta.share(Scope(VIRTUAL_CLUSTERS)) as vcs:
            await vcs.knowledge.wait_complete(deadline)

    async def _reconcile(self, place: NamespacedName) -> controller.Outcome:
        if not self._vcs.knowledge.is_known:
            return controller.Done()  # nothing can be concluded; knowledge wakes us
        vc, member = self._vcs.get(place), self._members.get(place)
        if member is not None and (vc is None or vc.is_leaving or _owner(vc, self._meta_id) != member.owner):
            await self._leave(place)
            member = None
        if vc is None or vc.is_leaving or (member is None and vc.status.get("phase", "") in NOT_YET):
            return controller.Done()
        try:
            given = await self._given(vc)
            member = member or await self._join(vc, given)
            member.credentials.observe(given)
            await self._link(vc, member)
        except NotSynced as error:
            await self._telling.trouble(vc, error.reason, str(error))
            return controller.Done()  # what is missing wakes us
        await self._telling.well(vc)
        return controller.After(LOOK_AGAIN)

    async def _given(self, vc: Object) -> Given:
        secret, name = None, credentials.secret_of(vc)
        if name:
            cache = await self._secrets_named(name)
            secret = cache.get(NamespacedName(key_of(vc), name))
        found = credentials.given(vc, secret)
        if found is None:
            raise NotSynced(
                "NoCredentials", f"there is no kubeconfig of the tenant: secret {key_of(vc)}/{name} has none"
            )
        try:
            found.login()
        except errors.BadCredentials as error:
            raise NotSynced("BadCredentials", str(error)) from None
        return found

    async def _secrets_named(self, name: str) -> store.Store:
        if name not in self._secrets:
            scope = Scope(resources.SECRETS, fields=f"metadata.name={name}")
            cache = self._secrets[name] = await self._stack.enter_async_context(self._meta.share(scope))
            self._stack.callback(cache.listen(self._look_at_key, lambda secret: (secret.namespace,)))
        cache = self._secrets[name]
        await cache.knowledge.wait_complete(FIRST_LIST)
        return cache

    async def _join(self, vc: Object, given: Given) -> _Member:
        owner, place = _owner(vc, self._meta_id), vc.key
        if (other := self._places.get(owner.key)) is not None or owner.key in self._registry.clusters:
            raise NotSynced("KeyTaken", f"{owner.key} is the cluster namespace of VirtualCluster {other} already")
        self._places[owner.key] = place
        login = TenantCredentials(given)
        client = self._connect(login)
        cluster = self._make_cluster(owner.key, client)
        end = cluster.health.listen(functools.partial(self._queue.add, place))
        member = self._members[place] = _Member(owner, login, client, cluster, end)
        self._registry.join(cluster)
        await cluster.health.probe()
        return member

    async def _link(self, vc: Object, member: _Member) -> None:
        if trouble := member.cluster.health.trouble:
            raise NotSynced("Unreachable", f"the tenant's API server cannot be reached: {trouble}")
        await self._claim(vc, member)
        key, server = member.owner.key, (await member.credentials.access()).server
        wanted = list(await self._routes(Tenancy(vc, member.owner, server), member.client))
        standing = self._registry.routes(key)
        for lower in {route.lower for route in standing} - {route.lower for route in wanted}:
            self._registry.unlink(key, lower)
        await self._note(vc, wanted)
        for route in wanted:
            if route not in standing:
                self._registry.link(route)

    async def _note(self, vc: Object, routes: Iterable[Route]) -> None:
        """Note who will give things to a control plane that stays when its VirtualCluster goes."""
        if api.virtual_cluster(vc).provisioner == api.EXISTING:
            supers = [self._registry.clusters[route.lower] for route in routes]
            if len(ids := await _ids(supers)) < len(supers):
                raise errors.Unreachable("a super cluster does not tell which one it is")
            await self._telling.gives(vc, ids)

    async def _claim(self, vc: Object, member: _Member) -> None:
        """See that the control plane is this tenant's alone, and none of the clusters that tenants are carried to."""
        cluster_id, key = await member.cluster.identify(), member.owner.key
        former, holder = self._claims.holder(cluster_id), self._claims.claim(cluster_id, vc)
        if former is not None and former != holder:
            self._queue.add(former)  # it has to leave it to us
        if holder == vc.key and cluster_id not in await self._lower_ids():
            return
        for route in self._registry.routes(key):
            self._registry.unlink(key, route.lower)
        if holder == vc.key:
            raise NotSynced(
                "IsSuperCluster", "its API server is that of a super cluster: nothing can be carried to itself"
            )
        raise NotSynced("SameCluster", f"its API server is that of VirtualCluster {holder} already")

    async def _lower_ids(self) -> set[str]:
        """The ids of all clusters that are no tenants, as far as they can be told now."""
        return await _ids([one for name, one in self._registry.clusters.items() if name not in self._places])

    async def _leave(self, place: NamespacedName) -> None:
        member = self._members.pop(place)
        del self._places[member.owner.key]
        self._claims.forget(place)
        self.look_at_all()  # who claimed the same may have it now
        member.end_listening()
        await self._registry.leave(member.owner.key)
        await member.client.close()
        log.info("a tenant left", extra={"tenant": member.owner.key})

    async def _leave_all(self) -> None:
        for place in list(self._members):
            await self._leave(place)

    def _look_at_key(self, key: str) -> None:
        for vc in self._vcs.find(KEY, key):
            self._queue.add(vc.key)

    def look_at_all(self) -> None:
        """The routes of all may be others now."""
        for place in (*self._known, *self._members):
            self._queue.add(place)


def key_of(vc: Object) -> str:
    """The tenant's key: its root namespace, and what its namespaces in the super cluster begin with."""
    return api.virtual_cluster(vc).root


async def _ids(clusters: Iterable[Cluster]) -> set[str]:
    found = set()
    for cluster in clusters:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SOON):
                found.add(await cluster.identify())
    return found


def _keys(vc: Object) -> Iterable[str]:
    return (key_of(vc),)


def _owner(vc: Object, meta: str) -> Owner:
    return Owner(key_of(vc), vc.namespace, vc.name, vc.uid, meta)
