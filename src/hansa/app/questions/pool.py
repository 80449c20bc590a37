"""The pool of a meta cluster: reads its Clusters, the super clusters, and tenants' namespaces and pods."""

import asyncio
from collections.abc import Iterable

from hansa.app.questions import reading
from hansa.app.questions.reading import Reader, Where
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials.secret import SecretCredentials
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.runtime.errors import HansaError
from hansa.scheduling import snapshot
from hansa.scheduling.forecasting.pool import PoolWorld, Space, SuperCluster
from hansa.scheduling.persistent_map import PersistentMap
from hansa.scheduling.pooling import pool_members, records
from hansa.scheduling.slicing import annotations
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.pool import State
from hansa.tenancy.api import VirtualCluster
from hansa.tenancy.syncing.dns_objects import NAMESPACE


async def members(meta: Client) -> list[Object]:
    """The Clusters of the pool; none without a pool."""
    found = [one async for one in pool_members.all_of(meta)]
    return [one for one in found if one.status.get("phase") == pool_members.Phase.PROVISIONED]


async def super_clusters(reader: Reader, meta: Client, where: Where, clusters: Iterable[Object]) -> list[SuperCluster]:
    """The super clusters of these Clusters; one that cannot be read is closed, as for the scheduler."""
    return list(await asyncio.gather(*(_super_cluster(reader, meta, where, one) for one in clusters)))


async def _super_cluster(reader: Reader, meta: Client, where: Where, found: Object) -> SuperCluster:
    settings = pool_members.settings_of(found, where.headroom)
    try:
        secret = await meta.get(resources.SECRETS, found.name, namespace=found.namespace)
        read = await reader.snapshot(found.name, SecretCredentials(secret, key=pool_members.SECRET_KEY))
    except errors.ApiError as error:
        read = snapshot.unread(found.name, str(error))
    state, reason = State.OPEN, settings.closed
    if read.unknown:
        state, reason = State.CLOSED, "unreachable"
    elif settings.is_leaving:
        state, reason = State.LEAVING, "leaving the pool"
    elif settings.closed:
        state = State.CLOSED
    return SuperCluster(read, settings.labels, settings.headroom, state, reason)


def world(
    where: Where, supers: Iterable[SuperCluster], vcs: Iterable[VirtualCluster], tenants: Iterable["Tenant"]
) -> PoolWorld:
    """The pool. The slices of all tenants are in their records, the pods only of those that were read."""
    held: dict[str, Holding] = {}
    for vc in vcs:
        for name, record in (vc.status.placements or {}).items():
            if (holding := records.planned(record)) is not None:
                held[f"{vc.root}/{name}"] = holding
    spaces: dict[str, Space] = {}
    pods: dict[NamespacedName, Object] = {}
    for tenant in tenants:
        for space in tenant.spaces():
            spaces[space.ref] = space
            if not space.is_recorded:
                held[space.ref] = annotations.annotated(space.namespace, where.placing.slice)
        pods |= {NamespacedName(f"{tenant.vc.root}/{pod.namespace}", pod.name): pod for pod in tenant.pods}
    known = PersistentMap.of(pods)
    return PoolWorld({one.name: one for one in supers}, spaces, known, held, where.placing, frozenset({NAMESPACE}))


class Tenant:
    """The objects of a tenant that the schedulers read."""

    def __init__(self, vc: VirtualCluster, namespaces: list[Object], quotas: list[Object], pods: list[Object]) -> None:
        self.vc, self.namespaces, self.quotas, self.pods = vc, namespaces, quotas, pods

    def spaces(self) -> Iterable[Space]:
        """Its namespaces, with quotas and records. A record of a former namespace of the name does not count."""
        placements = self.vc.status.placements
        for namespace in self.namespaces:
            record = (placements or {}).get(namespace.name)
            is_current = record is not None and record.uid == namespace.uid
            yield Space(
                self.vc.root,
                namespace,
                tuple(one for one in self.quotas if one.namespace == namespace.name),
                records.planned(record) if is_current else None,
                placements is not None,
            )


async def tenant(client: Client, vc: VirtualCluster) -> Tenant:
    """Read a tenant."""
    kinds = (resources.NAMESPACES, resources.QUOTAS, resources.PODS)
    try:
        found = await asyncio.gather(*(reading.every(client, kind) for kind in kinds))
    except errors.ApiError as error:
        raise HansaError(f"tenant {vc.key} cannot be read: {error}") from None
    return Tenant(vc, *found)


def cluster_of(pod: Object) -> str:
    """The super cluster that a pod is assigned to."""
    return annotations.cluster_of(pod)


def is_copy_of(copy: Object, pod: Object) -> bool:
    """Whether a super pod is the copy of a tenant's pod."""
    return copy.annotations.get(keys.TENANT_UID) == pod.uid
