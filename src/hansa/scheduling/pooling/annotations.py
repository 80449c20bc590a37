"""What namespaces, pods and their quotas say to the schedulers, read from objects. Pure.

Annotations have two spellings: ours is the first, and the later one of VirtualCluster is read, too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from hansa.kube import objects
from hansa.model import keys
from hansa.scheduling.slicing import placements, policies, quotas, slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.policies import Policy
from hansa.scheduling.slicing.slice_request import SliceRequest

UNSCHEDULABLE: Final = "Unschedulable"


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """What holds for namespaces that say nothing else."""

    slice: slices.Slice = field(default_factory=lambda: slices.DEFAULT)
    policy: Policy = field(default_factory=policies.Spread)
    may_be_partial: bool = True
    may_evict: bool = False


def annotation(obj: objects.Object, key: str) -> str:
    """The value of an annotation of the schedulers, in either spelling."""
    ours, later = keys.POOL
    return obj.annotations.get(key) or obj.annotations.get(key.replace(ours, later, 1), "")


def wish(
    identity: str,
    namespace: objects.Object,
    namespace_quotas: Iterable[objects.Object],
    *,
    used: Mapping[str, Mapping[str, int]],
    settings: PoolSettings,
) -> tuple[SliceRequest, str]:
    """The wish of a namespace, and why the placements that it names cannot be read, if so.

    What it does not say itself is as the settings say. A slice or a policy that cannot be read is raised.
    """
    own_slice, own_policy = annotation(namespace, keys.SLICE), annotation(namespace, keys.PLACEMENT_POLICY)
    planned = placements.remembered(namespace.annotations.get(keys.PLANNED, ""))
    standing, refused = _standing(namespace, planned)
    made = SliceRequest(
        identity,
        quota=quotas.bound(namespace_quotas),
        slice=slices.read(own_slice) if own_slice else settings.slice,
        standing=standing,
        planned=planned,
        used=used,
        policy=policies.read(own_policy) if own_policy else settings.policy,
        may_be_partial=settings.may_be_partial,
        may_evict=settings.may_evict,
    )
    return made, refused


def _standing(namespace: objects.Object, planned: Holding | None) -> tuple[placements.Placements, str]:
    try:
        return placements.read(annotation(namespace, keys.PLACEMENTS)), ""
    except placements.PlacementError as error:
        return (planned.placements if planned else {}), str(error)


def held(namespace: objects.Object, slice_: slices.Slice) -> Holding:
    """What a namespace holds by its own words, as far as they can be read.

    That is what was planned for it, whatever somebody wrote since: the next plan may come back to that.
    """
    planned = placements.remembered(namespace.annotations.get(keys.PLANNED, ""))
    if planned is not None:
        return planned
    try:
        standing = placements.read(annotation(namespace, keys.PLACEMENTS))
    except placements.PlacementError:
        return Holding()
    own_slice = annotation(namespace, keys.SLICE)
    try:
        return Holding(standing, slices.read(own_slice) if own_slice else slice_)
    except slices.SliceError:
        return Holding(standing, slice_)


def cluster_of(pod: objects.Object) -> str:
    """The cluster that a pod was given."""
    return annotation(pod, keys.SUPER_CLUSTER)


def moved_from(pod: objects.Object) -> list[str]:
    """The clusters that a pod was moved away from and that may still have a copy."""
    return [key.removeprefix(keys.MOVED_FROM) for key in pod.annotations if key.startswith(keys.MOVED_FROM)]


def unschedulable(pod: objects.Object) -> str:
    """Why the scheduler of the cluster that has the pod finds no node for it; empty if it does, or did not look yet."""
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
