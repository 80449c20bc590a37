"""`hansa explain`: reads a pod, the virtual nodes and their clusters once, and explains where the pod fits."""

import asyncio
import contextlib
from dataclasses import dataclass

from hansa.app.program import agent
from hansa.engine.cluster import REQUEST_DEADLINE
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, requests
from hansa.modes import multi_scheduler_settings
from hansa.modes.multi_scheduler_settings import MultiSchedulerSettings
from hansa.runtime.errors import HansaError
from hansa.scheduling import explaining
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.explaining import Answer, Candidate
from hansa.scheduling.watching import listed_view


@dataclass(frozen=True, slots=True)
class Explained:
    """A pod of the upper cluster, and the answers of the lower ones."""

    pod: Object
    answers: list[Answer]


async def explain(settings: MultiSchedulerSettings, pod: Object | NamespacedName) -> Explained:
    """Explain a pod that exists, by its name, or one that would be created."""
    async with contextlib.AsyncExitStack() as stack:

        async def connected(source: CredentialSource) -> Client:
            access = await source.find()
            return await stack.enter_async_context(
                Client(access, user_agent=agent("explain"), deadline=REQUEST_DEADLINE)
            )

        upper = await connected(settings.upper)
        wanted = await _read(upper, pod) if isinstance(pod, NamespacedName) else pod
        nodes = [node async for page in upper.pages(resources.NODES) for node in page.items]
        virtual = [node for node in nodes if multi_scheduler_settings.lower_of(node) in settings.lowers]
        if not virtual:
            raise HansaError('no virtual node of a cluster in --config exists; see "hansa virtual-node --help"')

        async def view(name: str, source: CredentialSource) -> ClusterView:
            try:
                return await listed_view.listed(name, await connected(source))
            except HansaError as error:
                return ClusterView(name, closed=str(error))

        views = await asyncio.gather(*(view(name, source) for name, source in settings.lowers.items()))
        found = {one.cluster: one for one in views}
        return Explained(wanted, explaining.answers(_candidate(wanted, node, found) for node in virtual))


async def _read(upper: Client, name: NamespacedName) -> Object:
    try:
        return await upper.get(resources.PODS, name.name, namespace=name.namespace)
    except errors.NotFound:
        raise HansaError(f"pod {name} does not exist") from None


def _candidate(pod: Object, node: Object, views: dict[str, ClusterView]) -> Candidate:
    """The pod in the cluster of a virtual node, without its own copy there."""
    view = views[multi_scheduler_settings.lower_of(node)].without_pod(pod.key)
    request = multi_scheduler_settings.request_of(pod, node)
    if pod.spec.get("nodeName", "") != node.name:  # a pod that was bound there is past this check
        ready = any(
            one.get("type") == "Ready" and one.get("status") == "True" for one in node.status.get("conditions") or ()
        )
        view = view if ready or view.closed else view.with_cluster(view.labels, closed="its virtual node is not ready")
    return Candidate(node.name, request, view)


def placed(pod: Object) -> str:
    """Where a pod is, since when, or why not, as a sentence."""
    conditions = {one.get("type"): one for one in pod.status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled", {})
    node = pod.spec.get("nodeName", "")
    if not node:
        said = scheduled.get("message") or "it was not scheduled yet"
        return f"is pending: {said}"
    since = scheduled.get("lastTransitionTime") or "its creation"
    by = pod.annotations.get(keys.CLUSTER_SELECTOR, "")
    constraints = f", with constraints below {by}" if by else ""
    state = "has finished on" if requests.is_finished(pod) else "is on"
    return f"{state} node {node} since {since}{constraints}"
