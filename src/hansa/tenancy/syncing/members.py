"""The controller of tenants: adds a cluster and its routes to the registry for each running VirtualCluster.

vc-syncer and vc-scheduler run it. Changed credentials are used from the next request on. Syncing objects along the
routes is left to the engine.
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
from hansa.engine.registry import ClusterRegistry, Route
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.runtime import clock, metrics
from hansa.runtime.errors import HansaError
from hansa.tenancy import api
from hansa.tenancy.api import CLUSTER_VERSIONS, VIRTUAL_CLUSTERS, ClusterVersion
from hansa.tenancy.syncing import claims, credentials, data_loss, serving
from hansa.tenancy.syncing.claims import Claims
from hansa.tenancy.syncing.conditions import TenantConditions
from hansa.tenancy.syncing.credentials import EncodedKubeconfig, TenantCredentials
from hansa.tenancy.syncing.owners import Owner
from hansa.tenancy.syncing.shares import Concerns, Everything, Shares

log = logging.getLogger(__name__)
WORKERS = 16  # concurrent reconciles
RESYNC_SECONDS = 300.0  # between two reconciles without a change: the tenant's service ranges are not watched
RECHECK_SECONDS = 10.0  # of a tenant whose data was lost, until its copies are adopted or deleted
FULL_SECONDS = 10.0  # the same, for a tenant with a limit that is reached: its condition has current amounts
IDENTIFY_SECONDS = 1.0  # for a cluster to answer with its id, before it counts as unreachable
FIRST_LIST_SECONDS = 10.0  # for the first list of Secrets
NOT_PROVISIONED = frozenset({api.Phase.NEW, api.Phase.PENDING})  # phases without a control plane
KEY = "key"  # the index of VirtualClusters by tenant key
CONTROL_PLANE = "control-plane"  # the same, by the id of the control plane


@dataclass(frozen=True, slots=True)
class Tenancy:
    """A reachable tenant: the data that its routes are made of."""

    vc: Object
    owner: Owner
    server: str  # the URL of its API server in our kubeconfig
    cluster_id: str = ""  # the uid of its namespace kube-system
    version: ClusterVersion | None = None  # the one that it names, if it exists


Routes = Callable[[Tenancy], Awaitable[Iterable[Route]]]


class NotSynced(HansaError):
    """A tenant cannot be synced now; `reason` is the reason of its condition Synced."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Member:
    owner: Owner
    credentials: TenantCredentials
    client: Client
    cluster: Cluster
    ended: contextlib.ExitStack


async def _unchecked(_vc: Object) -> None:
    pass


async def _unprepared(_tenancy: Tenancy, _client: Client) -> None:
    pass


class Members:
    """Reconciles the registry with the VirtualClusters: a cluster for each, named by its key, and its routes.

    `connect` makes the client of a tenant from its key and credentials, `join` a cluster from a name and a client,
    `routes` a tenant's routes. `check` raises `Refused` for a tenant that another syncer serves. `prepare` makes a
    tenant's control plane ready for pods, before the first one is synced. `shares` are the tenants that this replica
    serves.
    """

    def __init__(
        self,
        registry: ClusterRegistry,
        meta: Informers,
        meta_id: str,
        *,
        conditions: TenantConditions,
        connect: Callable[[str, TenantCredentials], Client],
        join: Callable[[str, Client], Cluster],
        routes: Routes,
        bound: Callable[[Cluster, Iterable[Route]], None] = lambda _cluster, _routes: None,
        check: Callable[[Object], Awaitable[None]] = _unchecked,
        prepare: Callable[[Tenancy, Client], Awaitable[None]] = _unprepared,
        shares: Shares | None = None,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._registry, self._meta, self._meta_id = registry, meta, meta_id
        self._conditions = conditions
        self._connect, self._make_cluster, self._routes, self._check = connect, join, routes, check
        self._bound, self._prepare = bound, prepare
        self._is_shared, self._shares = shares is not None, shares or Everything()
        self._known: Iterable[NamespacedName] = ()
        self._members: dict[NamespacedName, _Member] = {}
        self._vc_names: dict[str, NamespacedName] = {}  # by tenant key, which two VirtualClusters must not share
        self._claims = Claims()
        self._secrets: dict[
            str, store.Store
        ] = {}  # by the name of the Secret, which is the same in all root namespaces
        self._queue: queue.Queue[NamespacedName] = queue.Queue("tenants", clock=clock, random=random, metrics=metrics)
        self._controller = controller.Controller(
            "tenants", self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )

    async def run(self) -> None:
        """Reconcile until drained; then remove all tenants from the registry."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._leave_all)
            self._stack = stack
            self._vcs = await stack.enter_async_context(self._meta.share(Scope(VIRTUAL_CLUSTERS)))
            self._vcs.index(KEY, _keys)
            self._known = self._vcs
            self._versions = await stack.enter_async_context(self._meta.share(Scope(CLUSTER_VERSIONS)))
            stack.callback(self._versions.listen(lambda _: self.enqueue_all(), lambda version: (version.key,)))
            stack.callback(self._vcs.freshness.listen(lambda _: self.enqueue_all()))
            stack.callback(self._vcs.listen(self._queue.add, lambda vc: (vc.key,)))
            if self._is_shared:
                self._vcs.index(CONTROL_PLANE, _control_planes)
                stack.callback(self._vcs.listen(self._enqueue_rivals, _control_planes))
                stack.callback(self._shares.listen(self._enqueue_moved))
            await self._controller.run()

    def drain(self) -> None:
        """Finish the reconciles that run, and start no others."""
        self._controller.drain()

    async def _reconcile(self, vc_name: NamespacedName) -> controller.Outcome:
        if not self._vcs.freshness.is_known:
            return controller.Done()  # an unsynced cache proves nothing; all keys are requeued when it is synced
        vc, member = self._vcs.get(vc_name), self._members.get(vc_name)
        if member is not None and (vc is None or vc.is_deleting or not self._is_same(member, vc)):
            await self._leave(vc_name)
            member = None
        if vc is None or vc.is_deleting or (member is None and vc.status.get("phase", "") in NOT_PROVISIONED):
            return controller.Done()
        if not self._shares.owns(key_of(vc)):
            return controller.Done()  # all keys are requeued that this replica gains
        async with self._shares.write(key_of(vc)):
            return await self._serve(vc, member)

    async def _serve(self, vc: Object, member: _Member | None) -> controller.Outcome:
        try:
            await self._check(vc)
            kubeconfig = await self._kubeconfig(vc)
            member = member or await self._join(vc, kubeconfig)
            member.credentials.observe(kubeconfig)
            await self._link(vc, member)
        except serving.Refused as error:
            self._unlink(member)
            self._conditions.refuse(vc, error.reason, str(error))
            return controller.After(RESYNC_SECONDS)
        except NotSynced as error:
            await self._conditions.set_not_synced(vc, error.reason, str(error))
            # A change of the Secret, the VirtualCluster or the health requeues it. Other clusters are not watched.
            return controller.After(RECHECK_SECONDS) if error.reason == data_loss.REASON else controller.Done()
        is_full = await self._conditions.set_synced(vc)
        return controller.After(FULL_SECONDS if is_full else RESYNC_SECONDS)

    def _is_same(self, member: _Member, vc: Object) -> bool:
        is_ours = self._shares.owns(member.owner.key)
        return is_ours and _owner(vc, self._meta_id) == member.owner and not member.cluster.health.is_replaced

    async def _kubeconfig(self, vc: Object) -> EncodedKubeconfig:
        secret, name = None, credentials.secret_of(vc)
        if name:
            cache = await self._secrets_named(name)
            secret = cache.get(NamespacedName(key_of(vc), name))
        found = credentials.find(vc, secret)
        if found is None:
            raise NotSynced(
                "NoCredentials", f"waiting for the tenant's kubeconfig: not found in Secret {key_of(vc)}/{name}"
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
            self._stack.callback(cache.listen(self._enqueue_key, lambda secret: (secret.namespace,)))
        cache = self._secrets[name]
        await cache.freshness.wait_synced(FIRST_LIST_SECONDS)
        return cache

    async def _join(self, vc: Object, kubeconfig: EncodedKubeconfig) -> _Member:
        owner, vc_name = _owner(vc, self._meta_id), vc.key
        if (other := self._vc_names.get(owner.key)) is not None or owner.key in self._registry.clusters:
            raise NotSynced(
                "KeyTaken", f"status.clusterNamespace {owner.key} is that of VirtualCluster {other} already"
            )
        self._vc_names[owner.key] = vc_name
        login, ended = TenantCredentials(kubeconfig), contextlib.ExitStack()
        ended.enter_context(self._shares.hold(owner.key))
        client = self._connect(owner.key, login)
        cluster = self._make_cluster(owner.key, client)
        ended.callback(cluster.health.listen(functools.partial(self._queue.add, vc_name)))
        member = self._members[vc_name] = _Member(owner, login, client, cluster, ended)
        self._registry.join(cluster)
        log.info("tenant added", extra={"tenant": owner.key})
        await cluster.health.probe()
        return member

    async def _link(self, vc: Object, member: _Member) -> None:
        if error := member.cluster.health.error:
            raise NotSynced("Unreachable", f"the tenant's API server is unreachable: {error}")
        await self._claim(vc, member)
        key, server = member.owner.key, (await member.credentials.access()).server
        tenancy = Tenancy(vc, member.owner, server, await member.cluster.identify(), self._version(vc))
        wanted, standing = list(await self._routes(tenancy)), self._registry.routes(key)
        await self._prepare(tenancy, member.client)
        self._bound(member.cluster, wanted)
        for lower in {route.lower for route in standing} - {route.lower for route in wanted}:
            self._registry.unlink(key, lower)
        await self._record_super_clusters(vc, wanted)
        for route in wanted:
            if route not in standing:
                self._registry.link(route)

    def _version(self, vc: Object) -> ClusterVersion | None:
        """Its ClusterVersion; an invalid one counts as missing, which vc-manager reports."""
        name = api.virtual_cluster(vc).spec.cluster_version_name
        found = self._versions.get(NamespacedName("", name))
        with contextlib.suppress(api.BadVirtualCluster):
            return None if found is None else api.cluster_version(found)
        return None

    async def _record_super_clusters(self, vc: Object, routes: Iterable[Route]) -> None:
        """Record in the status which super clusters sync into an existing cluster, for its cleanup by vc-manager."""
        if api.virtual_cluster(vc).provisioner == api.EXISTING:
            supers = [self._registry.clusters[route.lower] for route in routes]
            if len(ids := await ids_of(supers)) < len(supers):
                raise errors.Unreachable("cannot read the id of a super cluster: no answer in time")
            await self._conditions.add_super_clusters(vc, ids)

    async def _claim(self, vc: Object, member: _Member) -> None:
        """Ensure that the control plane belongs to this tenant only, and is not a super cluster."""
        cluster_id = await member.cluster.identify()
        former, holder = self._claims.holder(cluster_id), self._claims.claim(cluster_id, vc)
        if former is not None and former != holder:
            self._queue.add(former)  # its reconcile removes its routes
        if self._is_shared and (older := await self._older(vc, cluster_id)) is not None:
            holder = older.key
        if holder == vc.key and cluster_id not in await self._lower_ids():
            return
        self._unlink(member)
        if holder == vc.key:
            raise NotSynced(
                "IsSuperCluster",
                "the API server in the tenant's kubeconfig is a super cluster's; use the kubeconfig of another cluster",
            )
        raise NotSynced(
            "SameCluster",
            f"the API server in the tenant's kubeconfig is that of VirtualCluster {holder}, which is older",
        )

    async def _older(self, vc: Object, cluster_id: str) -> Object | None:
        """The older VirtualCluster with the same control plane, which another replica may serve."""
        if api.virtual_cluster(vc).status.control_plane != cluster_id:
            self._vcs.observe(await self._conditions.set_control_plane(vc, cluster_id))
        rivals = (one for one in self._vcs.find(CONTROL_PLANE, cluster_id) if not one.is_deleting)
        oldest = min(rivals, key=claims.age, default=vc)
        return None if claims.age(oldest) >= claims.age(vc) else oldest

    def _unlink(self, member: _Member | None) -> None:
        for route in () if member is None else self._registry.routes(member.owner.key):
            self._registry.unlink(route.upper, route.lower)

    async def _lower_ids(self) -> set[str]:
        """The ids of all super clusters that are reachable."""
        return await ids_of([one for name, one in self._registry.clusters.items() if name not in self._vc_names])

    async def _leave(self, vc_name: NamespacedName) -> None:
        member = self._members.pop(vc_name)
        del self._vc_names[member.owner.key]
        self._claims.release(vc_name)
        if self._shares.owns(member.owner.key):
            self.enqueue_all()  # another VirtualCluster may claim the control plane now
        with member.ended:
            await self._registry.leave(member.owner.key)
            await member.client.close()
        log.info("tenant removed", extra={"tenant": member.owner.key})

    async def _leave_all(self) -> None:
        for vc_name in list(self._members):
            await self._leave(vc_name)

    def enqueue(self, key: str) -> None:
        """Reconcile the tenant with this key: what its conditions report changed."""
        if self._known:
            self._enqueue_key(key)

    def _enqueue_key(self, key: str) -> None:
        for vc in self._vcs.find(KEY, key):
            self._queue.add(vc.key)

    def _enqueue_moved(self, is_moved: Concerns) -> None:
        for vc in self._vcs.values():
            if is_moved(key_of(vc)):
                self._queue.add(vc.key)
        for vc_name, member in self._members.items():
            if is_moved(member.owner.key):
                self._queue.add(vc_name)

    def _enqueue_rivals(self, control_plane: str) -> None:
        """Of two VirtualClusters with one control plane, the younger one is reconciled when the older one changes."""
        rivals = self._vcs.find(CONTROL_PLANE, control_plane)
        for vc in rivals if len(rivals) > 1 else ():
            self._queue.add(vc.key)

    def enqueue_all(self) -> None:
        """Reconcile all tenants, since their routes may have changed."""
        for vc_name in (*self._known, *self._members):
            self._queue.add(vc_name)


def key_of(vc: Object) -> str:
    """The tenant's key: its root namespace, which is also the prefix of its namespaces in super clusters."""
    return api.virtual_cluster(vc).root


async def ids_of(clusters: Iterable[Cluster]) -> set[str]:
    """The ids of those that answer in time."""
    found = set()
    for cluster in clusters:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDENTIFY_SECONDS):
                found.add(await cluster.identify())
    return found


def _keys(vc: Object) -> Iterable[str]:
    return (key_of(vc),)


def _control_planes(vc: Object) -> Iterable[str]:
    found = api.virtual_cluster(vc).status.control_plane
    return (found,) if found else ()


def _owner(vc: Object, meta: str) -> Owner:
    return Owner(key_of(vc), vc.namespace, vc.name, vc.uid, meta)
