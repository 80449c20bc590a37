"""What a tenant's PersistentVolumeClaim may ask for in the super cluster: offered classes, and volumes meant for it.

A volume that an administrator made is bound only by the claim that its `claimRef` names, or by claims of the tenant
whose key it has as label tenancy.x-k8s.io/cluster. A volume of a class is for all tenants that get the class.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, tenant_names
from hansa.model.lookups import Reads
from hansa.model.pair import Link
from hansa.model.references import Reference
from hansa.model.translation.tenant import classes, tenant_settings
from hansa.model.translation.tenant.tenant_settings import Allowance

Spec = Mapping[str, Any]
_CLAIM: Final = resources.PERSISTENT_VOLUME_CLAIMS.kind
_SOURCES: Final = ("dataSource", "dataSourceRef")
KINDS: Final = frozenset({resources.PERSISTENT_VOLUMES, resources.STORAGE_CLASSES})


def check(claim: Object, link: Link) -> str:
    """Why a claim is not synced; empty if it may be."""
    return refusal("spec", claim.spec, claim.key, link)


def refusal(path: str, spec: Spec, name: NamespacedName, link: Link) -> str:
    """Why the claim of this name may not have this spec, which is the field `path` of an object."""
    return next(filter(None, _refusals(path, spec, name, link)), "")


def named(spec: Spec) -> Iterator[Reference]:
    """The objects that `refusal` reads."""
    if volume := spec.get("volumeName"):
        yield Reference(resources.PERSISTENT_VOLUMES, "", volume)
    if storage_class := spec.get("storageClassName"):
        yield Reference(resources.STORAGE_CLASSES, "", storage_class)


READS: Final = Reads(KINDS, lambda claim: named(claim.spec))


def selector(spec: Spec, link: Link) -> dict[str, Any]:
    """The selector of a copy: without a class, it selects only volumes for this tenant."""
    own: dict[str, Any] = spec.get("selector") or {}
    if spec.get("storageClassName") != "":
        return own
    return own | {"matchLabels": (own.get("matchLabels") or {}) | {keys.TENANT_CLUSTER: tenant_settings.of(link).key}}


def _refusals(path: str, spec: Spec, name: NamespacedName, link: Link) -> Iterator[str]:
    tenant = tenant_settings.of(link)
    attributes = spec.get("volumeAttributesClassName")
    if attributes and Allowance.VOLUME_ATTRIBUTES_CLASSES not in tenant.allowed:
        field = f"{path}.volumeAttributesClassName: {attributes}"
        yield tenant_settings.refusal(field, Allowance.VOLUME_ATTRIBUTES_CLASSES, tenant)
    if volume := spec.get("volumeName"):
        yield "" if _is_for(volume, name, link) else _foreign_volume(f"{path}.volumeName: {volume}", name, link)
        return  # it is bound: the rest is settled
    for source in _SOURCES:
        of = spec.get(source) or {}
        if of and (of.get("kind"), of.get("apiGroup") or "") != (_CLAIM, ""):
            yield f"{path}.{source}.kind: {of.get('kind')} is not allowed for tenants; use a {_CLAIM}, or remove it"
    yield _class_refusal(f"{path}.storageClassName", spec.get("storageClassName"), link)


def _class_refusal(field: str, name: str | None, link: Link) -> str:
    if name is None:
        # The super cluster would choose its default class, whether it is offered or not.
        return (
            f"{field} is not set and the tenant has no default StorageClass; name one that 'kubectl get storageclasses'"
            ' lists, or "" for a volume that an administrator made for the claim'
        )
    return classes.refusal(field, resources.STORAGE_CLASSES, name, link) if name else ""


def _is_for(volume: str, name: NamespacedName, link: Link) -> bool:
    """Whether a volume of the super cluster is bound to, or reserved for, the copy of the claim of this name."""
    found = link.lookups.lower(resources.PERSISTENT_VOLUMES, NamespacedName("", volume))
    claim = {} if found is None else found.spec.get("claimRef") or {}
    return NamespacedName(claim.get("namespace", ""), claim.get("name", "")) == _copy_name(name, link)


def _foreign_volume(field: str, name: NamespacedName, link: Link) -> str:
    return (
        f"{field} is not a PersistentVolume for this claim; remove it, or have the administrator of the super cluster"
        f" set spec.claimRef of the volume to {_copy_name(name, link)}"
    )


def _copy_name(name: NamespacedName, link: Link) -> NamespacedName:
    return NamespacedName(tenant_names.super_namespace(tenant_settings.of(link).key, name.namespace), name.name)
