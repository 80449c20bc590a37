"""Whose a cluster-wide thing in the super cluster is: the VirtualCluster that its annotations name.

The way back is by these words only; names are never parsed.
"""

from dataclasses import dataclass

from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object

CLUSTER = "tenancy.x-k8s.io/cluster"
VC_NAMESPACE = "tenancy.x-k8s.io/vcnamespace"
VC_NAME = "tenancy.x-k8s.io/vcname"
VC_UID = "tenancy.x-k8s.io/vcuid"
CONTROLLED = "tenancy.x-k8s.io/controlled"
META = "hansa.dev/meta"


@dataclass(frozen=True, slots=True)
class Owner:
    """A VirtualCluster: where it is, which life of that name, and its key. `meta` is the id of its meta cluster."""

    key: str
    namespace: str
    name: str
    uid: str
    meta: str

    @property
    def place(self) -> Place:
        """Where the VirtualCluster is in the meta cluster."""
        return Place(self.namespace, self.name)

    def annotations(self) -> dict[str, str]:
        """The words that lead back to it."""
        return {
            CLUSTER: self.key,
            VC_NAMESPACE: self.namespace,
            VC_NAME: self.name,
            VC_UID: self.uid,
            META: self.meta,
        }


def of(obj: Object) -> Owner | None:
    """Read the words; None unless all of them are there."""
    found = obj.annotations
    words = [
        found.get(word, "")
        for word in (
            CLUSTER,
            VC_NAMESPACE,
            VC_NAME,
            VC_UID,
            META,
        )
    ]
    return Owner(*words) if all(words) else None
