"""Whether a tenant's control plane lost its data: its id is not that of the tenant's namespaces in a super cluster.

The id is the uid of the namespace kube-system, which an API server creates anew on an empty etcd. vc-syncer checks it
before it links a tenant. Then nothing is synced, and the objects in super clusters stay, for `kubectl vc recover`.
"""

from typing import Final

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.model import keys, tenant_names
from hansa.tenancy.syncing.owners import Owner

NAMESPACES: Final = ("kube-system", "default")  # every tenant has them; one is in each of its super clusters
REASON: Final = "DataLost"


async def former_id(super_cluster: Client, owner: Owner, tenant_id: str) -> str:
    """The id that the tenant had when its namespaces were synced to a super cluster; empty if it is still the same."""
    for name in NAMESPACES:
        try:
            found = await super_cluster.get(resources.NAMESPACES, tenant_names.super_namespace(owner.key, name))
        except errors.NotFound:
            continue
        if found.annotations.get(keys.VC_UID) == owner.uid and not found.is_deleting:
            id_ = found.labels.get(keys.UPPER, "")
            return id_ if id_ != tenant_id else ""
    return ""


def message(owner: Owner, super_cluster: str, former: str, tenant_id: str) -> str:
    """What happened, and what to do."""
    return (
        f"the tenant's API server is not the one that was synced to {super_cluster}: the uid of its namespace"
        f" kube-system was {former} and is {tenant_id}. Its etcd lost its data, or the kubeconfig is that of another"
        " cluster. Nothing is synced, and its objects in the super cluster stay: restore the data, or bring these"
        f" objects back with `kubectl vc recover {owner.name} -n {owner.namespace}`, or delete them with"
        f" `kubectl delete namespaces -l {keys.UPPER}={former}` in the super cluster"
    )
