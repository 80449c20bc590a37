"""The virtual nodes of a tenant: one per super node that runs its pods, unschedulable, with the super node's status.

Links lead from the super cluster (upper) to the tenant (lower). The mode decides when a node is created and deleted.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import diff, keys, tenant_names
from hansa.model.mode import DownPatches, PatchPart, Step
from hansa.model.pair import Key, Link
from hansa.model.references import Reference
from hansa.model.translation.tenant import tenant_settings

Spec = dict[str, Any]
LEASE_NAMESPACE: Final = "kube-node-lease"
# Longer than a kubelet's 40 s: renewals are written to many tenants, so they are written rarely.
LEASE_SECONDS: Final = 200
RENEWAL_INTERVAL: Final = datetime.timedelta(seconds=60)
UNSCHEDULABLE: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
# The API server taints every new node. The node controller would remove it, but a tenant doesn't run one.
NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_STANDARD_LABELS: Final = ("kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/hostname")
_STATUS_FIELDS: Final = ("capacity", "allocatable", "addresses", "nodeInfo", "daemonEndpoints")


@dataclass(frozen=True, slots=True)
class AgentAddress:
    """The vn-agent that serves all virtual nodes of a super cluster."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class VirtualNodeSettings:
    """Which labels, taints and addresses of super nodes tenants see, and the port of the vn-agent."""

    labels: frozenset[str] = frozenset()  # keys, in addition to the standard labels
    taints: frozenset[str] = frozenset()  # keys
    port: int = 10550  # of the vn-agent, which serves logs and exec
    # By super cluster, "" for all others. Without one, each node has a vn-agent of its own.
    agents: Mapping[str, AgentAddress] = field(default_factory=dict)
    cluster_id: str = ""
    addresses: tuple[str, ...] = field(default=("InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS"))


def tenant_node_name(node: str, link: Link) -> str:
    """The name of the virtual node for this super node: prefixed with the super cluster's id in a pool."""
    id_ = tenant_settings.of(link).super_cluster
    return tenant_names.pool_node(id_, node) if id_ else node


def super_node_name(node: str, link: Link) -> str:
    """The name of the super node that this virtual node represents."""
    id_ = tenant_settings.of(link).super_cluster
    return node.removeprefix(f"{id_}.") if id_ else node


def tenant_name(key: Key, _uid: str, link: Link) -> NamespacedName:
    """The namespace and name of an object in the tenant: nodes and their leases are renamed, others are not."""
    is_node = key.resource == resources.NODES or (key.resource == resources.LEASES and key.namespace == LEASE_NAMESPACE)
    return NamespacedName(key.namespace, tenant_node_name(key.name, link) if is_node else key.name)


def virtual_node(settings: VirtualNodeSettings) -> Step:
    """The step that translates a super node to a virtual node."""

    def step(obj: Object, link: Link) -> Object:
        id_ = tenant_settings.of(link).super_cluster or settings.cluster_id
        labels = {key: obj.labels[key] for key in (*_STANDARD_LABELS, *sorted(settings.labels)) if key in obj.labels}
        labels |= {keys.TENANT_NODE: "true"} | ({keys.SUPER_CLUSTER_ID: id_} if id_ else {})
        taints = [one for one in obj.spec.get("taints") or () if one["key"] in settings.taints]
        return obj.with_metadata(labels=labels, annotations={}).with_fields(
            spec={"unschedulable": True, "taints": [UNSCHEDULABLE, *taints]}, status=_status(obj.status, settings, id_)
        )

    return step


def node_status(node: Object) -> Spec:
    """The status that is synced to the tenant: all of it, as `virtual_node` makes it."""
    return node.status


def node_patches(settings: VirtualNodeSettings) -> DownPatches:
    """Patches of a virtual node; labels, taints and conditions that the tenant added are kept."""

    def changed(lower: Object, wanted: Object) -> Iterator[PatchPart]:
        yield from _patches(lower, wanted, settings)

    return changed


def _patches(lower: Object, wanted: Object, settings: VirtualNodeSettings) -> Iterator[PatchPart]:
    spec = _spec(lower.spec, wanted, settings)
    if patch := diff.metadata_patch(lower, wanted) | ({"spec": spec} if spec else {}):
        yield PatchPart(patch)
    have, want = lower.status, wanted.status
    status = diff.merge_patch(_only(_STATUS_FIELDS, have), _only(_STATUS_FIELDS, want))
    conditions = _merged(have.get("conditions") or (), want.get("conditions") or ())
    if _timeless(conditions) != _timeless(have.get("conditions") or ()):
        status["conditions"] = conditions
    if status:
        yield PatchPart({"status": status}, "status")


def node_lease(obj: Object, _link: Link) -> Object:
    """The heartbeat lease of a virtual node, with a longer duration."""
    return obj.with_metadata(labels={}, annotations={}).with_fields(
        spec=obj.spec | {"leaseDurationSeconds": LEASE_SECONDS}
    )


def lease_patches(lower: Object, wanted: Object) -> Iterator[PatchPart]:
    """A patch with the new renewTime, if the last one that was written is old enough."""
    have, want = lower.decode("spec", _Lease).renew_time, wanted.decode("spec", _Lease).renew_time
    if want is not None and (have is None or want - have >= RENEWAL_INTERVAL):
        yield PatchPart({"spec": {"renewTime": wanted.spec["renewTime"], "leaseDurationSeconds": LEASE_SECONDS}})


def node_references(pod: Object) -> Iterator[Reference]:
    """The node of a pod, and its lease. DaemonSet pods don't count: they would keep every node for ever."""
    name = pod.decode("spec", _Bound).node_name
    if name and not _is_of_daemon_set(pod):
        yield Reference(resources.NODES, "", name)
        yield Reference(resources.LEASES, LEASE_NAMESPACE, name)


class _Bound(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""


class _Lease(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    renew_time: datetime.datetime | None = None


def _is_of_daemon_set(pod: Object) -> bool:
    return '"kind":"DaemonSet"' in pod.annotations.get(keys.TENANT_OWNERS, "")


def _status(status: Spec, settings: VirtualNodeSettings, super_cluster: str) -> Spec:
    addresses = [one for one in status.get("addresses") or () if one["type"] in settings.addresses]
    agent, port = settings.agents.get(super_cluster) or settings.agents.get(""), settings.port
    if agent is not None:
        port, own = agent.port, {"type": "InternalIP", "address": agent.host}
        # API servers take the first address of the type that they prefer, InternalIP.
        addresses = [own, *(one for one in addresses if one != own)]
    shown = _only(("capacity", "allocatable", "nodeInfo", "conditions"), status)
    # The API server drops an empty list, so a patch with one would be sent again and again.
    shown |= {"addresses": addresses} if addresses else {}
    return shown | {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}


def _only(names: Iterable[str], fields: Spec) -> Spec:
    return {name: fields[name] for name in names if name in fields}


def _spec(have: Spec, wanted: Object, settings: VirtualNodeSettings) -> Spec:
    ours, is_ready = {UNSCHEDULABLE["key"], *settings.taints}, _is_ready(wanted)
    theirs = [one for one in have.get("taints") or () if one["key"] not in ours]
    taints = [*wanted.spec["taints"], *(one for one in theirs if not (is_ready and one.items() >= NOT_READY.items()))]
    changed: Spec = {} if have.get("unschedulable") else {"unschedulable": True}
    if _sorted(taints) != _sorted(have.get("taints") or ()):
        changed["taints"] = taints
    return changed


def _is_ready(node: Object) -> bool:
    conditions = node.status.get("conditions") or ()
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


def _sorted(taints: Iterable[Spec]) -> list[tuple[str, str, str]]:
    return sorted((one["key"], one.get("value", ""), one["effect"]) for one in taints)


def _merged(have: Iterable[Spec], want: Iterable[Spec]) -> list[Spec]:
    types = {one["type"] for one in want}
    return [*want, *(one for one in have if one["type"] not in types)]


def _timeless(conditions: Iterable[Spec]) -> dict[str, Spec]:
    """Conditions by type, without lastHeartbeatTime: the lease is the heartbeat."""
    return {one["type"]: {n: v for n, v in one.items() if n != "lastHeartbeatTime"} for one in conditions}
