"""A tenant's namespaces below, and how selectors meet them there.

Labels of a super namespace are read by the super cluster's own policies (pod security, webhooks), so a tenant's go
down under keys of ours; selectors of namespaces are rewritten to those keys, and to this tenant's namespaces.
"""

import hashlib
from typing import Any, Final

from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.model import keys, naming
from hansa.model.pair import Key, Link
from hansa.model.translation import names
from hansa.model.translation.tenant import metadata, settings

Selector = dict[str, Any]
_DIGITS: Final = 8


def lower_place(key: Key, link: Link) -> Place:
    """Where a tenant's object is below: in the namespace for its namespace, under the same name."""
    tenant = settings.of(link)
    if key.resource == resources.NAMESPACES:
        return Place("", naming.super_namespace(tenant.key, key.name))
    name = names.lower_name(key.resource, key.name, upper_id=link.upper_id)
    return Place(naming.super_namespace(tenant.key, key.namespace) if key.namespace else "", name)


def namespace(obj: Object, link: Link) -> Object:
    """A tenant's namespace below. Its name there says whose it is to people, its annotations to programs."""
    tenant = settings.of(link)
    words = {keys.TENANT_UID: obj.uid, keys.TENANT_NAMESPACE: obj.name, keys.VC_UID: tenant.uid, keys.META: tenant.meta}
    return obj.with_metadata(
        labels={lower_label(key): value for key, value in obj.labels.items()},
        annotations=metadata.lower_annotations(obj.annotations, tenant) | metadata.vc_annotations(tenant) | words,
    ).with_fields(spec=None)


def lower_label(key: str) -> str:
    """The key below of a label of a namespace."""
    name = key.replace("/", "_")
    if len(name) > naming.LONGEST:
        digest = hashlib.sha256(key.encode()).hexdigest()[:_DIGITS]
        name = f"{name[: naming.LONGEST - _DIGITS - 1]}-{digest}"
    return f"{keys.NAMESPACE_LABEL}/{name}"


def selector(of_namespaces: Selector, link: Link) -> Selector:
    """A selector of namespaces that meets the same ones below, and no other tenant's."""
    labels = {lower_label(key): value for key, value in (of_namespaces.get("matchLabels") or {}).items()}
    lower: Selector = {"matchLabels": labels | {keys.UPPER: link.upper_id}}
    if expressions := of_namespaces.get("matchExpressions"):
        lower["matchExpressions"] = [one | {"key": lower_label(one["key"])} for one in expressions]
    return lower
