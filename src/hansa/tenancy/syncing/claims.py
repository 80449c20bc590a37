"""Which VirtualCluster has which control plane: of two that lead to the same one, the older has it.

Both would carry the same objects, each to namespaces of its own, and the two copies of a pod would tell by turns.
"""

from hansa.kube.objects import NamespacedName, Object

Age = tuple[str, str]


class Claims:
    """The holders of control planes, by the cluster's id."""

    def __init__(self) -> None:
        self._holders: dict[str, tuple[Age, NamespacedName]] = {}

    def holder(self, cluster_id: str) -> NamespacedName | None:
        """Who has this control plane."""
        return self._holders[cluster_id][1] if cluster_id in self._holders else None

    def claim(self, cluster_id: str, vc: Object) -> NamespacedName:
        """Who has this control plane now: this VirtualCluster, unless an older one has it."""
        mine = _age(vc), vc.key
        self._holders[cluster_id] = min(mine, self._holders.get(cluster_id, mine))
        return self._holders[cluster_id][1]

    def forget(self, place: NamespacedName) -> None:
        """This VirtualCluster claims nothing any more."""
        self._holders = {id_: holder for id_, holder in self._holders.items() if holder[1] != place}


def _age(vc: Object) -> Age:
    return str(vc.metadata.creation_timestamp), vc.uid
