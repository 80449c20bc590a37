"""The owner of a cluster-scoped object in a super cluster: the VirtualCluster that its annotations name.

Only annotations are read; names are never parsed.
"""

from dataclasses import dataclass

from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys

_KEYS = (keys.TENANT_CLUSTER, keys.VC_NAMESPACE, keys.VC_NAME, keys.VC_UID, keys.META)


@dataclass(frozen=True, slots=True)
class Owner:
    """A VirtualCluster: its namespace, name, uid and tenant key, and the id of its meta cluster."""

    key: str
    namespace: str
    name: str
    uid: str
    meta: str

    @property
    def vc_name(self) -> NamespacedName:
        """The namespace and name of the VirtualCluster."""
        return NamespacedName(self.namespace, self.name)

    def annotations(self) -> dict[str, str]:
        """The annotations that name it."""
        return dict(zip(_KEYS, (self.key, self.namespace, self.name, self.uid, self.meta), strict=True))


def of(obj: Object) -> Owner | None:
    """The owner of an object; None unless it has all annotations."""
    values = [obj.annotations.get(key, "") for key in _KEYS]
    return Owner(*values) if all(values) else None
