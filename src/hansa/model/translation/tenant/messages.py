"""Rewrites messages and statuses of the super cluster for tenants.

Super namespaces get their tenant names back; addresses of API servers and webhooks of the super cluster are removed.
"""

import re
from typing import Final

import msgspec

from hansa.kube.objects import Object
from hansa.model import tenant_names
from hansa.model.pair import Link
from hansa.model.translation.tenant import tenant_settings

# The servers in URLs of API requests, and in all URLs of a message about a webhook.
_API_SERVERS: Final = re.compile(r"https?://([^\s/\"'\\<>]+)(?=/(?:apis?|healthz|livez|readyz|version)\b)")
_SERVERS: Final = re.compile(r"https?://([^\s/\"'\\<>]+)")
_HIDDEN: Final = "super-cluster"


def tenant_message(message: str, link: Link) -> str:
    """A message without the tenant's key, which prefixes its super namespaces, and without addresses of servers."""
    key, message = tenant_settings.of(link).key, without_servers(message)
    return message.replace(f"{key}-", "") if key else message


def without_servers(message: str) -> str:
    """A message without the addresses of the super cluster's API servers and webhooks, wherever it repeats them."""
    if "://" not in message:
        return message
    for server in set((_SERVERS if "webhook" in message else _API_SERVERS).findall(message)):
        message = message.replace(server, _HIDDEN)
    return message


def with_tenant_status(lower: Object, namespace: str, key: str) -> Object:
    """The lower object with its super namespace replaced in the status. Few statuses name one: bytes are compared."""
    super_namespace = tenant_names.super_namespace(key, namespace).encode()
    raw = lower.raw("status")
    if super_namespace not in raw and b"://" not in raw:
        return lower
    shown = without_servers(raw.decode()).replace(super_namespace.decode(), namespace)
    return lower.with_fields(status=msgspec.json.decode(shown))
