"""Services and their EndpointSlices below, for clients there: a name and an address, whose endpoints are told above."""

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
# What a copy has as its upper one has it. The rest is allotted below (addresses, node ports), belongs to the upper
# cluster's edge (external addresses, balancers) or asks for endpoints on the same node, which is not known below.
_KEPT: Final[tuple[str, ...]] = (
    *("type", "ports", "sessionAffinity", "sessionAffinityConfig", "externalName", "publishNotReadyAddresses"),
    *("ipFamilyPolicy", "trafficDistribution"),
)


def service(obj: Object, link: Link) -> Object:
    """Without a selector, and with addresses of the lower cluster. A balancer is made above only."""
    spec = obj.spec
    kept = {name: spec[name] for name in _KEPT if name in spec}
    if kept.get("type") == "LoadBalancer":
        kept["type"] = "ClusterIP"
    if "ports" in kept:
        kept["ports"] = without_node_ports(kept["ports"])
    if spec.get("clusterIP") == _HEADLESS:
        kept["clusterIP"] = _HEADLESS
    return obj.with_fields(spec=kept | _families(spec, link_settings.of(link).ip_families))


def service_patches(lower: Object, wanted: Object) -> Iterable[PatchPart]:
    """What follows: labels, annotations, and the kept fields. What was allotted below stays."""
    yield from patches(lower, wanted, fields=_KEPT)


def patches(lower: Object, wanted: Object, *, fields: Iterable[str]) -> Iterable[PatchPart]:
    """Labels, annotations and these fields of the spec follow; node ports, and what is not named, stay."""
    have, want = lower.spec, wanted.spec
    there = {name: have[name] for name in fields if name in have}
    asked = {name: want[name] for name in fields if name in want}
    if "ports" in there:
        there["ports"] = without_node_ports(there["ports"])
    spec = diff.merge_patch(there, asked)
    # An address, or that there is none, can only be changed together with this type.
    if spec.get("type") == "ExternalName":
        spec |= {"clusterIP": None, "clusterIPs": None}
    elif have.get("type") == "ExternalName" and "clusterIP" in want:
        spec["clusterIP"] = want["clusterIP"]
    if patch := diff.metadata_patch(lower, wanted) | ({"spec": spec} if spec else {}):
        yield PatchPart(patch)


def endpoint_slice(obj: Object, _link: Link) -> Object:
    """The addresses as above. Who stands behind one, and on which node, is the upper cluster's knowledge."""
    endpoints = [{n: v for n, v in one.items() if n in _TOLD} for one in obj.get("endpoints") or ()]
    return obj.with_metadata(labels={**obj.labels, MANAGED_BY: MANAGER}).with_fields(endpoints=endpoints or None)


endpoint_slice_patches: Final = mode.patches_of("endpoints", "ports")
_TOLD: Final = frozenset({"addresses", "conditions", "hostname"})


def without_node_ports(ports: Iterable[Spec]) -> list[Spec]:
    """Ports as a user writes them: which port of the nodes stands for one is each cluster's own."""
    return [{name: value for name, value in port.items() if name != "nodePort"} for port in ports]


def _families(spec: Spec, below: tuple[str, ...]) -> Spec:
    """The address families of the upper service as far as the lower cluster has them."""
    both = {"ipFamilyPolicy": "PreferDualStack"} if spec.get("ipFamilyPolicy") == "RequireDualStack" else {}
    families = [family for family in spec.get("ipFamilies") or () if family in below]
    return both | ({"ipFamilies": families} if families else {})
