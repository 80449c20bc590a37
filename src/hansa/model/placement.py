"""Placement policies: where an upper object should be, as pure functions of the object and of a context.

No policy schedules: each reads a decision that is on an object already, or follows the users of the object.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.model.pair import Grade, Key, Link, Unknown


class Referable(Protocol):
    """Anything that names an upper object, such as a reference in a pod."""

    @property
    def resource(self) -> Resource: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class PlacementContext:
    """What policies may read besides the object itself, of one upper cluster at one moment."""

    # The lower clusters that this upper cluster is linked to, reachable or not.
    lowers: frozenset[str]
    # The lower cluster that each of our virtual nodes represents.
    cluster_of_node: Mapping[str, str]
    # The lower clusters with objects that refer to this upper object (`Rule.references`, `Rule.needs`).
    users: Callable[[Resource, NamespacedName], frozenset[str] | Unknown]
    # Where a namespace of this upper cluster is placed, if namespaces are synced.
    of_namespace: Callable[[str], "Intents"] = lambda _: {}
    # The links to `lowers`, with their settings.
    links: Mapping[str, Link] = field(default_factory=dict)
    # Placements of namespaces that are decided and kept outside of this upper cluster, whose users could change them.
    decided: Callable[[Object], frozenset[str] | Unknown] = lambda _: frozenset()
    # All lower clusters in these placements.
    all_decided: Callable[[], frozenset[str]] = frozenset


class Decisions(Protocol):
    """Placements of namespaces by upper cluster, kept outside of it."""

    def placed(self, upper: str, namespace: Object) -> frozenset[str] | Unknown: ...
    def all_placed(self, upper: str) -> frozenset[str]: ...
    def listen(self, notify: Callable[[str, str], None]) -> Callable[[], None]: ...


Intents = Mapping[str, Grade] | Unknown
Placement = Callable[[Object, Key, PlacementContext], Intents]


def only_read(_upper: Object, _key: Key, _context: PlacementContext) -> Intents:
    """Nowhere: lower objects of the kind are watched, because other rules read them."""
    return {}


def everywhere(_upper: Object, _key: Key, context: PlacementContext) -> Intents:
    """In every lower cluster."""
    return dict.fromkeys(context.lowers, Grade.CHOSEN)


def by_node_name(upper: Object, _key: Key, context: PlacementContext) -> Intents:
    """In the lower cluster of the virtual node that the pod is bound to."""
    cluster = context.cluster_of_node.get(node_of(upper))
    return {} if cluster is None else {cluster: Grade.CHOSEN}


def node_of(pod: Object) -> str:
    """The node that a pod is bound to; empty if it is not bound."""
    return pod.decode("spec", _Bound).node_name


def with_users(_upper: Object, key: Key, context: PlacementContext) -> Intents:
    """Wherever objects are that refer to it."""
    return _chosen(context.users(key.resource, NamespacedName(key.namespace, key.name)))


def with_users_of(names: Callable[[Object], Iterable[Referable]]) -> Placement:
    """Wherever the objects that it names are used: a RoleBinding follows its service accounts."""

    def policy(upper: Object, _key: Key, context: PlacementContext) -> Intents:
        everywhere: set[str] = set()
        for named in names(upper):
            users = context.users(named.resource, NamespacedName(named.namespace, named.name))
            if isinstance(users, Unknown):
                return users
            everywhere |= users
        return _chosen(frozenset(everywhere))

    return policy


def by_annotation(name: str, clusters: Callable[[str], Iterable[str]] = lambda text: (text,)) -> Placement:
    """In the clusters of an annotation, which `clusters` parses."""

    def policy(upper: Object, _key: Key, _context: PlacementContext) -> Intents:
        text = upper.annotations.get(name)
        return dict.fromkeys(clusters(text), Grade.CHOSEN) if text else {}

    return policy


def with_namespace(_upper: Object, key: Key, context: PlacementContext) -> Intents:
    """Wherever its namespace is placed. The rule of such a kind sets `follows_namespace`."""
    return context.of_namespace(key.namespace)


def any_of(*policies: Placement) -> Placement:
    """Wherever one of the policies places it."""

    def policy(upper: Object, key: Key, context: PlacementContext) -> Intents:
        wanted: dict[str, Grade] = {}
        for one in policies:
            intents = one(upper, key, context)
            if isinstance(intents, Unknown):
                return intents
            wanted |= {cluster: max(grade, wanted.get(cluster, grade)) for cluster, grade in intents.items()}
        return wanted

    return policy


def if_stamped(upper_id: str, policy: Placement) -> Placement:
    """The policy, for objects that are stamped as copies of this upper cluster's; others are not placed."""

    def narrowed(obj: Object, key: Key, context: PlacementContext) -> Intents:
        return policy(obj, key, context) if obj.labels.get(keys.UPPER) == upper_id else {}

    return narrowed


def outside(is_left_out: Callable[[Key], bool], policy: Placement) -> Placement:
    """The policy, except for keys that are left out: these are not placed.

    An object that is being deleted stays placed: only we can complete the deletion of a pod on a virtual node.
    """

    def narrowed(upper: Object, key: Key, context: PlacementContext) -> Intents:
        return {} if is_left_out(key) and not upper.is_deleting else policy(upper, key, context)

    return narrowed


class _Bound(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""


def _chosen(clusters: frozenset[str] | Unknown) -> Intents:
    return clusters if isinstance(clusters, Unknown) else dict.fromkeys(clusters, Grade.CHOSEN)
