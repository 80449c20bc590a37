"""What a cluster gives a Service from a stock of its own: addresses and node ports.

A copy asks for those of its tenant. Where the super cluster has given them to somebody else, it takes others, which are
told above: nothing serves those that the tenant's API server chose.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.mode import Part
from hansa.model.pair import Link
from hansa.model.translation import services

Spec = Mapping[str, Any]
ADDRESSES: Final = ("clusterIP", "clusterIPs", "ipFamilies")


def without_addresses(spec: Spec) -> dict[str, Any]:
    """To be given an address of the cluster's own choice, of a family that it has."""
    free = {name: value for name, value in spec.items() if name not in ADDRESSES}
    return free | ({"ipFamilyPolicy": "PreferDualStack"} if spec.get("ipFamilyPolicy") == "RequireDualStack" else {})


def node_ports(spec: Spec) -> str:
    """All node ports in one line, such as `80/TCP=30080`; the order of ports is no matter."""
    given = ((_port(one), one["nodePort"]) for one in spec.get("ports") or () if one.get("nodePort"))
    return ",".join(sorted(f"{port}={node_port}" for port, node_port in given))


def yields(spec: Spec, refused: Iterable[str], going: Iterable[Object]) -> Spec | None:
    """Other addresses or node ports, where these cannot be had; those that this tenant gives up are waited for."""
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
    asked = {one.get("nodePort") for one in spec["ports"]}
    return None if any(port.get("nodePort") in asked for one in held for port in one.get("ports") or ()) else other


def node_ports_told(upper: Object, lower: Object, _link: Link) -> Iterator[Part]:
    """Node ports that the super cluster chose itself.

    They stand in an annotation as well: the tenant's API server may have given one of them to another Service. As long
    as it has, they are tried again at each look.
    """
    above, below = node_ports(upper.spec), node_ports(lower.spec)
    if lower.annotations.get(keys.NODE_PORTS, "") != above:
        return  # those above are still to be asked for
    noted = upper.annotations.get(keys.SUPER_NODE_PORTS)
    metadata: dict[str, Any] = {"annotations": {keys.SUPER_NODE_PORTS: below or None}}
    if above != below:
        chosen = {_port(one): one.get("nodePort") for one in lower.spec.get("ports") or ()}
        ports = [one | {"nodePort": chosen.get(_port(one))} for one in upper.spec["ports"]]
        # A list is replaced whole: somebody's change of it that we have not seen must not be lost.
        yield Part({"metadata": metadata | {"resourceVersion": upper.version}, "spec": {"ports": ports}})
    elif noted is not None and noted != below:
        yield Part({"metadata": metadata})


def _port(port: Spec) -> str:
    return f"{port['port']}/{port.get('protocol', 'TCP')}"
