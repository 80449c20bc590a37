"""PersistentVolumeClaims are synced down and bound there; their PersistentVolumes are synced up for the upper claims.

The original of a volume is in the lower cluster, so its link leads from the lower cluster to the upper one.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from hansa.kube import resources
from hansa.kube.language import quantity
from hansa.kube.objects import NamespacedName, Object
from hansa.model import diff, keys, stamp
from hansa.model.lookups import Reads
from hansa.model.mode import PatchPart
from hansa.model.pair import Link
from hansa.model.references import Reference
from hansa.model.translation.common import link_settings

Spec = dict[str, Any]
_HOSTNAME: Final = "kubernetes.io/hostname"
_CLASS: Final = "volumeAttributesClassName"
_BINDING_ANNOTATIONS: Final = (
    *("pv.kubernetes.io/", keys.SELECTED_NODE, "volume.kubernetes.io/provisioner", "volume.kubernetes.io/storage-"),
    "volume.beta.kubernetes.io/storage-provisioner",
)
# The upper scheduler compares them with the labels of the virtual node, which represents nodes of several zones.
_TOPOLOGY_LABELS: Final = frozenset(
    f"{domain}/{name}"
    for domain in ("topology.kubernetes.io", "failure-domain.beta.kubernetes.io")
    for name in ("zone", "region")
)
_CLAIM_STATUS: Final[tuple[str, ...]] = (
    *("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"),
    *("currentVolumeAttributesClassName", "modifyVolumeStatus"),
)


def claim(obj: Object, _link: Link) -> Object:
    """A copy without the annotations of volume binding."""
    # volumeName is kept. A volume has the same name on both sides, and a claim with a volume must not get another one
    # if its copy is created again.
    return without_binding_annotations(obj)


def claim_patches(lower: Object, wanted: Object) -> Iterable[PatchPart]:
    """Patches for labels, annotations, the size and the volumeAttributesClassName."""
    have, want = lower.spec, wanted.spec
    spec = _size(have, want, lower.status)
    if want.get(_CLASS) and want[_CLASS] != have.get(_CLASS):
        spec[_CLASS] = want[_CLASS]
    if patch := diff.metadata_patch(lower, wanted) | ({"spec": spec} if spec else {}):
        yield PatchPart(patch)


def claim_up_patches_on_node(upper: Object, lower: Object, link: Link) -> Iterable[PatchPart]:
    """As `claim_up_patches`, and the virtual node as the claim's selected node."""
    node = link_settings.of(link).node
    # Before the claim is bound, its node would make a provisioner of the upper cluster create a second volume.
    if node and _is_bound(upper, lower) and upper.annotations.get(keys.SELECTED_NODE) != node:
        yield PatchPart({"metadata": {"annotations": {keys.SELECTED_NODE: node}}})
    yield from claim_up_patches(upper, lower, link)


def claim_up_patches(upper: Object, lower: Object, _link: Link) -> Iterable[PatchPart]:
    """The size of a claim and its resizing, once it is bound in both clusters."""
    if not _is_bound(upper, lower):
        return
    have, want = upper.status, lower.status
    status = diff.merge_patch(_only(_CLAIM_STATUS, have), _only(_CLAIM_STATUS, want))
    if status and have.get("phase") == "Bound":
        yield PatchPart({"status": status}, "status")


def _is_bound(upper: Object, lower: Object) -> bool:
    return bool(upper.spec.get("volumeName")) and lower.status.get("phase") == "Bound"


def volume(obj: Object, link: Link) -> Object:
    """The copy of a volume in the upper cluster: for the upper claim, on the virtual node, and never reclaimed."""
    origin = _claim_origin(obj, link)
    # By the stamp of the lower claim. Its uid is known only to clusters that the upper claim was sent to, so a lower
    # cluster cannot bind other claims.
    claim = {} if origin is None else {"namespace": origin.namespace, "name": origin.name, "uid": origin.uid}
    claim_ref = {"apiVersion": "v1", "kind": resources.PERSISTENT_VOLUME_CLAIMS.kind, **claim}
    here = {"key": _HOSTNAME, "operator": "In", "values": [link_settings.of(link).node]}
    spec = obj.spec | {
        "claimRef": claim_ref,
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    labels = {name: value for name, value in obj.labels.items() if name not in _TOPOLOGY_LABELS}
    return without_binding_annotations(obj).with_metadata(labels=labels).with_fields(spec=spec)


def unbound(obj: Object, link: Link) -> str:
    """Why a volume is not synced up: it is not bound to the copy of a claim; empty if it is."""
    if _claim_origin(obj, link) is not None:
        return ""
    bound = _claim_ref(obj)
    return (
        f"spec.claimRef of the volume names claim {bound.namespace}/{bound.name}, which is not the copy of a claim with"
        f" spec.volumeName {obj.name}: it is not synced"
    )


def _claim_origin(volume: Object, link: Link) -> stamp.Origin | None:
    """The upper claim whose copy a volume is bound to, by the copy's stamp."""
    copy = link.lookups.upper(resources.PERSISTENT_VOLUME_CLAIMS, _claim_ref(volume))
    return None if copy is None or copy.spec.get("volumeName") != volume.name else stamp.of(copy)


def _claim_ref(volume: Object) -> NamespacedName:
    bound = volume.spec.get("claimRef") or {}
    return NamespacedName(bound.get("namespace", ""), bound.get("name", ""))


def _claim_of(volume: Object) -> Iterator[Reference]:
    yield Reference(resources.PERSISTENT_VOLUME_CLAIMS, *_claim_ref(volume))


VOLUME_READS: Final = Reads(frozenset({resources.PERSISTENT_VOLUME_CLAIMS}), _claim_of)


def volume_patches(upper: Object, wanted: Object) -> Iterable[PatchPart]:
    """Patches for labels, annotations and the size."""
    capacity = diff.merge_patch(upper.spec.get("capacity") or {}, wanted.spec.get("capacity") or {})
    if patch := diff.metadata_patch(upper, wanted) | ({"spec": {"capacity": capacity}} if capacity else {}):
        yield PatchPart(patch)


def without_binding_annotations(obj: Object) -> Object:
    """The object without the annotations of volume binding and provisioning."""
    annotations = {k: v for k, v in obj.annotations.items() if not k.startswith(_BINDING_ANNOTATIONS)}
    return obj.with_metadata(annotations=annotations)


def _only(names: Iterable[str], fields: Spec) -> Spec:
    return {name: fields[name] for name in names if name in fields}


def _size(have: Spec, want: Spec, status: Spec) -> Spec:
    """A request may grow, and may shrink again until the volume has been resized."""
    requested, current, actual = _storage(_requests(want)), _storage(_requests(have)), _storage(status.get("capacity"))
    if requested == current or (requested < current and requested <= actual):
        return {}
    return {"resources": {"requests": {"storage": _requests(want)["storage"]}}}


def _requests(spec: Spec) -> Spec:
    return (spec.get("resources") or {}).get("requests") or {}


def _storage(amounts: Spec | None) -> quantity.Quantity:
    return quantity.parse((amounts or {}).get("storage", 0))
