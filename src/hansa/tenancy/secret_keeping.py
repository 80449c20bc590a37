"""Keeps the Secrets of a control plane in its root namespace: read at each look, written where they differ."""

from collections.abc import Iterable, Mapping

from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import Object


async def read(client: Client, root: str) -> dict[str, Object]:
    """The Secrets of a root namespace, as they are now: what a cache says late would become a second authority."""
    found: dict[str, Object] = {}
    async for page in client.pages(resources.SECRETS, namespace=root):
        found |= {one.name: one for one in page.items}
    return found


async def keep(client: Client, wanted: Iterable[Object], found: Mapping[str, Object]) -> list[str]:
    """Make the Secrets so; the names of those that were written. Somebody who was faster is a conflict."""
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
