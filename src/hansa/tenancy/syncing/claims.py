"""Which VirtualCluster owns which control plane: of two with the same API server, the older one.

With both, each object would be synced to two namespaces, and two lower pods would overwrite the same status in turns.
"""

from hansa.kube.objects import NamespacedName, Object

Age = tuple[str, str]


class Claims:
    """The owners of control planes, by cluster id."""

    def __init__(self) -> None:
        self._holders: dict[str, tuple[Age, NamespacedName]] = {}

    def holder(self, cluster_id: str) -> NamespacedName | None:
        """The VirtualCluster that owns this control plane."""
        return self._holders[cluster_id][1] if cluster_id in self._holders else None

    def claim(self, cluster_id: str, vc: Object) -> NamespacedName:
        """Claim a control plane for a VirtualCluster, and return its owner: this one, unless an older one claims it."""
        mine = age(vc), vc.key
        self._holders[cluster_id] = min(mine, self._holders.get(cluster_id, mine))
        return self._holders[cluster_id][1]

    def release(self, vc_name: NamespacedName) -> None:
        """Drop all claims of a VirtualCluster."""
        self._holders = {id_: holder for id_, holder in self._holders.items() if holder[1] != vc_name}


def age(vc: Object) -> Age:
    """Of two VirtualClusters, the older one has the smaller age."""
    return str(vc.metadata.creation_timestamp), vc.uid
