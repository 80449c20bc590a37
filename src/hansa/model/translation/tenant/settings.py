"""What the steps need to know of one tenant, and what its pods may do although it is refused by default."""

from dataclasses import dataclass
from enum import StrEnum

from hansa.model.pair import Link


class Allowance(StrEnum):
    """What touches more than the tenant's own: refused unless it is allowed."""

    HOST_PATH = "hostPath"
    HOST_NETWORK = "hostNetwork"
    HOST_PID = "hostPID"
    HOST_IPC = "hostIPC"
    HOST_PORTS = "hostPorts"
    PRIVILEGED = "privileged"
    CONTROL_PLANE_NODES = "controlPlaneNodes"
    PRIORITY_CLASSES = "priorityClasses"
    PULL_SECRETS = "imagePullSecrets"
    EXTERNAL_IPS = "externalIPs"


@dataclass(frozen=True, slots=True)
class Tenant:
    """One tenant: the settings of its links."""

    key: str  # its root namespace; the names of its namespaces below begin with it
    # Its VirtualCluster.
    name: str = ""
    namespace: str = ""
    uid: str = ""
    meta: str = ""  # the id of the cluster that it is in
    cluster_domain: str = "cluster.local"
    # Keys of labels and annotations that stay above, and keys that come up from below, by their beginnings.
    opaque_prefixes: tuple[str, ...] = ()
    transparent_prefixes: tuple[str, ...] = ()
    # Annotations whose domain ends so stay above.
    opaque_domains: tuple[str, ...] = ("kubernetes.io", "k8s.io")
    allowed: frozenset[Allowance] = frozenset()
    # Its Services have the same addresses below: the super cluster has a range for them.
    keeps_service_ips: bool = True
    # Options of resolv.conf, name and value.
    dns_options: tuple[tuple[str, str], ...] = (("ndots", "5"),)
    # Schedulers of the super cluster that its pods may name.
    schedulers: frozenset[str] = frozenset()
    # Where pods reach its API server if its own Service for that is not there.
    api_host: str = ""
    api_port: str = "443"
    # The id that the link's super cluster has in its pool; empty without a pool.
    super_cluster: str = ""
    weight: float = 1.0


_NOBODY = Tenant("")


def of(link: Link) -> Tenant:
    """The tenant of a link."""
    return link.settings if isinstance(link.settings, Tenant) else _NOBODY
