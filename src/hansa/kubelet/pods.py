"""Finds the lower pod of an upper pod by its stamp, in the caches of the engine. Names are never put together here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from hansa.engine.cluster import Cluster
from hansa.engine.view.clusters import BY_UPPER, LinkedClusters
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import Malformed, NamespacedName, Object
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.routes import Call
from hansa.model import stamp
from hansa.model.pair import Key


@dataclass(frozen=True, slots=True)
class LowerPod:
    """A pod of a lower cluster, and the client of that cluster."""

    cluster: str
    client: Client
    name: NamespacedName

    def target(self, call: Call) -> str:
        """The path and query of a call there."""
        return call.target(self.name.namespace, self.name.name)


@dataclass(frozen=True, slots=True)
class PodsBelow:
    """The upper pods of a node that have a lower pod, each with it, computed one by one; all are in one cluster."""

    cluster: Cluster
    upper_id: str
    pairs: Iterator[tuple[Object, Object]]


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class LinkedPods:
    """The pods of one upper cluster. `linked` returns its caches; None before they are there."""

    def __init__(self, linked: Callable[[], LinkedClusters | None]) -> None:
        self._linked = linked

    def find(self, node: str, call: Call) -> LowerPod:
        """The lower pod of a call to this node; raises a Refusal, in the words of a kubelet."""
        linked = self._linked()
        if linked is None:
            raise Refusal(503, f"node {node} has not synced its pods yet; try again")
        key = Key(linked.name, resources.PODS, call.namespace, call.pod)
        upper = linked.get(key)
        if upper is None or node_of(upper) != node or call.uid not in ("", upper.uid):
            raise Refusal(404, f"pod {call.namespace}/{call.pod} does not exist on node {node}")
        if (cluster := _cluster_of(linked, node)) is None:
            raise Refusal(503, f"node {node} has no lower cluster now; try again")
        if (lower := _below(linked, key, cluster, upper)) is None:
            reason = linked.lowers[cluster].unknown_reason_of(resources.PODS)
            why = f"cluster {cluster}: {reason}" if reason else f"it was not created in cluster {cluster} yet"
            raise Refusal(503 if reason else 400, f"pod {key.namespace}/{key.name} has no containers: {why}")
        return LowerPod(cluster, linked.lowers[cluster].cluster.client, lower.key)

    def on(self, node: str) -> Iterator[Object | None]:
        """The upper pods of a node, and None for every other pod: a caller can let others work between any two."""
        linked = self._linked()
        if linked is None:
            return
        for name in list(linked.upper.stores[resources.PODS]):
            found = linked.get(Key(linked.name, resources.PODS, name.namespace, name.name))
            yield found if found is not None and node_of(found) == node else None

    def below(self, node: str) -> PodsBelow | None:
        """The pods of a node that have a lower pod; None if the node has no lower cluster now."""
        linked = self._linked()
        if linked is None or (cluster := _cluster_of(linked, node)) is None:
            return None
        side = linked.lowers[cluster]
        copies = side.stores[resources.PODS].find(BY_UPPER, linked.upper_id)
        pairs = ((_upper_of(linked, cluster, node, lower), lower) for lower in copies)
        known = ((upper, lower) for upper, lower in pairs if upper is not None)
        return PodsBelow(side.cluster, linked.upper_id, known)


def node_of(pod: Object) -> str:
    """The node that a pod is bound to; empty if there is none."""
    try:
        return pod.decode("spec", _Spec).node_name
    except Malformed:
        return ""


def _cluster_of(linked: LinkedClusters, node: str) -> str | None:
    return next((name for name, link in linked.links.items() if node in link.nodes), None)


def _upper_of(linked: LinkedClusters, cluster: str, node: str, lower: Object) -> Object | None:
    """The upper pod of a copy, if it is on this node and the copy is the one that belongs to it."""
    key = linked.topic(cluster, resources.PODS, lower)
    if not isinstance(key, Key) or (upper := linked.get(key)) is None or node_of(upper) != node:
        return None
    return upper if _below(linked, key, cluster, upper) is lower else None


def _below(linked: LinkedClusters, key: Key, cluster: str, upper: Object) -> Object | None:
    """The lower pod that bears the stamp of the upper one, with its uid."""
    lower = linked.below(key, cluster, upper.uid).lower
    origin = None if lower is None else stamp.of(lower)
    return lower if origin is not None and (origin.upper, origin.uid) == (linked.upper_id, upper.uid) else None
