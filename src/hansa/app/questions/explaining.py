"""`hansa explain`: finds out how a pod is spread over clusters, reads these clusters once, and explains it."""

from hansa.app.questions import federation, reading, tenants, virtual_nodes
from hansa.app.questions.reading import Reader, Where
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.runtime.errors import HansaError
from hansa.scheduling.explanation import Explanation
from hansa.scheduling.forecasting.namespace_answers import NamespaceExplanation


async def pod(where: Where, wanted: Object | NamespacedName) -> Explanation:
    """Explain a pod that exists, by its name, or one that would be created."""
    async with reading.opened("explain") as reader:
        client = await reader.connect(where.cluster)
        found = await reading.found(client, resources.PODS, wanted) if isinstance(wanted, NamespacedName) else wanted
        return await _explain(reader, client, where, found)


async def namespace(where: Where, name: str) -> NamespaceExplanation:
    """Explain the slices of a namespace of a tenant."""
    async with reading.opened("explain") as reader:
        return await tenants.explain_namespace(reader, await reader.connect(where.cluster), where, name)


async def _explain(reader: Reader, client: Client, where: Where, found: Object) -> Explanation:
    if keys.SOURCE_POD in found.annotations or await _would_be_proxy(client, found):
        return await federation.explain(reader, client, found)
    if where.meta is not None:
        return await tenants.explain(reader, client, where, found)
    if where.lowers:
        return await virtual_nodes.explain(reader, client, where, found)
    raise HansaError(await _missing_flags(client, found))


async def _would_be_proxy(client: Client, found: Object) -> bool:
    """Whether a pod is elected and would be mutated by the agent's webhook."""
    if keys.ELECT not in found.annotations:
        return False
    namespace = await reading.found(client, resources.NAMESPACES, NamespacedName("", found.namespace))
    if namespace.labels.get(keys.ENABLED) != "enabled":
        raise HansaError(
            f"pod {found.key} is elected, but namespace {found.namespace} lacks the label {keys.ENABLED}=enabled"
        )
    if found.uid:
        raise HansaError(f"pod {found.key} is elected, but is no proxy pod: it was created before the webhook served")
    return True


async def _missing_flags(client: Client, found: Object) -> str:
    """Which flags the pod needs, by what its cluster has."""
    nodes = [one async for page in client.pages(resources.NODES) for one in page.items]
    is_pooled = any(key.startswith(keys.POOL) for key in found.annotations)
    if is_pooled or any(keys.TENANT_NODE in node.labels for node in nodes):
        return "this cluster is the control plane of a tenant: give --meta-cluster-kubeconfig or --meta-context"
    if any(node.labels.get(keys.VIRTUAL_NODE) == "true" for node in nodes):
        return "this cluster has virtual nodes: give --config with their clusters"
    return (
        f"pod {found.key} concerns one cluster only: no virtual nodes, no proxy pod. For a tenant's pod, give"
        " --meta-cluster-kubeconfig or --meta-context"
    )
