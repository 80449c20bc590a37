"""The settings of one tenant that translation steps read, and the restrictions that can be lifted for it."""

import ipaddress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.limits import DEFAULT_LIMITS, Limits
from hansa.model.pair import Key, Link, Unknown
from hansa.model.placement import Intents, Placement, PlacementContext
from hansa.model.translation.tenant import address_lists, opaque_labels, tenant_lists
from hansa.model.translation.tenant.tenant_lists import TenantLists

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Allowance(StrEnum):
    """Values of the annotation tenancy.x-k8s.io/allow and of --allow. Each lifts one restriction."""

    HOST_PATH = "hostPath"
    HOST_NETWORK = "hostNetwork"
    HOST_PID = "hostPID"
    HOST_IPC = "hostIPC"
    HOST_PORTS = "hostPorts"
    PRIVILEGED = "privileged"
    CONTROL_PLANE_NODES = "controlPlaneNodes"
    PRIORITY_CLASSES = "priorityClasses"
    PULL_SECRETS = "imagePullSecrets"
    SUPER_CLUSTER_DNS = "superClusterDNS"
    EXTERNAL_IPS = "externalIPs"
    LOAD_BALANCER_IP = "loadBalancerIP"
    LOAD_BALANCER_CLASS = "loadBalancerClass"
    SE_LINUX = "seLinux"
    SECCOMP = "seccomp"
    APP_ARMOR = "appArmor"
    SYSCTLS = "sysctls"
    HOST_PROBES = "hostProbes"
    VOLUME_ATTRIBUTES_CLASSES = "volumeAttributesClasses"
    UNKNOWN_FIELDS = "unknownFields"  # of pods and containers
    # Types of volumes.
    NFS = "nfs"
    CSI = "csi"
    ISCSI = "iscsi"
    FC = "fc"
    FLEX_VOLUME = "flexVolume"
    CEPHFS = "cephfs"
    RBD = "rbd"
    AWS_DISK = "awsElasticBlockStore"
    AZURE_DISK = "azureDisk"
    AZURE_FILE = "azureFile"
    CINDER = "cinder"
    GCE_DISK = "gcePersistentDisk"
    PORTWORX = "portworxVolume"
    VSPHERE = "vsphereVolume"


VOLUME_TYPES: Final = frozenset(
    {
        *(Allowance.HOST_PATH, Allowance.NFS, Allowance.CSI, Allowance.ISCSI, Allowance.FC, Allowance.FLEX_VOLUME),
        *(Allowance.CEPHFS, Allowance.RBD, Allowance.AWS_DISK, Allowance.AZURE_DISK, Allowance.AZURE_FILE),
        *(Allowance.CINDER, Allowance.GCE_DISK, Allowance.PORTWORX, Allowance.VSPHERE),
    }
)
"""The allowances that are types of volumes."""
# A privileged container is confined by none of these.
_LIFTED_BY_PRIVILEGED: Final = frozenset({Allowance.SE_LINUX, Allowance.SECCOMP, Allowance.APP_ARMOR})
# What the super cluster's own admission would refuse at a level.
_NOT_BASELINE: Final = _LIFTED_BY_PRIVILEGED | {
    *(Allowance.HOST_PATH, Allowance.HOST_NETWORK, Allowance.HOST_PID, Allowance.HOST_IPC, Allowance.HOST_PORTS),
    *(Allowance.PRIVILEGED, Allowance.SYSCTLS, Allowance.HOST_PROBES),
}
_NOT_RESTRICTED: Final = VOLUME_TYPES - {Allowance.CSI}


class PodSecurity(StrEnum):
    """Levels of the Pod Security Standards: values of --pod-security and of the annotation."""

    PRIVILEGED = "privileged"  # only as a label of namespaces
    BASELINE = "baseline"
    RESTRICTED = "restricted"


POD_SECURITY_LEVELS: Final = (PodSecurity.BASELINE, PodSecurity.RESTRICTED)
"""The levels that can be set; what exceeds "baseline" is allowed piece by piece."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """How the pods of all tenants are kept apart by NetworkPolicies; entries are CIDRs."""

    # What is inside super clusters, or reachable only from there: the pods, nodes, Services and API servers.
    inside: frozenset[str] = address_lists.PRIVATE
    name_servers: frozenset[str] = address_lists.EVERYTHING


class ApiEndpoint(NamedTuple):
    """Where pods of a super cluster reach a tenant's API server."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class TenantSettings:
    """One tenant, as the settings of its links."""

    key: str  # the root namespace; prefixes its namespaces in the super cluster
    # The VirtualCluster object.
    name: str = ""
    namespace: str = ""
    uid: str = ""
    meta: str = ""  # the id of the meta cluster
    cluster_domain: str = "cluster.local"
    # Prefixes of labels and annotations that are not synced down, and of those that are synced up.
    opaque_prefixes: tuple[str, ...] = ()
    transparent_prefixes: tuple[str, ...] = ()
    # Suffixes of annotation domains that the pattern * of synced annotations does not match.
    opaque_domains: tuple[str, ...] = ("kubernetes.io", "k8s.io")
    # Patterns of labels that are not synced down.
    opaque_labels: frozenset[str] = opaque_labels.DEFAULT
    lists: TenantLists = field(default_factory=tenant_lists.default)
    allowed: frozenset[Allowance] = frozenset()
    pod_security: PodSecurity = PodSecurity.BASELINE  # the level that its pods must meet, except for what is allowed
    # Whether its namespaces in the super cluster have the level as label, so that the admission there refuses as well.
    is_pod_security_labelled: bool = True
    isolation: Isolation | None = Isolation()  # None: no policies of ours
    # The VirtualCluster's service range, if the super cluster has a ServiceCIDR for it. Services keep only cluster IPs
    # of this range.
    service_ranges: tuple[Network, ...] = ()
    # Names and values of resolv.conf options.
    dns_options: tuple[tuple[str, str], ...] = (("ndots", "5"),)
    # Schedulers of the super cluster that pods may name.
    schedulers: frozenset[str] = frozenset()
    # How pods reach the tenant's API server if the Service default/kubernetes does not exist.
    api_host: str = ""
    api_port: str = "443"
    # The addresses that the tenant's API server may give as its own: that of its kubeconfig, and of its pods.
    api_addresses: frozenset[str] = frozenset()
    # Where pods reach it, if it does not say so itself, or in any case.
    api_endpoints: tuple[ApiEndpoint, ...] = ()
    is_api_relayed: bool = False
    # The id of the link's super cluster in its pool; empty without a pool.
    super_cluster: str = ""
    # Pods of all super clusters of the pool reach each other, so endpoints may have their addresses.
    are_networks_joined: bool = False
    weight: float = 1.0
    # What the tenant may have in a super cluster, and whether ConfigMaps and Secrets that nothing refers to are synced.
    limits: Limits = DEFAULT_LIMITS
    sync_unused: bool = True


def of(link: Link) -> TenantSettings:
    """The tenant of a link."""
    return link.settings_as(TenantSettings)


def limits_of(link: Link) -> Limits:
    """The limits of the tenant of a link."""
    return of(link).limits


def if_used(policy: Placement) -> Placement:
    """The policy; where only used objects are synced, only for those that others refer to there."""

    def narrowed(upper: Object, key: Key, context: PlacementContext) -> Intents:
        placed = policy(upper, key, context)
        narrow = {name for name, link in context.links.items() if not of(link).sync_unused}
        if isinstance(placed, Unknown) or narrow.isdisjoint(placed):
            return placed
        users = context.users(key.resource, upper.key)
        if isinstance(users, Unknown):
            return users
        return {name: grade for name, grade in placed.items() if name in users or name not in narrow}

    return narrowed


def keeps_service_ip(address: str, tenant: TenantSettings) -> bool:
    """Whether the copy of a Service requests this cluster IP: it is in the tenant's range."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in tenant.service_ranges)


def is_allowed(allowance: Allowance, tenant: TenantSettings) -> bool:
    """Whether a restriction is lifted for a tenant."""
    if allowance in tenant.allowed:
        return True
    return allowance in _LIFTED_BY_PRIVILEGED and Allowance.PRIVILEGED in tenant.allowed


def enforced_pod_security(tenant: TenantSettings) -> PodSecurity:
    """The strictest level that refuses nothing that the tenant is allowed to do."""
    if tenant.allowed & _NOT_BASELINE:
        return PodSecurity.PRIVILEGED
    if tenant.allowed & _NOT_RESTRICTED:
        return PodSecurity.BASELINE
    return tenant.pod_security


def refusal(field: str, allowance: Allowance, tenant: TenantSettings) -> str:
    """The message for a field that this tenant may not use: the field with its value, and how to allow it."""
    return (
        f"{field} is not allowed for tenant {tenant.name or tenant.key};"
        f" allow it with annotation {keys.ALLOW}={allowance} on its VirtualCluster"
    )


def list_refusal(field: str, key: str, tenant: TenantSettings) -> str:
    """The message for a field with a value that is in no list of this tenant: how to add it."""
    return (
        f"{field} is not allowed for tenant {tenant.name or tenant.key}; allow it with annotation {key} on its"
        " VirtualCluster"
    )
