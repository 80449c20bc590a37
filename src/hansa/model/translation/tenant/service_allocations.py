"""Cluster IPs and node ports: the values of a Service that each cluster allocates.

A copy requests the values of its tenant. If they are taken in the super cluster, it gets others, and these are synced
up: the values that the tenant's API server allocated would not work.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.mode import PatchPart
from hansa.model.pair import Link
from hansa.model.translation.common import services

Spec = Mapping[str, Any]
ADDRESSES: Final = ("clusterIP", "clusterIPs", "ipFamilies")


def without_addresses(spec: Spec) -> dict[str, Any]:
    """The spec without addresses, so that the super cluster allocates one of a family that it supports."""
    rest = {name: value for name, value in spec.items() if name not in ADDRESSES}
    return rest | ({"ipFamilyPolicy": "PreferDualStack"} if spec.get("ipFamilyPolicy") == "RequireDualStack" else {})


def node_ports(spec: Spec) -> str:
    """All node ports as an annotation's value, such as `80/TCP=30080`, sorted."""
    allocated = ((_port(one), one["nodePort"]) for one in spec.get("ports") or () if one.get("nodePort"))
    return ",".join(sorted(f"{port}={node_port}" for port, node_port in allocated))


def reallocated(spec: Spec, refused: Iterable[str], going: Iterable[Object]) -> Spec | None:
    """The spec without the addresses or node ports that the super cluster refused, so that it allocates others.

    None if a copy that is being deleted (`going`) still holds them: they are free soon, so the request is repeated.
    """
    fields, other = tuple(refused), dict(spec)
    is_address = any(field.startswith("spec.clusterIP") for field in fields)
    if is_address:
        other = without_addresses(spec)
    if any(field.endswith(".nodePort") for field in fields) and "ports" in spec:
        other["ports"] = services.without_node_ports(spec["ports"])
    if other == spec:
        return None
    held = [one.spec for one in going]
    if is_address:
        return None if any(one.get("clusterIP") == spec.get("clusterIP") for one in held) else other
    requested = {one.get("nodePort") for one in spec["ports"]}
    return None if any(port.get("nodePort") in requested for one in held for port in one.get("ports") or ()) else other


def node_port_up_patches(upper: Object, lower: Object, _link: Link) -> Iterator[PatchPart]:
    """Sync up node ports that the super cluster allocated.

    They are in an annotation as well: the tenant's API server may refuse them because another Service has one of them.
    As long as it does, every reconcile tries again.
    """
    above, below = node_ports(upper.spec), node_ports(lower.spec)
    if lower.annotations.get(keys.NODE_PORTS, "") != above:
        return  # the tenant's node ports have not been requested yet
    annotated = upper.annotations.get(keys.SUPER_NODE_PORTS)
    metadata: dict[str, Any] = {"annotations": {keys.SUPER_NODE_PORTS: below or None}}
    if above != below:
        chosen = {_port(one): one.get("nodePort") for one in lower.spec.get("ports") or ()}
        ports = [one | {"nodePort": chosen.get(_port(one))} for one in upper.spec["ports"]]
        # The list is replaced as a whole: resourceVersion keeps us from undoing a user's change that we haven't seen.
        yield PatchPart({"metadata": metadata | {"resourceVersion": upper.version}, "spec": {"ports": ports}})
    elif annotated is not None and annotated != below:
        yield PatchPart({"metadata": metadata})


def _port(port: Spec) -> str:
    return f"{port['port']}/{port.get('protocol', 'TCP')}"
