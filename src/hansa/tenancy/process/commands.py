"""The command lines of a tenant's control plane. Pure: nothing is started or written.

An idle tenant must be cheap: what is off here, and what that saves, stands in docs/performance.md.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hansa.local import components
from hansa.local.process import Manner
from hansa.tenancy import pki
from hansa.tenancy.process import flags
from hansa.tenancy.process.folder import Folder
from hansa.tenancy.provisioning import Order

# Nodes, volumes and load balancers are the super cluster's: these controllers would have nothing to do, or harm.
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
# What a tenant has few of and hardly anybody watches, by API group. The API server would keep a cache of each, with a
# watch and a clock of its own: a sixth of what it does when idle. Whoever watches them is served by etcd, without
# bookmarks: it begins again, every few minutes, at an old revision, and etcd reads all that was written since. In one
# of its own that is little; in a shared one it would be what all tenants wrote, so there each kind has its cache.
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
    "networking.k8s.io": ("ingressclasses", "ipaddresses", "servicecidrs"),
    "node.k8s.io": ("runtimeclasses",),
    "policy": ("poddisruptionbudgets",),
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
# Memory is what limits the number of tenants: the collector runs more often, for a little more time. A tenant has one
# core at most for each program: threads that wake each other up for nothing cost it a fifth of its time under load. As
# much goes where programs push each other from a core, so those of tenants wait for their turn.
LEAN = Manner({"GOGC": "40", "GOMAXPROCS": "1"}, is_patient=True)
# An API server has most to do. Whoever lets tenants share an etcd wants many of them.
BESIDE_MANY = replace(LEAN, defaults={**LEAN.defaults, "GOGC": "50"})
BESIDE_FEW = replace(LEAN, defaults={**LEAN.defaults, "GOGC": "75"})


@dataclass(frozen=True, slots=True)
class Store:
    """The etcd that an API server keeps everything in."""

    server: str
    prefix: str = "/registry"
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def flags(self) -> dict[str, str]:
        """How the API server finds it."""
        found = {"etcd-servers": self.server, "etcd-prefix": self.prefix}
        for name, path in (("etcd-cafile", self.ca), ("etcd-certfile", self.certificate), ("etcd-keyfile", self.key)):
            if path is not None:
                found[name] = str(path)
        if self.is_shared:
            # A tenant may not compact what it shares with others: etcd compacts by itself.
            found["etcd-compaction-interval"] = "0"
        return found

    @property
    def is_shared(self) -> bool:
        """Whether other tenants are in it."""
        return self.ca is not None


@dataclass(frozen=True, slots=True)
class Commands:
    """The command lines of one control plane."""

    order: Order
    folder: Folder
    store: Store
    address: str
    port: int
    binaries: Mapping[str, Path]
    known: Mapping[str, frozenset[str]]

    def argv(self, component: str) -> list[str]:
        """The words that start one of them."""
        return self._apiserver() if component == components.APISERVER else self._controllers()

    def manner(self, component: str) -> Manner:
        """How one of them runs beside all others."""
        if component != components.APISERVER:
            return LEAN
        return BESIDE_MANY if self.store.is_shared else BESIDE_FEW

    def _apiserver(self) -> list[str]:
        ours, container = self._place_of_apiserver(), self.order.version.spec.api_server.container
        if self.store.is_shared:
            # It learns only from etcd's state, which it may not see, that etcd can do what such watches need.
            asked = flags.asked(container).get("feature-gates", "")
            ours["feature-gates"] = ",".join(part for part in (asked, "WatchList=false") if part)
        caches = {} if self.store.is_shared else {"watch-cache-sizes": _without_caches(UNCACHED)}
        return self._argv(components.APISERVER, ours, APISERVER_DEFAULTS | caches, container)

    def _controllers(self) -> list[str]:
        bundle = self.order.version.spec.controller_manager
        container = bundle.container if bundle else {}
        asked = flags.asked(container).get("controllers", "*")
        ours = {**self._place_of_controllers(), "controllers": without_idle(asked)}
        return self._argv(components.CONTROLLERS, ours, CONTROLLER_DEFAULTS, container)

    def _argv(
        self, component: str, ours: Mapping[str, str], defaults: Mapping[str, str], container: Mapping[str, object]
    ) -> list[str]:
        asked = flags.of(container, known=self.known[component], ours=ours)
        return [str(self.binaries[component]), *flags.argv({**defaults, **asked, **ours})]

    def _place_of_apiserver(self) -> dict[str, str]:
        crt, key = self.folder.certificate, self.folder.key
        is_loopback = ipaddress.ip_address(self.address).is_loopback
        return {
            "bind-address": self.address,
            "advertise-address": self.address,
            "secure-port": str(self.port),
            # An endpoint on loopback is refused, and one elsewhere would lead nowhere.
            "endpoint-reconciler-type": "none" if is_loopback else "lease",
            **self.store.flags(),
            "service-cluster-ip-range": str(self.order.services),
            "client-ca-file": str(crt(pki.ROOT)),
            "tls-cert-file": str(crt(pki.APISERVER)),
            "tls-private-key-file": str(key(pki.APISERVER)),
            "kubelet-client-certificate": str(crt(pki.APISERVER)),
            "kubelet-client-key": str(key(pki.APISERVER)),
            "service-account-issuer": f"https://kubernetes.default.svc.{self.order.vc.domain}",
            "service-account-key-file": str(crt(pki.SERVICE_ACCOUNTS)),
            "service-account-signing-key-file": str(key(pki.SERVICE_ACCOUNTS)),
            # It speaks for others with this very certificate. With the authority here, the signature under every
            # client's certificate would be checked twice for each request.
            "requestheader-client-ca-file": str(crt(pki.FRONT_PROXY)),
            "requestheader-allowed-names": "front-proxy-client",
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "proxy-client-cert-file": str(crt(pki.FRONT_PROXY)),
            "proxy-client-key-file": str(key(pki.FRONT_PROXY)),
        }

    def _place_of_controllers(self) -> dict[str, str]:
        return {
            "kubeconfig": str(self.folder.kubeconfig),
            "bind-address": self.address,
            # Nobody asks it: whether it works is seen by what it does, and a server would cost as much as a controller.
            "secure-port": "0",
            "leader-elect": "false",
            "allocate-node-cidrs": "false",
            "service-cluster-ip-range": str(self.order.services),
            "root-ca-file": str(self.folder.certificate(pki.ROOT)),
            "service-account-private-key-file": str(self.folder.key(pki.SERVICE_ACCOUNTS)),
            "cluster-signing-cert-file": str(self.folder.certificate(pki.ROOT)),
            "cluster-signing-key-file": str(self.folder.key(pki.ROOT)),
        }


def without_idle(controllers: str) -> str:
    """A list of controllers as `--controllers` takes it, in which "*" means those that have something to do here."""
    asked = [name.strip() for name in controllers.split(",")]
    named = {name.removeprefix("-") for name in asked}
    idle = [f"-{name}" for name in IDLE_CONTROLLERS if name not in named] if "*" in asked else []
    return ",".join([*asked, *idle])


def _without_caches(uncached: Mapping[str, Iterable[str]]) -> str:
    names = (f"{name}.{group}" if group else name for group, names in uncached.items() for name in names)
    return ",".join(f"{name}#0" for name in names)


# What a ClusterVersion may say otherwise.
APISERVER_DEFAULTS = {
    "authorization-mode": "Node,RBAC",
    "enable-admission-plugins": "NodeRestriction",
    "enable-bootstrap-token-auth": "true",
    "allow-privileged": "true",
    "kubelet-preferred-address-types": "InternalIP",
    # No kube-proxy runs beside an API server, so it must find the pods behind a service itself.
    "enable-aggregator-routing": "true",
    # Counting a tenant's objects again and again, for a metric that nobody reads, is a tenth of what it does when idle.
    "etcd-count-metric-poll-period": "0",
    "etcd-db-metric-poll-interval": "0",
    "profiling": "false",
}
CONTROLLER_DEFAULTS = {
    "use-service-account-credentials": "true",
    # At its start each controller asks for an account and a token: stock limits make a tenant wait seconds for them.
    "kube-api-qps": "100",
    "kube-api-burst": "200",
    "profiling": "false",
}
