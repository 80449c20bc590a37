"""Where an upper object should be: policies, pure functions of the object and of facts that the engine keeps.

No policy schedules: each reads a decision that stands on an object already, or follows who uses the object.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.model.pair import Grade, Key, Unknown


class Named(Protocol):
    """Anything that names an upper object, such as a reference in a pod."""

    @property
    def resource(self) -> Resource: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Facts:
    """What policies may know besides the object itself, of one upper cluster at one moment."""

    # The lower clusters that this upper cluster is linked to, whether they can be reached or not.
    lowers: frozenset[str]
    # The lower cluster that each virtual node of ours stands for.
    cluster_of_node: Mapping[str, str]
    # The lower clusters where something that refers to this upper object lives (`Rule.references`, `Rule.needs`).
    users: Callable[[Resource, Place], frozenset[str] | Unknown]
    # Where a namespace of this upper cluster should be, if namespaces travel.
    of_namespace: Callable[[str], "Intents"] = lambda _: {}


Intents = Mapping[str, Grade] | Unknown
Placement = Callable[[Object, Key, Facts], Intents]


def nowhere(_upper: Object, _key: Key, _facts: Facts) -> Intents:
    """It stays above."""
    return {}


def seen_below(_upper: Object, _key: Key, _facts: Facts) -> Intents:
    """It stays above, and what lower clusters have of that name is watched."""
    return {}


def everywhere(_upper: Object, _key: Key, facts: Facts) -> Intents:
    """It is in every lower cluster."""
    return dict.fromkeys(facts.lowers, Grade.CHOSEN)


def by_node_name(upper: Object, _key: Key, facts: Facts) -> Intents:
    """It lives in the lower cluster of the virtual node that it is bound to."""
    cluster = facts.cluster_of_node.get(node_of(upper))
    return {} if cluster is None else {cluster: Grade.CHOSEN}


def node_of(pod: Object) -> str:
    """The node that a pod is bound to, if it is."""
    return pod.decode("spec", _Bound).node_name


def with_users(_upper: Object, key: Key, facts: Facts) -> Intents:
    """It is wherever something that refers to it lives."""
    return _chosen(facts.users(key.resource, Place(key.namespace, key.name)))


def with_users_of(names: Callable[[Object], Iterable[Named]]) -> Placement:
    """It is wherever something lives that uses what it names: a grant follows those to whom it is given."""

    def policy(upper: Object, _key: Key, facts: Facts) -> Intents:
        everywhere: set[str] = set()
        for named in names(upper):
            users = facts.users(named.resource, Place(named.namespace, named.name))
            if isinstance(users, Unknown):
                return users
            everywhere |= users
        return _chosen(frozenset(everywhere))

    return policy


def by_annotation(name: str, clusters: Callable[[str], Iterable[str]] = lambda text: (text,)) -> Placement:
    """It lives where an annotation says, which somebody else writes; `clusters` reads it."""

    def policy(upper: Object, _key: Key, _facts: Facts) -> Intents:
        text = upper.annotations.get(name)
        return dict.fromkeys(clusters(text), Grade.CHOSEN) if text else {}

    return policy


def with_namespace(_upper: Object, key: Key, facts: Facts) -> Intents:
    """It is wherever its namespace should be. The rule of such a kind goes with its namespace."""
    return facts.of_namespace(key.namespace)


def any_of(*policies: Placement) -> Placement:
    """It is wherever one of the policies wants it."""

    def policy(upper: Object, key: Key, facts: Facts) -> Intents:
        wanted: dict[str, Grade] = {}
        for one in policies:
            intents = one(upper, key, facts)
            if isinstance(intents, Unknown):
                return intents
            wanted |= {cluster: max(grade, wanted.get(cluster, grade)) for cluster, grade in intents.items()}
        return wanted

    return policy


def if_marked(upper_id: str, policy: Placement) -> Placement:
    """As the policy says for copies that we made of objects of this upper cluster, and nowhere for all else."""

    def narrowed(obj: Object, key: Key, facts: Facts) -> Intents:
        return policy(obj, key, facts) if obj.labels.get(keys.UPPER) == upper_id else {}

    return narrowed


def outside(is_left_out: Callable[[Key], bool], policy: Placement) -> Placement:
    """As the policy says, but nowhere for what is left out by its name.

    What leaves stays placed: it has no copy then, and the pods of a virtual node can only be released by us.
    """

    def narrowed(upper: Object, key: Key, facts: Facts) -> Intents:
        return {} if is_left_out(key) and not upper.is_leaving else policy(upper, key, facts)

    return narrowed


class _Bound(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""


def _chosen(clusters: frozenset[str] | Unknown) -> Intents:
    return clusters if isinstance(clusters, Unknown) else dict.fromkeys(clusters, Grade.CHOSEN)
