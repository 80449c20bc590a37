"""Waits, by watching, until objects of an API server exist and are ready.

Used when a control plane has just started. Callers define when an object is ready.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection

from hansa.kube import errors, resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.kube.watching import Added, Deleted, Modified
from hansa.runtime.errors import HansaError

SERVICE_ACCOUNT_SECONDS = 60.0


NO_SERVICE_ACCOUNT = "waiting for ServiceAccount default/default: not found"


class NotReady(HansaError):
    """Objects did not become ready before the deadline."""


async def pods_can_be_created(client: Client) -> None:
    """Wait for the service account `default` of namespace `default`: without it every pod is refused."""
    await wait_for_all(
        client, resources.SERVICE_ACCOUNTS, names={"default"}, namespace="default", deadline=SERVICE_ACCOUNT_SECONDS
    )


async def can_create_pods(client: Client, namespace: str = "default") -> bool:
    """Whether the service account `default` of a namespace exists now."""
    with contextlib.suppress(errors.NotFound):
        await client.get(resources.SERVICE_ACCOUNTS, "default", namespace=namespace)
        return True
    return False


async def wait_for_all(
    client: Client,
    resource: Resource,
    *,
    names: Collection[str],
    deadline: float,
    namespace: str = "",
    accept: Callable[[Object], bool] = lambda _: True,
) -> None:
    """Wait until all objects of these names exist and are accepted; `deadline` is in seconds."""
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
