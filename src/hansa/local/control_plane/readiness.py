"""Waits until the nodes and the DNS of a local cluster can be used.

Used at the end of `hansa local up`. The watch itself is `hansa.kube.readiness`.
"""

from collections.abc import Collection

from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.readiness import wait_for_all
from hansa.local.machines import dns, kwok_nodes

# A thousand kwok nodes become Ready in about ten seconds on two cores; real ones in three.
NODE_SECONDS, EACH_NODE_SECONDS = 120.0, 0.1


async def nodes_are_ready(client: Client, names: Collection[str]) -> None:
    """Wait until all nodes of these names are Ready."""
    deadline = NODE_SECONDS + EACH_NODE_SECONDS * len(names)
    await wait_for_all(client, resources.NODES, names=names, accept=is_ready, deadline=deadline)


async def nodes_have_leases(client: Client, names: Collection[str]) -> None:
    """Wait until the kubelets of these nodes hold leases: the conditions of a Node may be of a previous kubelet."""
    await wait_for_all(
        client, resources.LEASES, names=names, namespace=kwok_nodes.LEASE_NAMESPACE, deadline=NODE_SECONDS
    )


async def dns_is_available(client: Client) -> None:
    """Wait until cluster DNS answers."""
    await wait_for_all(
        client,
        resources.DEPLOYMENTS,
        names={dns.NAME},
        namespace=dns.NAMESPACE,
        accept=lambda deployment: bool(deployment.status.get("availableReplicas")),
        deadline=NODE_SECONDS,
    )


def is_ready(node: Object) -> bool:
    """Whether the node has the condition Ready."""
    conditions = node.status.get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
