"""A tenant's Services in the super cluster. They select the same pods there, so it generates their endpoints.

Only endpoints that no controller generates are synced: those that a user wrote, and those of the tenant's API server.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys, mode
from hansa.model.mode import PatchPart
from hansa.model.pair import Key, Link
from hansa.model.placement import Intents, PlacementContext, everywhere
from hansa.model.references import Missing, Reference
from hansa.model.translation.common import ingress, services
from hansa.model.translation.tenant import address_lists, metadata, service_allocations, tenant_settings
from hansa.model.translation.tenant.pod import environment
from hansa.model.translation.tenant.tenant_settings import Allowance

Spec = dict[str, Any]
_HEADLESS: Final = "None"
_EXTERNAL_NAME: Final = "ExternalName"
# Fields of a Service that are named as the allowance that lifts their restriction.
_ADDRESSES_OF_OTHERS: Final = (Allowance.EXTERNAL_IPS, Allowance.LOAD_BALANCER_IP, Allowance.LOAD_BALANCER_CLASS)
SYNCED_FIELDS: Final[tuple[str, ...]] = (
    *("type", "ports", "selector", "sessionAffinity", "sessionAffinityConfig", "externalName", "externalIPs"),
    *("publishNotReadyAddresses", "externalTrafficPolicy", "internalTrafficPolicy", "trafficDistribution"),
    *("allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerIP", "loadBalancerSourceRanges"),
)
# Controllers whose slices are not synced: the super cluster generates its own from its pods and from synced Endpoints.
GENERATED_BY: Final = frozenset({"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"})


def service(obj: Object, link: Link) -> Object:
    """A copy with the tenant's node ports and, if it is of the range of its VirtualCluster, the tenant's cluster IP."""
    spec = obj.spec
    lower = {
        name: spec[name] for name in (*SYNCED_FIELDS, *service_allocations.ADDRESSES, "ipFamilyPolicy") if name in spec
    }
    if spec.get("type") != _EXTERNAL_NAME:
        lower.pop("externalName", None)  # the API server keeps it for any type, and only this type's is checked
    address, tenant = spec.get("clusterIP", ""), tenant_settings.of(link)
    if not tenant_settings.keeps_service_ip(address, tenant):
        lower = service_allocations.without_addresses(lower)
    elif "clusterIPs" in lower:
        lower["clusterIPs"] = [one for one in lower["clusterIPs"] if tenant_settings.keeps_service_ip(one, tenant)]
    if address == _HEADLESS:
        lower["clusterIP"] = _HEADLESS
    requested = {
        keys.CLUSTER_IP: "" if address == _HEADLESS else address,
        keys.NODE_PORTS: service_allocations.node_ports(spec),
    }
    annotations = {key: value for key, value in requested.items() if value}
    return obj.with_metadata(annotations={**obj.annotations, **annotations}).with_fields(spec=lower)


def check(obj: Object, link: Link) -> str:
    """Why a Service is not synced; empty if it may be.

    By externalIPs and loadBalancerIP it could take over traffic of others, by loadBalancerClass choose a controller.
    With an ExternalName, ingress controllers of the super cluster could be led to its own Services.
    """
    spec, tenant = obj.spec, tenant_settings.of(link)
    for allowance in _ADDRESSES_OF_OTHERS:
        if (value := spec.get(allowance)) and allowance not in tenant.allowed:
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            return tenant_settings.refusal(f"spec.{allowance}: {shown}", allowance, tenant)
    if spec.get("type") == _EXTERNAL_NAME:
        name = str(spec.get("externalName") or "")
        if not address_lists.has_host(tenant.lists.external_names, name):
            return tenant_settings.list_refusal(f"spec.externalName: {name}", keys.EXTERNAL_NAMES, tenant)
    return ""


reallocated: Final = service_allocations.reallocated


def service_patches(lower: Object, wanted: Object) -> Iterable[PatchPart]:
    """Patches of the lower Service. Its cluster IP never changes; node ports change if the tenant's did."""
    is_requested = lower.annotations.get(keys.NODE_PORTS) == wanted.annotations.get(keys.NODE_PORTS)
    spec = wanted.spec
    if "ports" in spec and (
        is_requested or service_allocations.node_ports(lower.spec) == service_allocations.node_ports(spec)
    ):
        wanted = wanted.with_fields(spec=spec | {"ports": services.without_node_ports(spec["ports"])})
    yield from services.patches(lower, wanted, fields=SYNCED_FIELDS)


def service_up_patches(upper: Object, lower: Object, link: Link) -> Iterator[PatchPart]:
    """The load balancer's addresses, and cluster IP and node ports of the super cluster if they are not the tenant's.

    Node ports come last: they are the only patch that the tenant's API server may refuse.
    """
    yield from ingress.ingress_up_patches(upper, lower, link)
    yield from metadata.transparent_patches(upper, lower, link)
    address = lower.spec.get("clusterIP") or _HEADLESS
    if address not in (_HEADLESS, upper.spec.get("clusterIP"), upper.annotations.get(keys.SUPER_CLUSTER_IP)):
        yield PatchPart({"metadata": {"annotations": {keys.SUPER_CLUSTER_IP: address}}})
    yield from service_allocations.node_port_up_patches(upper, lower, link)


def user_endpoints(obj: Object) -> Iterator[Reference]:
    """The Endpoints of a Service without a selector, which users write; of the API server, those that we write."""
    spec = obj.spec
    if obj.key == environment.API_SERVICE:
        yield Reference(resources.ENDPOINT_SLICES, *obj.key, missing=Missing.PLACEHOLDER)
    if not spec.get("selector") and spec.get("type") != _EXTERNAL_NAME:
        yield Reference(resources.ENDPOINTS, obj.namespace, obj.name, is_optional=True)


def endpoints(obj: Object, _link: Link) -> Object:
    """A copy with the same addresses, without targetRef and nodeName, whose names differ in the super cluster."""
    lists = ("addresses", "notReadyAddresses")
    subsets = [
        subset | {name: [_without_target(one) for one in subset[name]] for name in lists if subset.get(name)}
        for subset in obj.get("subsets") or ()
    ]
    return obj.with_fields(subsets=subsets or None)


endpoints_patches: Final = mode.patches_of("subsets")


def user_slice_placement(upper: Object, key: Key, context: PlacementContext) -> Intents:
    """The placement of EndpointSlices: everywhere, except those that the super cluster generates itself."""
    return {} if upper.labels.get(services.MANAGED_BY) in GENERATED_BY else everywhere(upper, key, context)


def _without_target(address: Spec) -> Spec:
    return {name: value for name, value in address.items() if name in ("ip", "hostname")}
