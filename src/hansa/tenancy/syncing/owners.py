"""Whose a cluster-wide thing in the super cluster is: the VirtualCluster that its annotations name.

The way back is by these words only; names are never parsed.
"""

from dataclasses import dataclass

from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys

_WORDS = (keys.TENANT_CLUSTER, keys.VC_NAMESPACE, keys.VC_NAME, keys.VC_UID, keys.META)


@dataclass(frozen=True, slots=True)
class Owner:
    """A VirtualCluster: where it is, which life of that name, and its key. `meta` is the id of its meta cluster."""

    key: str
    namespace: str
    name: str
    uid: str
    meta: str

    @property
    def place(self) -> NamespacedName:
        """Where the VirtualCluster is in the meta cluster."""
        return NamespacedName(self.namespace, self.name)

    def annotations(self) -> dict[str, str]:
        """The words that lead back to it."""
        return dict(zip(_WORDS, (self.key, self.namespace, self.name, self.uid, self.meta), strict=True))


def of(obj: Object) -> Owner | None:
    """Read the words; None unless all of them are there."""
    words = [obj.annotations.get(word, "") for word in _WORDS]
    return Owner(*words) if all(words) else None
