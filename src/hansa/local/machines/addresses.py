"""The address plan of real nodes: a pure function of a cluster's slot and a host's index, equal in every state folder.

10.0.SLOT.INDEX+1        hosts: the control plane is index 0, nodes follow
10.SLOT.0.0/16           services
10.(100+SLOT).INDEX.0/24 pods of a node
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

SLOTS = range(1, 101)
CONTROL_PLANE = 0
NODES = range(1, 254)
ROUTER = IPv4Address("10.0.0.1")
HOSTS = IPv4Network("10.0.0.0/16")


@dataclass(frozen=True, slots=True)
class Networks:
    """The networks of the cluster in this slot."""

    slot: int

    def __post_init__(self) -> None:
        if self.slot not in SLOTS:
            raise ValueError(f"slot {self.slot} is not in {SLOTS}")

    @property
    def hosts(self) -> IPv4Network:
        """The addresses of the control plane and the nodes."""
        return IPv4Network(f"10.0.{self.slot}.0/24")

    @property
    def services(self) -> IPv4Network:
        """The service CIDR."""
        return IPv4Network(f"10.{self.slot}.0.0/16")

    @property
    def pods(self) -> IPv4Network:
        """The addresses of the pods of all nodes."""
        return IPv4Network(f"10.{100 + self.slot}.0.0/16")

    @property
    def api_service(self) -> IPv4Address:
        """The address of the service `kubernetes`."""
        return self.services[1]

    @property
    def dns(self) -> IPv4Address:
        """The address of the service `kube-dns`."""
        return self.services[10]

    @property
    def control_plane(self) -> IPv4Address:
        """The address of the control plane's host."""
        return self.host(CONTROL_PLANE)

    def host(self, index: int) -> IPv4Address:
        """The address of a host."""
        if index != CONTROL_PLANE and index not in NODES:
            raise ValueError(f"host {index} is neither {CONTROL_PLANE} nor in {NODES}")
        return self.hosts[index + 1]

    def node_pods(self, index: int) -> IPv4Network:
        """The pod CIDR of one node."""
        if index not in NODES:
            raise ValueError(f"node {index} is not in {NODES}")
        return IPv4Network(f"10.{100 + self.slot}.{index}.0/24")
