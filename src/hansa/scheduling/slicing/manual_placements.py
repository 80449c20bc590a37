"""Placements that somebody wrote by hand: they are followed as they are, or refused with a reason."""

from hansa.scheduling.slicing import placements, slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.pool import Pool, State
from hansa.scheduling.slicing.slice_request import SliceRequest


def refusal(wish: SliceRequest, planned: Holding, pool: Pool, wanted: int) -> str:
    """Why what stands on the namespace cannot be followed; empty if it can. `planned` is what was there before."""
    edited = placements.settled(wish.standing)
    if (number := sum(edited.values())) > wanted:
        return f"they are {number} slices, and the quota makes {wanted}"
    had = planned.placements if planned.slice == wish.slice else {}
    more = {cluster: number for cluster, number in edited.items() if number > had.get(cluster, 0)}
    reasons = (_no_room(cluster, number, wish.slice, pool) for cluster, number in more.items())
    return next((reason for reason in reasons if reason), "") or (
        "" if wish.may_evict else _needed(wish, planned, pool)
    )


def _no_room(cluster: str, number: int, slice_: slices.Slice, pool: Pool) -> str:
    member = pool.members.get(cluster)
    if member is None:
        return f"{cluster} is not in the pool"
    if member.state is not State.OPEN:
        return f"{cluster} takes no slices: {member.why or f'it is {member.state}'}"
    room = pool.room(cluster, slice_)
    return f"{cluster} has room for {room} slices, not for {number}" if number > room else ""


def _needed(wish: SliceRequest, planned: Holding, pool: Pool) -> str:
    for cluster, used in sorted(wish.used.items()):
        least = min(slices.needed(used, wish.slice), planned.placements.get(cluster, 0))
        if cluster in pool.members and wish.standing.get(cluster, 0) < least:
            return f"pods that run in {cluster} need {least} of its slices"
    return ""
