"""The decision: what to write so that the lower objects follow the upper one and its status comes back.

`decide` is pure and total: it has an answer for every pair, and applying its answers ends in a pair that needs none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hansa.kube.objects import Object
from hansa.model import stamp
from hansa.model.mode import Mode, Rule
from hansa.model.pair import Grade, Link, Pair, Unknown


@dataclass(frozen=True, slots=True)
class Create:
    """Make a lower object."""

    cluster: str
    obj: Object
    reason: str


@dataclass(frozen=True, slots=True)
class Patch:
    """Change fields of an object that is there; with a subresource, that part of it."""

    cluster: str
    obj: Object
    patch: Mapping[str, Any]
    reason: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object: this very one, by its uid."""

    cluster: str
    obj: Object
    reason: str
    grace: int | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """A lower object of that name belongs to somebody else. It is told, and never written."""

    cluster: str
    obj: Object
    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be done yet; what it waits for will wake it."""

    reason: str


Action = Create | Patch | Delete | Conflict | Wait


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, in order."""

    actions: tuple[Action, ...] = field(default=())

    @property
    def writes(self) -> tuple[Action, ...]:
        """The actions that write to a server."""
        return tuple(a for a in self.actions if isinstance(a, Create | Patch | Delete))


def decide(pair: Pair, mode: Mode) -> Plan:
    """What to write now. Lower objects first: the way up tells what is there, not what will be."""
    rule = mode.rules[pair.key.resource]
    if isinstance(pair.upper, Unknown):
        return Plan((Wait(f"{pair.key.cluster} cannot be seen: {pair.upper.reason}"),))
    if isinstance(pair.intents, Unknown):
        return Plan((Wait(f"where it belongs cannot be seen: {pair.intents.reason}"),))
    upper = pair.upper
    intents = {} if upper is None or upper.is_leaving else pair.intents
    actions: list[Action] = []
    for cluster in sorted(intents.keys() | pair.lowers.keys()):
        actions += _side(pair, rule, mode, cluster=cluster, grade=intents.get(cluster))
    if upper is not None:
        actions += _up(pair, rule, upper=upper)
    return Plan(tuple(actions))


def _side(pair: Pair, rule: Rule, mode: Mode, *, cluster: str, grade: Grade | None) -> Iterator[Action]:
    """What to do in one lower cluster."""
    upper, lower = pair.upper, pair.lowers.get(cluster)
    assert not isinstance(upper, Unknown)
    if isinstance(lower, Unknown):
        yield Wait(f"{cluster} cannot be seen: {lower.reason}")
    elif lower is None:
        if upper is not None and grade is not None:
            yield from _missing(pair, rule, mode, upper=upper, cluster=cluster)
    elif not _is_ours(lower, pair.links[cluster]):
        if upper is not None and grade is not None and not rule.lifecycle.shares_name:
            yield Conflict(cluster, lower, f"{rule.resource} {lower.key} exists in {cluster} and is not ours")
    elif upper is not None and _origin_uid(lower) != upper.uid:
        yield from _leave(lower, cluster, "it belongs to a former life of its name", grace=0)
    elif grade is None:
        yield from _leave(lower, cluster, "it is no longer wanted here", grace=rule.lifecycle.grace(upper, lower))
    elif upper is not None and not lower.is_leaving:
        for part in rule.down_patches(lower, mode.desired(upper, pair.key, pair.links[cluster])):
            yield Patch(cluster, lower, part.patch, "it differs from the upper one", part.subresource)


def _missing(pair: Pair, rule: Rule, mode: Mode, *, upper: Object, cluster: str) -> Iterator[Action]:
    """What to do where a lower object should be and is not."""
    if rule.lifecycle.is_finished(upper):
        return
    if rule.lifecycle.ends_with_lower and rule.lifecycle.was_below(upper):
        yield Delete(pair.key.cluster, upper, f"its lower object in {cluster} is lost", grace=0)
    elif reason := pair.waits_for.get(cluster):
        yield Wait(reason)
    else:
        yield Create(cluster, mode.desired(upper, pair.key, pair.links[cluster]), "it is wanted here")


def _leave(lower: Object, cluster: str, reason: str, *, grace: int | None) -> Iterator[Action]:
    """Delete a lower object once; again only if it may go sooner than it was told."""
    told = lower.metadata.deletion_grace_period_seconds
    if not lower.is_leaving or (grace is not None and told is not None and grace < told):
        yield Delete(cluster, lower, reason, grace)


def _up(pair: Pair, rule: Rule, *, upper: Object) -> Iterator[Action]:
    """What the lower object that counts tells, or the end of an upper object that has no lower one any more."""
    ours = {c: o for c, o in pair.lowers.items() if isinstance(o, Object) and _is_ours(o, pair.links[c])}
    chosen = _chosen(pair, {c: o for c, o in ours.items() if _origin_uid(o) == upper.uid})
    if chosen is not None:
        for part in rule.up_patches(upper, ours[chosen], pair.links[chosen]):
            yield Patch(pair.key.cluster, upper, part.patch, f"{chosen} tells", part.subresource)
    elif upper.is_leaving and rule.lifecycle.releases and not ours and not _unseen(pair):
        yield Delete(pair.key.cluster, upper, "nothing of it is left below", grace=0)


def _chosen(pair: Pair, copies: Mapping[str, Object]) -> str | None:
    """The cluster whose object speaks for the upper one."""
    assert not isinstance(pair.intents, Unknown)
    there = [c for c in sorted(copies) if pair.intents.get(c, Grade.CHOSEN) is Grade.CHOSEN]
    return there[0] if there else None


def _unseen(pair: Pair) -> bool:
    return any(isinstance(side, Unknown) for side in pair.lowers.values())


def _is_ours(lower: Object, link: Link) -> bool:
    origin = stamp.of(lower)
    return origin is not None and origin.upper == link.upper_id


def _origin_uid(lower: Object) -> str:
    origin = stamp.of(lower)
    return origin.uid if origin else ""
