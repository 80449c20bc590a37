"""What a filter and a score are: the whole interface between the judge and its plugins.

A filter is asked once for each cluster, so that it can prepare. It answers None when the ask does not concern it, or
with a sieve. Most of a sieve works on shapes, of which there are few; only what names single nodes works on nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import Node, Shape
from hansa.scheduling.pod_request import PodRequest

Why = str
"""What is against, as it ends the sentence "4 nodes are …" ("tainted gpu"); empty if nothing is."""


@dataclass(frozen=True, slots=True)
class Sieve:
    """What one filter has against the nodes of one cluster, for one ask."""

    shape: Callable[[Shape], Why] | None = None
    node: Callable[[Node], Why] | None = None


class Filter(Protocol):
    """Rules nodes out."""

    def __call__(self, ask: PodRequest, view: ClusterView, /) -> Sieve | None: ...


class Score(Protocol):
    """How good a node would be, from 0 to 100. Asked only about the nodes that the judge would pick in each group."""

    def __call__(self, ask: PodRequest, view: ClusterView, node: Node, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Profile:
    """The plugins of one scheduler, with the weight of each score."""

    filters: tuple[Filter, ...] = ()
    scores: tuple[tuple[int, Score], ...] = field(default=())
