"""A tenant's Services below. They select the same pods there, so the super cluster makes their endpoints.

Only endpoints that nobody computes travel: those that a user wrote, and those of the tenant's API server.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys, mode
from hansa.model.mode import Part
from hansa.model.pair import Key, Link
from hansa.model.placement import Facts, Intents, everywhere
from hansa.model.references import Reference
from hansa.model.translation import ingress, services
from hansa.model.translation.tenant import settings
from hansa.model.translation.tenant.settings import Allowance

Spec = dict[str, Any]
_HEADLESS: Final = "None"
_ADDRESSES: Final = ("clusterIP", "clusterIPs", "ipFamilies")
_FOLLOW: Final[tuple[str, ...]] = (
    *("type", "ports", "selector", "sessionAffinity", "sessionAffinityConfig", "externalName", "externalIPs"),
    *("publishNotReadyAddresses", "externalTrafficPolicy", "internalTrafficPolicy", "trafficDistribution"),
    *("allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerIP", "loadBalancerSourceRanges"),
)
# Both are slices that the super cluster makes itself, of its pods and of copied Endpoints.
COMPUTED: Final = frozenset({"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"})


def service(obj: Object, link: Link) -> Object:
    """As above, with the address that it has there if the super cluster has a range for it; node ports are its own."""
    tenant, spec = settings.of(link), obj.spec
    lower = {name: spec[name] for name in (*_FOLLOW, "ipFamilyPolicy") if name in spec}
    if "ports" in lower:
        lower["ports"] = services.without_node_ports(lower["ports"])
    address = spec.get("clusterIP", "")
    if address == _HEADLESS:
        lower["clusterIP"] = _HEADLESS
    elif address and tenant.keeps_service_ips:
        lower |= {name: spec[name] for name in _ADDRESSES if name in spec}
    if "ipFamilies" not in lower and spec.get("ipFamilyPolicy") == "RequireDualStack":
        lower["ipFamilyPolicy"] = "PreferDualStack"  # the super cluster may have one family only
    if address not in ("", _HEADLESS):
        obj = obj.with_metadata(annotations={**obj.annotations, keys.CLUSTER_IP: address})
    return obj.with_fields(spec=lower)


def check(obj: Object, link: Link) -> str:
    """Why a Service may not travel."""
    if Allowance.EXTERNAL_IPS not in settings.of(link).allowed and obj.spec.get("externalIPs"):
        return "externalIPs would take traffic that is meant for others: the VirtualCluster does not allow them"
    return ""


def service_patches(lower: Object, wanted: Object) -> Iterable[Part]:
    """What follows. Addresses and node ports were allotted at birth and stay."""
    yield from services.patches(lower, wanted, fields=_FOLLOW)


def service_told(upper: Object, lower: Object, link: Link) -> Iterator[Part]:
    """The addresses of a balancer, and the address below if it is another one."""
    yield from ingress.ingress_told(upper, lower, link)
    address = lower.spec.get("clusterIP") or _HEADLESS
    if address not in (_HEADLESS, upper.spec.get("clusterIP"), upper.annotations.get(keys.SUPER_CLUSTER_IP)):
        yield Part({"metadata": {"annotations": {keys.SUPER_CLUSTER_IP: address}}})


def own_endpoints(obj: Object) -> Iterator[Reference]:
    """The Endpoints that a Service without a selector is served by: its user writes them."""
    spec = obj.spec
    if not spec.get("selector") and spec.get("type") != "ExternalName":
        yield Reference(resources.ENDPOINTS, obj.namespace, obj.name, is_optional=True)


def endpoints(obj: Object, _link: Link) -> Object:
    """The addresses as above; what stands behind them has another name below."""
    lists = ("addresses", "notReadyAddresses")
    subsets = [
        subset | {name: [_bare(one) for one in subset[name]] for name in lists if subset.get(name)}
        for subset in obj.get("subsets") or ()
    ]
    return obj.with_fields(subsets=subsets or None)


endpoints_patches: Final = mode.patches_of("subsets")


def slices_of_users(upper: Object, key: Key, facts: Facts) -> Intents:
    """Where an EndpointSlice is: nowhere if the super cluster makes it itself."""
    return {} if upper.labels.get(services.MANAGED_BY) in COMPUTED else everywhere(upper, key, facts)


def _bare(address: Spec) -> Spec:
    return {name: value for name, value in address.items() if name in ("ip", "hostname")}
