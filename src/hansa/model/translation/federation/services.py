"""Global Services in targets: the same selector, which selects the delegates there, with addresses of that cluster.

Ingresses that lead to them are copied as they are.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hansa.kube.objects import Object
from hansa.model import mode
from hansa.model.mode import PatchPart
from hansa.model.pair import Link
from hansa.model.translation.common import services

Spec = Mapping[str, Any]
_HEADLESS: Final = "None"
# Others are allocated by each cluster (addresses, node ports), or claim addresses of the source's network.
_FIELDS: Final = (
    *("type", "ports", "selector", "sessionAffinity", "sessionAffinityConfig", "externalName"),
    *("publishNotReadyAddresses", "ipFamilyPolicy", "internalTrafficPolicy", "externalTrafficPolicy"),
    *("trafficDistribution", "loadBalancerSourceRanges"),
)


def service(obj: Object, _link: Link) -> Object:
    """A copy without what each cluster allocates. It may have one address family where two are not supported."""
    spec = obj.spec
    kept: dict[str, Any] = {name: spec[name] for name in (*_FIELDS, "ipFamilies") if name in spec}
    if "ports" in kept:
        kept["ports"] = services.without_node_ports(kept["ports"])
    if kept.get("ipFamilyPolicy") == "RequireDualStack":
        kept["ipFamilyPolicy"] = "PreferDualStack"
    if spec.get("clusterIP") == _HEADLESS:
        kept["clusterIP"] = _HEADLESS
    return obj.with_fields(spec=kept)


def service_patches(lower: Object, wanted: Object) -> Iterable[PatchPart]:
    """Patches for labels, annotations and the synced fields; address families can't be changed in general."""
    return services.patches(lower, wanted, fields=_FIELDS)


def with_families_of_target(spec: Spec, refused: Iterable[str], _deleting: Iterable[Object]) -> Spec | None:
    """The spec without address families that the target does not support, so that it chooses its own."""
    if "ipFamilies" not in spec or not any(field.startswith("spec.ipFamil") for field in refused):
        return None
    return {name: value for name, value in spec.items() if name != "ipFamilies"}


ingress_patches: Final = mode.patches_of("spec")
