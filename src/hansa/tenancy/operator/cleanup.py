"""Deletes what super clusters synced into a tenant's control plane: nodes, leases, volumes, classes, definitions.

It is used when the VirtualCluster of an existing cluster is deleted. Only stamped objects are deleted. A
CustomResourceDefinition of which the tenant has objects stays, since they would be deleted with it.
"""

import contextlib
import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import stamp

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The result of one pass: the number of deletions, and the names of definitions that stay because they are used."""

    deleted: int
    used: tuple[str, ...]


async def clear(tenant: Client, kinds: Iterable[Resource], uppers: Collection[str]) -> Cleanup:
    """Delete all objects of these kinds that were synced from these super clusters, given by their ids."""
    deleted, used = 0, list[str]()
    for kind in kinds:
        for obj in await _copies(tenant, kind, uppers):
            if kind == resources.CUSTOM_RESOURCE_DEFINITIONS and await _is_used(tenant, obj):
                used.append(obj.name)
                continue
            deleted += 1
            log.info("deleting a synced object", extra={"kind": kind.kind, "object": str(obj.key)})
            with contextlib.suppress(errors.NotFound, errors.Conflict):  # already deleted, or recreated
                await tenant.delete(kind, obj.name, namespace=obj.namespace, uid=obj.uid)
    return Cleanup(deleted, tuple(used))


async def _copies(tenant: Client, kind: Resource, uppers: Collection[str]) -> list[Object]:
    """Stamped objects without a deletionTimestamp: a volume stays until its claim is deleted."""
    found: list[Object] = []
    with contextlib.suppress(errors.NotFound):  # a server may lack a kind
        async for page in tenant.pages(kind, labels=stamp.selector()):
            found += page.items
    return [one for one in found if not one.is_deleting and (mark := stamp.of(one)) and mark.upper in uppers]


async def _is_used(tenant: Client, definition: Object) -> bool:
    spec: dict[str, Any] = definition.spec
    version = next((one["name"] for one in spec["versions"] if one.get("served")), "")
    kind = Resource(spec["group"], version, spec["names"]["plural"], kind=spec["names"]["kind"], namespaced=False)
    with contextlib.suppress(errors.NotFound):  # not served
        return bool((await tenant.list(kind, limit=1)).items)
    return False
