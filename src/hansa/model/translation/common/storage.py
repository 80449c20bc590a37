"""Claims go down with their pods and are bound there; the volume that a claim got comes up, so that it is bound above.

A volume travels the other way: its original is below and its copy above, so its link leads from the lower cluster up.
"""

from collections.abc import Iterable
from typing import Any, Final

from hansa.kube.language import quantity
from hansa.kube.objects import Object
from hansa.model import diff, keys
from hansa.model.mode import PatchPart
from hansa.model.pair import Link
from hansa.model.translation.common import link_settings

Spec = dict[str, Any]
_HOSTNAME: Final = "kubernetes.io/hostname"
_CLASS: Final = "volumeAttributesClassName"
_NOTES_OF_BINDING: Final = (
    *("pv.kubernetes.io/", keys.SELECTED_NODE, "volume.kubernetes.io/provisioner", "volume.kubernetes.io/storage-"),
    "volume.beta.kubernetes.io/storage-provisioner",
)
# The upper scheduler compares them with the labels of the virtual node, which stands for nodes of many zones.
_PLACES: Final = frozenset(
    f"{domain}/{place}"
    for domain in ("topology.kubernetes.io", "failure-domain.beta.kubernetes.io")
    for place in ("zone", "region")
)
_CLAIM_STATUS: Final[tuple[str, ...]] = (
    *("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"),
    *("currentVolumeAttributesClassName", "modifyVolumeStatus"),
)


def claim(obj: Object, _link: Link) -> Object:
    """As above, less what binding noted there."""
    # The name of its volume stays. Volumes have one name on both sides, and a claim that has a volume must not get
    # another one, even if it has to be made anew.
    return without_notes(obj)


def claim_patches(lower: Object, wanted: Object) -> Iterable[PatchPart]:
    """What follows: labels, annotations, the size, the class of volume attributes."""
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
    have, told = upper.status, lower.status
    status = diff.merge_patch(_only(_CLAIM_STATUS, have), _only(_CLAIM_STATUS, told))
    if status and have.get("phase") == "Bound":
        yield PatchPart({"status": status}, "status")


def _is_bound(upper: Object, lower: Object) -> bool:
    return bool(upper.spec.get("volumeName")) and lower.status.get("phase") == "Bound"


def volume(obj: Object, link: Link) -> Object:
    """A lower volume as it appears above: for its claim, on the virtual node, and never reclaimed there."""
    bound = obj.spec.get("claimRef") or {}
    # Without the claim's uid and version, which are those below: the upper cluster fills in its own.
    claim_ref = {name: bound[name] for name in ("apiVersion", "kind", "namespace", "name") if name in bound}
    here = {"key": _HOSTNAME, "operator": "In", "values": [link_settings.of(link).node]}
    spec = obj.spec | {
        "claimRef": claim_ref,
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    labels = {name: value for name, value in obj.labels.items() if name not in _PLACES}
    return without_notes(obj).with_metadata(labels=labels).with_fields(spec=spec)


def volume_patches(upper: Object, wanted: Object) -> Iterable[PatchPart]:
    """What follows above: labels, annotations, the size."""
    capacity = diff.merge_patch(upper.spec.get("capacity") or {}, wanted.spec.get("capacity") or {})
    if patch := diff.metadata_patch(upper, wanted) | ({"spec": {"capacity": capacity}} if capacity else {}):
        yield PatchPart(patch)


def without_notes(obj: Object) -> Object:
    """Without what binding noted on it."""
    annotations = {k: v for k, v in obj.annotations.items() if not k.startswith(_NOTES_OF_BINDING)}
    return obj.with_metadata(annotations=annotations)


def _only(names: Iterable[str], fields: Spec) -> Spec:
    return {name: fields[name] for name in names if name in fields}


def _size(have: Spec, want: Spec, status: Spec) -> Spec:
    """A claim may grow, and may shrink again while it has not grown yet."""
    asked, there, real = _storage(_requests(want)), _storage(_requests(have)), _storage(status.get("capacity"))
    if asked == there or (asked < there and asked <= real):
        return {}
    return {"resources": {"requests": {"storage": _requests(want)["storage"]}}}


def _requests(spec: Spec) -> Spec:
    return (spec.get("resources") or {}).get("requests") or {}


def _storage(amounts: Spec | None) -> quantity.Quantity:
    return quantity.parse((amounts or {}).get("storage", 0))
