"""The endpoints of a rerouted Service in other clusters, by the status of its proxy pods. Pure.

The delegates in the cluster itself are in slices of the cluster's own controller. An address is written by the target,
in the status of the delegate: only those in networks that an administrator allows for that target count.
"""

import ipaddress
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from hansa.kube.objects import Object
from hansa.model.translation.common import endpoint_addresses
from hansa.model.translation.common.endpoint_addresses import Address, Network
from hansa.model.translation.federation import reroute

_FAMILIES: Final = {4: "IPv4", 6: "IPv6"}
Endpoint = dict[str, Any]


class PodNetwork(NamedTuple):
    """A network of pods that all clusters reach: of the target with this virtual node, or of any if that is empty."""

    node: str
    network: Network


class Port(NamedTuple):
    """A port of a slice."""

    name: str
    protocol: str
    port: int
    app_protocol: str | None = None


class Group(NamedTuple):
    """What the endpoints of one slice have in common."""

    node: str  # the virtual node
    family: str
    ports: tuple[Port, ...]


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints of a Service by group and address, and addresses that are not allowed, with the pods."""

    groups: dict[Group, dict[str, Endpoint]]
    refused: dict[str, str]


def of_service(
    service: Object, proxies: Iterable[Object], networks: Collection[PodNetwork], *, without: Collection[str] = ()
) -> Endpoints:
    """The endpoints of a rerouted Service, `without` those on these nodes.

    Proxy pods that the Service selects itself, by labels that keep their keys, are in slices of the cluster already.
    """
    original, current = reroute.original_selector(service), service.spec.get("selector") or {}
    found = Endpoints({}, {})
    for proxy in proxies:
        labels = proxy.labels.items()
        if original.items() <= labels and not current.items() <= labels:
            _add(found, service, proxy, networks, without)
    return found


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class _Address(msgspec.Struct, frozen=True, gc=False):
    ip: str = ""


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    conditions: tuple[_Condition, ...] | None = None
    pod_ips: tuple[_Address, ...] | None = msgspec.field(name="podIPs", default=None)


class _ContainerPort(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"


class _Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    ports: tuple[_ContainerPort, ...] | None = None
    restart_policy: str = ""


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] | None = None


def _add(
    found: Endpoints, service: Object, proxy: Object, networks: Collection[PodNetwork], without: Collection[str]
) -> None:
    spec, status = proxy.decode("spec", _Spec), proxy.decode("status", _Status)
    if not spec.node_name or spec.node_name in without or status.phase in {"Succeeded", "Failed"}:
        return
    own = [one.network for one in networks if one.node in ("", spec.node_name)]
    for family, address in _addresses(status, service.spec.get("ipFamilies") or ("IPv4",)):
        if endpoint_addresses.is_allowed(address, own):
            group = Group(spec.node_name, family, _ports(service, spec))
            found.groups.setdefault(group, {})[str(address)] = _endpoint(service, proxy, spec, status, str(address))
        else:
            found.refused[str(address)] = proxy.name


def _addresses(status: _Status, families: Collection[str]) -> Iterator[tuple[str, Address]]:
    """The first address of each family of the Service."""
    seen: set[str] = set()
    for one in status.pod_ips or ():
        try:
            address = ipaddress.ip_address(one.ip)
        except ValueError:
            continue
        family = _FAMILIES[address.version]
        if family in families and family not in seen:
            seen.add(family)
            yield family, address


def _endpoint(service: Object, proxy: Object, spec: _Spec, status: _Status, address: str) -> Endpoint:
    is_serving = any(one.type == "Ready" and one.status == "True" for one in status.conditions or ())
    is_published = bool(service.spec.get("publishNotReadyAddresses"))
    conditions = {
        "ready": is_published or (is_serving and not proxy.is_deleting),
        "serving": is_serving,
        "terminating": proxy.is_deleting,
    }
    target = {"kind": "Pod", "namespace": proxy.namespace, "name": proxy.name, "uid": proxy.uid}
    named = {"hostname": spec.hostname} if spec.hostname and spec.subdomain == service.name else {}
    return {"addresses": [address], "conditions": conditions, "nodeName": spec.node_name, "targetRef": target} | named


def _ports(service: Object, spec: _Spec) -> tuple[Port, ...]:
    """The ports of a Service as one pod has them; one whose name the pod does not have is left out."""
    found = []
    for one in service.spec.get("ports") or ():
        protocol, target = one.get("protocol", "TCP"), one.get("targetPort") or one["port"]
        number = target if isinstance(target, int) else _named(spec, target, protocol)
        if number:
            found.append(Port(one.get("name", ""), protocol, number, one.get("appProtocol")))
    return tuple(found)


def _named(spec: _Spec, name: str, protocol: str) -> int:
    sidecars = (one for one in spec.init_containers or () if one.restart_policy == "Always")
    ports = (port for one in (*spec.containers, *sidecars) for port in one.ports or ())
    return next((one.container_port for one in ports if (one.name, one.protocol) == (name, protocol)), 0)
