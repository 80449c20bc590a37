"""Cluster-scoped objects that the super cluster offers to its tenants: classes, and CustomResourceDefinitions.

An administrator offers one to all tenants with the label tenancy.x-k8s.io/super.public=true, and a class to some with
the annotation tenancy.x-k8s.io/offered-to. Offered ones are shown in the tenant, and only these may be named there.
"""

from typing import Final

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys, mode
from hansa.model.pair import Grade, Key, Link
from hansa.model.placement import Intents, PlacementContext, everywhere
from hansa.model.translation.tenant import tenant_settings
from hansa.model.translation.tenant.tenant_settings import TenantSettings

PUBLIC_SELECTOR: Final = f"{keys.SUPER_PUBLIC}=true"
CLASSES: Final = (
    *(resources.STORAGE_CLASSES, resources.PRIORITY_CLASSES),
    *(resources.RUNTIME_CLASSES, resources.INGRESS_CLASSES),
)
storage_class_patches: Final = mode.patches_of("allowVolumeExpansion", "mountOptions", "allowedTopologies")
priority_class_patches: Final = mode.patches_of("globalDefault", "description")
runtime_class_patches: Final = mode.patches_of("overhead")
ingress_class_patches: Final = mode.patches_of("spec")
definition_patches: Final = mode.patches_of("spec")


def is_public(obj: Object) -> bool:
    """Whether the super cluster offers this object to all tenants."""
    return obj.labels.get(keys.SUPER_PUBLIC) == "true"


def is_offered(obj: Object, tenant: TenantSettings) -> bool:
    """Whether the super cluster offers this object to a tenant."""
    if is_public(obj):
        return True
    names = obj.annotations.get(keys.OFFERED_TO, "").split(",")
    return f"{tenant.namespace}/{tenant.name}" in (name.strip() for name in names)


def refusal(field: str, resource: Resource, name: str, link: Link) -> str:
    """Why an object may not name a class in this field; empty if it may. Its rule reads the class (`Rule.reads`)."""
    offered, tenant = link.lookups.lower(resource, NamespacedName("", name)), tenant_settings.of(link)
    if offered is not None and is_offered(offered, tenant):
        return ""
    return (
        f"{field}: {resource.kind} {name} is not offered to tenant {tenant.name or tenant.key}; name one that"
        f" 'kubectl get {resource.plural}' lists, or offer it with annotation {keys.OFFERED_TO}={tenant.namespace}/"
        f"{tenant.name} on the {resource.kind} of the super cluster"
    )


def where_offered(upper: Object, _key: Key, context: PlacementContext) -> Intents:
    """Placement: a class is copied to the tenants that it is offered to."""
    offered = (name for name, link in context.links.items() if is_offered(upper, tenant_settings.of(link)))
    return dict.fromkeys(offered, Grade.CHOSEN)


def where_public(upper: Object, key: Key, context: PlacementContext) -> Intents:
    """Placement: a public object is copied to every tenant."""
    return everywhere(upper, key, context) if is_public(upper) else {}


def without_offer(obj: Object, _link: Link) -> Object:
    """A class without the names of the tenants that it is offered to."""
    if keys.OFFERED_TO not in obj.annotations:
        return obj
    return obj.with_metadata(annotations={k: v for k, v in obj.annotations.items() if k != keys.OFFERED_TO})


def runtime_class(obj: Object, _link: Link) -> Object:
    """A RuntimeClass without its node selector and tolerations: the super cluster adds them to pods itself."""
    return obj.with_fields(scheduling=None)


def ingress_class(obj: Object, _link: Link) -> Object:
    """An IngressClass without its parameters, which name an object of the super cluster."""
    return obj.with_fields(spec={name: value for name, value in obj.spec.items() if name != "parameters"})


def definition_without_conversion(obj: Object, _link: Link) -> Object:
    """A CRD without its conversion webhook, which runs in the super cluster and tenants cannot reach."""
    return obj.with_fields(spec=obj.spec | {"conversion": {"strategy": "None"}})
