"""A tenant as the vn-agent knows it, and which super pods are its own. Pure.

A super pod belongs to a tenant only if its stamp says so: a namespace that is put together is where it is looked up,
never the proof.
"""

from dataclasses import dataclass

from hansa.kube.objects import NamespacedName, Object
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.routes import Call
from hansa.model import keys, stamp, tenant_names
from hansa.model.stamp import Origin


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant: its key, its VirtualCluster, and the client certificates of its API server with their CA as PEM."""

    key: str
    namespace: str
    name: str
    hashes: tuple[str, ...] = ()
    ca: bytes = b""

    def super_name(self, call: Call) -> NamespacedName:
        """Where the pod of a call is in the super cluster, if it is there."""
        return NamespacedName(tenant_names.super_namespace(self.key, call.namespace), call.pod)

    def origin(self, pod: Object) -> Origin | None:
        """The tenant's pod of which a super pod is the copy; None if it is not this tenant's."""
        found, origin = pod.annotations, stamp.of(pod)
        owner = (found.get(keys.TENANT_CLUSTER), found.get(keys.VC_NAMESPACE), found.get(keys.VC_NAME))
        if origin is None or owner != (self.key, self.namespace, self.name):
            return None
        is_there = pod.namespace == tenant_names.super_namespace(self.key, origin.namespace)
        return origin if is_there else None

    def has(self, pod: Object, call: Call) -> bool:
        """Whether a super pod is the one that a call of this tenant means."""
        origin = self.origin(pod)
        return (
            origin is not None
            and (origin.namespace, origin.name) == (call.namespace, call.pod)
            and call.uid in ("", origin.uid)
        )


def missing(call: Call) -> Refusal:
    """The pod does not exist, or is another tenant's, which is the same to a caller."""
    return Refusal(404, f'pod "{call.namespace}/{call.pod}" does not exist')
