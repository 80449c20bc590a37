"""Whether this vc-syncer may serve a tenant: without a pool, a tenant is in one super cluster only.

Two syncers without a pool for two super clusters would copy each pod into both. So the status of a VirtualCluster names
the super cluster that serves it; a syncer for another one refuses, also after a restart of both. It writes no condition
then: conditions belong to the syncer that serves the tenant.
"""

from collections.abc import Collection
from typing import Protocol

from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.runtime.errors import HansaError
from hansa.tenancy import api
from hansa.tenancy.pool import cluster_id

PATCH = '--subresource=status --type=merge -p \'{"status":{"superCluster":null}}\''


class Refused(HansaError):
    """Another syncer serves the tenant, or the super cluster; `reason` is that of the event."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Marker(Protocol):
    """Writes the super cluster of a tenant to its VirtualCluster, unless that has changed since it was read."""

    async def set_super_cluster(self, vc: Object, id_: str) -> None:
        """Write the id; an empty one removes it."""


async def check_unpooled(super_cluster: Client) -> None:
    """Refuse a super cluster of a pool."""
    if id_ := await cluster_id.find(super_cluster):
        raise pooled(id_, f"ConfigMap {cluster_id.CONFIG_MAP} of the super cluster")


def pooled(id_: str, origin: str) -> Refused:
    """The super cluster belongs to a pool, but this syncer has no pool; `origin` is the object that shows it."""
    return Refused(
        "PooledSuperCluster",
        f"the super cluster is {id_} of a pool, by {origin}: start vc-syncer with --pool, or with --feature-gates"
        " SuperClusterPooling=true; if it has left the pool, delete that object",
    )


async def ensure(vc: Object, supers: Collection[str], marker: Marker, *, is_pooled: bool) -> None:
    """Refuse a tenant that a super cluster other than `supers` (ids) serves alone; mark it if this one does so now."""
    marked = api.virtual_cluster(vc).status.super_cluster
    if marked and marked not in supers:
        raise Refused("OtherSuperCluster", _message(vc, marked, is_pooled=is_pooled))
    wanted = "" if is_pooled else next(iter(supers), "")
    if marked != wanted:
        await marker.set_super_cluster(vc, wanted)


def _message(vc: Object, marked: str, *, is_pooled: bool) -> str:
    patch = f"kubectl patch virtualcluster {vc.name} -n {vc.namespace} {PATCH}"
    if is_pooled:
        remedy = (
            'add it with "hansa join", and start its vc-syncer with --pool or --feature-gates SuperClusterPooling=true'
        )
    else:
        remedy = "stop this vc-syncer, or add both to a pool (docs/pool.md)"
    return (
        f"super cluster {marked} (uid of its namespace kube-system) serves the tenant without a pool, so its pods would"
        f" run twice: {remedy}; if it is gone for good, run {patch}"
    )
