"""NetworkPolicies that keep the pods of a tenant apart from those of others, in each of its namespaces with pods.

NetworkPolicies only add up, so there are three. One forbids everything. Two permit what a tenant may reach, and who may
reach it, for pods that no policy of the tenant selects: these have labels in the super cluster. A tenant's own policies
can permit no more (`network_policies`). Until a label is up to date, a pod has too little traffic, never too much.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from hansa.kube import resources
from hansa.kube.language import selectors
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.model.mode import MOST_SELECTING
from hansa.model.pair import Key, Link
from hansa.model.placement import Referable
from hansa.model.references import Missing, Reference
from hansa.model.translation.tenant import peers, tenant_settings
from hansa.model.translation.tenant.peers import Direction

Spec = dict[str, Any]
DENY, PERMIT_INGRESS, PERMIT_EGRESS = NAMES = ("isolation.hansa.dev", "ingress.hansa.dev", "egress.hansa.dev")
# The labels of pods that a policy of the tenant selects.
_LABELS: Final = {Direction.INGRESS: keys.INGRESS_POLICY, Direction.EGRESS: keys.EGRESS_POLICY}
_API_PORTS: Final = (443, 6443)
_DNS_PORTS: Final = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]


def with_policies(references: Callable[[Object], Iterable[Referable]]) -> Callable[[Object], Iterator[Referable]]:
    """What a pod needs, and the policies: they don't exist in the tenant, so empty ones are synced, and filled."""

    def found(pod: Object) -> Iterator[Referable]:
        yield from references(pod)
        for name in NAMES:
            yield Reference(resources.NETWORK_POLICIES, pod.namespace, name, missing=Missing.PLACEHOLDER)

    return found


def outlived(key: Key) -> Resource | None:
    """A pod whose tenant's pod is gone may run for a long grace period, during which the policies stay."""
    return resources.PODS if key.name in NAMES else None


def label_selected(pod: Object, link: Link) -> Object:
    """Label a copy of a pod that policies of the tenant select."""
    if tenant_settings.of(link).isolation is None:
        return pod
    policies = list(link.lookups.uppers(resources.NETWORK_POLICIES, pod.namespace))
    selecting = {one for policy in policies if policy.name not in NAMES for one in _selecting(policy, pod)}
    if len(policies) >= MOST_SELECTING:
        selecting = set(Direction)  # there may be more, and too little traffic is better than too much
    labels = {_LABELS[one]: "true" for one in selecting}
    return pod.with_metadata(labels={**pod.labels, **labels}) if labels else pod


def directions(spec: Spec) -> list[Direction]:
    """The directions that a policy is about; without policyTypes by the API's default."""
    default = [Direction.INGRESS, *([Direction.EGRESS] if spec.get("egress") else [])]
    return [Direction(one) for one in spec.get("policyTypes") or default]


def spec_of(name: str, link: Link) -> Spec:
    """The spec of one of the three policies."""
    if name == PERMIT_INGRESS:
        rules = [{"from": all_peers(link, Direction.INGRESS)}]
        return {"podSelector": _unselected(Direction.INGRESS), "policyTypes": [Direction.INGRESS], "ingress": rules}
    if name == PERMIT_EGRESS:
        rules = [{"to": all_peers(link, Direction.EGRESS)}, *infrastructure(link)]
        return {"podSelector": _unselected(Direction.EGRESS), "policyTypes": [Direction.EGRESS], "egress": rules}
    return {"podSelector": {}, "policyTypes": list(Direction)}


def all_peers(link: Link, direction: Direction) -> list[Spec]:
    """All peers of a tenant's pods; its control plane calls webhooks that run in them."""
    found = [*peers.own(link), *peers.outside(link), *peers.named(link, direction)]
    is_incoming = direction is Direction.INGRESS
    return [*found, peers.root(link), *peers.api_servers(link)] if is_incoming else found


def infrastructure(link: Link) -> list[Spec]:
    """Rules for name servers and the tenant's API server, which a tenant's pods reach at their ports only."""
    servers = peers.name_servers(link)
    return [*([{"to": servers, "ports": _DNS_PORTS}] if servers else []), *api_server(link)]


def api_server(link: Link) -> list[Spec]:
    """Rules for the tenant's API server."""
    own_port = int(tenant_settings.of(link).api_port)
    ports = [{"port": port, "protocol": "TCP"} for port in dict.fromkeys((own_port, *_API_PORTS))]
    addresses = peers.api_servers(link)
    more = [{"to": to, "ports": [{"port": p, "protocol": "TCP"}]} for p, to in peers.api_endpoints(link).items()]
    own = [{"to": addresses, "ports": ports[:1]}] if addresses else []
    return [{"to": [peers.root(link)], "ports": ports}, *own, *(one for one in more if one not in own)]


class _Policy(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    pod_selector: dict[str, Any] | None = None


def _selecting(policy: Object, pod: Object) -> Iterable[Direction]:
    selector = policy.decode("spec", _Policy).pod_selector or {}
    return directions(policy.spec) if selectors.of_object(selector).matches(pod.labels) else ()


def _unselected(direction: Direction) -> Spec:
    return {"matchExpressions": [{"key": _LABELS[direction], "operator": "DoesNotExist"}]}
