"""Plans the slices of a namespace: placements, and reasons for slices that are not placed. Pure.

Every change of quota, slice size, pool or placements is planned in the same order: slices that running pods use, then
existing slices, those in use most first, then new slices by the policy. So as few slices as possible move.
"""

import heapq
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from hansa.model import requests
from hansa.scheduling.slicing import manual_placements, placements, slices
from hansa.scheduling.slicing.placements import Holding, Placements
from hansa.scheduling.slicing.policies import Order, Policy, SliceCandidate
from hansa.scheduling.slicing.pool import Member, Pool, State
from hansa.scheduling.slicing.slice_request import SliceRequest
from hansa.scheduling.verdict import amount_text

_TargetOrder = tuple[bool, Fraction | int, Fraction | int, Order]


@dataclass(frozen=True, slots=True)
class MissingSlices:
    """Slices that are not placed, and why each cluster has no capacity for one more."""

    slices: int
    amounts: requests.Amounts
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        lacking = " and ".join(amount_text(name, nano) for name, nano in sorted(self.amounts.items()))
        count = "1 slice is" if self.slices == 1 else f"{self.slices} slices are"
        return f"{count} not placed ({lacking}): {'; '.join(self.reasons) or 'the pool has no clusters'}"


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """The desired placements. `refused` is why placements that a user wrote are not applied."""

    holding: Holding
    wanted: int
    missing: MissingSlices | None = None
    refused: str = ""
    notes: tuple[str, ...] = ()

    @property
    def placements(self) -> Placements:
        return self.holding.placements


def plan(request: SliceRequest, pool: Pool) -> SlicePlan:
    """Place the slices of a namespace. What it holds in the pool already counts as free."""
    wanted = slices.count(request.quota, request.slice)
    if not wanted:
        return SlicePlan(Holding({}, request.slice), 0)
    pool = pool.with_holding(request.namespace, Holding())
    base, refused = _base(request, pool, wanted)
    targets = [
        _Target(cluster, request, base, pool) for cluster in sorted({*pool.members, *base.placements, *request.used})
    ]
    _fill(targets, wanted, request.policy)
    placed = Holding(placements.normalized({target.cluster: target.slices for target in targets}), request.slice)
    refused = refused or _refusal(request, placed, pool, wanted)
    missing = _missing(wanted - len(placed), request.slice, targets, pool)
    if missing is not None and not request.may_be_partial:
        placed = _kept(placed, base, pool)
    return SlicePlan(placed, wanted, missing, refused, _notes(targets, wanted - len(placed)))


class _Target:
    """The slices of one cluster: those it had, must keep (`least`), can have (`most`), and gets."""

    def __init__(self, cluster: str, request: SliceRequest, base: Holding, pool: Pool) -> None:
        member = pool.members.get(cluster, Member(cluster, {}, state=State.LOST))
        self.cluster, self.labels, self.is_leaving = cluster, member.labels, member.state is State.LEAVING
        had = base.placements.get(cluster, 0)
        used = request.used.get(cluster, {})
        self.had = slices.recut(had, base.slice, request.slice)
        self.busy = slices.share(used, base.slice, had) if had else Fraction(0)
        is_ours = request.planned is not None and base.slice == request.slice
        has = self.had if request.planned is not None or request.trusts_annotation else Fraction(0)
        self.most = _most(member, self.had, pool.room(cluster, request.slice), has=has, is_ours=is_ours)
        may_go = request.may_evict or member.state in (State.LEAVING, State.LOST)
        self.least = 0 if may_go else min(slices.needed(used, request.slice), max(self.most, ceil(has)))
        self.slices = self.least
        self.weight = request.policy.weight(self.labels)

    @property
    def room(self) -> int:
        """How many more slices it can have."""
        return self.most - self.slices

    def gain(self) -> Fraction | int:
        """How much of one more slice need not move: it has less than it had, by up to one slice."""
        less = self.had - self.slices
        if less <= 0:
            return 0
        return 1 if less >= 1 else less

    def order(self, policy: Policy, rest: int) -> _TargetOrder:
        gain = self.gain()
        candidate = SliceCandidate(self.cluster, self.labels, self.slices, self.room, self.weight)
        return (self.is_leaving, -gain, -self.busy if gain else 0, policy.order(candidate, rest))


def _most(member: Member, had: Fraction, room: int, *, has: Fraction, is_ours: bool) -> int:
    """The maximum number of slices. Planned slices stay even if the capacity shrank, as pods stay on a smaller node."""
    held = int(had) if is_ours else 0
    match member.state:
        case State.OPEN:
            return max(room, held)
        case State.CLOSED:
            return max(min(room, ceil(had)), int(has))  # its capacity may be unknown
        case State.LEAVING:
            return max(min(room, ceil(had)), held)
        case State.LOST:
            return 0


def _fill(targets: list[_Target], wanted: int, policy: Policy) -> None:
    # With a heap, because a namespace may have 10,000 slices and a pool many clusters. An entry is outdated when its
    # target has an order that was computed later: after it got a slice, or when it can take all of the rest.
    rest = wanted - sum(target.slices for target in targets)
    orders: dict[int, _TargetOrder] = {}
    heap: list[tuple[_TargetOrder, int]] = []

    def enter(number: int) -> None:
        if targets[number].room > 0:
            orders[number] = targets[number].order(policy, rest)
            heapq.heappush(heap, (orders[number], number))

    for number in range(len(targets)):
        enter(number)
    while rest > 0 and heap:
        order, best = heapq.heappop(heap)
        if order is not orders[best]:
            continue
        targets[best].slices += 1
        rest -= 1
        for number, target in enumerate(targets):
            if number == best or target.room == rest:
                enter(number)


def _base(request: SliceRequest, pool: Pool, wanted: int) -> tuple[Holding, str]:
    """The holding that counts as existing, and why annotated placements are refused."""
    annotated, planned = Holding(placements.normalized(request.annotated), request.slice), request.planned
    if not annotated.placements:
        return annotated, ""
    if planned is None or planned.placements == annotated.placements:
        return planned or annotated, ""
    refused = manual_placements.refusal(request, planned, pool, wanted)
    return (planned, refused) if refused else (annotated, "")


def _refusal(request: SliceRequest, placed: Holding, pool: Pool, wanted: int) -> str:
    """Why placements that were annotated before the first plan are not all applied."""
    annotated = Holding(placements.normalized(request.annotated), request.slice)
    is_applied = request.planned is not None or not placements.excess(annotated, placed).placements
    return "" if is_applied else manual_placements.refusal(request, Holding({}, request.slice), pool, wanted)


def _kept(placed: Holding, base: Holding, pool: Pool) -> Holding:
    """With --all-or-nothing and not all placed: only existing slices stay."""
    if base.slice == placed.slice:
        kept = {cluster: min(number, base.placements.get(cluster, 0)) for cluster, number in placed.placements.items()}
        return Holding(placements.normalized(kept), placed.slice)
    there = (name for name, member in pool.members.items() if member.state is not State.LOST)
    return Holding({name: base.placements[name] for name in sorted(there) if name in base.placements}, base.slice)


def _missing(number: int, slice_: slices.Slice, targets: list[_Target], pool: Pool) -> MissingSlices | None:
    if number <= 0:
        return None
    return MissingSlices(
        number, slices.times(slice_, number), tuple(_lacks(target, slice_, pool) for target in targets)
    )


def _lacks(target: _Target, slice_: slices.Slice, pool: Pool) -> str:
    member = pool.members.get(target.cluster)
    if member is None:
        return f"{target.cluster} is not in the pool"
    if member.state is not State.OPEN:
        return f"{target.cluster} is {member.reason or member.state}"
    for name, nano in sorted(slice_.items()):
        left = pool.left(target.cluster, name) - nano * target.slices
        if left < nano:
            return (
                f"{target.cluster} has {amount_text(name, max(0, left))} left, a slice needs {amount_text(name, nano)}"
            )
    return f"{target.cluster} has capacity"


def _notes(targets: list[_Target], rest: int) -> tuple[str, ...]:
    if rest >= 0:
        return ()
    held = (target for target in targets if target.least)
    return tuple(f"{target.cluster} keeps {target.least}: running pods use them" for target in held)
