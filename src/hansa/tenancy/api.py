"""VirtualClusters and ClusterVersions as typed values: what a person asks for, and what became of it.

What the API server checks stands in `crds/`; these values are for reading. Writing a status is `status`' matter.
"""

import ipaddress
from enum import StrEnum
from typing import Any

import msgspec

from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys, tenant_names
from hansa.runtime.errors import HansaError

GROUP, VERSION = "tenancy.x-k8s.io", "v1alpha1"
VIRTUAL_CLUSTERS = Resource(GROUP, VERSION, "virtualclusters", kind="VirtualCluster")
CLUSTER_VERSIONS = Resource(GROUP, VERSION, "clusterversions", kind="ClusterVersion", namespaced=False)

DEFAULT_DOMAIN = "cluster.local"
EXISTING = "existing"  # the provisioner of clusters that are there already, and stay
DEFAULT_EXPIRE_DAYS = 365

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class BadVirtualCluster(HansaError):
    """A VirtualCluster, or its ClusterVersion, can't become a control plane before somebody changes something."""


class Phase(StrEnum):
    """Where a tenant's control plane is in its life; "" is one that no manager has seen."""

    NEW = ""
    PENDING = "Pending"
    RUNNING = "Running"
    UPDATING = "Updating"
    ERROR = "Error"


class ConditionType(StrEnum):
    """What a VirtualCluster tells about itself."""

    READY = "Ready"  # the control plane serves
    CLUSTER_VERSION_FOUND = "ClusterVersionFound"
    ROOT_NAMESPACE_READY = "RootNamespaceReady"
    # These two are the syncer's.
    SYNCED = "Synced"
    INVALID_ANNOTATIONS = "InvalidAnnotations"  # there only while something that was asked for cannot be read


class Condition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One entry of `status.conditions`."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a VirtualCluster."""

    cluster_version_name: str = ""
    cluster_domain: str = ""
    pki_expire_days: int = 0
    service_cidr: str = ""
    transparent_meta_prefixes: tuple[str, ...] = ()
    opaque_meta_prefixes: tuple[str, ...] = ()


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a VirtualCluster."""

    phase: str = ""
    cluster_namespace: str = ""
    message: str = ""
    reason: str = ""
    service_cidr: str = ""
    cluster_version: str = ""
    super_clusters: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


class VirtualCluster(msgspec.Struct, frozen=True):
    """A tenant's control plane as it is asked for. Make one with `virtual_cluster`."""

    object: Object
    spec: Spec
    status: Status

    @property
    def name(self) -> str:
        return self.object.name

    @property
    def namespace(self) -> str:
        return self.object.namespace

    @property
    def key(self) -> NamespacedName:
        return self.object.key

    @property
    def uid(self) -> str:
        return self.object.uid

    @property
    def is_leaving(self) -> bool:
        return self.object.is_leaving

    @property
    def is_running(self) -> bool:
        """Whether the control plane serves; while it is updated, too."""
        return self.status.phase in (Phase.RUNNING, Phase.UPDATING)

    @property
    def provisioner(self) -> str:
        """The provisioner that it belongs to: whose finalizer it bears, else the one that suits it; "" for any."""
        for finalizer in self.object.metadata.finalizers:
            if finalizer.startswith(keys.VC_FINALIZER):
                return finalizer.removeprefix(keys.VC_FINALIZER)
        is_given = {keys.ADMIN_KUBECONFIG, keys.ADMIN_KUBECONFIG_SECRET} & self.object.annotations.keys()
        return EXISTING if is_given else ""

    @property
    def root(self) -> str:
        """The root namespace, which is also the tenant's key: what the status says, else what it will be."""
        return self.status.cluster_namespace or root_namespace(self.key, self.uid)

    @property
    def domain(self) -> str:
        """The DNS domain of the tenant's services."""
        return self.spec.cluster_domain or DEFAULT_DOMAIN

    @property
    def expire_days(self) -> int:
        """For how many days new certificates are good."""
        return self.spec.pki_expire_days or DEFAULT_EXPIRE_DAYS

    @property
    def service_cidr(self) -> Network | None:
        """The range of the tenant's services: what the spec asks for, else what the manager gave; or none yet."""
        text = self.spec.service_cidr or self.status.service_cidr
        return network(text) if text else None

    def condition(self, kind: ConditionType) -> Condition | None:
        """One of the conditions, if it is there."""
        return next((one for one in self.status.conditions if one.type == kind), None)


class Bundle(msgspec.Struct, frozen=True):
    """One component of a ClusterVersion, in its plain form: a StatefulSet and, for most, a Service."""

    metadata: dict[str, Any] = {}
    statefulset: dict[str, Any] = {}
    service: dict[str, Any] | None = None

    @property
    def container(self) -> dict[str, Any]:
        """The first container of the pod template."""
        spec = self.statefulset.get("spec") or {}
        containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or [{}]
        found: dict[str, Any] = containers[0]
        return found


class ClusterVersionSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a ClusterVersion."""

    etcd: Bundle = Bundle()
    api_server: Bundle = Bundle()
    controller_manager: Bundle | None = None


class ClusterVersion(msgspec.Struct, frozen=True):
    """What tenants' control planes are made of. Make one with `cluster_version`."""

    object: Object
    spec: ClusterVersionSpec

    @property
    def name(self) -> str:
        return self.object.name

    @property
    def version(self) -> str:
        """The resourceVersion, by which the label `cluster-version-applied` tells it."""
        return self.object.version


def virtual_cluster(obj: Object) -> VirtualCluster:
    """The typed form of a VirtualCluster."""
    try:
        return VirtualCluster(obj, obj.decode("spec", Spec), obj.decode("status", Status))
    except msgspec.ValidationError as error:
        raise BadVirtualCluster(f"VirtualCluster {obj.key} cannot be read: {error}") from None


def cluster_version(obj: Object) -> ClusterVersion:
    """The typed form of a ClusterVersion."""
    try:
        return ClusterVersion(obj, obj.decode("spec", ClusterVersionSpec))
    except msgspec.ValidationError as error:
        raise BadVirtualCluster(f"ClusterVersion {obj.name} cannot be read: {error}") from None


def root_namespace(key: NamespacedName, uid: str) -> str:
    """The root namespace of a VirtualCluster that has none yet."""
    return tenant_names.root_namespace(key.namespace, key.name, uid=uid)


def network(text: str) -> Network:
    """A range of addresses."""
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise BadVirtualCluster(f'serviceCidr "{text}" is no range of addresses: {error}') from None
