"""Why a tenant's pod would not be synced: its restricted fields, by the annotations of its VirtualCluster."""

import asyncio

from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import tenant_names
from hansa.model.lookups import Found, Lookups
from hansa.model.pair import Link
from hansa.model.references import Reference
from hansa.model.translation.tenant.pod import restrictions
from hansa.model.translation.tenant.tenant_settings import TenantSettings
from hansa.tenancy.api import VirtualCluster
from hansa.tenancy.syncing import annotations


async def refusal(pod: Object, vc: VirtualCluster, tenant: Client, lowest: Client | None) -> str:
    """Why the pod is refused in the super cluster; empty if it is not. Flags of vc-syncer may allow more."""
    annotated = annotations.of(vc.object)
    default = TenantSettings(vc.root)
    settings = TenantSettings(
        vc.root,
        name=vc.name,
        namespace=vc.namespace,
        uid=vc.uid,
        lists=default.lists | annotated.lists,
        allowed=annotated.allowed,
        pod_security=annotated.pod_security or default.pod_security,
    )
    references = list(restrictions.objects_read(pod))
    found = await asyncio.gather(*(_found(one, vc, tenant, lowest) for one in references))
    objects = {_key(one): both for one, both in zip(references, found, strict=True)}
    return restrictions.check(pod, Link(vc.root, "", "", settings=settings, lookups=Lookups(objects)))


async def _found(wanted: Reference, vc: VirtualCluster, tenant: Client, lowest: Client | None) -> Found:
    below = tenant_names.super_namespace(vc.root, wanted.namespace) if wanted.namespace else ""
    upper = await _read(tenant, wanted.resource, wanted.namespace, wanted.name)
    lower = None if lowest is None else await _read(lowest, wanted.resource, below, wanted.name)
    return Found(upper, lower)


async def _read(client: Client, resource: Resource, namespace: str, name: str) -> Object | None:
    try:
        return await client.get(resource, name, namespace=namespace)
    except errors.ApiError:
        return None


def _key(one: Reference) -> tuple[Resource, NamespacedName]:
    return one.resource, NamespacedName(one.namespace, one.name)
