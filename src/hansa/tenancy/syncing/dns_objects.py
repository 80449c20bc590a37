"""The objects of a tenant's DNS: CoreDNS in its namespace kube-system. Pure; `tenant_dns` creates them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.tenancy.api import DEFAULT_DOMAIN, Network

MANIFESTS = Path(__file__).parent / "dns.yaml"
NAMESPACE, SERVICE, DEPLOYMENT, APP = "kube-system", "kube-dns", "coredns", "kube-dns"
IMAGE = "registry.k8s.io/coredns/coredns:v1.13.1"
NODE_NAME_SERVERS = "/etc/resolv.conf"
# By these, `kubectl cluster-info` lists the Service.
LABELS = {
    "k8s-app": APP,
    "kubernetes.io/cluster-service": "true",
    "kubernetes.io/name": "CoreDNS",
    keys.TENANT_DNS: "true",
}
ADDRESS_INDEX = 10  # of the cluster IP in the service range, as with kubeadm
LEAST_ADDRESSES = 32  # of a range of which a fixed address is taken


@dataclass(frozen=True, slots=True)
class DnsSettings:
    """The DNS that tenants get. Names outside of the cluster are asked of `forward`; empty: they do not exist."""

    is_enabled: bool = True
    image: str = IMAGE
    forward: str = NODE_NAME_SERVERS


NO_DNS = DnsSettings(is_enabled=False)


@dataclass(frozen=True, slots=True)
class Placed:
    """A Deployment of CoreDNS: of the only super cluster, or of one of a pool."""

    super_cluster: str = ""

    @property
    def name(self) -> str:
        return f"{DEPLOYMENT}-{self.super_cluster}" if self.super_cluster else DEPLOYMENT


def corefile(domain: str, forward: str) -> str:
    """The configuration. Queries about addresses and the default domain are not forwarded: some know super clusters."""
    outside = f"forward . {forward}" if forward else "template ANY ANY {\n        rcode NXDOMAIN\n    }"
    guard = "" if domain == DEFAULT_DOMAIN else _unknown(DEFAULT_DOMAIN)
    return f"""{domain} in-addr.arpa ip6.arpa {{
    errors
    health
    ready
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        pods insecure
        ttl 30
    }}
    loadbalance
    reload
}}
{guard}. {{
    errors
    {outside}
    cache 30
    loadbalance
    reload
}}
"""


def _unknown(zone: str) -> str:
    return f"{zone} {{\n    template ANY ANY {{\n        rcode NXDOMAIN\n    }}\n}}\n"


def objects(
    settings: DnsSettings, placed: Iterable[Placed], *, domain: str, services: Network | None
) -> Iterator[Object]:
    """All objects in the order of their creation; the Service comes last, since it says that the others were made."""
    for manifest in yaml.safe_load_all(MANIFESTS.read_bytes()):
        metadata = manifest["metadata"]
        metadata["labels"] = {"k8s-app": APP, keys.TENANT_DNS: "true"}
        match manifest["kind"]:
            case "ConfigMap":
                manifest["data"] = {"Corefile": corefile(domain, settings.forward)}
            case "Deployment":
                yield from (_deployment(manifest, settings, one) for one in placed)
                continue
            case "Service":
                metadata["labels"] = dict(LABELS)
                if address := _address(services):
                    manifest["spec"]["clusterIP"] = address
        yield Object.of(manifest)


def without_address(service: Object) -> Object:
    """The Service with any free cluster IP."""
    return service.with_fields(spec={key: value for key, value in service.spec.items() if key != "clusterIP"})


def _deployment(manifest: dict[str, Any], settings: DnsSettings, placed: Placed) -> Object:
    [container] = manifest["spec"]["template"]["spec"]["containers"]
    container["image"] = settings.image
    obj = Object.of(manifest)
    if not placed.super_cluster:
        return obj
    spec, own = obj.spec, {keys.TENANT_DNS: placed.super_cluster}
    spec["selector"]["matchLabels"] |= own
    spec["template"]["metadata"]["labels"] |= own
    spec["template"]["metadata"]["annotations"] = {keys.SUPER_CLUSTER: placed.super_cluster}
    return obj.with_metadata(name=placed.name, labels={**obj.labels, **own}).with_fields(spec=spec)


def _address(services: Network | None) -> str:
    is_large = services is not None and services.num_addresses >= LEAST_ADDRESSES
    return str(services[ADDRESS_INDEX]) if services is not None and is_large else ""
