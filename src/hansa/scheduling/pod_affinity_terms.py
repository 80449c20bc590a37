"""Required pod affinity, anti-affinity and topology spread constraints, decoded from a pod's spec.

Terms with a namespaceSelector are listed as unchecked, and left to the cluster's own scheduler.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from hansa.kube import objects
from hansa.kube.language import selectors
from hansa.runtime import errors

Namespaces = Callable[[str], str]  # maps a namespace to its name in the cluster


class PodConstraintError(errors.HansaError, ValueError):
    """Affinity or topology spread constraints of a pod are not valid."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term of pod affinity or anti-affinity: pods of these namespaces with these labels, in the same domain."""

    topology: str  # topologyKey: the node label whose values are the domains
    namespaces: frozenset[str]
    selector: selectors.Selector

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether the term selects a pod of this namespace with these labels."""
        return namespace in self.namespaces and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class Spread:
    """A topology spread constraint."""

    topology: str
    max_skew: int  # the maximum difference to the domain with fewest pods
    selector: selectors.Selector
    min_domains: int = 1
    ignores_node_affinity: bool = False  # nodeAffinityPolicy Ignore
    honors_taints: bool = False  # nodeTaintsPolicy Honor: nodes whose taints the pod does not tolerate don't count


@dataclass(frozen=True, slots=True)
class PodConstraints:
    """The required constraints of a pod on other pods. `unchecked` names those that only the cluster can check."""

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    spreads: tuple[Spread, ...] = ()
    unchecked: tuple[str, ...] = ()


NONE: Final = PodConstraints()
_MARKS: Final = (b'"podAffinity"', b'"podAntiAffinity"', b'"topologySpreadConstraints"')


def of_pod(pod: objects.Object, below: Namespaces = str) -> PodConstraints:
    """Decode a pod's constraints; `below` maps its namespace and those that its terms name."""
    raw = pod.raw("spec")
    if not any(mark in raw for mark in _MARKS):  # nearly every pod: decoding is not needed
        return NONE
    try:
        spec = pod.decode("spec", _Spec)
    except objects.Malformed as error:
        raise PodConstraintError(f"invalid affinity or topologySpreadConstraints of pod {pod.key}: {error}") from None
    affinity = spec.affinity or _Affinity()
    terms, has_unchecked = _terms(affinity.pod_affinity, pod, below)
    anti_terms, has_unchecked_anti = _terms(affinity.pod_anti_affinity, pod, below)
    unchecked = ("pod affinity",) * has_unchecked + ("pod anti-affinity",) * has_unchecked_anti
    hard = (one for one in spec.topology_spread_constraints or () if one.when_unsatisfiable == "DoNotSchedule")
    return PodConstraints(
        terms,
        anti_terms,
        tuple(_spread(one, pod.labels) for one in hard),
        tuple(f"{one} by namespaceSelector" for one in unchecked),
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
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    affinity: _Affinity | None = None
    topology_spread_constraints: tuple[_Spread, ...] | None = None


def _terms(affinity: _PodAffinity | None, pod: objects.Object, below: Namespaces) -> tuple[tuple[Term, ...], bool]:
    """The terms that can be checked, and whether there are others."""
    required = (affinity.required if affinity else None) or ()
    checked = [one for one in required if one.namespace_selector is None]
    return tuple(_term(one, pod, below) for one in checked), len(checked) < len(required)


def _term(term: _Term, pod: objects.Object, below: Namespaces) -> Term:
    namespaces = frozenset(map(below, term.namespaces or (pod.namespace,)))
    return Term(term.topology_key, namespaces, selectors.of_object(term.label_selector))


def _spread(one: _Spread, labels: Mapping[str, str]) -> Spread:
    selector = selectors.of_object(one.label_selector)
    # matchLabelKeys: pods of one revision only. The API server merges them into the selector since 1.34.
    own = selectors.of_labels({key: labels[key] for key in one.match_label_keys or () if key in labels})
    return Spread(
        topology=one.topology_key,
        max_skew=one.max_skew,
        selector=selectors.Selector(selector.requirements + own.requirements),
        min_domains=one.min_domains or 1,
        ignores_node_affinity=one.node_affinity_policy == "Ignore",
        honors_taints=one.node_taints_policy == "Honor",
    )
