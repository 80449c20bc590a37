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
from hansa.model.translation.tenant import allotments, metadata, settings
from hansa.model.translation.tenant.settings import Allowance

Spec = dict[str, Any]
_HEADLESS: Final = "None"
_FOLLOW: Final[tuple[str, ...]] = (
    *("type", "ports", "selector", "sessionAffinity", "sessionAffinityConfig", "externalName", "externalIPs"),
    *("publishNotReadyAddresses", "externalTrafficPolicy", "internalTrafficPolicy", "trafficDistribution"),
    *("allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerIP", "loadBalancerSourceRanges"),
)
# Both are slices that the super cluster makes itself, of its pods and of copied Endpoints.
COMPUTED: Final = frozenset({"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"})


def service(obj: Object, link: Link) -> Object:
    """As above, with the node ports and, if the super cluster has a range for it, the address that it has there."""
    spec = obj.spec
    lower = {name: spec[name] for name in (*_FOLLOW, *allotments.ADDRESSES, "ipFamilyPolicy") if name in spec}
    address = spec.get("clusterIP", "")
    if address == _HEADLESS or not (address and settings.of(link).keeps_service_ips):
        lower = allotments.without_addresses(lower)
    if address == _HEADLESS:
        lower["clusterIP"] = _HEADLESS
    asked = {
        keys.CLUSTER_IP: "" if address == _HEADLESS else address,
        keys.NODE_PORTS: allotments.node_ports(spec),
    }
    annotations = {key: value for key, value in asked.items() if value}
    return obj.with_metadata(annotations={**obj.annotations, **annotations}).with_fields(spec=lower)


def check(obj: Object, link: Link) -> str:
    """Why a Service may not travel."""
    if Allowance.EXTERNAL_IPS not in settings.of(link).allowed and obj.spec.get("externalIPs"):
        return "externalIPs would take traffic that is meant for others: the VirtualCluster does not allow them"
    return ""


yields: Final = allotments.yields


def service_patches(lower: Object, wanted: Object) -> Iterable[Part]:
    """What follows. An address stays as it was allotted, and so do node ports that were asked for already."""
    is_asked = lower.annotations.get(keys.NODE_PORTS) == wanted.annotations.get(keys.NODE_PORTS)
    spec = wanted.spec
    if "ports" in spec and (is_asked or allotments.node_ports(lower.spec) == allotments.node_ports(spec)):
        wanted = wanted.with_fields(spec=spec | {"ports": services.without_node_ports(spec["ports"])})
    yield from services.patches(lower, wanted, fields=_FOLLOW)


def service_told(upper: Object, lower: Object, link: Link) -> Iterator[Part]:
    """The addresses of a balancer, and what was given below if it is not what was asked for.

    Node ports come last: they are the only thing that the tenant's API server may refuse.
    """
    yield from ingress.ingress_told(upper, lower, link)
    yield from metadata.transparent(upper, lower, link)
    address = lower.spec.get("clusterIP") or _HEADLESS
    if address not in (_HEADLESS, upper.spec.get("clusterIP"), upper.annotations.get(keys.SUPER_CLUSTER_IP)):
        yield Part({"metadata": {"annotations": {keys.SUPER_CLUSTER_IP: address}}})
    yield from allotments.node_ports_told(upper, lower, link)


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
