"""A tenant's NetworkPolicies in the super cluster: they permit nothing but what the tenant's pods may have as peers."""

from collections.abc import Iterator
from typing import Any, Final

from hansa.kube.objects import Object
from hansa.model import mode
from hansa.model.pair import Link
from hansa.model.translation.tenant import isolation, namespaces, peers, tenant_settings
from hansa.model.translation.tenant.peers import Direction

Spec = dict[str, Any]
_NAMESPACES: Final = "namespaceSelector"
_FIELDS: Final = {Direction.INGRESS: ("ingress", "from"), Direction.EGRESS: ("egress", "to")}


def network_policy(obj: Object, link: Link) -> Object:
    """A copy with rules for permitted peers, or one of the policies that isolate the tenant."""
    is_isolated = tenant_settings.of(link).isolation is not None
    if is_isolated and obj.name in isolation.NAMES:
        return obj.with_fields(spec=isolation.spec_of(obj.name, link))
    spec = obj.spec
    # Without rules, a direction would not be one of the policy unless it is named.
    changed: Spec = {"policyTypes": isolation.directions(spec)}
    for direction, (field, _) in _FIELDS.items():
        if spec.get(field):
            changed[field] = [
                one for rule in spec[field] for one in _rules(rule, link, direction, is_isolated=is_isolated)
            ]
    return obj.with_fields(spec=spec | changed)


network_policy_patches: Final = mode.patches_of("spec")


def _rules(rule: Spec, link: Link, direction: Direction, *, is_isolated: bool) -> Iterator[Spec]:
    """A rule with the permitted ones of its peers; without any, it is left out: it would permit all."""
    _, field = _FIELDS[direction]
    if not rule.get(field):
        yield rule | {field: isolation.all_peers(link, direction)} if is_isolated else rule
    elif found := [new for one in rule[field] for new in _peers(one, link, direction, is_isolated=is_isolated)]:
        yield rule | {field: found}
    if is_isolated and direction is Direction.EGRESS:
        yield from (one for one in _infrastructure(rule, link) if _has_port_of(rule, one))


def _infrastructure(rule: Spec, link: Link) -> list[Spec]:
    """The rules for name servers and the API server that a rule of the tenant includes."""
    if not rule.get("to"):
        return isolation.infrastructure(link)
    blocks = (one["ipBlock"] for one in rule["to"] if one.get("ipBlock"))
    return isolation.api_server(link) if any(peers.reaches_api_server(one, link) for one in blocks) else []


def _has_port_of(rule: Spec, other: Spec) -> bool:
    ports = {str(one.get("port")) for one in rule.get("ports") or ()}
    return not ports or any(str(one["port"]) in ports for one in other["ports"])


def _peers(peer: Spec, link: Link, direction: Direction, *, is_isolated: bool) -> Iterator[Spec]:
    """A namespaceSelector matches this tenant's namespaces only."""
    if is_isolated and peer.get("ipBlock"):
        yield from peers.permitted(peer["ipBlock"], link, direction)
    elif peer.get(_NAMESPACES) is not None:
        yield peer | {_NAMESPACES: namespaces.selector(peer[_NAMESPACES], link)}
    else:
        yield peer
