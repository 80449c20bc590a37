"""The DNS configuration of a pod: the tenant's own DNS server and search domains, as its kubelet would set them."""

from typing import Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation.common.pod.spec import Spec
from hansa.model.translation.tenant import tenant_settings
from hansa.model.translation.tenant.pod import environment
from hansa.model.translation.tenant.tenant_settings import Allowance

DNS_SERVICE: Final = NamespacedName("kube-system", "kube-dns")
_MAX_NAMESERVERS: Final = 3  # the API's limit


def use_tenant_dns(spec: Spec, pod: Object, link: Link) -> Spec:
    """Replace ClusterFirst by an explicit dnsConfig for the tenant's DNS; without one there, use the node's DNS.

    The super cluster's DNS, which resolves Services of all tenants, is used only where an administrator allows it.
    """
    may_use_super = Allowance.SUPER_CLUSTER_DNS in tenant_settings.of(link).allowed
    if not uses_cluster_dns(pod) or (may_use_super and pod.labels.get(keys.KEEP_DNS_POLICY) == "true"):
        return spec
    service = link.lookups.upper(resources.SERVICES, DNS_SERVICE)
    server = "" if service is None else environment.super_cluster_ip(service, link)
    if not server:
        return spec if may_use_super else spec | {"dnsPolicy": "Default"}
    tenant, config = tenant_settings.of(link), spec.get("dnsConfig") or {}
    domain = tenant.cluster_domain
    searches = (f"{pod.namespace}.svc.{domain}", f"svc.{domain}", domain)
    options = {name: {"name": name, "value": value} for name, value in tenant.dns_options}
    options |= {one["name"]: one for one in config.get("options") or ()}
    servers = dict.fromkeys([server, *(config.get("nameservers") or ())])
    merged = {
        "nameservers": list(servers)[:_MAX_NAMESERVERS],
        "searches": list(dict.fromkeys([*searches, *(config.get("searches") or ())])),
        "options": list(options.values()),
    }
    return spec | {"dnsPolicy": "None", "dnsConfig": merged}


class _Policy(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    dns_policy: str = ""
    host_network: bool | None = None


def uses_cluster_dns(pod: Object) -> bool:
    """Whether a pod uses cluster DNS. With hostNetwork that takes dnsPolicy ClusterFirstWithHostNet."""
    spec = pod.decode("spec", _Policy)
    policy = spec.dns_policy or "ClusterFirst"
    return policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not spec.host_network)
