"""Pods on nodes, and counts of them by namespace and labels, so that selectors need no scan of all pods."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from hansa.kube import objects
from hansa.model import requests
from hansa.scheduling import host_ports, pod_affinity_terms
from hansa.scheduling.host_ports import HostPort
from hansa.scheduling.persistent_map import PersistentMap
from hansa.scheduling.pod_request import PodRequest

Labels = frozenset[tuple[str, str]]
_KINDS = 65_536  # sets of labels that are interned; the pods of a ReplicaSet share one


class PlacedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod on its node, with what excludes other pods: its required anti-affinity terms and host ports."""

    node: str
    amounts: requests.Amounts
    namespace: str
    labels: Labels
    anti_affinity: tuple[pod_affinity_terms.Term, ...] = ()
    host_ports: frozenset[HostPort] = frozenset()
    is_leaving: bool = False  # being deleted: topology spread does not count it


def of_pod(pod: objects.Object) -> PlacedPod | None:
    """The pod on its node; None if it is not bound or is finished."""
    bound = requests.of_bound_pod(pod)
    if bound is None:
        return None
    return PlacedPod(
        node=bound.node,
        amounts=bound.amounts,
        namespace=pod.namespace,
        labels=labels_of(pod.labels),
        anti_affinity=pod_affinity_terms.of_pod(pod).anti_affinity,
        host_ports=host_ports.of_pod(pod),
        is_leaving=pod.is_deleting,
    )


def of_request(request: PodRequest, node: str) -> PlacedPod:
    """The requesting pod as if it were on this node."""
    return PlacedPod(
        node=node,
        amounts=request.amounts,
        namespace=request.namespace,
        labels=labels_of(request.labels),
        anti_affinity=request.pod_constraints.anti_affinity,
        host_ports=request.host_ports,
    )


def labels_of(labels: Mapping[str, str]) -> Labels:
    """Labels as a hashable value, interned."""
    return _interned(frozenset(labels.items()))


@functools.lru_cache(maxsize=_KINDS)
def _interned(labels: Labels) -> Labels:
    return labels


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PodCounts(Generic[T]):
    """The number of pods per node, by namespace and kind (labels, or an anti-affinity term)."""

    _namespaces: PersistentMap[str, PersistentMap[T, Mapping[str, int]]] = field(default_factory=PersistentMap)

    def counted(self, namespace: str, kind: T, node: str, times: int) -> "PodCounts[T]":
        """Counts with `times` added for one kind and node."""
        kinds = self._namespaces.get(namespace) or PersistentMap[T, Mapping[str, int]]()
        counts = dict(kinds.get(kind) or {})
        if left := counts.get(node, 0) + times:
            counts[node] = left
        else:
            del counts[node]
        kinds = kinds.having(kind, counts) if counts else kinds.without(kind)
        return PodCounts(
            self._namespaces.having(namespace, kinds) if len(kinds) else self._namespaces.without(namespace)
        )

    def of(self, namespace: str) -> Iterator[tuple[T, Mapping[str, int]]]:
        """The kinds in a namespace, each with its counts by node."""
        kinds = self._namespaces.get(namespace)
        return iter(()) if kinds is None else kinds.items()
