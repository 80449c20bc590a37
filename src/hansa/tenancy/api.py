"""VirtualClusters and ClusterVersions as typed values, for reading spec and status.

The API server validates them by the schemas in `crds/`. Writing the status is left to `operator.status`.
"""

import contextlib
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from hansa.kube.objects import Malformed, NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys, tenant_names
from hansa.runtime.errors import HansaError

GROUP, VERSION = "tenancy.x-k8s.io", "v1alpha1"
VIRTUAL_CLUSTERS = Resource(GROUP, VERSION, "virtualclusters", kind="VirtualCluster")
CLUSTER_VERSIONS = Resource(GROUP, VERSION, "clusterversions", kind="ClusterVersion", namespaced=False)

DEFAULT_DOMAIN = "cluster.local"
EXISTING = "existing"  # the provisioner of clusters that exist already, and are kept
DEFAULT_EXPIRE_DAYS = 365

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class BadVirtualCluster(HansaError):
    """A VirtualCluster or its ClusterVersion is invalid; a retry cannot succeed before a user changes it."""


class Phase(StrEnum):
    """The phase of a tenant's control plane; "" if no vc-manager has reconciled it yet."""

    NEW = ""
    PENDING = "Pending"
    RUNNING = "Running"
    UPDATING = "Updating"
    ERROR = "Error"


class ConditionType(StrEnum):
    """The condition types of a VirtualCluster."""

    READY = "Ready"  # the control plane serves
    CLUSTER_VERSION_FOUND = "ClusterVersionFound"
    ROOT_NAMESPACE_READY = "RootNamespaceReady"
    # vc-syncer writes the others.
    SYNCED = "Synced"
    WITHIN_LIMITS = "WithinLimits"  # False while objects wait because a limit is reached
    INVALID_ANNOTATIONS = "InvalidAnnotations"  # present only while an annotation is invalid


class Condition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One entry of `status.conditions`."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


@dataclass(frozen=True, slots=True)
class ConditionState:
    """A condition without its lastTransitionTime."""

    status: bool
    reason: str
    message: str = ""


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a VirtualCluster."""

    cluster_version_name: str = ""
    cluster_domain: str = ""
    pki_expire_days: int = 0
    service_cidr: str = ""
    transparent_meta_prefixes: tuple[str, ...] = ()
    opaque_meta_prefixes: tuple[str, ...] = ()
    limits: Mapping[str, int | str] = {}
    sync_unused: bool | None = None


class KubeletClient(msgspec.Struct, frozen=True):
    """How vn-agents know the tenant's API server: the SHA-256 of its client certificates, and their CA as PEM."""

    hashes: tuple[str, ...] = ()
    ca: str = ""


class PlacementRecord(msgspec.Struct, frozen=True):
    """The placements of one namespace: the number of its slices by super cluster, and the size of a slice."""

    uid: str = ""  # of the namespace
    slices: Mapping[str, int] = {}
    slice: Mapping[str, str] = {}


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a VirtualCluster."""

    phase: str = ""
    cluster_namespace: str = ""
    message: str = ""
    reason: str = ""
    service_cidr: str = ""
    cluster_version: str = ""
    super_clusters: tuple[str, ...] = ()
    kubelet_client: KubeletClient = KubeletClient()
    super_cluster: str = ""
    control_plane: str = ""  # the uid of namespace kube-system, if replicas share the tenants
    placements: Mapping[str, PlacementRecord] | None = None  # by namespace; None: none was ever written
    conditions: tuple[Condition, ...] = ()


class VirtualCluster(msgspec.Struct, frozen=True):
    """A VirtualCluster. Make one with `virtual_cluster`."""

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
    def is_deleting(self) -> bool:
        return self.object.is_deleting

    @property
    def is_running(self) -> bool:
        """Whether the control plane serves, also during an upgrade."""
        return self.status.phase in (Phase.RUNNING, Phase.UPDATING)

    @property
    def provisioner(self) -> str:
        """The name of its provisioner: by its finalizer, else `existing` if it has a kubeconfig, else "" for any."""
        for finalizer in self.object.metadata.finalizers:
            if finalizer.startswith(keys.VC_FINALIZER):
                return finalizer.removeprefix(keys.VC_FINALIZER)
        is_given = {keys.ADMIN_KUBECONFIG, keys.ADMIN_KUBECONFIG_SECRET} & self.object.annotations.keys()
        return EXISTING if is_given else ""

    @property
    def root(self) -> str:
        """The root namespace, which is also the tenant's key: from the status, else the name that it will have."""
        return self.status.cluster_namespace or root_namespace(self.key, self.uid)

    @property
    def domain(self) -> str:
        """The DNS domain of the tenant's services."""
        return self.spec.cluster_domain or DEFAULT_DOMAIN

    @property
    def expire_days(self) -> int:
        """The lifetime of new certificates in days."""
        return self.spec.pki_expire_days or DEFAULT_EXPIRE_DAYS

    @property
    def service_cidr(self) -> Network | None:
        """The service CIDR of the tenant: from the spec, else as allocated in the status; None if not allocated yet."""
        text = self.spec.service_cidr or self.status.service_cidr
        return network(text) if text else None

    def condition(self, kind: ConditionType) -> Condition | None:
        """The condition of this type, if it is set."""
        return next((one for one in self.status.conditions if one.type == kind), None)


class Bundle(msgspec.Struct, frozen=True):
    """One component of a ClusterVersion: a StatefulSet and, for most, a Service."""

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
    limits: Mapping[str, int | str] = {}
    sync_unused: bool | None = None


class ClusterVersion(msgspec.Struct, frozen=True):
    """A ClusterVersion: the template of tenants' control planes. Make one with `cluster_version`."""

    object: Object
    spec: ClusterVersionSpec

    @property
    def name(self) -> str:
        return self.object.name

    @property
    def version(self) -> str:
        """The resourceVersion, which the label `cluster-version-applied` refers to."""
        return self.object.version


def virtual_cluster(obj: Object) -> VirtualCluster:
    """The typed form of a VirtualCluster."""
    try:
        return VirtualCluster(obj, obj.decode("spec", Spec), obj.decode("status", Status))
    except Malformed as error:
        raise BadVirtualCluster(f"VirtualCluster {obj.key} is invalid: {error}") from None


def running(found: Iterable[Object]) -> list[VirtualCluster]:
    """Those whose control planes serve, without invalid ones, which no program serves."""
    valid = []
    for obj in found:
        with contextlib.suppress(BadVirtualCluster):
            valid.append(virtual_cluster(obj))
    return [one for one in valid if one.is_running]


def cluster_version(obj: Object) -> ClusterVersion:
    """The typed form of a ClusterVersion."""
    try:
        return ClusterVersion(obj, obj.decode("spec", ClusterVersionSpec))
    except Malformed as error:
        raise BadVirtualCluster(f"ClusterVersion {obj.name} is invalid: {error}") from None


def root_namespace(key: NamespacedName, uid: str) -> str:
    """The root namespace of a VirtualCluster that has none yet."""
    return tenant_names.root_namespace(key.namespace, key.name, uid=uid)


def network(text: str) -> Network:
    """Parse a CIDR."""
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise BadVirtualCluster(f'serviceCidr "{text}" is not a CIDR: {error}') from None
