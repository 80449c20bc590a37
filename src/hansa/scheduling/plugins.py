"""The interface of filters and scores, as in kube-scheduler's framework.

A filter is called once per pod and cluster, and returns a check of nodes, or None if it does not apply to the pod.
Checks run on shapes, of which there are few, and on single nodes only where unique labels matter.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import Node, Shape
from hansa.scheduling.pod_request import PodRequest

FilterReason = str
"""Why nodes are filtered out, such as "node(s) were unschedulable"; empty if they pass."""


@dataclass(frozen=True, slots=True)
class NodeCheck:
    """The check of one filter for one pod and cluster, on shapes, on nodes, or on both."""

    shape: Callable[[Shape], FilterReason] | None = None
    node: Callable[[Node], FilterReason] | None = None


class Filter(Protocol):
    """Excludes nodes."""

    def __call__(self, request: PodRequest, view: ClusterView, /) -> NodeCheck | None: ...


class Score(Protocol):
    """Rates a node from 0 to 100. Called for the best node of each group only."""

    def __call__(self, request: PodRequest, view: ClusterView, node: Node, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Profile:
    """The plugins of one scheduler, with the weight of each score."""

    filters: tuple[Filter, ...] = ()
    scores: tuple[tuple[int, Score], ...] = field(default=())
