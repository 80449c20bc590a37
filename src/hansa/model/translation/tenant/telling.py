"""What people read above: words from below without the tenant's key in them."""

import msgspec

from hansa.kube.objects import Object
from hansa.model import naming
from hansa.model.pair import Link
from hansa.model.translation.tenant import settings


def retold(message: str, link: Link) -> str:
    """A sentence of the super cluster as the tenant may read it: namespaces have the names that they have above."""
    key = settings.of(link).key
    return message.replace(f"{key}-", "") if key else message


def status_of(lower: Object, namespace: str, link: Link) -> Object:
    """The lower object with a status that speaks of the tenant's namespace; most name none at all."""
    below, raw = naming.super_namespace(settings.of(link).key, namespace).encode(), lower.raw("status")
    if below not in raw:
        return lower
    return lower.with_fields(status=msgspec.json.decode(raw.replace(below, namespace.encode())))
