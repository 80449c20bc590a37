"""Finds the lower pod of an upper pod by its stamp, in the caches of the engine. Names are never put together here."""

from collections.abc import Callable
from dataclasses import dataclass

from hansa.engine.view.clusters import LinkedClusters
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
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
        if upper is None or upper.spec.get("nodeName") != node or call.uid not in ("", upper.uid):
            raise Refusal(404, f"pod {call.namespace}/{call.pod} does not exist on node {node}")
        for name, link in linked.links.items():
            if node in link.nodes:
                return self._below(linked, key, name, upper)
        raise Refusal(503, f"node {node} has no lower cluster now; try again")

    def _below(self, linked: LinkedClusters, key: Key, cluster: str, upper: Object) -> LowerPod:
        side = linked.lowers[cluster]
        lower = linked.below(key, cluster, upper.uid).lower
        origin = None if lower is None else stamp.of(lower)
        if lower is None or origin is None or (origin.upper, origin.uid) != (linked.upper_id, upper.uid):
            reason = side.unknown_reason_of(resources.PODS)
            why = f"cluster {cluster}: {reason}" if reason else f"it was not created in cluster {cluster} yet"
            raise Refusal(503 if reason else 400, f"pod {key.namespace}/{key.name} has no containers: {why}")
        return LowerPod(cluster, side.cluster.client, lower.key)
