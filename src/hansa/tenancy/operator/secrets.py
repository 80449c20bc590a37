"""Reads and writes the Secrets of a control plane in its root namespace: read at each reconcile, written on change."""

from collections.abc import Iterable, Mapping

from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import Object


async def read(client: Client, root: str) -> dict[str, Object]:
    """List the Secrets of a root namespace. Not from a cache: a stale one would lead to a second CA."""
    found: dict[str, Object] = {}
    async for page in client.pages(resources.SECRETS, namespace=root):
        found |= {one.name: one for one in page.items}
    return found


async def keep(client: Client, wanted: Iterable[Object], found: Mapping[str, Object]) -> list[str]:
    """Create or update the Secrets that differ, and return their names. A concurrent change is a conflict error."""
    written = []
    for secret in wanted:
        old = found.get(secret.name)
        if old is not None and old.get("type") != secret.get("type"):
            await client.delete(resources.SECRETS, old.name, namespace=old.namespace, uid=old.uid)
            old = None
        if old is None:
            await client.create(resources.SECRETS, secret)
        elif old.raw("data") == secret.raw("data") or old.get("data") == secret.get("data"):
            continue
        else:
            await client.update(resources.SECRETS, secret.with_metadata(resource_version=old.version))
        written.append(secret.name)
    return written
