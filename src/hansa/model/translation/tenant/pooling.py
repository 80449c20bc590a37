"""What is different where a tenant has a pool of super clusters: where its objects are, and what several of them tell.

Placements are read, not made: schedulers write them on namespaces and pods.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.model import keys, placement
from hansa.model.mode import Part
from hansa.model.pair import Grade, Key, Link, Unknown
from hansa.model.placement import Facts, Intents
from hansa.model.references import Reference
from hansa.model.translation import services as any_services
from hansa.model.translation import storage
from hansa.model.translation.tenant import allotments, pod, services, settings
from hansa.model.translation.tenant.pod import resolving, variables

Spec = dict[str, Any]
_OURS, _LATER = keys.POOL
_INGRESS: Final = "ingress"
_OF_PODS: Final = "endpointslice-controller.k8s.io"


def annotation(obj: Object, key: str) -> str:
    """The value of a scheduler's annotation, in either spelling."""
    return obj.annotations.get(key) or obj.annotations.get(key.replace(_OURS, _LATER, 1), "")


def placements(namespace: Object) -> frozenset[str] | Unknown:
    """The super clusters where a namespace is placed. From words that cannot be read nothing is concluded."""
    text = annotation(namespace, keys.PLACEMENTS)
    try:
        numbers = msgspec.json.decode(text, type=dict[str, int]) if text.strip() else {}
    except msgspec.DecodeError as error:
        return Unknown(f"annotation {keys.PLACEMENTS} of namespace {namespace.name} cannot be read: {error}")
    return frozenset(cluster for cluster, number in numbers.items() if number > 0)


def of_namespace(obj: Object, key: Key, facts: Facts) -> Intents:
    """A namespace is where it is placed, and where pods need it: those that have to leave take it with them."""
    placed = placements(obj)
    if isinstance(placed, Unknown):
        return placed
    users = facts.users(key.resource, Place(key.namespace, key.name))
    return users if isinstance(users, Unknown) else dict.fromkeys(placed | users, Grade.CHOSEN)


def placed(obj: Object, _key: Key, _facts: Facts) -> Intents:
    """Where a namespace is placed by its own words."""
    found = placements(obj)
    return found if isinstance(found, Unknown) else dict.fromkeys(found, Grade.CHOSEN)


def needs_of_namespace(obj: Object) -> Iterator[Reference]:
    """The namespaces that pods anywhere need: they stay while others are placed, so that no pod waits for them."""
    needed = () if obj.name == resolving.DNS.namespace else (variables.API.namespace, resolving.DNS.namespace)
    yield from (Reference(resources.NAMESPACES, "", name) for name in needed if name != obj.name)


def of_pod(obj: Object, key: Key, facts: Facts) -> Intents:
    """A pod is in the super cluster that it was given, if its namespace is there or it was there before.

    Its copies in those that it was moved away from go first.
    """
    cluster, past = annotation(obj, keys.SUPER_CLUSTER), dict.fromkeys(_moved_from(obj), Grade.PAST)
    if not cluster or pod.is_held(obj):
        return past
    if not placement.node_of(obj) and keys.LOWER_UID not in obj.annotations:
        homes = facts.of_namespace(key.namespace)
        if isinstance(homes, Unknown) or cluster not in homes:
            return homes if isinstance(homes, Unknown) else past
    return past | {cluster: Grade.CHOSEN}


def handed_over(obj: Object, cluster: str) -> Iterator[Part]:
    """A super cluster that a pod was moved away from has no copy any more: it takes its mark off.

    Not if the pod is another by now: it may have been there once more.
    """
    yield Part({"metadata": {"resourceVersion": obj.version, "annotations": {f"{keys.MOVED_FROM}{cluster}": None}}})


def _moved_from(obj: Object) -> Iterator[str]:
    return (key.removeprefix(keys.MOVED_FROM) for key in obj.annotations if key.startswith(keys.MOVED_FROM))


def needs_of_pod(obj: Object) -> Iterator[Reference]:
    """What must be there before a pod, and the namespaces of all that, which may be placed nowhere themselves."""
    yield from pod.needs(obj)
    names = (obj.namespace, variables.API.namespace, resolving.DNS.namespace if resolving.asks_cluster(obj) else "")
    yield from (Reference(resources.NAMESPACES, "", name) for name in dict.fromkeys(names) if name)


def slices(*, are_networks_joined: bool) -> placement.Placement:
    """Where EndpointSlices are: those of a tenant's own controllers only where all super clusters need all of them."""

    def policy(upper: Object, key: Key, facts: Facts) -> Intents:
        manager = upper.labels.get(any_services.MANAGED_BY)
        is_of_all = are_networks_joined and manager == _OF_PODS
        is_made_below = manager in services.COMPUTED and not is_of_all
        return {} if is_made_below else placement.with_namespace(upper, key, facts)

    return policy


def unselecting(obj: Object, _link: Link) -> Object:
    """Without a selector: the endpoints of all super clusters come from the tenant."""
    return obj.with_fields(spec={name: value for name, value in obj.spec.items() if name != "selector"})


def claim_told(upper: Object, lower: Object, link: Link) -> Iterable[Part]:
    """What comes back of a claim: from the super cluster that has its volume."""
    if lower.spec.get("volumeName") == upper.spec.get("volumeName"):
        yield from storage.claim_told(upper, lower, link)


def service_told(upper: Object, lower: Object, link: Link) -> Iterator[Part]:
    """The addresses of balancers, and node ports: each super cluster may have chosen others, and notes them."""
    yield from balancers_told(upper, lower, link)
    above, below = allotments.node_ports(upper.spec), allotments.node_ports(lower.spec)
    if lower.annotations.get(keys.NODE_PORTS, "") != above:
        return  # those above are still to be asked for
    here, homes, prefix = settings.of(link).super_cluster, _homes(upper, link), f"{keys.SUPER_NODE_PORTS}."
    noted = {key: text for key, text in upper.annotations.items() if key.startswith(prefix)}
    wanted = {key: text for key, text in noted.items() if key.removeprefix(prefix) in homes - {here}}
    if below != above:
        wanted[f"{prefix}{here}"] = below
    if noted != wanted:
        yield Part({"metadata": {"annotations": dict.fromkeys(noted) | wanted}})


def balancers_told(upper: Object, lower: Object, link: Link) -> Iterator[Part]:
    """The addresses in all super clusters: each writes down its own, and the status has all that are written down."""
    here, placed = settings.of(link).super_cluster, _homes(upper, link)
    own = (lower.status.get("loadBalancer") or {}).get(_INGRESS) or []
    noted = {k.removeprefix(keys.BALANCER): v for k, v in upper.annotations.items() if k.startswith(keys.BALANCER)}
    wanted = {cluster: text for cluster, text in noted.items() if cluster in placed and cluster != here}
    if own:
        wanted[here] = msgspec.json.encode(own, order="sorted").decode()
    if noted != wanted:
        changed = {c: wanted.get(c) for c in noted.keys() | wanted.keys() if noted.get(c) != wanted.get(c)}
        yield Part({"metadata": {"annotations": {f"{keys.BALANCER}{c}": text for c, text in changed.items()}}})
    told = [one for _, text in sorted(wanted.items()) for one in _read(text)]
    if told != ((upper.status.get("loadBalancer") or {}).get(_INGRESS) or []):
        yield Part({"status": {"loadBalancer": {_INGRESS: told or None}}}, "status")


def _homes(obj: Object, link: Link) -> frozenset[str]:
    namespace = link.around.upper(resources.NAMESPACES, Place("", obj.namespace))
    found = frozenset[str]() if namespace is None else placements(namespace)
    return frozenset() if isinstance(found, Unknown) else found


def _read(text: str) -> list[Spec]:
    try:
        return msgspec.json.decode(text, type=list[Spec])
    except msgspec.DecodeError:
        return []  # somebody's edit; the super cluster that it names puts it right
