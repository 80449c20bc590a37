"""The interface of provisioners, which run tenants' control planes: as processes, StatefulSets or existing clusters.

The operator's controller calls it with a finalizer and a root namespace in place. Certificates, Secrets, status and
finalizers are the controller's; a provisioner only runs the control plane.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hansa.kube.objects import NamespacedName
from hansa.tenancy.api import ClusterVersion, Network, VirtualCluster
from hansa.tenancy.operator.pki import Pki

Requeue = Callable[[NamespacedName, float], None]  # key of a VirtualCluster, delay in seconds


@dataclass(frozen=True, slots=True)
class DesiredControlPlane:
    """The control plane that a VirtualCluster asks for, with its root namespace and its service CIDR."""

    vc: VirtualCluster
    version: ClusterVersion
    root: str
    services: Network


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The URLs of a tenant's API server: for clients, and for its own controller-manager.

    `names` and `etcd_names` are SANs of its certificates besides those that all tenants have. `server_name` is the name
    by which clients verify a server whose certificate lacks its address.
    """

    server: str
    inner_server: str
    names: tuple[str, ...] = ()
    etcd_names: tuple[str, ...] = ()
    server_name: str = ""


@dataclass(frozen=True, slots=True)
class ExistingKubeconfig:
    """The control plane exists and is not managed by us: this kubeconfig reaches it, and no certificates are issued."""

    kubeconfig: bytes


@dataclass(frozen=True, slots=True)
class Progress:
    """Not done yet; `reason` becomes the status message. Retried when requeued, at the latest after `after` seconds."""

    reason: str
    after: float = 5.0


@dataclass(frozen=True, slots=True)
class Ready:
    """All components serve as desired."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The control plane is removed; `left_behind` is an event's message about what stays for good, or empty."""

    left_behind: str = ""


class Provisioner(Protocol):
    """Runs control planes. Every method is idempotent, also after a crash; a HansaError is reported and retried."""

    name: str  # suffix of the finalizer `virtualcluster.finalizer.<name>`

    async def locate(self, desired: DesiredControlPlane) -> Endpoint | ExistingKubeconfig | Progress:
        """Choose the API server's address, before certificates are issued; later calls should return the same one."""

    async def ensure(self, desired: DesiredControlPlane, pki: Pki) -> Ready | Progress:
        """Create, repair or upgrade the control plane, component by component, as far as possible in one call."""

    async def remove(self, vc: VirtualCluster) -> Removed | Progress:
        """Remove the control plane; the controller deletes the root namespace afterwards."""

    async def run(self, requeue: Requeue) -> None:
        """Watch control planes while the manager runs, and requeue the VirtualCluster of one that changed."""
