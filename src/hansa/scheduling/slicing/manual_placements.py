"""Validates placements that a user wrote to a namespace's annotation: they are applied, or refused with a reason."""

from hansa.scheduling.slicing import placements, slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.pool import Pool, State
from hansa.scheduling.slicing.slice_request import SliceRequest


def refusal(request: SliceRequest, planned: Holding, pool: Pool, wanted: int) -> str:
    """Why the annotated placements can't be applied; empty if they can. `planned` is the last plan."""
    edited = placements.normalized(request.annotated)
    if (number := sum(edited.values())) > wanted:
        return f"{number} slice(s) exceed the quota, which is {wanted} slice(s)"
    had = planned.placements if planned.slice == request.slice else {}
    more = {cluster: number for cluster, number in edited.items() if number > had.get(cluster, 0)}
    reasons = (_no_capacity(cluster, number, request.slice, pool) for cluster, number in more.items())
    return next((reason for reason in reasons if reason), "") or (
        "" if request.may_evict else _in_use(request, planned, pool)
    )


def _no_capacity(cluster: str, number: int, slice_: slices.Slice, pool: Pool) -> str:
    member = pool.members.get(cluster)
    if member is None:
        return f"{cluster} is not in the pool"
    if member.state is not State.OPEN:
        return f"{cluster} accepts no new slices: it is {member.reason or member.state}"
    room = pool.room(cluster, slice_)
    return f"{cluster} has capacity for {room} slice(s), not for {number}" if number > room else ""


def _in_use(request: SliceRequest, planned: Holding, pool: Pool) -> str:
    for cluster, used in sorted(request.used.items()):
        least = min(slices.needed(used, request.slice), planned.placements.get(cluster, 0))
        if cluster in pool.members and request.annotated.get(cluster, 0) < least:
            return f"pods in {cluster} use {least} slice(s) there; delete them first"
    return ""
