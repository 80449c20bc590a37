"""Claims of tenants below, and the volumes that they got on their way up."""

from collections.abc import Iterator
from typing import Any, Final

from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.model import keys, naming, stamp
from hansa.model.pair import Link
from hansa.model.references import Missing, Reference
from hansa.model.translation import storage
from hansa.model.translation.tenant import settings

_SOURCE: Final = "dataSourceRef"


def claim(obj: Object, link: Link) -> Object:
    """As above; a source in another namespace is in the one that stands for it below."""
    plain, source = storage.claim(obj, link), obj.spec.get(_SOURCE) or {}
    if not source.get("namespace"):
        return plain
    there = source | {"namespace": naming.super_namespace(settings.of(link).key, source["namespace"])}
    return plain.with_fields(spec=plain.spec | {_SOURCE: there})


def source_of(claim: Object) -> Iterator[Reference]:
    """The claim whose data a claim begins with, until it has a volume: the tenant's own."""
    source = claim.spec.get(_SOURCE) or claim.spec.get("dataSource") or {}
    if source.get("kind") == resources.PERSISTENT_VOLUME_CLAIMS.kind and not claim.spec.get("volumeName"):
        namespace = source.get("namespace") or claim.namespace
        yield Reference(resources.PERSISTENT_VOLUME_CLAIMS, namespace, source["name"], missing=Missing.AWAITED)


def volume_of(claim: Object) -> Iterator[Reference]:
    """The volume that a claim is bound to."""
    if name := claim.spec.get("volumeName"):
        yield Reference(resources.PERSISTENT_VOLUMES, "", name)


def volume(obj: Object, link: Link) -> Object:
    """A super volume as its tenant sees it: for the tenant's claim, and never reclaimed there.

    The link leads from the super cluster to the tenant. The names of Secrets that drivers use are nobody's business.
    """
    spec = obj.spec | {"persistentVolumeReclaimPolicy": "Retain"}
    spec["claimRef"] = _claim(spec.get("claimRef") or {}, link)
    if driver := spec.get("csi"):
        spec["csi"] = {name: value for name, value in driver.items() if not name.endswith("SecretRef")}
    plain = storage.without_notes(obj)
    return plain.with_metadata(annotations={**plain.annotations, keys.TENANT_UID: obj.uid}).with_fields(spec=spec)


def _claim(bound: dict[str, Any], link: Link) -> dict[str, Any]:
    place = Place(bound.get("namespace", ""), bound.get("name", ""))
    copy = link.around.upper(resources.PERSISTENT_VOLUME_CLAIMS, place)
    origin = None if copy is None else stamp.of(copy)
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return kind if origin is None else kind | {"namespace": origin.namespace, "name": origin.name, "uid": origin.uid}
