"""How a pod wants to lie to other pods: required pod affinity, anti-affinity and topology spread, read from its spec.
What cannot be judged from outside (namespaces chosen by labels) is named, and left to the cluster's own scheduler.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from hansa.kube import objects
from hansa.kube.language import selectors
from hansa.runtime import errors

Namespaces = Callable[[str], str]  # the name of a namespace there


class RelationError(errors.HansaError, ValueError):
    """A pod's relations to other pods don't have the form of the API."""


@dataclass(frozen=True, slots=True)
class Term:
    """Pods of these namespaces with these labels, in the same domain."""

    topology: str  # the node label whose value names the domain
    namespaces: frozenset[str]
    selector: selectors.Selector

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod of that namespace with those labels is meant."""
        return namespace in self.namespaces and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class Spread:
    """How evenly the pods that the selector means must lie over the domains."""

    topology: str
    most: int  # pods more than in the emptiest domain
    selector: selectors.Selector
    least_domains: int = 1
    counts_unwanted: bool = False  # also nodes that the pod's own node affinity rules out


@dataclass(frozen=True, slots=True)
class Relations:
    """What a pod demands about other pods. `left` is what it demands besides, and nobody outside can judge."""

    near: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()
    spreads: tuple[Spread, ...] = ()
    left: tuple[str, ...] = ()


NONE: Final = Relations()
_MARKS: Final = (b'"podAffinity"', b'"podAntiAffinity"', b'"topologySpreadConstraints"')


def of_pod(pod: objects.Object, below: Namespaces = str) -> Relations:
    """Read a pod's relations; `below` translates its namespace and those that it names."""
    raw = pod.raw("spec")
    if not any(mark in raw for mark in _MARKS):  # nearly every pod: spare the decoding
        return NONE
    try:
        spec = pod.decode("spec", _Spec)
    except msgspec.ValidationError as error:
        raise RelationError(f"the relations of pod {pod.key} to others cannot be read: {error}") from None
    affinity = spec.affinity or _Affinity()
    near, blind_near = _terms(affinity.pod_affinity, pod, below)
    apart, blind_apart = _terms(affinity.pod_anti_affinity, pod, below)
    left = ("pod affinity",) * blind_near + ("pod anti-affinity",) * blind_apart
    hard = (one for one in spec.topology_spread_constraints or () if one.when_unsatisfiable == "DoNotSchedule")
    return Relations(
        near,
        apart,
        tuple(_spread(one, pod.labels) for one in hard),
        tuple(f"{one} by namespaceSelector" for one in left),
    )


class _Term(msgspec.Struct, frozen=True, rename="camel"):
    topology_key: str = ""
    label_selector: dict[str, Any] | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: dict[str, Any] | None = None


class _PodAffinity(msgspec.Struct, frozen=True):
    required: tuple[_Term, ...] | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class _Affinity(msgspec.Struct, frozen=True, rename="camel"):
    pod_affinity: _PodAffinity | None = None
    pod_anti_affinity: _PodAffinity | None = None


class _Spread(msgspec.Struct, frozen=True, rename="camel"):
    topology_key: str = ""
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: dict[str, Any] | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    affinity: _Affinity | None = None
    topology_spread_constraints: tuple[_Spread, ...] | None = None


def _terms(affinity: _PodAffinity | None, pod: objects.Object, below: Namespaces) -> tuple[tuple[Term, ...], bool]:
    """The terms that can be judged, and whether there are others."""
    required = (affinity.required if affinity else None) or ()
    judged = [one for one in required if one.namespace_selector is None]
    return tuple(_term(one, pod, below) for one in judged), len(judged) < len(required)


def _term(term: _Term, pod: objects.Object, below: Namespaces) -> Term:
    namespaces = frozenset(map(below, term.namespaces or (pod.namespace,)))
    return Term(term.topology_key, namespaces, selectors.of_object(term.label_selector))


def _spread(one: _Spread, labels: Mapping[str, str]) -> Spread:
    selector = selectors.of_object(one.label_selector)
    # The pods of one revision among themselves; the API server writes the same into the selector since 1.34.
    own = selectors.of_labels({key: labels[key] for key in one.match_label_keys or () if key in labels})
    return Spread(
        topology=one.topology_key,
        most=one.max_skew,
        selector=selectors.Selector(selector.requirements + own.requirements),
        least_domains=one.min_domains or 1,
        counts_unwanted=one.node_affinity_policy == "Ignore",
    )
