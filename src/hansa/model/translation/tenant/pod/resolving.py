"""Names that a pod looks up: they are asked of the tenant's own DNS server, in the tenant's own domains."""

from typing import Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation.pod.spec import Spec
from hansa.model.translation.tenant import settings
from hansa.model.translation.tenant.pod import variables

DNS: Final = Place("kube-system", "kube-dns")
_MOST_SERVERS: Final = 3  # the API takes no more


def ask_tenant(spec: Spec, pod: Object, link: Link) -> Spec:
    """Say by name what the tenant's kubelet would say; without a DNS server there, the node's is as good as any."""
    if not asks_cluster(pod):
        return spec
    service = link.around.upper(resources.SERVICES, DNS)
    server = "" if service is None else variables.address(service, link)
    if not server:
        return spec | {"dnsPolicy": "Default"}
    tenant, asked = settings.of(link), spec.get("dnsConfig") or {}
    domain = tenant.cluster_domain
    searches = (f"{pod.namespace}.svc.{domain}", f"svc.{domain}", domain)
    options = {name: {"name": name, "value": value} for name, value in tenant.dns_options}
    options |= {one["name"]: one for one in asked.get("options") or ()}
    servers = dict.fromkeys([server, *(asked.get("nameservers") or ())])
    config = {
        "nameservers": list(servers)[:_MOST_SERVERS],
        "searches": list(dict.fromkeys([*searches, *(asked.get("searches") or ())])),
        "options": list(options.values()),
    }
    return spec | {"dnsPolicy": "None", "dnsConfig": config}


class _Policy(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    dns_policy: str = ""
    host_network: bool | None = None


def asks_cluster(pod: Object) -> bool:
    """Whether a pod wants the cluster's DNS. One on its host's network only gets it if it says so."""
    if pod.labels.get(keys.KEEP_DNS_POLICY) == "true":
        return False
    said = pod.decode("spec", _Policy)
    policy = said.dns_policy or "ClusterFirst"
    return policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not said.host_network)
