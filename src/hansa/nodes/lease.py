"""The Lease of a virtual node: its heartbeat. Readiness is in the node's conditions."""

import datetime
from typing import Any

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys

NAMESPACE = "kube-node-lease"


async def renew(client: Client, node: Object, now: datetime.datetime, *, seconds: int) -> None:
    """Renew the Lease of a node, or create it. The node owns it, so it is deleted with the node."""
    lease = _lease(node, now, seconds)
    try:
        await client.patch(resources.LEASES, node.name, lease, namespace=NAMESPACE)
    except errors.NotFound:
        head = {"apiVersion": resources.LEASES.api_version, "kind": resources.LEASES.kind}
        metadata = {"name": node.name, "namespace": NAMESPACE, **lease["metadata"]}
        await client.create(resources.LEASES, Object.of({**head, **lease, "metadata": metadata}))


async def remove(client: Client, name: str) -> None:
    """Delete the Lease of a virtual node, if it exists and has our label."""
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
