"""Pod affinity and anti-affinity, limited to the pods of the same tenant."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model import tenant_names
from hansa.model.pair import Link
from hansa.model.translation.common.pod import affinity
from hansa.model.translation.common.pod.spec import Spec
from hansa.model.translation.tenant import namespaces, tenant_settings

_SELECTOR: Final = "namespaceSelector"


def scope_to_tenant(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Rewrite namespaces and namespaceSelectors of affinity terms to the tenant's super namespaces.

    Terms without either, and topology spread constraints, mean the pod's own namespace and need no change.
    """
    key = tenant_settings.of(link).key

    def term(one: Spec) -> Spec:
        changed: Spec = {}
        if one.get("namespaces"):
            changed["namespaces"] = [tenant_names.super_namespace(key, name) for name in one["namespaces"]]
        if one.get(_SELECTOR) is not None:
            changed[_SELECTOR] = namespaces.selector(one[_SELECTOR], link)
        return one | changed

    return affinity.with_terms(spec, term)
