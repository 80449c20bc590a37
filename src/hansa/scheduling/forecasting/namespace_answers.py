"""The slices of a namespace in a pool: where they are, what is missing, and what each cluster would need. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansa.model import capacity
from hansa.scheduling.forecasting.pool import PoolWorld, Space
from hansa.scheduling.slicing import placements, slices
from hansa.scheduling.slicing.planning import SlicePlan
from hansa.scheduling.slicing.pool import Pool, State
from hansa.scheduling.verdict import amount_text

CONDITION: Final = "Placed"  # of namespaces, by the scheduler


@dataclass(frozen=True, slots=True)
class ClusterSlices:
    """What one cluster has and says. `lacks` is what it would need for all slices that are missing."""

    cluster: str
    slices: int
    room: int | None  # more slices; None if that is unknown
    used: Mapping[str, int]
    state: str
    lacks: Mapping[str, int]

    def __str__(self) -> str:
        used = ", ".join(amount_text(name, nano) for name, nano in sorted(self.used.items())) or "nothing"
        room = "unknown room" if self.room is None else f"room for {self.room} more"
        more = " and ".join(amount_text(name, nano) for name, nano in sorted(self.lacks.items()))
        lacks = f"; would fit all that are missing if it had {more} more" if more else ""
        return f"{self.state}; pods use {used}; {room}{lacks}"

    def as_json(self) -> dict[str, Any]:
        """For `-o json`."""
        return {
            "cluster": self.cluster,
            "slices": self.slices,
            "room": self.room,
            "used": capacity.resource_list(self.used),
            "state": self.state,
            "wouldNeed": capacity.resource_list(self.lacks),
        }


@dataclass(frozen=True, slots=True)
class NamespaceExplanation:
    """A namespace, its quota in slices, and the clusters."""

    name: str
    size: Mapping[str, int]
    wanted: int
    placed: Mapping[str, int]
    planned: Mapping[str, int]  # what would be planned now
    since: str
    said: str  # by the scheduler, in the condition Placed
    missing: str
    refused: str
    clusters: tuple[ClusterSlices, ...]

    def as_json(self) -> dict[str, Any]:
        """The explanation for `-o json`."""
        return {
            "namespace": self.name,
            "slice": capacity.resource_list(self.size),
            "wanted": self.wanted,
            "placements": dict(self.placed),
            "planned": dict(self.planned),
            "since": self.since,
            "condition": self.said,
            "missing": self.missing,
            "refused": self.refused,
            "clusters": [one.as_json() for one in self.clusters],
        }

    def lines(self) -> list[str]:
        """The explanation for people."""
        size = ", ".join(amount_text(name, nano) for name, nano in sorted(self.size.items()))
        held = ", ".join(f"{count} in {cluster}" for cluster, count in self.placed.items()) or "none"
        found = [f"namespace {self.name} wants {self.wanted} slice(s) of {size}; placed: {held}"]
        found += [f"- vc-scheduler since {self.since}: {self.said}"] if self.said else []
        if self.placed != self.planned:
            found.append(f"- now it would place {placements.encoded(self.planned)}")
        return [*found, *(f"- {one}" for one in (self.missing, self.refused) if one)]


def explained(world: PoolWorld, space: Space) -> NamespaceExplanation:
    """Explain a namespace; raises AnnotationError."""
    pool, assignments = world.pool(), world.assignments()
    plan = world.plan(space, pool=pool, assignments=assignments)
    conditions = space.namespace.status.get("conditions") or ()
    condition: dict[str, Any] = next((one for one in conditions if one.get("type") == CONDITION), {})
    used = assignments.used(space.ref)
    return NamespaceExplanation(
        space.namespace.name,
        plan.holding.slice,
        plan.wanted,
        dict(sorted(world.holding(space.ref).placements.items())),
        plan.placements,
        str(condition.get("lastTransitionTime", "")),
        str(condition.get("message", "")),
        str(plan.missing or ""),
        plan.refused,
        tuple(
            _cluster(world, name, plan, pool.with_holding(space.ref, plan.holding), used)
            for name in sorted(world.supers)
        ),
    )


def _cluster(
    world: PoolWorld, name: str, plan: SlicePlan, pool: Pool, used: Mapping[str, Mapping[str, int]]
) -> ClusterSlices:
    one, size = world.supers[name], plan.holding.slice
    missing = 0 if plan.missing is None else plan.missing.slices
    state = one.state.value + (f": {one.reason}" if one.reason else "")
    is_open = one.state is State.OPEN
    return ClusterSlices(
        name,
        plan.placements.get(name, 0),
        None if one.snapshot.unknown else pool.room(name, size),
        used.get(name, {}),
        f"unknown: {one.snapshot.unknown}" if one.snapshot.unknown else state,
        _lacks(pool, name, slices.times(size, missing)) if is_open and missing else {},
    )


def _lacks(pool: Pool, cluster: str, wanted: Mapping[str, int]) -> dict[str, int]:
    """What a cluster would need more, with the part of that which it keeps free."""
    percent = pool.members[cluster].headroom.percent
    lacks = {name: nano - pool.left(cluster, name) for name, nano in wanted.items()}
    return {name: -(-nano * 100 // max(1, 100 - percent)) for name, nano in lacks.items() if nano > 0}
