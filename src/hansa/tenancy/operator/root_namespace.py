"""The root namespace of a tenant: the namespace of the meta cluster that holds all objects of its control plane.

Its annotations name its VirtualCluster. A namespace without them, or of another one, is never changed or deleted.
"""

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.runtime.errors import HansaError
from hansa.tenancy.api import BadVirtualCluster, VirtualCluster


class TakenNamespace(BadVirtualCluster):
    """A namespace of that name exists and does not belong to this VirtualCluster."""


class LeavingNamespace(HansaError):
    """The namespace is being deleted; a new one can be created afterwards."""


def manifest(vc: VirtualCluster) -> Object:
    """The namespace to create."""
    annotations = {
        keys.VC_NAME: vc.name,
        keys.VC_NAMESPACE: vc.namespace,
        keys.VC_UID: vc.uid,
        keys.VC_ROOT_NAMESPACE: "true",
    }
    metadata = {"name": vc.root, "annotations": annotations}
    return Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


async def ensure(client: Client, vc: VirtualCluster) -> None:
    """Create it unless it exists."""
    try:
        found = await client.get(resources.NAMESPACES, vc.root)
    except errors.NotFound:
        try:
            found = await client.create(resources.NAMESPACES, manifest(vc))
        except errors.AlreadyExists:
            found = await client.get(resources.NAMESPACES, vc.root)
    if not is_root_of(found, vc):
        raise TakenNamespace(
            f"namespace {found.name} exists and its annotation {keys.VC_UID} is not {vc.uid}, the uid of VirtualCluster"
            f" {vc.key}; delete the namespace, or create the VirtualCluster under another name"
        )
    if found.is_deleting:
        raise LeavingNamespace(f"namespace {found.name} is being deleted; retrying until it is gone")


async def remove(client: Client, vc: VirtualCluster) -> None:
    """Delete it if it exists and belongs to this VirtualCluster."""
    try:
        found = await client.get(resources.NAMESPACES, vc.root)
        if is_root_of(found, vc) and not found.is_deleting:
            await client.delete(resources.NAMESPACES, found.name, uid=found.uid)
    except errors.NotFound:
        return


def is_root_of(namespace: Object, vc: VirtualCluster) -> bool:
    """Whether the annotations of a namespace name this VirtualCluster, by its uid, as its owner."""
    found = namespace.annotations
    return found.get(keys.VC_ROOT_NAMESPACE) == "true" and found.get(keys.VC_UID) == vc.uid
