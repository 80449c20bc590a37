"""The plan of a namespace's slices: a wish and the pool in, placements and reasons out. Pure.

One rule serves every change of quota, slice, pool and placements: running pods first, then what is there already,
fullest first, then what the policy says. So old slices stay, and as few as possible move.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from hansa.model import requests
from hansa.scheduling.slicing import manual_placements, placements, slices
from hansa.scheduling.slicing.placements import Holding, Placements
from hansa.scheduling.slicing.policies import Candidate, Order, Policy
from hansa.scheduling.slicing.pool import Member, Pool, State
from hansa.scheduling.slicing.slice_request import SliceRequest
from hansa.scheduling.verdict import told


@dataclass(frozen=True, slots=True)
class Missing:
    """Slices that wait for room, and what each cluster lacks for one more."""

    slices: int
    amounts: requests.Amounts
    why: tuple[str, ...]

    def __str__(self) -> str:
        lacking = " and ".join(told(name, nano) for name, nano in sorted(self.amounts.items()))
        waits = "slice waits" if self.slices == 1 else "slices wait"
        return f"{self.slices} {waits} for room ({lacking}): {'; '.join(self.why) or 'the pool has no clusters'}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the slices are to be. `refused` is why placements that somebody wrote are not followed."""

    holding: Holding
    wanted: int
    missing: Missing | None = None
    refused: str = ""
    notes: tuple[str, ...] = ()

    @property
    def placements(self) -> Placements:
        return self.holding.placements


def plan(wish: SliceRequest, pool: Pool) -> Plan:
    """Place the slices of a namespace. What it holds in the pool already is not in its own way."""
    wanted = slices.count(wish.quota, wish.slice)
    if not wanted:
        return Plan(Holding({}, wish.slice), 0)
    pool = pool.with_holding(wish.namespace, Holding())
    base, refused = _base(wish, pool, wanted)
    seats = [_Seat(cluster, wish, base, pool) for cluster in sorted({*pool.members, *base.placements, *wish.used})]
    _fill(seats, wanted, wish.policy)
    placed = Holding(placements.settled({seat.cluster: seat.slices for seat in seats}), wish.slice)
    refused = refused or _unfollowed(wish, placed, pool, wanted)
    missing = _missing(wanted - len(placed), wish.slice, seats, pool)
    if missing is not None and not wish.may_be_partial:
        placed = _kept(placed, base, pool)
    return Plan(placed, wanted, missing, refused, _notes(seats, wanted - len(placed)))


class _Seat:
    """What one cluster can have, must have and had, counted in slices of the size that is wished for."""

    def __init__(self, cluster: str, wish: SliceRequest, base: Holding, pool: Pool) -> None:
        member = pool.members.get(cluster, Member(cluster, {}, state=State.LOST))
        self.cluster, self.labels, self.is_leaving = cluster, member.labels, member.state is State.LEAVING
        had = base.placements.get(cluster, 0)
        used = wish.used.get(cluster, {})
        self.had = slices.recut(had, base.slice, wish.slice)
        self.busy = slices.share(used, base.slice, had) if had else Fraction(0)
        is_ours = wish.planned is not None and base.slice == wish.slice
        self.most = _most(member, self.had, pool.room(cluster, wish.slice), is_ours=is_ours)
        may_go = wish.may_evict or member.state in (State.LEAVING, State.LOST)
        self.least = 0 if may_go else min(slices.needed(used, wish.slice), max(self.most, ceil(self.had)))
        self.slices = self.least

    def gain(self) -> Fraction:
        """What one more slice spares of a move: as long as it has less than it had, up to a whole one."""
        return max(Fraction(0), min(Fraction(1), self.had - self.slices))

    def order(self, policy: Policy, rest: int) -> tuple[bool, Fraction, Fraction, Order]:
        gain = self.gain()
        candidate = Candidate(self.cluster, self.labels, self.slices, self.most - self.slices)
        return (self.is_leaving, -gain, -self.busy if gain else Fraction(0), policy.order(candidate, rest))


def _most(member: Member, had: Fraction, room: int, *, is_ours: bool) -> int:
    """How many slices there may be. What we gave stays, also where room shrank: hosts are a cluster's own business."""
    held = int(had) if is_ours else 0
    match member.state:
        case State.OPEN:
            return max(room, held)
        case State.CLOSED:
            return max(min(room, ceil(had)), int(had))  # its room may not be known
        case State.LEAVING:
            return max(min(room, ceil(had)), held)
        case State.LOST:
            return 0


def _fill(seats: list[_Seat], wanted: int, policy: Policy) -> None:
    rest = wanted - sum(seat.slices for seat in seats)
    while rest > 0:
        free = [seat for seat in seats if seat.slices < seat.most]
        if not free:
            return
        min(free, key=lambda seat: seat.order(policy, rest)).slices += 1
        rest -= 1


def _base(wish: SliceRequest, pool: Pool, wanted: int) -> tuple[Holding, str]:
    """What counts as being there already, and why placements that somebody wrote don't."""
    standing, planned = Holding(placements.settled(wish.standing), wish.slice), wish.planned
    if not standing.placements:
        return standing, ""
    if planned is None or planned.placements == standing.placements:
        return planned or standing, ""
    refused = manual_placements.refusal(wish, planned, pool, wanted)
    return (planned, refused) if refused else (standing, "")


def _unfollowed(wish: SliceRequest, placed: Holding, pool: Pool, wanted: int) -> str:
    """Why placements that nobody planned are not all followed."""
    standing = Holding(placements.settled(wish.standing), wish.slice)
    is_followed = wish.planned is not None or not placements.beyond(standing, placed).placements
    return "" if is_followed else manual_placements.refusal(wish, Holding({}, wish.slice), pool, wanted)


def _kept(placed: Holding, base: Holding, pool: Pool) -> Holding:
    """All or nothing, and it is not all: only what was there stays."""
    if base.slice == placed.slice:
        kept = {cluster: min(number, base.placements.get(cluster, 0)) for cluster, number in placed.placements.items()}
        return Holding(placements.settled(kept), placed.slice)
    there = (name for name, member in pool.members.items() if member.state is not State.LOST)
    return Holding({name: base.placements[name] for name in sorted(there) if name in base.placements}, base.slice)


def _missing(number: int, slice_: slices.Slice, seats: list[_Seat], pool: Pool) -> Missing | None:
    if number <= 0:
        return None
    return Missing(number, slices.times(slice_, number), tuple(_lacks(seat, slice_, pool) for seat in seats))


def _lacks(seat: _Seat, slice_: slices.Slice, pool: Pool) -> str:
    member = pool.members.get(seat.cluster)
    if member is None:
        return f"{seat.cluster} is not in the pool"
    if member.state is not State.OPEN:
        return f"{seat.cluster} {member.why or f'is {member.state}'}"
    for name, nano in sorted(slice_.items()):
        left = pool.left(seat.cluster, name) - nano * seat.slices
        if left < nano:
            return f"{seat.cluster} has {told(name, max(0, left))} left of {told(name, nano)} for a slice"
    return f"{seat.cluster} has room"


def _notes(seats: list[_Seat], rest: int) -> tuple[str, ...]:
    if rest >= 0:
        return ()
    held = (seat for seat in seats if seat.least)
    return tuple(f"{seat.cluster} keeps {seat.least}: pods that run there need them" for seat in held)
