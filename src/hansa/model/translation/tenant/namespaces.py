"""A tenant's namespaces in the super cluster, and namespace selectors that match them there.

Policies of the super cluster (pod security, webhooks) read the labels of its namespaces, so a tenant's labels are
copied under a prefix of ours, and the level of Pod Security is the tenant's. Namespace selectors are rewritten to these
keys and limited to the tenant's namespaces.
"""

import hashlib
from typing import Any, Final

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, tenant_names
from hansa.model.pair import Key, Link
from hansa.model.translation.common import names
from hansa.model.translation.tenant import metadata, tenant_settings
from hansa.model.translation.tenant.tenant_settings import TenantSettings

Selector = dict[str, Any]
NAME_LABEL: Final = "kubernetes.io/metadata.name"  # which every namespace has
_DIGEST_LENGTH: Final = 8


def lower_name(key: Key, _uid: str, link: Link) -> NamespacedName:
    """The namespace and name of a copy: the super namespace of its namespace, and the same name."""
    tenant = tenant_settings.of(link)
    if key.resource == resources.NAMESPACES:
        return NamespacedName("", tenant_names.super_namespace(tenant.key, key.name))
    name = names.lower_name(key.resource, key.name, upper_id=link.upper_id)
    return NamespacedName(tenant_names.super_namespace(tenant.key, key.namespace) if key.namespace else "", name)


def namespace(obj: Object, link: Link) -> Object:
    """A tenant's namespace in the super cluster. Its annotations name the VirtualCluster that owns it."""
    tenant = tenant_settings.of(link)
    origin = {
        keys.TENANT_UID: obj.uid,
        keys.TENANT_NAMESPACE: obj.name,
        keys.VC_UID: tenant.uid,
        keys.META: tenant.meta,
    }
    return obj.with_metadata(
        labels={lower_label(key): value for key, value in obj.labels.items()} | _pod_security(tenant),
        annotations=metadata.lower_annotations(obj, tenant) | metadata.vc_annotations(tenant) | origin,
    ).with_fields(spec=None)


def _pod_security(tenant: TenantSettings) -> dict[str, str]:
    if not tenant.is_pod_security_labelled:
        return {}
    return {keys.POD_SECURITY_ENFORCED: tenant_settings.enforced_pod_security(tenant)}


def lower_label(key: str) -> str:
    """The key that a namespace's label has in the super cluster; long keys are shortened by a digest."""
    name = key.replace("/", "_")
    if len(name) > tenant_names.LONGEST:
        digest = hashlib.sha256(key.encode()).hexdigest()[:_DIGEST_LENGTH]
        name = f"{name[: tenant_names.LONGEST - _DIGEST_LENGTH - 1]}-{digest}"
    return f"{keys.NAMESPACE_LABEL}/{name}"


def selector(of_namespaces: Selector, link: Link) -> Selector:
    """A namespace selector that matches the same namespaces in the super cluster, and none of other tenants."""
    labels = {lower_label(key): value for key, value in (of_namespaces.get("matchLabels") or {}).items()}
    lower: Selector = {"matchLabels": labels | {keys.UPPER: link.upper_id}}
    if expressions := of_namespaces.get("matchExpressions"):
        lower["matchExpressions"] = [one | {"key": lower_label(one["key"])} for one in expressions]
    return lower
