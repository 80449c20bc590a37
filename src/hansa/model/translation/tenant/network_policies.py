"""A tenant's NetworkPolicies in the super cluster: their peers are limited to the tenant's own namespaces."""

from typing import Any, Final

from hansa.kube.objects import Object
from hansa.model import mode
from hansa.model.pair import Link
from hansa.model.translation.tenant import namespaces

Spec = dict[str, Any]
_NAMESPACES: Final = "namespaceSelector"


def network_policy(obj: Object, link: Link) -> Object:
    """A copy whose namespaceSelectors match this tenant's namespaces only. A rule without peers still allows all."""

    def peer(one: Spec) -> Spec:
        return one | {_NAMESPACES: namespaces.selector(one[_NAMESPACES], link)} if _NAMESPACES in one else one

    def rules(direction: str, peers: str) -> Spec:
        found = spec.get(direction)
        if not found:
            return {}
        return {direction: [one | {peers: [peer(p) for p in one[peers]]} if one.get(peers) else one for one in found]}

    spec = obj.spec
    return obj.with_fields(spec=spec | rules("ingress", "from") | rules("egress", "to"))


network_policy_patches: Final = mode.patches_of("spec")
