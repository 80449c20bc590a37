"""The annotations of namespaces and pods that the schedulers read. Pure.

Both domains are read: ours, which is VirtualCluster's first one, and its later one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from hansa.kube import objects
from hansa.model import keys
from hansa.runtime.errors import HansaError
from hansa.scheduling.slicing import placements, policies, quotas, slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.policies import Policy
from hansa.scheduling.slicing.slice_request import SliceRequest

UNSCHEDULABLE: Final = "Unschedulable"
T = TypeVar("T")


class AnnotationError(HansaError, ValueError):
    """An annotation of a namespace is not valid."""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """Defaults for namespaces without annotations, from flags of vc-scheduler."""

    slice: slices.Slice = field(default_factory=lambda: slices.DEFAULT)
    policy: Policy = field(default_factory=policies.Spread)
    may_be_partial: bool = True
    may_evict: bool = False


def annotation(obj: objects.Object, key: str) -> str:
    """The value of a scheduler's annotation, under either domain."""
    ours, later = keys.POOL
    return obj.annotations.get(key) or obj.annotations.get(key.replace(ours, later, 1), "")


def slice_request(
    identity: str,
    namespace: objects.Object,
    namespace_quotas: Iterable[objects.Object],
    *,
    used: Mapping[str, Mapping[str, int]],
    planned: Holding | None,
    is_recorded: bool = True,
    settings: PoolSettings,
) -> tuple[SliceRequest, str]:
    """The slice request of a namespace, and why its placements annotation is invalid; empty if it is valid.

    `planned` is the last plan, if plans of the tenant are recorded. Defaults are in `settings`. An invalid slice or
    policy is raised as `AnnotationError`.
    """
    own_slice, own_policy = annotation(namespace, keys.SLICE), annotation(namespace, keys.PLACEMENT_POLICY)
    annotated, invalid = _annotated(namespace, planned)
    request = SliceRequest(
        identity,
        quota=quotas.bound(namespace_quotas),
        slice=_parsed(keys.SLICE, own_slice, slices.parse) if own_slice else settings.slice,
        annotated=annotated,
        planned=planned,
        trusts_annotation=not is_recorded,
        used=used,
        policy=_parsed(keys.PLACEMENT_POLICY, own_policy, policies.parse) if own_policy else settings.policy,
        may_be_partial=settings.may_be_partial,
        may_evict=settings.may_evict,
    )
    return request, invalid


def _annotated(namespace: objects.Object, planned: Holding | None) -> tuple[placements.Placements, str]:
    try:
        return placements.parse(annotation(namespace, keys.PLACEMENTS)), ""
    except placements.PlacementError as error:
        return (planned.placements if planned else {}), f"annotation {keys.PLACEMENTS}: {error}"


def _parsed(key: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(text)
    except HansaError as error:
        raise AnnotationError(f"annotation {key}: {error}") from None


def annotated(namespace: objects.Object, slice_: slices.Slice) -> Holding:
    """The slices of a namespace by its annotations; invalid ones are ignored."""
    try:
        found = placements.parse(annotation(namespace, keys.PLACEMENTS))
    except placements.PlacementError:
        return Holding()
    own_slice = annotation(namespace, keys.SLICE)
    try:
        return Holding(found, slices.parse(own_slice) if own_slice else slice_)
    except slices.SliceError:
        return Holding(found, slice_)


def cluster_of(pod: objects.Object) -> str:
    """The cluster that a pod is assigned to; empty if none."""
    return annotation(pod, keys.SUPER_CLUSTER)


def moved_from(pod: objects.Object) -> list[str]:
    """The clusters that a pod was moved from and that may still have a copy."""
    return [key.removeprefix(keys.MOVED_FROM) for key in pod.annotations if key.startswith(keys.MOVED_FROM)]


def unschedulable(pod: objects.Object) -> str:
    """The message of the condition PodScheduled while the cluster's scheduler finds no node; empty otherwise."""
    for one in pod.decode("status", _Status).conditions or ():
        if one.type == "PodScheduled" and one.status == "False" and one.reason == UNSCHEDULABLE:
            return one.message or UNSCHEDULABLE
    return ""


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] | None = None
