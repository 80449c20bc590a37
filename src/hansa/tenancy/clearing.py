"""Takes out of a tenant's control plane what super clusters gave it: nodes, leases, volumes, classes, definitions.

Only what bears their stamp goes. A definition that the tenant has objects of stays, since they would go with it.
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
class Found:
    """What a look found: how much was to be deleted, and the definitions that stay because they are used."""

    deleted: int
    used: tuple[str, ...]


async def clear(tenant: Client, kinds: Iterable[Resource], uppers: Collection[str]) -> Found:
    """Delete everything of these kinds that is a copy from these clusters, by their ids."""
    deleted, used = 0, list[str]()
    for kind in kinds:
        for obj in await _copies(tenant, kind, uppers):
            if kind == resources.CUSTOM_RESOURCE_DEFINITIONS and await _is_used(tenant, obj):
                used.append(obj.name)
                continue
            deleted += 1
            log.info("takes back what a tenant was given", extra={"what": f"{kind} {obj.key}"})
            with contextlib.suppress(errors.NotFound, errors.Conflict):  # gone, or another one by now
                await tenant.delete(kind, obj.name, namespace=obj.namespace, uid=obj.uid)
    return Found(deleted, tuple(used))


async def _copies(tenant: Client, kind: Resource, uppers: Collection[str]) -> list[Object]:
    """Those that are not being deleted already: a volume stays until its claim is gone."""
    found: list[Object] = []
    with contextlib.suppress(errors.NotFound):  # a server may lack a kind
        async for page in tenant.pages(kind, labels=stamp.selector()):
            found += page.items
    return [one for one in found if not one.is_leaving and (mark := stamp.of(one)) and mark.upper in uppers]


async def _is_used(tenant: Client, definition: Object) -> bool:
    spec: dict[str, Any] = definition.spec
    version = next((one["name"] for one in spec["versions"] if one.get("served")), "")
    kind = Resource(spec["group"], version, spec["names"]["plural"], kind=spec["names"]["kind"], namespaced=False)
    with contextlib.suppress(errors.NotFound):  # not served
        return bool((await tenant.list(kind, limit=1)).items)
    return False
