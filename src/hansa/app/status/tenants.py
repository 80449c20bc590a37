"""VirtualClusters: phase, the super clusters that their objects are synced to, and the replica that does it."""

import contextlib
from collections.abc import Iterable
from typing import Final

from hansa.app.status.reading import Reader
from hansa.app.status.section import Row, Section, age, conditions, said, seconds_since
from hansa.control.sharding import shards
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.tenancy import api
from hansa.tenancy.api import VIRTUAL_CLUSTERS, BadVirtualCluster, ConditionType, Phase

TITLE: Final = "tenants"
COLUMNS: Final = ("TENANT", "PHASE", "VERSION", "SYNCED", "SUPER CLUSTERS", "REPLICA", "AGE")
START_SECONDS: Final = 300.0  # for a control plane to start, with images to pull
SYNC_SECONDS: Final = 60.0  # for a syncer to serve a new tenant
END_SECONDS: Final = 600.0  # for a deleted tenant to be removed
_GOOD: Final = {
    ConditionType.READY: "True",
    ConditionType.CLUSTER_VERSION_FOUND: "True",
    ConditionType.ROOT_NAMESPACE_READY: "True",
    ConditionType.SYNCED: "True",
    ConditionType.WITHIN_LIMITS: "True",
    ConditionType.INVALID_ANNOTATIONS: "False",
}


async def read(reader: Reader) -> Section:
    """All VirtualClusters."""
    found = await reader.list(VIRTUAL_CLUSTERS)
    leases: list[Object] = []
    with contextlib.suppress(errors.Forbidden):
        leases = (await reader.list(resources.LEASES, labels=keys.SHARES)).items
    return Section(TITLE, COLUMNS, tuple(row(vc, reader, leases) for vc in found.items)).cut(found.has_more)


def replicas(vc: Object, leases: Iterable[Object]) -> list[str]:
    """The replicas that serve a tenant: one of each group of replicas that share the tenants."""
    try:
        shard = shards.shard_of(api.virtual_cluster(vc).root)
    except BadVirtualCluster:
        return []  # an invalid one is served by none
    return [one.name for one in leases if shards.parsed(one.annotations.get(keys.CLAIMS, "")) >> shard & 1]


def row(vc: Object, reader: Reader, leases: Iterable[Object] = ()) -> Row:
    """One VirtualCluster."""
    status = vc.status
    supers = [str(one) for one in status.get("superClusters") or ()] or [str(status.get("superCluster") or "")]
    synced = conditions(status).get(ConditionType.SYNCED, {}).get("status", "-")
    cells = (
        str(vc.key),
        str(status.get("phase") or "-"),
        str(vc.spec.get("clusterVersionName") or "-"),
        str(synced),
        ",".join(filter(None, supers)) or "-",
        ",".join(replicas(vc, leases)) or "-",
        age(seconds_since(vc.metadata.creation_timestamp, reader.now)),
    )
    return Row(cells, problem(vc, reader))


def problem(vc: Object, reader: Reader) -> str:
    """What is wrong with a VirtualCluster; "" if nothing is."""
    deleted = seconds_since(vc.metadata.deletion_timestamp, reader.now) if vc.is_deleting else None
    if deleted is not None:
        named = ", ".join(vc.metadata.finalizers)
        return f"has been terminating for {age(deleted)}, held by finalizers {named}" if deleted > END_SECONDS else ""
    status = vc.status
    found = conditions(status)
    bad = [
        f"{kind}: {said(found[kind])}"
        for kind, good in _GOOD.items()
        if found.get(kind, {}).get("status", good) != good
    ]
    created = seconds_since(vc.metadata.creation_timestamp, reader.now) or 0.0
    phase = status.get("phase") or Phase.NEW
    if phase == Phase.NEW and created > SYNC_SECONDS:
        return "no vc-manager has reconciled it; see whether one is running in this cluster"
    if phase == Phase.ERROR:
        return "; ".join(bad) or str(status.get("message") or "its phase is Error")
    if phase == Phase.PENDING:
        return ("; ".join(bad) or f"has been Pending for {age(created)}") if created > START_SECONDS else ""
    if not bad and phase == Phase.RUNNING and ConditionType.SYNCED not in found:
        ready = seconds_since(found.get(ConditionType.READY, {}).get("lastTransitionTime"), reader.now) or created
        return "no vc-syncer serves it; see whether one is running" if ready > SYNC_SECONDS else ""
    return "; ".join(bad)
