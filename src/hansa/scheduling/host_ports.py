"""Ports of nodes that pods listen on, and which of them conflict, as in kube-scheduler. Pure."""

from dataclasses import dataclass
from typing import Final

import msgspec

from hansa.kube import objects

_EVERY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - compared, not listened on
_MARK: Final = b'"hostPort"'


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of a node, on one address or on all."""

    number: int
    protocol: str = "TCP"
    address: str = _EVERY_ADDRESS

    def conflicts_with(self, other: "HostPort") -> bool:
        """Whether two pods cannot have these ports of one node."""
        if (self.number, self.protocol) != (other.number, other.protocol):
            return False
        return self.address == other.address or _EVERY_ADDRESS in (self.address, other.address)


def of_pod(pod: objects.Object) -> frozenset[HostPort]:
    """The host ports of a pod's containers and sidecars."""
    if _MARK not in pod.raw("spec"):  # nearly every pod: decoding is not needed
        return frozenset()
    spec = pod.decode("spec", _Spec)
    sidecars = (one for one in spec.init_containers or () if one.restart_policy == "Always")
    return frozenset(
        HostPort(port.host_port, port.protocol or "TCP", port.host_address or _EVERY_ADDRESS)
        for one in (*spec.containers, *sidecars)
        for port in one.ports or ()
        if port.host_port > 0
    )


class _Port(msgspec.Struct, frozen=True, rename="camel"):
    host_port: int = 0
    protocol: str = ""
    host_address: str = msgspec.field(default="", name="hostIP")


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    ports: tuple[_Port, ...] | None = None
    restart_policy: str | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] | None = None
