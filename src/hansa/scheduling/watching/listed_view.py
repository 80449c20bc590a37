"""The view of a cluster at one moment, from lists of its nodes and pods; used by commands that end."""

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.scheduling.cluster_view import ClusterView


async def listed(name: str, client: Client) -> ClusterView:
    """The view; closed, with the reason, if the cluster cannot be read."""
    view = ClusterView(name)
    try:
        async for page in client.pages(resources.NODES):
            for node in page.items:
                view = view.with_node(node)
        async for page in client.pages(resources.PODS):
            for pod in page.items:
                view = view.with_pod(pod)
    except errors.ApiError as error:
        return ClusterView(name, closed=str(error))
    return view
