"""Updates of a lower pod after its creation: the fields that the API server allows to change.

Image, deadline, tolerations, labels and annotations go in one patch, resources and ephemeral containers in one each.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from hansa.kube.objects import Object
from hansa.model import diff, keys
from hansa.model.mode import PatchPart
from hansa.model.pair import Link
from hansa.model.translation.common.pod.spec import Spec

_RESIZABLE: Final = ("cpu", "memory")


def annotate_images(pod: Object, _link: Link) -> Object:
    """Store the upper pod's images in an annotation: lower admission may replace them, for example by a mirror's.

    A comparison with the replaced images would give the same patch in every reconcile.
    """
    spec = pod.decode("spec", _Spec)
    images = {one.name: one.image for one in (*(spec.init_containers or ()), *(spec.containers or ()))}
    return pod.with_metadata(annotations={**pod.annotations, keys.IMAGES: msgspec.json.encode(images).decode()})


def on_create(wanted: Object) -> Object:
    """The pod without ephemeral containers, which can only be added to an existing pod."""
    if not wanted.decode("spec", _Spec).ephemeral_containers:
        return wanted
    return wanted.with_fields(spec={k: v for k, v in wanted.spec.items() if k != "ephemeralContainers"})


def down_patches(lower: Object, wanted: Object) -> Iterable[PatchPart]:
    """Patches for what changed in the upper pod."""
    have, want = lower.decode("spec", _Spec), wanted.decode("spec", _Spec)
    metadata = diff.metadata_patch(lower, wanted)
    is_same = lower.annotations.get(keys.IMAGES) == wanted.annotations.get(keys.IMAGES)
    images = {} if is_same else _images(lower, want)
    spec = _deadline(have, want) | _tolerations(have, want) | images
    if patch := metadata | ({"spec": spec} if spec else {}):
        yield PatchPart(patch)
    # The images are patched before; a resize with other images would be refused.
    if resized := _resized(lower.with_fields(spec=lower.spec | images) if images else lower, have, want):
        yield PatchPart({"spec": resized}, "resize")
    if added := _names(want.ephemeral_containers) - _names(have.ephemeral_containers):
        new = [one for one in wanted.spec["ephemeralContainers"] if one["name"] in added]
        current = lower.spec.get("ephemeralContainers") or []
        yield PatchPart({"spec": {"ephemeralContainers": [*current, *new]}}, "ephemeralcontainers")


class _Resources(msgspec.Struct, frozen=True, gc=False):
    requests: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None


_NO_RESOURCES: Final = _Resources()


class _Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    image: str = ""
    restart_policy: str = ""
    resources: _Resources | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a spec that may change."""

    containers: tuple[_Container, ...] | None = None
    init_containers: tuple[_Container, ...] | None = None
    ephemeral_containers: tuple[_Container, ...] | None = None
    active_deadline_seconds: int | None = None
    tolerations: tuple[dict[str, Any], ...] | None = None
    resources: _Resources | None = None


def _names(containers: Iterable[_Container] | None) -> set[str]:
    return {one.name for one in containers or ()}


def _deadline(have: _Spec, want: _Spec) -> Spec:
    """A deadline may be set or shortened."""
    new, old = want.active_deadline_seconds, have.active_deadline_seconds
    return {} if new is None or (old is not None and new >= old) else {"activeDeadlineSeconds": new}


def _tolerations(have: _Spec, want: _Spec) -> Spec:
    """Tolerations may be added, and their seconds may change; those that lower admission added are kept."""
    current = {_tolerated(one): one for one in have.tolerations or ()}
    merged = current | {_tolerated(one): one for one in want.tolerations or ()}
    return {} if merged == current else {"tolerations": list(merged.values())}


def _tolerated(one: Spec) -> tuple[str | None, ...]:
    return tuple(one.get(name) for name in ("key", "operator", "value", "effect"))


def _images(lower: Object, want: _Spec) -> Spec:
    """The images of the upper pod; containers that lower admission added keep theirs."""
    spec = lower.spec
    changed: Spec = {}
    for field, containers in (("initContainers", want.init_containers), ("containers", want.containers)):
        images = {one.name: one.image for one in containers or ()}
        current = spec.get(field) or []
        desired = [one | {"image": images.get(one["name"], one.get("image"))} for one in current]
        changed |= {field: desired} if desired != current else {}
    return changed


def _resized(lower: Object, have: _Spec, want: _Spec) -> Spec:
    """CPU and memory of the upper pod. Other resources were added by lower admission and can't be removed."""
    changed: Spec = {}
    for field, current, desired in (
        ("containers", have.containers, want.containers),
        ("initContainers", _lasting(have.init_containers), _lasting(want.init_containers)),
    ):
        if current == desired:
            continue
        old = {one.name: one.resources for one in current or ()}
        sizes = {one.name: _size(old[one.name], one.resources) for one in desired or () if one.name in old}
        if any(sizes.values()):
            changed[field] = [_with_size(one, sizes.get(one["name"], {})) for one in lower.spec[field]]
    if size := _size(have.resources, want.resources):
        changed |= _with_size({"resources": lower.spec.get("resources") or {}}, size)
    return changed


def _lasting(init_containers: Iterable[_Container] | None) -> tuple[_Container, ...]:
    """Sidecars; other init containers are finished and can't be resized."""
    return tuple(one for one in init_containers or () if one.restart_policy == "Always")


def _size(old: _Resources | None, new: _Resources | None) -> Spec:
    """The requests and limits that differ."""
    old, new = old or _NO_RESOURCES, new or _NO_RESOURCES
    size = {
        name: {
            resource: desired[resource]
            for resource in _RESIZABLE
            if desired.get(resource, current.get(resource)) != current.get(resource)
        }
        for name, current, desired in (
            ("requests", old.requests or {}, new.requests or {}),
            ("limits", old.limits or {}, new.limits or {}),
        )
    }
    return {name: amounts for name, amounts in size.items() if amounts}


def _with_size(holder: Spec, size: Spec) -> Spec:
    resources = holder.get("resources") or {}
    return holder | {"resources": resources | {name: (resources.get(name) or {}) | more for name, more in size.items()}}
