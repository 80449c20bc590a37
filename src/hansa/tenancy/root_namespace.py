"""The namespace of the meta cluster in which everything about one tenant's control plane lies.

Its annotations say whose it is; one that says otherwise is never touched, whatever its name.
"""

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.runtime.errors import HansaError
from hansa.tenancy.api import BadVirtualCluster, VirtualCluster


class TakenNamespace(BadVirtualCluster):
    """A namespace of that name is there, and is not this VirtualCluster's."""


class LeavingNamespace(HansaError):
    """The namespace is being deleted; a new one can be made when it is gone."""


def manifest(vc: VirtualCluster) -> Object:
    """The namespace as it is made."""
    annotations = {
        keys.VC_NAME: vc.name,
        keys.VC_NAMESPACE: vc.namespace,
        keys.VC_UID: vc.uid,
        keys.VC_ROOT_NAMESPACE: "true",
    }
    metadata = {"name": vc.root, "annotations": annotations}
    return Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


async def ensure(client: Client, vc: VirtualCluster) -> None:
    """Make it unless it is there."""
    try:
        found = await client.get(resources.NAMESPACES, vc.root)
    except errors.NotFound:
        try:
            found = await client.create(resources.NAMESPACES, manifest(vc))
        except errors.AlreadyExists:
            found = await client.get(resources.NAMESPACES, vc.root)
    if not is_root_of(found, vc):
        raise TakenNamespace(
            f"namespace {found.name} is there and is not of VirtualCluster {vc.key} (uid {vc.uid}), so it is left"
            " alone; delete it, or create the VirtualCluster under another name"
        )
    if found.is_leaving:
        raise LeavingNamespace(f"namespace {found.name} is being deleted; a new one is made when it is gone")


async def remove(client: Client, vc: VirtualCluster) -> None:
    """Ask for its deletion, if it is there and this VirtualCluster's."""
    try:
        found = await client.get(resources.NAMESPACES, vc.root)
        if is_root_of(found, vc) and not found.is_leaving:
            await client.delete(resources.NAMESPACES, found.name, uid=found.uid)
    except errors.NotFound:
        return


def is_root_of(namespace: Object, vc: VirtualCluster) -> bool:
    """Whether a namespace says that it is the root namespace of this VirtualCluster, in this life of it."""
    found = namespace.annotations
    return found.get(keys.VC_ROOT_NAMESPACE) == "true" and found.get(keys.VC_UID) == vc.uid
