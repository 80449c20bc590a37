"""A tenant's PersistentVolumeClaims in the super cluster, and the PersistentVolumes that are synced up for them."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, stamp, tenant_names
from hansa.model.lookups import Reads
from hansa.model.pair import Key, Link
from hansa.model.placement import Intents, PlacementContext
from hansa.model.references import Missing, Reference
from hansa.model.translation.common import storage
from hansa.model.translation.tenant import claims, metadata, tenant_settings

_SOURCE: Final = "dataSourceRef"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"  # preceded the field, and still wins over it
_CLAIM_FIELDS: Final[tuple[str, ...]] = (
    *("accessModes", "dataSource", _SOURCE, "resources", "selector", "storageClassName"),
    *("volumeAttributesClassName", "volumeMode", "volumeName"),
)


def claim(obj: Object, link: Link) -> Object:
    """A copy; the namespace of a dataSourceRef becomes its super namespace, and the selector is that of the tenant."""
    plain, given = storage.claim(obj, link), obj.spec
    spec = {name: given[name] for name in _CLAIM_FIELDS if name in given}
    if selector := claims.selector(spec, link):
        spec["selector"] = selector
    source = spec.get(_SOURCE) or {}
    if source.get("namespace"):
        namespace = tenant_names.super_namespace(tenant_settings.of(link).key, source["namespace"])
        spec[_SOURCE] = source | {"namespace": namespace}
    annotations = {key: value for key, value in plain.annotations.items() if key != _CLASS_ANNOTATION}
    return plain.with_metadata(annotations=annotations).with_fields(spec=spec)


def source_of(claim: Object) -> Iterator[Reference]:
    """The claim that a claim is cloned from, until it is bound. It must be the tenant's own."""
    source = claim.spec.get(_SOURCE) or claim.spec.get("dataSource") or {}
    if source.get("kind") == resources.PERSISTENT_VOLUME_CLAIMS.kind and not claim.spec.get("volumeName"):
        namespace = source.get("namespace") or claim.namespace
        yield Reference(resources.PERSISTENT_VOLUME_CLAIMS, namespace, source["name"], missing=Missing.REQUIRED)


def volume_of(claim: Object) -> Iterator[Reference]:
    """The volume that a claim is bound to."""
    if name := claim.spec.get("volumeName"):
        yield Reference(resources.PERSISTENT_VOLUMES, "", name)


def where_bound(claim: Object, key: Key, context: PlacementContext) -> Intents:
    """Where the volume of a copy is needed: in its tenant, once it is bound.

    Before, a claim can name any volume, such as another tenant's.
    """
    return metadata.in_owning_tenant(claim, key, context) if claim.decode("status", _Status).phase == "Bound" else {}


def unbound(volume: Object, link: Link) -> str:
    """Why a volume is not shown in a tenant; empty if it is bound to the copy of a claim of that tenant."""
    bound = volume.spec.get("claimRef") or {}
    name = NamespacedName(bound.get("namespace", ""), bound.get("name", ""))
    copy = link.lookups.upper(resources.PERSISTENT_VOLUME_CLAIMS, name)
    is_bound = copy is not None and copy.uid == bound.get("uid") and stamp.of(copy) is not None
    if copy is not None and is_bound and copy.annotations.get(keys.TENANT_CLUSTER) == tenant_settings.of(link).key:
        return ""
    return f"spec.claimRef of the volume names claim {name}, which is not one of {link.lower}: it is not shown there"


def volume(obj: Object, link: Link) -> Object:
    """A volume of the super cluster in the tenant: bound to the tenant's claim, and never reclaimed by the tenant.

    The link leads from the super cluster to the tenant. Secret references of CSI drivers are left out.
    """
    spec = obj.spec | {"persistentVolumeReclaimPolicy": "Retain"}
    spec["claimRef"] = _claim(spec.get("claimRef") or {}, link)
    if driver := spec.get("csi"):
        spec["csi"] = {name: value for name, value in driver.items() if not name.endswith("SecretRef")}
    plain = storage.without_binding_annotations(obj)
    return plain.with_metadata(annotations={**plain.annotations, keys.TENANT_UID: obj.uid}).with_fields(spec=spec)


def _claim_reference(volume: Object) -> Iterator[Reference]:
    bound = volume.spec.get("claimRef") or {}
    yield Reference(resources.PERSISTENT_VOLUME_CLAIMS, bound.get("namespace", ""), bound.get("name", ""))


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


VOLUME_READS: Final = Reads(frozenset({resources.PERSISTENT_VOLUME_CLAIMS}), _claim_reference)


def _claim(bound: dict[str, Any], link: Link) -> dict[str, Any]:
    claim = NamespacedName(bound.get("namespace", ""), bound.get("name", ""))
    copy = link.lookups.upper(resources.PERSISTENT_VOLUME_CLAIMS, claim)
    origin = None if copy is None else stamp.of(copy)
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return kind if origin is None else kind | {"namespace": origin.namespace, "name": origin.name, "uid": origin.uid}
