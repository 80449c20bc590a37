"""A super node as its tenant sees it: where its pods run, told by the super node itself. No pod is scheduled there.

The link leads from the super cluster to the tenant. When a node comes and goes is the mode's matter.
"""

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.model import diff, keys, naming
from hansa.model.mode import DownPatches, Part, Step
from hansa.model.pair import Key, Link
from hansa.model.references import Reference
from hansa.model.translation.tenant import settings

Spec = dict[str, Any]
LEASES_IN: Final = "kube-node-lease"
# A tenant's controllers give a node this long: our writes to many tenants come rarely.
LEASE_SECONDS: Final = 200
RENEWAL: Final = datetime.timedelta(seconds=60)
UNSCHEDULABLE: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
# The API server gives it to every new node. Who takes it away is the node controller, which a tenant does not have.
NEW: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_LABELS: Final = ("kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/hostname")
_STATUS: Final = ("capacity", "allocatable", "addresses", "nodeInfo", "daemonEndpoints")


@dataclass(frozen=True, slots=True)
class Look:
    """What of super nodes all tenants see, and where the agent listens that serves logs and the like."""

    labels: frozenset[str] = frozenset()  # keys, besides those that every node has
    taints: frozenset[str] = frozenset()  # keys
    port: int = 10550
    cluster_id: str = ""
    addresses: tuple[str, ...] = field(default=("InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS"))


def name_above(node: str, link: Link) -> str:
    """The name that a tenant's node has for this super node."""
    id_ = settings.of(link).super_cluster
    return naming.pool_node(id_, node) if id_ else node


def name_below(node: str, link: Link) -> str:
    """The super node that a tenant's node of this name stands for."""
    id_ = settings.of(link).super_cluster
    return node.removeprefix(f"{id_}.") if id_ else node


def place(key: Key, link: Link) -> Place:
    """Where a super cluster's object is in the tenant: nodes, and their leases, have names of their own there."""
    is_node = key.resource == resources.NODES or (key.resource == resources.LEASES and key.namespace == LEASES_IN)
    return Place(key.namespace, name_above(key.name, link) if is_node else key.name)


def virtual(look: Look) -> Step:
    """The step that makes a virtual node of a super node."""

    def step(obj: Object, link: Link) -> Object:
        id_ = settings.of(link).super_cluster or look.cluster_id
        shown = {key: obj.labels[key] for key in (*_LABELS, *sorted(look.labels)) if key in obj.labels}
        words = {keys.TENANT_NODE: "true"} | ({keys.SUPER_CLUSTER_ID: id_} if id_ else {})
        taints = [one for one in obj.spec.get("taints") or () if one["key"] in look.taints]
        return obj.with_metadata(labels=shown | words, annotations={}).with_fields(
            spec={"unschedulable": True, "taints": [UNSCHEDULABLE, *taints]}, status=_status(obj.status, look)
        )

    return step


def told(node: Object) -> Spec:
    """A node's status: all of it, as the step makes it."""
    return node.status


def patches(look: Look) -> DownPatches:
    """What follows; taints, conditions and labels that somebody above added stay."""

    def changed(lower: Object, wanted: Object) -> Iterator[Part]:
        yield from _patches(lower, wanted, look)

    return changed


def _patches(lower: Object, wanted: Object, look: Look) -> Iterator[Part]:
    spec = _spec(lower.spec, wanted, look)
    if patch := diff.metadata_patch(lower, wanted) | ({"spec": spec} if spec else {}):
        yield Part(patch)
    have, want = lower.status, wanted.status
    status = diff.merge_patch(_only(_STATUS, have), _only(_STATUS, want))
    conditions = _merged(have.get("conditions") or (), want.get("conditions") or ())
    if _timeless(conditions) != _timeless(have.get("conditions") or ()):
        status["conditions"] = conditions
    if status:
        yield Part({"status": status}, "status")


def lease(obj: Object, _link: Link) -> Object:
    """The node's sign of life, good for longer."""
    return obj.with_metadata(labels={}, annotations={}).with_fields(
        spec=obj.spec | {"leaseDurationSeconds": LEASE_SECONDS}
    )


def lease_patches(lower: Object, wanted: Object) -> Iterator[Part]:
    """A renewal, if the last one that was told is old enough."""
    have, want = lower.decode("spec", _Lease).renew_time, wanted.decode("spec", _Lease).renew_time
    if want is not None and (have is None or want - have >= RENEWAL):
        yield Part({"spec": {"renewTime": wanted.spec["renewTime"], "leaseDurationSeconds": LEASE_SECONDS}})


def of_pod(pod: Object) -> Iterator[Reference]:
    """The node that a pod is on, and its lease. Pods of a DaemonSet are where nodes are, and hold none."""
    name = pod.decode("spec", _Bound).node_name
    if name and not _is_of_daemon_set(pod):
        yield Reference(resources.NODES, "", name)
        yield Reference(resources.LEASES, LEASES_IN, name)


class _Bound(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""


class _Lease(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    renew_time: datetime.datetime | None = None


def _is_of_daemon_set(pod: Object) -> bool:
    return '"kind":"DaemonSet"' in pod.annotations.get(keys.TENANT_OWNERS, "")


def _status(status: Spec, look: Look) -> Spec:
    addresses = [one for one in status.get("addresses") or () if one["type"] in look.addresses]
    told = _only(("capacity", "allocatable", "nodeInfo", "conditions"), status)
    # The API server keeps no empty list: one that is asked for would be asked for again and again.
    told |= {"addresses": addresses} if addresses else {}
    return told | {"daemonEndpoints": {"kubeletEndpoint": {"Port": look.port}}}


def _only(names: Iterable[str], fields: Spec) -> Spec:
    return {name: fields[name] for name in names if name in fields}


def _spec(have: Spec, wanted: Object, look: Look) -> Spec:
    ours, is_ready = {UNSCHEDULABLE["key"], *look.taints}, _is_ready(wanted)
    theirs = [one for one in have.get("taints") or () if one["key"] not in ours]
    taints = [*wanted.spec["taints"], *(one for one in theirs if not (is_ready and one.items() >= NEW.items()))]
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
    told = {one["type"] for one in want}
    return [*want, *(one for one in have if one["type"] not in told)]


def _timeless(conditions: Iterable[Spec]) -> dict[str, Spec]:
    """Without the heartbeats: the lease is for those."""
    return {one["type"]: {n: v for n, v in one.items() if n != "lastHeartbeatTime"} for one in conditions}
