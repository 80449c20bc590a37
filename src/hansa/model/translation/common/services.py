"""Services and EndpointSlices in the lower cluster, for clients there. The upper cluster determines the endpoints."""

from collections.abc import Iterable
from typing import Any, Final

from hansa.kube.objects import Object
from hansa.model import diff, mode
from hansa.model.mode import PatchPart
from hansa.model.pair import Link
from hansa.model.translation.common import link_settings

MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
MANAGER: Final = "hansa"
Spec = dict[str, Any]
_HEADLESS: Final = "None"
# The fields that are synced. Others are allocated by the lower cluster (addresses, node ports), apply to the upper
# cluster only (external addresses, load balancers), or refer to the nodes of endpoints, which differ in each cluster.
_SYNCED_FIELDS: Final[tuple[str, ...]] = (
    *("type", "ports", "sessionAffinity", "sessionAffinityConfig", "externalName", "publishNotReadyAddresses"),
    *("ipFamilyPolicy", "trafficDistribution"),
)


def is_ours(obj: Object) -> bool:
    """Whether Hansa made a slice, or what belongs to one, in this cluster or in another."""
    return obj.labels.get(MANAGED_BY) == MANAGER


def service(obj: Object, link: Link) -> Object:
    """A copy without a selector, with addresses of the lower cluster. LoadBalancer becomes ClusterIP."""
    spec = obj.spec
    kept = {name: spec[name] for name in _SYNCED_FIELDS if name in spec}
    if kept.get("type") == "LoadBalancer":
        kept["type"] = "ClusterIP"
    if "ports" in kept:
        kept["ports"] = without_node_ports(kept["ports"])
    if spec.get("clusterIP") == _HEADLESS:
        kept["clusterIP"] = _HEADLESS
    return obj.with_fields(spec=kept | _families(spec, link_settings.of(link).ip_families))


def service_patches(lower: Object, wanted: Object) -> Iterable[PatchPart]:
    """Patches for labels, annotations and the synced fields. Values that the lower cluster allocated are kept."""
    yield from patches(lower, wanted, fields=_SYNCED_FIELDS)


def patches(lower: Object, wanted: Object, *, fields: Iterable[str]) -> Iterable[PatchPart]:
    """Patches for labels, annotations and these fields of the spec. Node ports and other fields are kept."""
    have, want = lower.spec, wanted.spec
    current = {name: have[name] for name in fields if name in have}
    desired = {name: want[name] for name in fields if name in want}
    if "ports" in current:
        current["ports"] = without_node_ports(current["ports"])
    spec = diff.merge_patch(current, desired)
    # The API server allows a change of clusterIP only together with a change from or to this type.
    if spec.get("type") == "ExternalName":
        spec |= {"clusterIP": None, "clusterIPs": None}
    elif have.get("type") == "ExternalName" and "clusterIP" in want:
        spec["clusterIP"] = want["clusterIP"]
    if patch := diff.metadata_patch(lower, wanted) | ({"spec": spec} if spec else {}):
        yield PatchPart(patch)


def endpoint_slice(obj: Object, _link: Link) -> Object:
    """A copy with the same addresses, without targetRef and nodeName, which name objects of the upper cluster."""
    endpoints = [{n: v for n, v in one.items() if n in _ENDPOINT_FIELDS} for one in obj.get("endpoints") or ()]
    return obj.with_metadata(labels={**obj.labels, MANAGED_BY: MANAGER}).with_fields(endpoints=endpoints or None)


endpoint_slice_patches: Final = mode.patches_of("endpoints", "ports")
_ENDPOINT_FIELDS: Final = frozenset({"addresses", "conditions", "hostname"})


def without_node_ports(ports: Iterable[Spec]) -> list[Spec]:
    """Ports without nodePort, which each cluster allocates itself."""
    return [{name: value for name, value in port.items() if name != "nodePort"} for port in ports]


def _families(spec: Spec, below: tuple[str, ...]) -> Spec:
    """The address families of the upper Service that the lower cluster supports."""
    both = {"ipFamilyPolicy": "PreferDualStack"} if spec.get("ipFamilyPolicy") == "RequireDualStack" else {}
    families = [family for family in spec.get("ipFamilies") or () if family in below]
    return both | ({"ipFamilies": families} if families else {})
