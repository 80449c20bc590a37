"""The decision: what to write so that the lower objects follow the upper one and their status is synced up.

`decide` is pure and total: it has a plan for every pair, and applying its plans ends in a pair that needs none.
"""

from collections.abc import Iterator, Mapping
from enum import Enum, auto

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import limits, placement, plan, stamp
from hansa.model.mode import Mode, Rule
from hansa.model.pair import Grade, Key, Link, Pair, Side, Unknown
from hansa.model.plan import (
    Action,
    Bind,
    Conflict,
    Create,
    Delete,
    OverLimit,
    Patch,
    Plan,
    Read,
    Reason,
    Refuse,
    SetFinalizers,
    Wait,
)


def decide(pair: Pair, mode: Mode) -> Plan:
    """What to write now. The upper object is deleted last, so that it still gets the status of its lower one."""
    rule, upper = mode.rules.get(pair.key.resource), pair.upper
    if rule is None:
        return Plan()
    if isinstance(upper, Unknown):
        return Plan((Wait(f"{pair.key.cluster} is unknown: {upper.reason}"),))
    if isinstance(pair.intents, Unknown) and upper is not None and not upper.is_deleting:
        return Plan((Wait(f"its placement is unknown: {pair.intents.reason}"),))
    case = _Case(pair, mode, rule, upper)
    end = tuple(_end(case))
    # An upper object that we begin to delete keeps its status, which shows the reason.
    status = () if end and upper is not None and not upper.is_deleting else _status(case)
    return Plan((*_hold(case), *_lowers(case), *status, *end))


def refused(upper: Object, message: str, key: Key, mode: Mode) -> Iterator[Patch]:
    """Patches of an upper object that was refused, by a restriction or by a lower cluster."""
    on_refused = mode.rules[key.resource].on_refused
    for part in () if on_refused is None else on_refused(upper, message):
        yield Patch(key.cluster, upper, part.patch, Reason.REFUSED, part.subresource)


class _Ownership(Enum):
    """The owner of a lower object, by its stamp."""

    UNKNOWN = auto()
    ABSENT = auto()
    FOREIGN = auto()
    OTHER_ROUTE = auto()  # a copy of this upper object, by another route between the same clusters: left alone
    FORMER = auto()  # ours, of a former upper object of the same name
    OURS = auto()


class _Case:
    """A pair with what all parts of the decision need of it, computed once."""

    __slots__ = ("is_finished", "lifecycle", "mode", "owners", "pair", "placed", "rule", "upper", "wanted")

    def __init__(self, pair: Pair, mode: Mode, rule: Rule, upper: Object | None) -> None:
        self.pair, self.mode, self.rule, self.upper, self.lifecycle = pair, mode, rule, upper, rule.lifecycle
        self.is_finished = upper is not None and rule.lifecycle.is_finished(upper)
        intents: Mapping[str, Grade] = {} if isinstance(pair.intents, Unknown) else pair.intents
        self.owners = {c: _ownership(pair, c, upper) for c in sorted(pair.lowers.keys() | intents.keys())}
        self.placed = {c: Grade.CHOSEN if g is Grade.KEPT else g for c, g in intents.items() if self._counts(c, g)}
        self.wanted = {} if upper is None or upper.is_deleting else _strongest(self.placed)

    def _counts(self, cluster: str, grade: Grade) -> bool:
        """Whether an intent counts: KEPT does where a copy is, and for an upper object that ends with its copy."""
        is_absent = self.owners[cluster] in {_Ownership.ABSENT, _Ownership.FOREIGN, _Ownership.FORMER}
        is_ending = self.upper is not None and (self.upper.is_deleting or self.is_lost(self.upper))
        return grade is not Grade.KEPT or not is_absent or is_ending

    @property
    def home(self) -> str:
        """The upper cluster."""
        return self.pair.key.cluster

    @property
    def has_copies(self) -> bool:
        """Whether copies are left, or may be."""
        left = {_Ownership.OURS, _Ownership.FORMER, _Ownership.UNKNOWN}
        return bool(self.pair.leftovers) or not left.isdisjoint(self.owners.values())

    @property
    def lacks_finalizer(self) -> bool:
        """Whether our finalizer has to be added before a copy is created."""
        if self.upper is None or not self.wanted or self.is_finished or not self.lifecycle.finalizer:
            return False
        return self.lifecycle.finalizer not in self.upper.metadata.finalizers

    def grace_of(self, lower: Object, upper: Object | None) -> int | None:
        """The deletion grace period of a lower object; `upper` is None if it is of a former life."""
        origin = None if upper is not None else stamp.of(lower)
        return self.lifecycle.grace(upper, is_forced=origin is not None and origin.uid in self.pair.forced)

    def is_over(self, lower: Object) -> bool:
        """The upper object was finished by another client: its lower one must stop, and can't change its status."""
        return self.is_finished and not self.lifecycle.is_finished(lower)

    def is_lost(self, upper: Object) -> bool:
        """The upper object ends with its lower one, which has run."""
        return self.lifecycle.ends_with_lower and self.lifecycle.has_run(upper)


def _hold(case: _Case) -> Iterator[Action]:
    """Add our finalizer to an upper object that is placed."""
    if case.upper is not None and case.lacks_finalizer:
        finalizers = (*case.upper.metadata.finalizers, case.lifecycle.finalizer)
        yield SetFinalizers(case.home, case.upper, finalizers, Reason.HELD)


def _lowers(case: _Case) -> Iterator[Action]:
    """What to do in the lower clusters."""
    for leftover_cluster, leftovers in case.pair.leftovers.items():
        for leftover in leftovers:
            yield from _delete(leftover, leftover_cluster, Reason.FORMER, case.grace_of(leftover, None))
    for cluster, owner in case.owners.items():
        lower, grade = case.pair.lowers.get(cluster), case.wanted.get(cluster)
        match owner, lower:
            case _Ownership.UNKNOWN, _:
                yield from _unknown(case, lower, cluster)
            case _Ownership.ABSENT, _ if case.upper is not None and grade is not None:
                yield from _absent(case, case.upper, cluster, grade)
            case _Ownership.FOREIGN, Object() if grade is not None and not case.lifecycle.may_share(lower.name):
                yield Conflict(cluster, lower, plan.conflict_message(case.rule.resource, lower.key, cluster))
            case _Ownership.FORMER, Object():
                yield from _delete(lower, cluster, Reason.FORMER, case.grace_of(lower, None))
            case _Ownership.OURS, Object():
                yield from _present(case, lower, cluster, grade)


def _unknown(case: _Case, lower: Side, cluster: str) -> Iterator[Action]:
    """Why nothing is decided in this cluster. A missing right is reported: no retry can change it."""
    yield Wait(f"{cluster} is unknown: {lower.reason}" if isinstance(lower, Unknown) else f"no link to {cluster}")
    if cluster in case.wanted and not case.is_finished and (message := case.pair.forbidden.get(cluster)):
        yield Refuse(cluster, message)
        if case.upper is not None and isinstance(lower, Unknown) and lower.last is None:
            yield from _refused(case, case.upper, cluster, message)


def _absent(case: _Case, upper: Object, cluster: str, grade: Grade) -> Iterator[Action]:
    """What to do where a lower object should be and is not."""
    if case.is_finished or (grade is Grade.CHOSEN and case.is_lost(upper)):
        return
    pair, link = case.pair, case.pair.links[cluster]
    if refusal := case.rule.refusal(upper, link):
        yield from _refuse(case, upper, cluster, refusal)
    elif case.lifecycle.runs_once and grade is Grade.CHOSEN and (rivals := _rivals(case)):
        yield Wait(f"waiting for its copy in {rivals[0]} to be deleted")
    elif pair.missing and pair.patience:
        yield Wait(pair.missing, seconds=pair.patience)
    elif pair.missing:
        yield from _refuse(case, upper, cluster, pair.missing)
    elif message := pair.forbidden.get(cluster):
        yield from _refuse(case, upper, cluster, message)
    elif reason := pair.blocked.get(cluster):
        yield Wait(reason)
        if cluster in pair.refused:
            yield from refused(upper, pair.refused[cluster], pair.key, case.mode)
    elif case.lacks_finalizer:
        yield Wait("its finalizer is added first")
    else:
        yield from _omission(case, upper, cluster)
        yield from _create(case, upper, cluster)


def _create(case: _Case, upper: Object, cluster: str) -> Iterator[Action]:
    if not upper.is_whole:
        yield _over_limit(case, cluster, upper) or Read(case.home)
        return
    on_create, made = case.rule.on_create, case.mode.desired(upper, case.pair.key, case.pair.links[cluster])
    made = made if on_create is None else on_create(made)
    if over := _over_limit(case, cluster, made):
        yield over
        yield from _refused(case, upper, cluster, over.message)
    else:
        yield Create(cluster, made, Reason.PLACED)


def _over_limit(case: _Case, cluster: str, desired: Object, lower: Object | None = None) -> OverLimit | None:
    """Why a copy can't be created or changed, if that would exceed a limit of the upper cluster."""
    if (room := case.pair.room.get(cluster)) is None:
        return None
    resource = case.rule.resource
    needs = limits.difference(limits.amounts(resource, desired), limits.amounts(resource, lower))
    limit = room.exceeded(needs)
    return None if limit is None else OverLimit(cluster, limit, needs, room)


def _refuse(case: _Case, upper: Object, cluster: str, message: str) -> Iterator[Action]:
    yield Refuse(cluster, message)
    yield from _refused(case, upper, cluster, message)


def _refused(case: _Case, upper: Object, cluster: str, message: str) -> Iterator[Patch]:
    yield from refused(upper, case.mode.upper_message(message, case.pair.links[cluster]), case.pair.key, case.mode)


def _present(case: _Case, lower: Object, cluster: str, grade: Grade | None) -> Iterator[Action]:
    """What to do about a lower object of ours."""
    upper, lifecycle = case.upper, case.lifecycle
    if upper is None and cluster in case.pair.in_use:
        yield Wait(f"other objects in {cluster} still read it")
    elif upper is not None and upper.is_deleting and _owes_result(case, upper, lower, cluster):
        yield Wait(f"its final status in {cluster} is synced first")
    elif upper is not None and upper.is_deleting and lifecycle.deleted_last:
        yield Wait(f"it stays in {cluster} until the upper object is gone")
    elif upper is None or upper.is_deleting or (grade is None and not _stays(case, cluster)):
        yield from _delete(lower, cluster, Reason.NOT_PLACED, case.grace_of(lower, upper))
    elif case.is_over(lower):
        yield from _delete(lower, cluster, Reason.FINISHED, case.grace_of(lower, upper))
    elif not lower.is_deleting and cluster not in case.pair.in_sync:
        yield from _update(case, upper, lower, cluster)
    if seconds := case.pair.retained.get(cluster):
        yield Wait(f"it is retained in {cluster}", seconds=seconds)


def _stays(case: _Case, cluster: str) -> bool:
    """Whether a copy that is not placed stays, for good or for a while."""
    return case.lifecycle.outlives_users or cluster in case.pair.retained


def _update(case: _Case, upper: Object, lower: Object, cluster: str) -> Iterator[Action]:
    """Bring a copy to its desired state; a refused change leaves it as it is."""
    link = case.pair.links[cluster]
    if refusal := case.rule.refusal(upper, link):
        yield Refuse(cluster, refusal)
        return
    if not upper.is_whole:
        yield Read(case.home)
        return
    yield from _omission(case, upper, cluster)
    desired = case.mode.desired(upper, case.pair.key, link)
    patches = [
        Patch(cluster, lower, part.patch, Reason.CHANGED, part.subresource)
        for part in case.rule.down_patches(lower, desired)
    ]
    over = _over_limit(case, cluster, desired, lower) if patches else None
    yield from patches if over is None else (over,)


def _omission(case: _Case, upper: Object, cluster: str) -> Iterator[Action]:
    """Report what the copy lacks."""
    if omission := case.rule.omission(upper, case.pair.links[cluster]):
        yield Refuse(cluster, omission)


def _owes_result(case: _Case, upper: Object, lower: Object, cluster: str) -> bool:
    """An owner holds the upper object by a finalizer until it sees the final status, which only the lower one has."""
    is_chosen = case.placed.get(cluster) is Grade.CHOSEN
    is_held = is_chosen and case.lifecycle.other_finalizers(upper)
    return bool(is_held) and not case.is_finished and case.lifecycle.is_finished(lower)


def _delete(lower: Object, cluster: str, reason: Reason, grace: int | None) -> Iterator[Action]:
    """Delete a lower object once, and again only with a shorter grace period."""
    given = lower.metadata.deletion_grace_period_seconds
    if not lower.is_deleting or (grace is not None and given is not None and grace < given):
        yield Delete(cluster, lower, reason, grace)


def _status(case: _Case) -> Iterator[Action]:
    """What is synced up."""
    if case.upper is None:
        return
    yield from _moved(case, case.upper)
    for cluster in sorted(c for c, grade in case.placed.items() if grade is Grade.CHOSEN):
        lower = case.pair.lowers.get(cluster)
        if case.owners[cluster] is _Ownership.OURS and isinstance(lower, Object) and not case.is_over(lower):
            yield from _status_of(case, case.upper, lower, case.pair.links[cluster])
        elif case.owners[cluster] is not _Ownership.UNKNOWN:
            continue
        if not case.rule.merges_statuses:
            return  # one of several is the source, also while it is unknown: another one would contradict it


def _moved(case: _Case, upper: Object) -> Iterator[Action]:
    """Record on the upper object that a former cluster has no copy left: the schedulers can't read that cluster."""
    if (on_moved := case.rule.on_moved) is None:
        return
    for cluster, grade in case.placed.items():
        if grade is Grade.PAST and case.owners[cluster] in {_Ownership.ABSENT, _Ownership.FOREIGN}:
            for part in on_moved(upper, cluster):
                yield Patch(case.home, upper, part.patch, Reason.RELEASED, part.subresource)


def _status_of(case: _Case, upper: Object, lower: Object, link: Link) -> Iterator[Action]:
    """Sync one lower object up: first its node, because an unbound pod can't have a status."""
    bound_node, up_patches = case.rule.bound_node, case.rule.up_patches
    lower_node = "" if bound_node is None or upper.is_deleting else bound_node(lower)
    if lower_node and not placement.node_of(upper):
        node = case.mode.upper_node(lower_node, link)
        if link.lookups.upper(resources.NODES, NamespacedName("", node)) is None:
            until = Key(case.home, resources.NODES, "", node)
            yield Wait(f"node {node} is not in {case.home} yet", until=until)
            return
        yield Bind(case.home, upper, node, Reason.STATUS)
        return  # the answer changes the status, too: often nothing is left to sync then
    for part in () if up_patches is None else up_patches(upper, lower, link):
        yield Patch(case.home, upper, part.patch, Reason.STATUS, part.subresource)


def _end(case: _Case) -> Iterator[Action]:
    """The end of an upper object whose lower one is gone or going. Nothing while a cluster is unknown."""
    upper, owners = case.upper, case.owners.values()
    if upper is not None and not upper.is_deleting and _is_evicted(case, upper):
        yield Delete(case.home, upper, Reason.EVICTED)
        return
    if upper is None or _Ownership.UNKNOWN in owners or _Ownership.OTHER_ROUTE in owners:
        return
    if not upper.is_deleting and not case.is_finished and case.is_lost(upper):
        yield from _lost(case, upper)
    if case.has_copies or isinstance(case.pair.intents, Unknown) or (case.wanted and not upper.is_deleting):
        return
    # The finalizer goes first: its patch requires the version that was read.
    if case.lifecycle.finalizer in upper.metadata.finalizers:
        yield SetFinalizers(case.home, upper, case.lifecycle.other_finalizers(upper), Reason.RELEASED)
    if upper.is_deleting and case.placed:
        yield from _complete_deletion(case, upper)


def _is_evicted(case: _Case, upper: Object) -> bool:
    """Whether a cluster where it is placed is going away."""
    is_evicted, links = case.rule.is_evicted, case.pair.links
    return is_evicted is not None and any(c in links and is_evicted(upper, links[c]) for c in case.wanted)


def _complete_deletion(case: _Case, upper: Object) -> Iterator[Action]:
    """No lower object is left: write the final status and, as its kubelet, delete the upper object for good."""
    if status := case.lifecycle.final_status(upper):
        yield Patch(case.home, upper, status, Reason.RELEASED, "status")
    # One that waits for a finalizer of others was deleted with no grace period already. One that waits for nothing is
    # deleted again: its API server died in between.
    is_waiting = upper.metadata.deletion_grace_period_seconds == 0 and upper.metadata.finalizers
    if case.lifecycle.completes_deletion and not is_waiting:
        yield Delete(case.home, upper, Reason.RELEASED, grace=0)


def _lost(case: _Case, upper: Object) -> Iterator[Action]:
    """Delete the upper object as its lower one was: at once if that is gone, else with the same grace period."""
    for cluster in sorted(c for c, grade in case.wanted.items() if grade is Grade.CHOSEN):
        lower = case.pair.lowers.get(cluster)
        if case.owners[cluster] is not _Ownership.OURS or not isinstance(lower, Object):
            yield Delete(case.home, upper, Reason.LOST, grace=0)
            return
        if lower.is_deleting and not case.lifecycle.is_finished(lower):
            yield Delete(case.home, upper, Reason.LOST, lower.metadata.deletion_grace_period_seconds)
            return


def _rivals(case: _Case) -> list[str]:
    """Where copies are, or may be, that must be gone before the chosen one is created."""
    rivals = {_Ownership.OURS, _Ownership.FORMER, _Ownership.UNKNOWN}
    unwanted = [c for c, owner in case.owners.items() if c not in case.wanted and owner in rivals]
    return [*unwanted, *case.pair.leftovers]


def _strongest(intents: Mapping[str, Grade]) -> Mapping[str, Grade]:
    """Candidates count until one is chosen; PAST is never wanted."""
    best = max(intents.values(), default=Grade.CANDIDATE)
    return {cluster: grade for cluster, grade in intents.items() if grade is best and grade is not Grade.PAST}


def _ownership(pair: Pair, cluster: str, upper: Object | None) -> _Ownership:
    side, link = pair.lowers.get(cluster), pair.links.get(cluster)
    if link is None:
        return _Ownership.UNKNOWN
    if isinstance(side, Unknown):
        # A cluster where the object is not placed matters while it is unknown only if a copy was there.
        is_placed = not isinstance(pair.intents, Unknown) and cluster in pair.intents
        was_there = side.last is not None and _owner(side.last, pair.key, link, upper) is _Ownership.OURS
        return _Ownership.UNKNOWN if is_placed or was_there else _Ownership.ABSENT
    return _Ownership.ABSENT if side is None else _owner(side, pair.key, link, upper)


def _owner(lower: Object, key: Key, link: Link, upper: Object | None) -> _Ownership:
    origin = stamp.of(lower)
    if origin is None or (origin.upper, origin.namespace, origin.name) != (link.upper_id, key.namespace, key.name):
        return _Ownership.FOREIGN
    if upper is None:
        return _Ownership.OURS
    if origin.uid != upper.uid:
        return _Ownership.FORMER
    return _Ownership.OTHER_ROUTE if origin.is_other_route(link.nodes) else _Ownership.OURS
