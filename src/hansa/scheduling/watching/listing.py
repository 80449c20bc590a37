"""The snapshot of a cluster, from lists of its nodes and pods; used by commands that end."""

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.scheduling import snapshot
from hansa.scheduling.snapshot import Snapshot


async def listed(name: str, client: Client) -> Snapshot:
    """The snapshot; unknown, with the reason, if the cluster cannot be read."""
    try:
        nodes = [node async for page in client.pages(resources.NODES) for node in page.items]
        pods = [pod async for page in client.pages(resources.PODS) for pod in page.items]
    except errors.ApiError as error:
        return snapshot.unread(name, error.with_cluster(name))
    return snapshot.of(name, nodes, pods)
