"""NetworkPolicies of tenants below: whom they name, they name among the tenant's own pods."""

from typing import Any, Final

from hansa.kube.objects import Object
from hansa.model import mode
from hansa.model.pair import Link
from hansa.model.translation.tenant import namespaces

Spec = dict[str, Any]
_NAMESPACES: Final = "namespaceSelector"


def network_policy(obj: Object, link: Link) -> Object:
    """As above, but peers in other namespaces are in this tenant's only. A rule without peers stays for everybody."""

    def peer(one: Spec) -> Spec:
        return one | {_NAMESPACES: namespaces.selector(one[_NAMESPACES], link)} if _NAMESPACES in one else one

    def rules(direction: str, peers: str) -> Spec:
        there = spec.get(direction)
        if not there:
            return {}
        return {direction: [one | {peers: [peer(p) for p in one[peers]]} if one.get(peers) else one for one in there]}

    spec = obj.spec
    return obj.with_fields(spec=spec | rules("ingress", "from") | rules("egress", "to"))


network_policy_patches: Final = mode.patches_of("spec")
