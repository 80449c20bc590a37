"""What a control plane can run on, behind one interface: local processes, StatefulSets, or a cluster that is there.

The manager keeps namespaces, certificates, Secrets, status and finalizers; a provisioner only runs the control plane.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hansa.kube.objects import Key
from hansa.tenancy.api import ClusterVersion, Network, VirtualCluster
from hansa.tenancy.pki import Pki

Wake = Callable[[Key, float], None]


@dataclass(frozen=True, slots=True)
class Order:
    """A control plane as it should be. The root namespace is there, and the version is the one to bring it to."""

    vc: VirtualCluster
    version: ClusterVersion
    root: str
    services: Network


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a tenant's API server will be: its URL for clients, and the one for its own controller-manager.

    `names` and `etcd_names` are what certificates must be good for, besides what is the same for all tenants.
    """

    server: str
    inner_server: str
    names: tuple[str, ...] = ()
    etcd_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """The control plane is somebody else's: this kubeconfig reaches it, and no certificates are made."""

    kubeconfig: bytes


@dataclass(frozen=True, slots=True)
class Progress:
    """Not there yet; `reason` is a sentence of why. It is asked again when woken, at the latest in `after` seconds."""

    reason: str
    after: float = 5.0


@dataclass(frozen=True, slots=True)
class Ready:
    """All of it serves, as the order says."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing of it is left; or `left` is a sentence of what is, although nobody will take it away any more."""

    left: str = ""


class Provisioner(Protocol):
    """Runs control planes. Every method can be repeated after any crash; a HansaError is told and tried again."""

    name: str  # the end of the finalizer `virtualcluster.finalizer.<name>`

    async def locate(self, order: Order) -> Endpoint | Given | Progress:
        """Decide where the API server will be, before its certificates are made; the answer should stay the same."""

    async def ensure(self, order: Order, pki: Pki) -> Ready | Progress:
        """Make, repair or upgrade the control plane, one component after the other, or go a step and tell."""

    async def remove(self, vc: VirtualCluster) -> Gone | Progress:
        """Take the control plane away. The root namespace and what is in it are removed by the manager afterwards."""

    async def run(self, wake: Wake) -> None:
        """Watch over control planes while the manager runs: `wake(key of the VC, in seconds)` has one looked at."""
