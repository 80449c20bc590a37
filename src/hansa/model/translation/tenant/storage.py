"""A tenant's PersistentVolumeClaims in the super cluster, and the PersistentVolumes that are synced up for them."""

from collections.abc import Iterator
from typing import Any, Final

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, stamp, tenant_names
from hansa.model.lookups import Reads
from hansa.model.pair import Link
from hansa.model.references import Missing, Reference
from hansa.model.translation.common import storage
from hansa.model.translation.tenant import tenant_settings

_SOURCE: Final = "dataSourceRef"


def claim(obj: Object, link: Link) -> Object:
    """A copy; the namespace of a dataSourceRef becomes its super namespace."""
    plain, source = storage.claim(obj, link), obj.spec.get(_SOURCE) or {}
    if not source.get("namespace"):
        return plain
    lower_source = source | {
        "namespace": tenant_names.super_namespace(tenant_settings.of(link).key, source["namespace"])
    }
    return plain.with_fields(spec=plain.spec | {_SOURCE: lower_source})


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


VOLUME_READS: Final = Reads(frozenset({resources.PERSISTENT_VOLUME_CLAIMS}), _claim_reference)


def _claim(bound: dict[str, Any], link: Link) -> dict[str, Any]:
    claim = NamespacedName(bound.get("namespace", ""), bound.get("name", ""))
    copy = link.lookups.upper(resources.PERSISTENT_VOLUME_CLAIMS, claim)
    origin = None if copy is None else stamp.of(copy)
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return kind if origin is None else kind | {"namespace": origin.namespace, "name": origin.name, "uid": origin.uid}
