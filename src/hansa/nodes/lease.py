"""The Lease of a virtual node: its heartbeat. Readiness is in the node's conditions."""

import datetime
from typing import Any

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.runtime import timestamps

NAMESPACE = "kube-node-lease"
STEP = datetime.timedelta(milliseconds=1)  # between two renewals while the clock is behind


class NodeLease:
    """The Lease of one virtual node. Its time never goes back, whatever the clock of this machine does.

    The node controller takes only a later time as a heartbeat: after a step back of the clock, the node would be
    unreachable until its former time has come again, and its pods would be evicted.
    """

    def __init__(self, client: Client, *, seconds: int) -> None:
        self._client, self._seconds = client, seconds
        self._last: datetime.datetime | None = None

    async def renew(self, node: Object, now: datetime.datetime) -> None:
        """Renew it, or create it. The node owns it, so it is deleted with the node."""
        try:
            if self._last is None:  # another process may have renewed it before, by another clock
                self._last = renewed(await self._patch(node, _lease(node, self._seconds)))
            time = next_time(now, self._last)
            await self._patch(node, _lease(node, self._seconds, renewTime=_text(time)))
        except errors.NotFound:
            time = next_time(now, self._last)
            await self._create(node, _lease(node, self._seconds, renewTime=_text(time)))
        self._last = time

    async def _patch(self, node: Object, lease: dict[str, Any]) -> Object:
        return await self._client.patch(resources.LEASES, node.name, lease, namespace=NAMESPACE)

    async def _create(self, node: Object, lease: dict[str, Any]) -> None:
        head = {"apiVersion": resources.LEASES.api_version, "kind": resources.LEASES.kind}
        metadata = {"name": node.name, "namespace": NAMESPACE, **lease["metadata"]}
        await self._client.create(resources.LEASES, Object.of({**head, **lease, "metadata": metadata}))


def next_time(now: datetime.datetime, last: datetime.datetime | None) -> datetime.datetime:
    """The time of a renewal: now, but later than the last one."""
    return now if last is None else max(now, last + STEP)


def renewed(lease: Object) -> datetime.datetime | None:
    """The time of the last renewal; None if there is none."""
    try:
        return datetime.datetime.fromisoformat(lease.spec.get("renewTime") or "")
    except ValueError:
        return None


async def remove(client: Client, name: str) -> None:
    """Delete the Lease of a virtual node, if it exists and has our label."""
    try:
        lease = await client.get(resources.LEASES, name, namespace=NAMESPACE)
        if lease.labels.get(keys.VIRTUAL_NODE):
            await client.delete(resources.LEASES, name, namespace=NAMESPACE, uid=lease.uid)
    except errors.NotFound:
        return


def _text(time: datetime.datetime) -> str:
    return timestamps.micro_time(time)


def _lease(node: Object, seconds: int, **times: str) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
    return {
        "metadata": {"labels": {keys.VIRTUAL_NODE: "true"}, "ownerReferences": [owner]},
        "spec": {"holderIdentity": node.name, "leaseDurationSeconds": seconds, **times},
    }
