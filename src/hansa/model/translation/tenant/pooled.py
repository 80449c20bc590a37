"""What differs in a pool of super clusters: the placement of a tenant's objects, and statuses of several clusters.

Placements are only read here; vc-scheduler decides them, and annotations of namespaces show them.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import annotation_json, keys, placement
from hansa.model.lookups import Reads
from hansa.model.mode import PatchPart
from hansa.model.pair import Grade, Key, Link, Unknown
from hansa.model.placement import Intents, PlacementContext, Referable
from hansa.model.references import Reference
from hansa.model.translation.common import services as any_services
from hansa.model.translation.common import storage
from hansa.model.translation.tenant import pod, service_allocations, services, tenant_settings
from hansa.model.translation.tenant.pod import dns, environment

Spec = dict[str, Any]
References = Callable[[Object], Iterable[Referable]]
_SEED_DOMAIN, _UPSTREAM_DOMAIN = keys.POOL
_INGRESS: Final = "ingress"
_NEEDED_BY_ALL: Final = frozenset({environment.API_SERVICE.namespace, dns.DNS_SERVICE.namespace})
_ENDPOINT_SLICE_CONTROLLER: Final = "endpointslice-controller.k8s.io"


def annotation(obj: Object, key: str) -> str:
    """The value of a scheduler's annotation, under the seed's or the later upstream domain."""
    return obj.annotations.get(key) or obj.annotations.get(key.replace(_SEED_DOMAIN, _UPSTREAM_DOMAIN, 1), "")


def placements(namespace: Object) -> frozenset[str] | Unknown:
    """The super clusters where a namespace is placed; Unknown if the annotation is invalid: nothing is deleted."""
    text = annotation(namespace, keys.PLACEMENTS)
    try:
        numbers = annotation_json.decode(text, dict[str, int]) if text.strip() else {}
    except annotation_json.AnnotationJsonError as error:
        return Unknown(f"annotation {keys.PLACEMENTS} of Namespace {namespace.name} is invalid: {error}")
    return frozenset(cluster for cluster, number in numbers.items() if number > 0)


def namespace_placement(obj: Object, key: Key, context: PlacementContext) -> Intents:
    """A namespace is where its placement is decided, and stays where pods still use it until they are evicted.

    The namespaces that all pods use are where any namespace of the tenant is.
    """
    placed, users = context.decided(obj), context.users(key.resource, NamespacedName(key.namespace, key.name))
    for one in (placed, users):
        if isinstance(one, Unknown):
            return one
    assert not isinstance(placed, Unknown)
    assert not isinstance(users, Unknown)
    if obj.name in _NEEDED_BY_ALL:
        placed |= users & context.all_decided()
    return {**dict.fromkeys(users, Grade.KEPT), **dict.fromkeys(placed, Grade.CHOSEN)}


def decided_placement(obj: Object, _key: Key, context: PlacementContext) -> Intents:
    """Where a namespace's own placement is decided."""
    found = context.decided(obj)
    return found if isinstance(found, Unknown) else dict.fromkeys(found, Grade.CHOSEN)


def with_namespace(_upper: Object, key: Key, context: PlacementContext) -> Intents:
    """Wherever its namespace is, also where that is only kept: pods there may need the object."""
    found = context.of_namespace(key.namespace)
    return found if isinstance(found, Unknown) else dict.fromkeys(found, Grade.CHOSEN)


def namespace_references(obj: Object) -> Iterator[Reference]:
    """The namespaces of the API server's and DNS Services: all pods use them, so they are wherever a namespace is."""
    needed = (
        () if obj.name == dns.DNS_SERVICE.namespace else (environment.API_SERVICE.namespace, dns.DNS_SERVICE.namespace)
    )
    yield from (Reference(resources.NAMESPACES, "", name) for name in needed if name != obj.name)


def pod_placement(obj: Object, key: Key, context: PlacementContext) -> Intents:
    """A pod is in the super cluster of its annotation, if its namespace is placed there; else a copy there is kept.

    Super clusters that it was moved from are PAST: their copies are deleted first.
    """
    cluster, past = annotation(obj, keys.SUPER_CLUSTER), dict.fromkeys(_moved_from(obj), Grade.PAST)
    if not cluster or pod.is_gated(obj):
        return past
    allowed = context.of_namespace(key.namespace)
    if not isinstance(allowed, Unknown) and cluster in allowed:
        return past | {cluster: allowed[cluster]}
    if placement.node_of(obj) or keys.LOWER_UID in obj.annotations:
        return past | {cluster: Grade.KEPT}
    return allowed if isinstance(allowed, Unknown) else past


def remove_moved_from(obj: Object, cluster: str) -> Iterator[PatchPart]:
    """Remove the moved-from annotation of a super cluster that has no copy any more.

    The patch requires the version read: a newer pod may have been moved from there once more.
    """
    yield PatchPart(
        {"metadata": {"resourceVersion": obj.version, "annotations": {f"{keys.MOVED_FROM}{cluster}": None}}}
    )


def _moved_from(obj: Object) -> Iterator[str]:
    return (key.removeprefix(keys.MOVED_FROM) for key in obj.annotations if key.startswith(keys.MOVED_FROM))


def with_namespaces(references: References) -> References:
    """What must exist before a pod, and the namespaces of those objects, which may not be placed there themselves."""
    return lambda obj: (*references(obj), *_namespaces_of_references(obj))


def _namespaces_of_references(obj: Object) -> Iterator[Reference]:
    names = (
        obj.namespace,
        environment.API_SERVICE.namespace,
        dns.DNS_SERVICE.namespace if dns.uses_cluster_dns(obj) else "",
    )
    yield from (Reference(resources.NAMESPACES, "", name) for name in dict.fromkeys(names) if name)


def endpoint_slice_placement(*, are_networks_joined: bool) -> placement.Placement:
    """The placement of EndpointSlices.

    Without joined networks, each super cluster generates the slices of its own pods. With them, every super cluster
    gets the slices of the tenant's controller, which have the pods of all.
    """

    def policy(upper: Object, key: Key, context: PlacementContext) -> Intents:
        manager = upper.labels.get(any_services.MANAGED_BY)
        is_synced = are_networks_joined and manager == _ENDPOINT_SLICE_CONTROLLER
        is_generated = manager in services.GENERATED_BY and not is_synced
        return {} if is_generated else with_namespace(upper, key, context)

    return policy


def without_selector(obj: Object, _link: Link) -> Object:
    """A Service without a selector: its endpoints are synced from the tenant, not computed in the super cluster."""
    return obj.with_fields(spec={name: value for name, value in obj.spec.items() if name != "selector"})


def claim_up_patches(upper: Object, lower: Object, link: Link) -> Iterable[PatchPart]:
    """The status of a claim, only from the super cluster that has its volume."""
    if lower.spec.get("volumeName") == upper.spec.get("volumeName"):
        yield from storage.claim_up_patches(upper, lower, link)


def service_up_patches(upper: Object, lower: Object, link: Link) -> Iterator[PatchPart]:
    """Load balancer addresses, and an annotation per super cluster whose node ports differ from the tenant's."""
    yield from load_balancer_up_patches(upper, lower, link)
    above, below = service_allocations.node_ports(upper.spec), service_allocations.node_ports(lower.spec)
    if lower.annotations.get(keys.NODE_PORTS, "") != above:
        return  # the tenant's node ports have not been requested yet
    here, placed_in, prefix = (
        tenant_settings.of(link).super_cluster,
        _placements_of(upper, link),
        f"{keys.SUPER_NODE_PORTS}.",
    )
    current = {key: text for key, text in upper.annotations.items() if key.startswith(prefix)}
    wanted = {key: text for key, text in current.items() if key.removeprefix(prefix) in placed_in - {here}}
    if below != above:
        wanted[f"{prefix}{here}"] = below
    if current != wanted:
        yield PatchPart({"metadata": {"annotations": dict.fromkeys(current) | wanted}})


def load_balancer_up_patches(upper: Object, lower: Object, link: Link) -> Iterator[PatchPart]:
    """The load balancer addresses of all super clusters.

    Each super cluster keeps its own in an annotation of the Service; the status has the union of these annotations.
    """
    here, placed = tenant_settings.of(link).super_cluster, _placements_of(upper, link)
    own = (lower.status.get("loadBalancer") or {}).get(_INGRESS) or []
    current = {k.removeprefix(keys.BALANCER): v for k, v in upper.annotations.items() if k.startswith(keys.BALANCER)}
    wanted = {cluster: text for cluster, text in current.items() if cluster in placed and cluster != here}
    if own:
        wanted[here] = msgspec.json.encode(own, order="sorted").decode()
    if current != wanted:
        changed = {c: wanted.get(c) for c in current.keys() | wanted.keys() if current.get(c) != wanted.get(c)}
        yield PatchPart({"metadata": {"annotations": {f"{keys.BALANCER}{c}": text for c, text in changed.items()}}})
    addresses = [one for _, text in sorted(wanted.items()) for one in _decoded_ingress(text)]
    if addresses != ((upper.status.get("loadBalancer") or {}).get(_INGRESS) or []):
        yield PatchPart({"status": {"loadBalancer": {_INGRESS: addresses or None}}}, "status")


def _placements_of(obj: Object, link: Link) -> frozenset[str]:
    namespace = link.lookups.upper(resources.NAMESPACES, NamespacedName("", obj.namespace))
    found = frozenset[str]() if namespace is None else placements(namespace)
    return frozenset() if isinstance(found, Unknown) else found


def _own_namespace(obj: Object) -> Iterator[Reference]:
    yield Reference(resources.NAMESPACES, "", obj.namespace)


NAMESPACE_READS: Final = Reads(frozenset({resources.NAMESPACES}), _own_namespace, by_way_up=True)


def _decoded_ingress(text: str) -> list[Spec]:
    try:
        return annotation_json.decode(text, list[Spec])
    except annotation_json.AnnotationJsonError:
        return []  # a user edited the annotation; the super cluster that it names writes it again
