"""The command lines of a tenant's kube-apiserver and kube-controller-manager. Pure: nothing is started or written.

The process provisioner starts them. Several defaults make an idle tenant cheap: docs/decisions/0016 has the figures.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hansa.programs import components
from hansa.programs.process import ProcessOptions
from hansa.tenancy.operator import pki
from hansa.tenancy.operator.process import flags
from hansa.tenancy.operator.process.folder import Folder
from hansa.tenancy.operator.provisioning import DesiredControlPlane

# The super cluster manages nodes, volumes and load balancers: in a tenant these controllers are idle, or interfere.
IDLE_CONTROLLERS = (
    "cloud-node-lifecycle-controller",
    "device-taint-eviction-controller",
    "legacy-serviceaccount-token-cleaner-controller",
    "node-ipam-controller",
    "node-lifecycle-controller",
    "node-route-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-expander-controller",
    "podcertificaterequest-cleaner-controller",
    "resourceclaim-controller",
    "service-lb-controller",
    "storage-version-migrator-controller",
    "storageversion-garbage-collector-controller",
    "taint-eviction-controller",
    "ttl-controller",
    "volumeattributesclass-protection-controller",
)
# Kinds, by API group, that have few objects and few watchers in a tenant: no watch cache, which saves a sixth of an
# idle API server's CPU. Their watches are served by etcd without bookmarks, so they restart every few minutes at an
# old revision, and etcd reads all writes since. In a shared etcd these are the writes of all tenants, so there every
# kind keeps its cache.
UNCACHED = {
    "": ("limitranges", "podtemplates", "replicationcontrollers"),
    "admissionregistration.k8s.io": (
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ),
    "apiregistration.k8s.io": ("apiservices",),
    "apps": ("controllerrevisions",),
    "autoscaling": ("horizontalpodautoscalers",),
    "certificates.k8s.io": ("certificatesigningrequests",),
    "flowcontrol.apiserver.k8s.io": ("flowschemas", "prioritylevelconfigurations"),
    "networking.k8s.io": ("ipaddresses", "servicecidrs"),
    "rbac.authorization.k8s.io": ("clusterrolebindings", "clusterroles", "rolebindings", "roles"),
    "resource.k8s.io": ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"),
    "storage.k8s.io": (
        "csidrivers",
        "csinodes",
        "csistoragecapacities",
        "volumeattachments",
        "volumeattributesclasses",
    ),
}
# Memory limits the number of tenants, so garbage is collected early, for a little more CPU. One thread runs Go code:
# more of them cost a busy tenant a fifth of its CPU in wake-ups. SCHED_BATCH saves as much in preemptions. The
# environment of the manager overrides both variables.
LEAN = ProcessOptions({"GOGC": "40", "GOMAXPROCS": "1"}, is_batch=True)
# The API server allocates most, so it may grow more; less where tenants share an etcd, which is a setup for many.
SHARED_ETCD_GOGC, OWN_ETCD_GOGC = "50", "75"


@dataclass(frozen=True, slots=True)
class Store:
    """The etcd of an API server."""

    server: str
    prefix: str = "/registry"
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def flags(self) -> dict[str, str]:
        """The API server's flags for it."""
        found = {"etcd-servers": self.server, "etcd-prefix": self.prefix}
        for name, path in (("etcd-cafile", self.ca), ("etcd-certfile", self.certificate), ("etcd-keyfile", self.key)):
            if path is not None:
                found[name] = str(path)
        if self.is_shared:
            # A tenant has no right to compact a shared etcd, which compacts itself.
            found["etcd-compaction-interval"] = "0"
        return found

    @property
    def is_shared(self) -> bool:
        """Whether other tenants use it, too."""
        return self.ca is not None


@dataclass(frozen=True, slots=True)
class Commands:
    """The command lines of one control plane; `known` are the flags that each binary supports."""

    desired: DesiredControlPlane
    folder: Folder
    store: Store
    address: str
    port: int
    binaries: Mapping[str, Path]
    known: Mapping[str, frozenset[str]]
    nice: int = 0
    vn_agent_ca: Path | None = None

    def argv(self, component: str) -> list[str]:
        """The command line of one component."""
        return self._apiserver() if component == components.APISERVER else self._controllers()

    def options(self, component: str) -> ProcessOptions:
        """The environment and CPU scheduling of one component."""
        options = replace(LEAN, nice=self.nice)
        if component != components.APISERVER:
            return options
        gogc = SHARED_ETCD_GOGC if self.store.is_shared else OWN_ETCD_GOGC
        return replace(options, defaults={**options.defaults, "GOGC": gogc})

    def _apiserver(self) -> list[str]:
        ours, container = self._apiserver_flags(), self.desired.version.spec.api_server.container
        if self.store.is_shared:
            # WatchList needs a feature of etcd that the API server finds in etcd's status, which a tenant may not read.
            gates = flags.of_container(container).get("feature-gates", "")
            ours["feature-gates"] = ",".join(part for part in (gates, "WatchList=false") if part)
        caches = {} if self.store.is_shared else {"watch-cache-sizes": _without_caches(UNCACHED)}
        return self._argv(components.APISERVER, ours, APISERVER_DEFAULTS | caches, container)

    def _controllers(self) -> list[str]:
        bundle = self.desired.version.spec.controller_manager
        container = bundle.container if bundle else {}
        controllers = flags.of_container(container).get("controllers", "*")
        ours = {**self._controller_flags(), "controllers": without_idle(controllers)}
        return self._argv(components.CONTROLLERS, ours, CONTROLLER_DEFAULTS, container)

    def _argv(
        self, component: str, ours: Mapping[str, str], defaults: Mapping[str, str], container: Mapping[str, object]
    ) -> list[str]:
        requested = flags.honoured(container, known=self.known[component], ours=ours)
        return [str(self.binaries[component]), *flags.argv({**defaults, **requested, **ours})]

    def _apiserver_flags(self) -> dict[str, str]:
        crt, key = self.folder.certificate, self.folder.key
        is_loopback = ipaddress.ip_address(self.address).is_loopback
        return {
            "bind-address": self.address,
            "advertise-address": self.address,
            "secure-port": str(self.port),
            # The API server refuses a loopback address as endpoint of the Service kubernetes.
            "endpoint-reconciler-type": "none" if is_loopback else "lease",
            **self.store.flags(),
            "service-cluster-ip-range": str(self.desired.services),
            "client-ca-file": str(crt(pki.ROOT)),
            "tls-cert-file": str(crt(pki.APISERVER)),
            "tls-private-key-file": str(key(pki.APISERVER)),
            "kubelet-client-certificate": str(crt(pki.APISERVER)),
            "kubelet-client-key": str(key(pki.APISERVER)),
            **({"kubelet-certificate-authority": str(self.vn_agent_ca)} if self.vn_agent_ca else {}),
            "service-account-issuer": f"https://kubernetes.default.svc.{self.desired.vc.domain}",
            "service-account-key-file": str(crt(pki.SERVICE_ACCOUNTS)),
            "service-account-signing-key-file": str(key(pki.SERVICE_ACCOUNTS)),
            # The front proxy's certificate itself. With the CA here, the API server would verify every client
            # certificate twice for each request.
            "requestheader-client-ca-file": str(crt(pki.FRONT_PROXY)),
            "requestheader-allowed-names": "front-proxy-client",
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "proxy-client-cert-file": str(crt(pki.FRONT_PROXY)),
            "proxy-client-key-file": str(key(pki.FRONT_PROXY)),
        }

    def _controller_flags(self) -> dict[str, str]:
        return {
            "kubeconfig": str(self.folder.kubeconfig),
            "bind-address": self.address,
            # No server: it costs as much as a controller, and readiness is checked by what controllers create.
            "secure-port": "0",
            "leader-elect": "false",
            "allocate-node-cidrs": "false",
            "service-cluster-ip-range": str(self.desired.services),
            "root-ca-file": str(self.folder.certificate(pki.ROOT)),
            "service-account-private-key-file": str(self.folder.key(pki.SERVICE_ACCOUNTS)),
            "cluster-signing-cert-file": str(self.folder.certificate(pki.ROOT)),
            "cluster-signing-key-file": str(self.folder.key(pki.ROOT)),
        }


def without_idle(controllers: str) -> str:
    """A value of `--controllers` with idle controllers switched off, unless it names them or has no "*"."""
    requested = [name.strip() for name in controllers.split(",")]
    named = {name.removeprefix("-") for name in requested}
    idle = [f"-{name}" for name in IDLE_CONTROLLERS if name not in named] if "*" in requested else []
    return ",".join([*requested, *idle])


def _without_caches(uncached: Mapping[str, Iterable[str]]) -> str:
    names = (f"{name}.{group}" if group else name for group, names in uncached.items() for name in names)
    return ",".join(f"{name}#0" for name in names)


# A ClusterVersion may override these.
APISERVER_DEFAULTS = {
    "authorization-mode": "Node,RBAC",
    "enable-admission-plugins": "NodeRestriction",
    "enable-bootstrap-token-auth": "true",
    "allow-privileged": "true",
    "kubelet-preferred-address-types": "InternalIP",
    # No kube-proxy runs beside the API server, so it connects to the endpoints of extension API servers itself.
    "enable-aggregator-routing": "true",
    # Counting objects for metrics takes a tenth of an idle API server's CPU.
    "etcd-count-metric-poll-period": "0",
    "etcd-db-metric-poll-interval": "0",
    "profiling": "false",
}
CONTROLLER_DEFAULTS = {
    "use-service-account-credentials": "true",
    # At its start each controller requests a service account and a token: with stock limits that takes seconds.
    "kube-api-qps": "100",
    "kube-api-burst": "200",
    "profiling": "false",
}
