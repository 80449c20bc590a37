"""Waits, by watching, until a new cluster can be used: its nodes are Ready and pods can be created."""

import asyncio
import contextlib
from collections.abc import Callable, Collection

from hansa.kube import resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.kube.watching import Added, Deleted, Modified
from hansa.local import nodes
from hansa.local.machines import dns
from hansa.runtime.errors import HansaError

ACCOUNT_SECONDS = 60.0
# A thousand kwok nodes become Ready in about ten seconds on two cores; real ones in three.
NODE_SECONDS, EACH_NODE_SECONDS = 120.0, 0.1


class NotReady(HansaError):
    """It took too long."""


async def pods_can_be_created(client: Client) -> None:
    """Wait for the service account that every pod of the default namespace gets."""
    await _until_all(
        client, resources.SERVICE_ACCOUNTS, names={"default"}, namespace="default", deadline=ACCOUNT_SECONDS
    )


async def nodes_are_ready(client: Client, names: Collection[str]) -> None:
    """Wait until all nodes of these names are Ready."""
    deadline = NODE_SECONDS + EACH_NODE_SECONDS * len(names)
    await _until_all(client, resources.NODES, names=names, accept=is_ready, deadline=deadline)


async def nodes_are_alive(client: Client, names: Collection[str]) -> None:
    """Wait until the kubelets of these nodes have leases: a Node object may still tell of a former life."""
    await _until_all(client, resources.LEASES, names=names, namespace=nodes.LEASE_NAMESPACE, deadline=NODE_SECONDS)


async def names_resolve(client: Client) -> None:
    """Wait until cluster DNS answers."""
    await _until_all(
        client,
        resources.DEPLOYMENTS,
        names={dns.NAME},
        namespace=dns.NAMESPACE,
        accept=lambda deployment: bool(deployment.status.get("availableReplicas")),
        deadline=NODE_SECONDS,
    )


def is_ready(node: Object) -> bool:
    """Whether the node says that it is."""
    conditions = node.status.get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


async def _until_all(
    client: Client,
    resource: Resource,
    *,
    names: Collection[str],
    deadline: float,
    namespace: str = "",
    accept: Callable[[Object], bool] = lambda _: True,
) -> None:
    missing = set(names)
    if not missing:
        return
    changes = watching.watch(client, resource, namespace=namespace)
    try:
        async with asyncio.timeout(deadline), contextlib.aclosing(changes):
            async for change in changes:
                match change:
                    case Added(obj) | Modified(obj) if obj.name in names:
                        (missing.discard if accept(obj) else missing.add)(obj.name)
                    case Deleted(obj) if obj.name in names:
                        missing.add(obj.name)
                if not missing:
                    return
    except TimeoutError:
        some = ", ".join(sorted(missing)[:3]) + ("" if len(missing) <= 3 else f" and {len(missing) - 3} more")
        raise NotReady(f"{resource} {some} did not become ready within {deadline:.0f} s") from None
