"""Uninstalls the federation from a cluster: no finalizer, virtual node, delegate or copy of it is left behind.

Its controllers run meanwhile: they delete delegates and copies with the Targets, and rights with the Sources.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Final

from hansa.federation import installing
from hansa.federation.api import (
    CLUSTER_SOURCES,
    CLUSTER_SUMMARIES,
    CLUSTER_TARGETS,
    PROVIDER,
    PROXY_PODS,
    SOURCES,
    TARGETS,
)
from hansa.federation.delegate_endpoints import SLICES
from hansa.federation.owned_objects import OwnedObjects
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.model.translation.common import services
from hansa.model.translation.federation import reroute
from hansa.model.translation.federation.exports import SERVICE_EXPORTS, SERVICE_IMPORTS
from hansa.nodes import manifest
from hansa.runtime import clock
from hansa.runtime.errors import HansaError

log = logging.getLogger(__name__)
MANAGER: Final = "hansa-agent"
NODES: Final = f"{keys.PROVIDER_TAINT}={PROVIDER}"
DEADLINE: Final = 300.0  # seconds for Targets to be emptied; an unreachable one is given up before
POLL_SECONDS: Final = 0.5
ADMITTED: Final = (TARGETS, CLUSTER_TARGETS, SOURCES, CLUSTER_SOURCES)


async def uninstall(client: Client, clock: clock.Clock) -> None:
    """Delete all that was made for the federation. Controllers of users create their pods anew, as plain pods."""
    owned = OwnedObjects(client, manager=MANAGER, is_ours=is_ours)
    for resource in ADMITTED:
        async for one in _all(client, resource):
            await owned.delete(resource, one)
    await _wait_gone(client, clock)
    async for pod in _all(client, resources.PODS, fields=PROXY_PODS):
        await _release(owned, pod)
    await _restore_services(client, owned)
    async for node in _all(client, resources.NODES, labels=f"{manifest.SELECTOR},{NODES}"):
        await owned.delete(resources.NODES, node)
    async for summary in _all(client, CLUSTER_SUMMARIES):
        await owned.delete(CLUSTER_SUMMARIES, summary)
    for resource, obj in (*installing.manifests(), *installing.custom_resources()):
        with contextlib.suppress(errors.NotFound):
            await client.delete(resource, obj.name)
    await _remove_multicluster_definitions(client)


async def stop_agents(client: Client, deployment: NamespacedName, clock: clock.Clock) -> None:
    """Scale the Deployment of agents to zero, and wait for the end of its pods: they would create things again."""
    found = await client.get(resources.DEPLOYMENTS, deployment.name, namespace=deployment.namespace)
    selector = ",".join(f"{name}={value}" for name, value in found.spec["selector"]["matchLabels"].items())
    patch = {"spec": {"replicas": 0}}
    await client.patch(resources.DEPLOYMENTS, deployment.name, patch, namespace=deployment.namespace)
    try:
        async with asyncio.timeout(DEADLINE):
            while (await client.list(resources.PODS, namespace=deployment.namespace, labels=selector)).items:
                await clock.sleep(POLL_SECONDS)
    except TimeoutError:
        raise HansaError(
            f"pods of Deployment {deployment} still run after {DEADLINE:.0f} s; see their events"
        ) from None


async def _remove_multicluster_definitions(client: Client) -> None:
    """Delete the definitions of the Multi-Cluster Services API that are ours, unless users have objects of them."""
    kinds = {f"{one.plural}.{one.group}": one for one in (SERVICE_EXPORTS, SERVICE_IMPORTS)}
    for definition in installing.multicluster_definitions():
        with contextlib.suppress(errors.NotFound):
            live = await client.get(resources.CUSTOM_RESOURCE_DEFINITIONS, definition.name)
            is_installed_here = live.labels.get(keys.MANAGED_BY) == installing.MANAGER
            if is_installed_here and not [one async for one in _all(client, kinds[live.name])]:
                await client.delete(resources.CUSTOM_RESOURCE_DEFINITIONS, live.name, uid=live.uid)


def is_ours(obj: Object) -> bool:
    """Whether an object is one of the federation: of its own kinds, or with its mark."""
    is_kind = obj.api_version.startswith(f"{keys.FEDERATION}/")
    is_marked = services.is_ours(obj) or obj.labels.get(keys.PROVIDER_TAINT) == PROVIDER
    is_proxy = keys.SOURCE_POD in obj.annotations  # its finalizer may be removed already
    return is_kind or is_marked or is_proxy


async def _wait_gone(client: Client, clock: clock.Clock) -> None:
    try:
        async with asyncio.timeout(DEADLINE):
            while left := [f"{one.kind} {one.key}" for resource in ADMITTED async for one in _all(client, resource)]:
                await clock.sleep(POLL_SECONDS)
    except TimeoutError:
        raise HansaError(
            f"not deleted after {DEADLINE:.0f} s: {', '.join(left)}; see their conditions, and run --uninstall again"
        ) from None


async def _restore_services(client: Client, owned: OwnedObjects) -> None:
    """Let Services select the pods of their users again, and delete their EndpointSlices for other clusters."""
    async for service in _all(client, resources.SERVICES):
        await owned.patch(resources.SERVICES, service, reroute.service_patch(service, ()))
    async for ingress in _all(client, resources.INGRESSES):
        await owned.patch(resources.INGRESSES, ingress, reroute.ingress_patch(ingress, lambda _: False))
    async for one in _all(client, resources.ENDPOINT_SLICES, labels=SLICES.labels):
        await owned.delete(resources.ENDPOINT_SLICES, one)
    ours = f"{services.MANAGED_BY}={services.MANAGER},!{keys.UPPER}"  # copies are those of another source
    async for one in _all(client, resources.ENDPOINT_SLICES, labels=f"{keys.EXPORTED_SERVICE},{ours}"):
        await owned.delete(resources.ENDPOINT_SLICES, one)
    async for imported in _all(client, SERVICE_IMPORTS, labels=ours):
        await owned.delete(SERVICE_IMPORTS, imported)


async def _release(owned: OwnedObjects, pod: Object) -> None:
    """Remove our finalizer from a proxy pod. One with a controller is deleted: the next one is a plain pod."""
    others = [one for one in pod.metadata.finalizers if not one.startswith(f"{keys.FEDERATION}/")]
    if pod.metadata.owner_references and is_ours(pod):
        await owned.delete(resources.PODS, pod)
    patch = {"metadata": {"finalizers": others, "labels": {keys.HAS_FINALIZER: None}}}
    with contextlib.suppress(errors.Conflict):
        await owned.patch(resources.PODS, pod, patch)


async def _all(client: Client, resource: Resource, *, labels: str = "", fields: str = "") -> AsyncIterator[Object]:
    try:
        async for page in client.pages(resource, labels=labels, fields=fields):
            for one in page.items:
                yield one
    except errors.NotFound:  # the definition is not installed
        return
