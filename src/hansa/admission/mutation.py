"""All that happens to a pod that is created in an upper cluster: constraints parked, then pinned to its claims' node.

It reads caches that others keep.
"""

from dataclasses import dataclass

from hansa.admission import exemption, parking, pinning
from hansa.admission.parking import Pod
from hansa.admission.steering import VIRTUAL, Steering
from hansa.control.table import Table
from hansa.kube.objects import Key
from hansa.model import keys


@dataclass(frozen=True, slots=True)
class Mutation:
    """What is known of the upper cluster when a pod comes."""

    steering_keys: frozenset[str]
    nodes: Table
    claims: Table
    volumes: Table

    def __call__(self, pod: Pod, namespace: str) -> Pod:
        """The pod as it should be stored."""
        if exemption.is_exempt(pod, namespace):
            return pod
        parked = parking.park(pod, Steering(self.steering_keys, self._is_node))
        node = pinning.node_of(
            pod,
            claim=lambda name: self.claims.get(Key(namespace, name)),
            volume=lambda name: self.volumes.get(Key("", name)),
            is_virtual=self._is_virtual,
        )
        return pinning.pin(parked, node)

    def _is_node(self, name: str) -> bool:
        return self.nodes.get(Key("", name)) is not None

    def _is_virtual(self, name: str) -> bool:
        node = self.nodes.get(Key("", name))
        return node is not None and node.labels.get(keys.VIRTUAL_KUBELET_TYPE) == VIRTUAL
