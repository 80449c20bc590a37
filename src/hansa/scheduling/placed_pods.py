"""Pods that lie on nodes, and tallies of them, so that those that a selector means are found without a walk."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from hansa.kube import objects
from hansa.model import requests
from hansa.scheduling import pod_affinity_terms
from hansa.scheduling.persistent_map import PersistentMap
from hansa.scheduling.pod_request import PodRequest

Labels = frozenset[tuple[str, str]]
_KINDS = 65_536  # sets of labels that are kept once in memory; the pods of a Deployment share one


class PlacedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod on its node. Pods that it keeps away say so by `apart`."""

    node: str
    amounts: requests.Amounts
    namespace: str
    labels: Labels
    apart: tuple[pod_affinity_terms.Term, ...] = ()


def of_pod(pod: objects.Object) -> PlacedPod | None:
    """The pod as a resident; None if it is bound to no node or has finished."""
    claim = requests.claim(pod)
    if claim is None:
        return None
    apart = pod_affinity_terms.of_pod(pod).apart
    return PlacedPod(claim.node, claim.amounts, pod.namespace, labels_of(pod.labels), apart)


def of_ask(ask: PodRequest, node: str) -> PlacedPod:
    """Who asked, as if it were on the node already."""
    return PlacedPod(node, ask.amounts, ask.namespace, labels_of(ask.labels), ask.relations.apart)


def labels_of(labels: Mapping[str, str]) -> Labels:
    """Labels as a value that can be a key, once in memory for all that have the same."""
    return _once(frozenset(labels.items()))


@functools.lru_cache(maxsize=_KINDS)
def _once(labels: Labels) -> Labels:
    return labels


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tally(Generic[T]):
    """How many residents of a kind lie on each node, by namespace."""

    _spaces: PersistentMap[str, PersistentMap[T, Mapping[str, int]]] = field(default_factory=PersistentMap)

    def counted(self, namespace: str, kind: T, node: str, times: int) -> "Tally[T]":
        """The same with one more or less."""
        kinds = self._spaces.get(namespace) or PersistentMap[T, Mapping[str, int]]()
        counts = dict(kinds.get(kind) or {})
        if left := counts.get(node, 0) + times:
            counts[node] = left
        else:
            del counts[node]
        kinds = kinds.having(kind, counts) if counts else kinds.without(kind)
        return Tally(self._spaces.having(namespace, kinds) if len(kinds) else self._spaces.without(namespace))

    def of(self, namespace: str) -> Iterator[tuple[T, Mapping[str, int]]]:
        """The kinds in a namespace, each with its numbers by node."""
        kinds = self._spaces.get(namespace)
        return iter(()) if kinds is None else kinds.items()
