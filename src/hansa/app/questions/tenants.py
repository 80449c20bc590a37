"""Pods of tenants: reads the tenant, its VirtualCluster, and the super cluster or the pool below."""

import asyncio
from dataclasses import dataclass

from hansa.app.questions import pool, reading, restrictions, virtual_clusters
from hansa.app.questions.reading import Reader, Where
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.model import tenant_names
from hansa.runtime.errors import HansaError
from hansa.scheduling import explaining, explanation, pod_request
from hansa.scheduling.explaining import Answer, Candidate
from hansa.scheduling.explanation import Explanation
from hansa.scheduling.forecasting import namespace_answers, pool_answers
from hansa.scheduling.forecasting.namespace_answers import NamespaceExplanation
from hansa.scheduling.forecasting.pool import PoolWorld
from hansa.scheduling.snapshot import Snapshot
from hansa.scheduling.verdict import Closed, Refusal
from hansa.scheduling.watching import listing
from hansa.tenancy.api import ConditionType, VirtualCluster

POOL, SINGLE = "pool of super clusters", "super cluster"


@dataclass(frozen=True, slots=True)
class _Tenant:
    """A tenant: the client of its control plane, its VirtualCluster, and the meta cluster."""

    reader: Reader
    client: Client
    meta: Client
    vc: VirtualCluster
    where: Where

    async def world(self, clusters: list[Object]) -> PoolWorld:
        """The pool of these Clusters, with the namespaces and pods of the tenant."""
        supers, vcs, own = await asyncio.gather(
            pool.super_clusters(self.reader, self.meta, self.where, clusters),
            virtual_clusters.running(self.meta),
            pool.tenant(self.client, self.vc),
        )
        return pool.world(self.where, supers, vcs, [own])


@dataclass(frozen=True, slots=True)
class _Asked:
    """A pod of a tenant, and its Events as lines."""

    tenant: _Tenant
    pod: Object
    events: tuple[str, ...]


async def explain(reader: Reader, client: Client, where: Where, pod: Object) -> Explanation:
    """Explain a tenant's pod."""
    tenant = await _tenant(reader, client, where)
    found = await reading.events(client, pod)
    asked = _Asked(tenant, pod, explanation.messages(found, times=map(reading.time_of, found)))
    clusters = [] if where.super_cluster else await pool.members(tenant.meta)
    return await (_in_pool(asked, clusters) if clusters else _in_one(asked))


async def explain_namespace(reader: Reader, client: Client, where: Where, name: str) -> NamespaceExplanation:
    """Explain the slices of a tenant's namespace in a pool."""
    tenant = await _tenant(reader, client, where)
    clusters = await pool.members(tenant.meta)
    if not clusters:
        raise HansaError("the meta cluster has no Clusters of a pool: only namespaces in a pool have slices")
    namespace = await reading.found(client, resources.NAMESPACES, NamespacedName("", name))
    world = await tenant.world(clusters)
    return namespace_answers.explained(world, world.spaces[f"{tenant.vc.root}/{namespace.name}"])


async def _tenant(reader: Reader, client: Client, where: Where) -> _Tenant:
    if where.meta is None:
        raise HansaError(
            "this cluster is the control plane of a tenant: give --meta-cluster-kubeconfig or --meta-context, of the"
            " cluster with its VirtualCluster"
        )
    meta = await reader.connect(where.meta)
    return _Tenant(reader, client, meta, await virtual_clusters.of_cluster(reader, meta, client, where.vc), where)


async def _in_pool(asked: _Asked, clusters: list[Object]) -> Explanation:
    world, vc = await asked.tenant.world(clusters), asked.tenant.vc
    pod, ref = asked.pod, f"{vc.root}/{asked.pod.namespace}"
    if ref not in world.spaces:
        raise HansaError(f"namespace {pod.namespace} does not exist in the tenant")
    key, cluster = NamespacedName(ref, pod.name), pool.cluster_of(pod)
    assigned = world.supers.get(cluster)
    copy = None if assigned is None else _copy(assigned.snapshot, asked)
    quota = pool_answers.larger_quota(world, key, pod)
    lowest = next(
        (client for name, client in asked.tenant.reader.clients.items() if not cluster or name == cluster), None
    )
    refused = "" if copy is not None else await restrictions.refusal(pod, vc, asked.tenant.client, lowest)
    return Explanation(
        pod,
        POOL,
        tuple(pool_answers.answers(world, key, pod)),
        cluster=cluster,
        decision=_pool_decision(world, ref, cluster),
        below=_below(asked, cluster, copy, refused),
        events=asked.events,
        changes=() if quota is None else (quota,),
    )


def _pool_decision(world: PoolWorld, ref: str, cluster: str) -> str:
    holding = world.holding(ref)
    held = ", ".join(f"{number} in {name}" for name, number in sorted(holding.placements.items())) or "none"
    chosen = f"vc-scheduler assigned it to {cluster}" if cluster else "vc-scheduler has assigned it to no super cluster"
    return f"{chosen}; slices of its namespace, by status.placements of the VirtualCluster: {held}"


async def _in_one(asked: _Asked) -> Explanation:
    tenant, source = asked.tenant, asked.tenant.where.super_cluster
    lowest = tenant.meta if source is None else await tenant.reader.connect(source)
    name = "the super cluster"
    found = await listing.listed(name, lowest)
    copy = _copy(found, asked)
    refused = "" if copy is not None else await restrictions.refusal(asked.pod, tenant.vc, tenant.client, lowest)
    return Explanation(
        asked.pod,
        SINGLE,
        (_answer(found, asked, copy, refused),),
        cluster=name if copy is not None else "",
        decision=f"VirtualCluster {asked.tenant.vc.key} has one super cluster",
        below=_below(asked, name, copy, refused),
        events=asked.events,
    )


def _answer(found: Snapshot, asked: _Asked, copy: Object | None, refused: str) -> Answer:
    def below(namespace: str) -> str:
        return tenant_names.super_namespace(asked.tenant.vc.root, namespace)

    request = pod_request.of_pod(asked.pod, below) if copy is None else pod_request.of_pod(copy)
    view = found.view.without_pod(NamespacedName(request.namespace, asked.pod.name))
    answer = explaining.answer(Candidate("", request, view, unknown=found.unknown))
    if not refused or answer.unknown:
        return answer
    return Answer(found.name, refusal=Refusal(found.name, (Closed(f"not synced: {refused}"),)))


def _copy(found: Snapshot, asked: _Asked) -> Object | None:
    name = NamespacedName(tenant_names.super_namespace(asked.tenant.vc.root, asked.pod.namespace), asked.pod.name)
    copy = found.pods.get(name)
    return copy if copy is not None and pool.is_copy_of(copy, asked.pod) else None


def _below(asked: _Asked, cluster: str, copy: Object | None, refused: str) -> tuple[str, ...]:
    """What the super cluster says of the copy, or why there is none."""
    if copy is not None:
        return (explanation.copy_state(copy, cluster),)
    lines = [f"it would not be synced: {refused}"] if refused else []
    if not asked.pod.uid:
        return tuple(lines)
    full = asked.tenant.vc.condition(ConditionType.WITHIN_LIMITS)
    synced = asked.tenant.vc.condition(ConditionType.SYNCED)
    lines += [f"it has no copy in {cluster}"] if cluster else []
    lines += [f"limits of the tenant: {full.message}"] if full is not None and full.status == "False" else []
    lines += [f"the tenant is not synced: {synced.message}"] if synced is not None and synced.status == "False" else []
    return tuple(lines)
