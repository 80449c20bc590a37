"""Rewrites messages and statuses of the super cluster for tenants: super namespaces get their tenant names back."""

import msgspec

from hansa.kube.objects import Object
from hansa.model import tenant_names
from hansa.model.pair import Link
from hansa.model.translation.tenant import tenant_settings


def tenant_message(message: str, link: Link) -> str:
    """A message of the super cluster without the tenant's key, which prefixes its namespaces there."""
    key = tenant_settings.of(link).key
    return message.replace(f"{key}-", "") if key else message


def with_tenant_status(lower: Object, namespace: str, link: Link) -> Object:
    """The lower object with its super namespace replaced in the status. Few statuses name one: bytes are compared."""
    super_namespace = tenant_names.super_namespace(tenant_settings.of(link).key, namespace).encode()
    raw = lower.raw("status")
    if super_namespace not in raw:
        return lower
    return lower.with_fields(status=msgspec.json.decode(raw.replace(super_namespace, namespace.encode())))
