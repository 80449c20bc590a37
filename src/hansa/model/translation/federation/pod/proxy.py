"""The way up: a proxy pod gets the status and the annotations of its delegate, or why there is none.

Until the delegate is scheduled the proxy pod is not bound. Then only its condition PodScheduled is written, with the
virtual node in front of the message: the binder reads there which target failed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import msgspec

from hansa.kube.objects import Object
from hansa.model import keys, lifecycle, placement
from hansa.model.mode import PatchPart
from hansa.model.pair import Link
from hansa.model.translation.common.pod import status, unschedulable
from hansa.model.translation.federation import metadata, target_link

MOST_ANNOTATIONS: Final = 224 * 1024  # bytes of all; the API server accepts 256 KiB, and some are for later ones
_STATUSES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def up_patches(upper: Object, lower: Object, link: Link) -> Iterator[PatchPart]:
    """One patch of the proxy pod: the status and annotations of its delegate."""
    if not placement.node_of(upper):
        yield from _unscheduled(upper, lower, link)
        return
    parts = [*status.up_patches(upper, _without_injected(upper, lower), link)]
    annotations = _annotations(upper, lower)
    if not annotations:
        yield from parts
        return
    for part in parts or [PatchPart({}, "status")]:
        table = part.patch.get("metadata", {}).get("annotations", {}) | annotations
        yield PatchPart({**part.patch, "metadata": {"annotations": table}}, part.subresource)


def _annotations(upper: Object, lower: Object) -> dict[str, str]:
    """The annotations of the delegate that are new, as far as all fit: too many would hold up the status, too."""
    changed = {
        key: value
        for key, value in lower.annotations.items()
        if not metadata.is_own_annotation(key) and upper.annotations.get(key) != value
    }
    left = MOST_ANNOTATIONS - sum(_size(one) for one in upper.annotations.items() if one[0] not in changed)
    kept: dict[str, str] = {}
    for one in sorted(changed.items(), key=_size):
        left -= _size(one)
        if left < 0:
            # One that does not fit stays as it is, and so do all that are larger.
            break
        kept[one[0]] = one[1]
    return kept


def _size(annotation: tuple[str, str]) -> int:
    return sum(len(text.encode()) for text in annotation)


def message(text: str, link: Link) -> str:
    """A message of a target, with its virtual node in front."""
    node = target_link.of(link).node
    return text if text.startswith(f"{node}: ") else f"{node}: {text}"


def refused(upper: Object, text: str) -> Iterable[PatchPart]:
    """The condition PodScheduled of a proxy pod whose delegate was refused; a bound one was scheduled before."""
    return () if placement.node_of(upper) else unschedulable.unscheduled(upper, text)


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[_Condition, ...] | None = None


def _scheduled(pod: Object) -> _Condition | None:
    conditions = pod.decode("status", _Status).conditions or ()
    return next((one for one in conditions if one.type == unschedulable.SCHEDULED), None)


def _unscheduled(upper: Object, lower: Object, link: Link) -> Iterator[PatchPart]:
    """The delegate's condition PodScheduled while that is False."""
    found = _scheduled(lower)
    if found is None or found.status != "False":
        return
    text = message(found.message or found.reason, link)[: unschedulable.MAX_MESSAGE]
    wanted = {"type": unschedulable.SCHEDULED, "status": "False", "reason": found.reason, "message": text}
    conditions: list[dict[str, Any]] = upper.status.get("conditions") or []
    if not any(wanted.items() <= one.items() for one in conditions):
        others = [one for one in conditions if one["type"] != unschedulable.SCHEDULED]
        yield PatchPart({"status": {"conditions": [*others, wanted]}}, "status")


def _without_injected(upper: Object, lower: Object) -> Object:
    """The delegate without statuses of containers that the target's admission added."""
    below, above = lower.status, upper.spec
    kinds = ("initContainers", "containers", "ephemeralContainers")
    known = {one["name"] for kind in kinds for one in above.get(kind) or ()}
    kept = {name: [one for one in below[name] if one["name"] in known] for name in _STATUSES if below.get(name)}
    return lower if all(kept[name] == below[name] for name in kept) else lower.with_fields(status=below | kept)


def has_run(proxy: Object) -> bool:
    """Whether a proxy pod was bound by us: its delegate is not created again. One that was created bound was not."""
    found = _scheduled(proxy) if placement.node_of(proxy) else None
    return found is not None and found.status == "True"


def _grace(proxy: Object | None, /, *, is_forced: bool) -> int | None:
    """The grace period that a user gave. The default of a proxy pod is 0, its delegate has one of its own."""
    if proxy is None:
        return 0 if is_forced else None
    return proxy.metadata.deletion_grace_period_seconds or None


def _final_status(proxy: Object) -> dict[str, Any]:
    """The final phase, if another controller waits for it."""
    others = [one for one in proxy.metadata.finalizers if one != keys.POD_FINALIZER]
    return dict(lifecycle.final_pod_status(proxy.with_metadata(finalizers=others)))


LIFECYCLE: Final = replace(
    lifecycle.POD, finalizer=keys.POD_FINALIZER, has_run=has_run, grace=_grace, final_status=_final_status
)
