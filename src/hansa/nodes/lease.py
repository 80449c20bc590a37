"""The Lease of a node: while it is renewed, the node's process lives. Whether the node is ready is not told here."""

import datetime
from typing import Any

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys

NAMESPACE = "kube-node-lease"


async def renew(client: Client, node: Object, now: datetime.datetime, *, seconds: int) -> None:
    """Write the time into the lease of a node; make it if it is missing. It goes with its node."""
    lease = _lease(node, now, seconds)
    try:
        await client.patch(resources.LEASES, node.name, lease, namespace=NAMESPACE)
    except errors.NotFound:
        head = {"apiVersion": resources.LEASES.api_version, "kind": resources.LEASES.kind}
        metadata = {"name": node.name, "namespace": NAMESPACE, **lease["metadata"]}
        await client.create(resources.LEASES, Object.of({**head, **lease, "metadata": metadata}))


async def remove(client: Client, name: str) -> None:
    """Delete the lease of a virtual node, unless it is somebody else's or gone."""
    try:
        lease = await client.get(resources.LEASES, name, namespace=NAMESPACE)
        if lease.labels.get(keys.VIRTUAL_NODE):
            await client.delete(resources.LEASES, name, namespace=NAMESPACE, uid=lease.uid)
    except errors.NotFound:
        return


def _lease(node: Object, now: datetime.datetime, seconds: int) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
    return {
        "metadata": {"labels": {keys.VIRTUAL_NODE: "true"}, "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": node.name,
            "leaseDurationSeconds": seconds,
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }
