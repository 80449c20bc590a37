"""The decision: what to write so that the lower objects follow the upper one and its status comes back.

`decide` is pure and total: it has an answer for every pair, and applying its answers ends in a pair that needs none.
"""

from collections.abc import Iterator, Mapping
from enum import Enum, auto

from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.model import placement, stamp
from hansa.model.mode import Mode, Rule
from hansa.model.pair import Grade, Key, Link, Pair, Unknown
from hansa.model.plan import Action, Bind, Conflict, Create, Delete, Patch, Plan, Refuse, Wait


def decide(pair: Pair, mode: Mode) -> Plan:
    """What to write now. An upper object is ended last, so that it still takes what its lower one tells."""
    rule, upper = mode.rules.get(pair.key.resource), pair.upper
    if rule is None:
        return Plan()
    if isinstance(upper, Unknown):
        return Plan((Wait(f"{pair.key.cluster} cannot be seen: {upper.reason}"),))
    if isinstance(pair.intents, Unknown) and upper is not None and not upper.is_leaving:
        return Plan((Wait(f"where it belongs cannot be seen: {pair.intents.reason}"),))
    view = _View(pair, mode, rule, upper)
    end = tuple(_end(view))
    # One that ends only now is told first that it leaves: what it was told before is why, and must stand until then.
    told = () if end and upper is not None and not upper.is_leaving else _above(view)
    return Plan((*_below(view), *told, *end))


def refused(upper: Object, sentence: str, key: Key, mode: Mode) -> Iterator[Patch]:
    """What an upper object is told when it was refused, by us or by a lower cluster."""
    for part in mode.rules[key.resource].refused(upper, sentence):
        yield Patch(key.cluster, upper, part.patch, "it was refused", part.subresource)


class _Standing(Enum):
    """Whose a lower object is."""

    UNSEEN = auto()
    ABSENT = auto()
    FOREIGN = auto()
    BESIDE = auto()  # of this upper object, brought by another route between the same clusters: it serves, untouched
    FORMER = auto()  # ours, of an upper object that is gone while its name lives on
    OURS = auto()


class _View:
    """A pair with what all parts of the decision ask of it, computed once."""

    __slots__ = ("is_finished", "lifecycle", "mode", "pair", "placed", "rule", "sides", "upper", "wanted")

    def __init__(self, pair: Pair, mode: Mode, rule: Rule, upper: Object | None) -> None:
        self.pair, self.mode, self.rule, self.upper, self.lifecycle = pair, mode, rule, upper, rule.lifecycle
        self.is_finished = upper is not None and rule.lifecycle.is_finished(upper)
        self.placed: Mapping[str, Grade] = {} if isinstance(pair.intents, Unknown) else pair.intents
        self.wanted = {} if upper is None or upper.is_leaving else _strongest(self.placed)
        self.sides = {c: _standing(pair, c, upper) for c in sorted(pair.lowers.keys() | self.placed.keys())}

    def is_over(self, lower: Object) -> bool:
        """Somebody else ended the upper object: its lower one must not go on, and cannot bring it back."""
        return self.is_finished and not self.lifecycle.is_finished(lower)


def _below(view: _View) -> Iterator[Action]:
    """What to do in the lower clusters."""
    for cluster, standing in view.sides.items():
        lower, grade = view.pair.lowers.get(cluster), view.wanted.get(cluster)
        match standing, lower:
            case _Standing.UNSEEN, Unknown():
                yield Wait(f"{cluster} cannot be seen: {lower.reason}")
            case _Standing.UNSEEN, _:
                yield Wait(f"no link leads to {cluster}")
            case _Standing.ABSENT, _ if view.upper is not None and grade is not None:
                yield from _missing(view, view.upper, cluster, grade)
            case _Standing.FOREIGN, Object() if grade is not None and not view.lifecycle.shares_name(lower.name):
                yield Conflict(cluster, lower, f"{view.rule.resource} {lower.key} of {cluster} is not ours")
            case _Standing.FORMER, Object():
                yield from _leave(lower, cluster, "it belongs to a former life of its name", view.lifecycle.grace(None))
            case _Standing.OURS, Object():
                yield from _present(view, lower, cluster, grade)


def _missing(view: _View, upper: Object, cluster: str, grade: Grade) -> Iterator[Action]:
    """What to do where a lower object should be and is not."""
    if view.is_finished or (grade is Grade.CHOSEN and _ends_without(view, upper)):
        return
    link = view.pair.links[cluster]
    if objection := view.rule.check(upper, link):
        yield Refuse(cluster, objection)
        yield from refused(upper, objection, view.pair.key, view.mode)
    elif view.lifecycle.lives_once and grade is Grade.CHOSEN and (rivals := _rivals(view)):
        yield Wait(f"its copy in {rivals[0]} has to go first")
    elif view.pair.lacks and view.pair.patience:
        yield Wait(view.pair.lacks, seconds=view.pair.patience)
    elif view.pair.lacks:
        yield Refuse(cluster, view.pair.lacks)
        yield from refused(upper, view.pair.lacks, view.pair.key, view.mode)
    elif reason := view.pair.waits_for.get(cluster):
        yield Wait(reason)
    else:
        wanted = view.mode.desired(upper, view.pair.key, link)
        yield Create(cluster, view.rule.at_birth(wanted), "it is wanted here")


def _present(view: _View, lower: Object, cluster: str, grade: Grade | None) -> Iterator[Action]:
    """What to do about a lower object of ours."""
    upper, lifecycle = view.upper, view.lifecycle
    if upper is None and cluster in view.pair.in_use:
        yield Wait(f"others in {cluster} read it yet")
    elif upper is not None and upper.is_leaving and _owes_result(view, upper, lower, cluster):
        yield Wait(f"what came of it in {cluster} has to be told first")
    elif upper is not None and upper.is_leaving and lifecycle.leaves_last:
        yield Wait(f"{cluster} keeps it until it is gone")
    elif upper is None or upper.is_leaving or (grade is None and not _stays(view, cluster)):
        yield from _leave(lower, cluster, "it is no longer wanted here", lifecycle.grace(upper))
    elif view.is_over(lower):
        yield from _leave(lower, cluster, "its upper object is finished", lifecycle.grace(upper))
    elif not lower.is_leaving and cluster not in view.pair.settled:
        yield from _followed(view, upper, lower, cluster)
    if left := view.pair.lingers.get(cluster):
        yield Wait(f"it may be needed in {cluster} again", seconds=left)


def _stays(view: _View, cluster: str) -> bool:
    """Whether a copy that nobody needs stays, for ever or for a while."""
    return view.lifecycle.stays or cluster in view.pair.lingers


def _followed(view: _View, upper: Object, lower: Object, cluster: str) -> Iterator[Action]:
    """What of an upper object has changed since it travelled; nothing of it if it may not travel any more."""
    link = view.pair.links[cluster]
    if objection := view.rule.check(upper, link):
        yield Refuse(cluster, objection)
        return
    for part in view.rule.down_patches(lower, view.mode.desired(upper, view.pair.key, link)):
        yield Patch(cluster, lower, part.patch, "it differs from the upper one", part.subresource)


def _owes_result(view: _View, upper: Object, lower: Object, cluster: str) -> bool:
    """Somebody holds the upper object by a finalizer to see how it ended, and only the lower one knows."""
    is_heard = view.placed.get(cluster) is Grade.CHOSEN and upper.metadata.finalizers
    return bool(is_heard) and not view.is_finished and view.lifecycle.is_finished(lower)


def _leave(lower: Object, cluster: str, reason: str, grace: int | None) -> Iterator[Action]:
    """Delete a lower object once; again only if it may go sooner than it was told."""
    told = lower.metadata.deletion_grace_period_seconds
    if not lower.is_leaving or (grace is not None and told is not None and grace < told):
        yield Delete(cluster, lower, reason, grace)


def _is_held(obj: Object) -> bool:
    """It was told to go at once, and waits for somebody else's finalizer.

    One that nothing holds is deleted again: its API server died between the order and the deletion.
    """
    return obj.metadata.deletion_grace_period_seconds == 0 and bool(obj.metadata.finalizers)


def _above(view: _View) -> Iterator[Action]:
    """What the lower object tells where the upper one lives."""
    if view.upper is None:
        return
    yield from _handed_over(view, view.upper)
    for cluster in sorted(c for c, grade in view.placed.items() if grade is Grade.CHOSEN):
        lower = view.pair.lowers.get(cluster)
        if view.sides[cluster] is _Standing.OURS and isinstance(lower, Object) and not view.is_over(lower):
            yield from _told(view, view.upper, lower, view.pair.links[cluster])
        elif view.sides[cluster] is not _Standing.UNSEEN:
            continue
        if not view.rule.all_tell:
            return  # one of several speaks, also while it is unseen: another one would contradict it


def _handed_over(view: _View, upper: Object) -> Iterator[Action]:
    """Where it was before nothing of it is left: those who cannot see that cluster wait to be told."""
    for cluster, grade in view.placed.items():
        if grade is Grade.PAST and view.sides[cluster] in {_Standing.ABSENT, _Standing.FOREIGN}:
            for part in view.rule.handed_over(upper, cluster):
                reason = "nothing of it is left where it was before"
                yield Patch(view.pair.key.cluster, upper, part.patch, reason, part.subresource)


def _told(view: _View, upper: Object, lower: Object, link: Link) -> Iterator[Action]:
    """What one lower object tells: first where it runs, because nobody believes the status of a pod without a node."""
    home = view.pair.key.cluster
    below = "" if upper.is_leaving else view.rule.binds(lower)
    if below and not placement.node_of(upper):
        node = view.mode.upper_node(below, link)
        if link.around.upper(resources.NODES, Place("", node)) is None:
            yield Wait(f"node {node} is not in {home} yet", until=Key(home, resources.NODES, "", node))
            return
        yield Bind(home, upper, node, f"{link.lower} tells")
        return  # its answer changes the status, too: what is still to be told then is often nothing
    for part in view.rule.up_patches(upper, lower, link):
        yield Patch(home, upper, part.patch, f"{link.lower} tells", part.subresource)


def _end(view: _View) -> Iterator[Action]:
    """The end of an upper object whose lower one is gone, or is going by itself. None while a side is unseen."""
    upper, home, standings = view.upper, view.pair.key.cluster, view.sides.values()
    if upper is None or _Standing.UNSEEN in standings or _Standing.BESIDE in standings:
        return
    if not upper.is_leaving:
        if not view.is_finished and _ends_without(view, upper):
            yield from _lost(view, upper)
    elif view.placed and _Standing.OURS not in standings and _Standing.FORMER not in standings:
        if said := view.lifecycle.farewell(upper):
            yield Patch(home, upper, said, "nothing of it is left below", "status")
        if view.lifecycle.releases and not _is_held(upper):
            yield Delete(home, upper, "nothing of it is left below", grace=0)


def _lost(view: _View, upper: Object) -> Iterator[Action]:
    """The upper object ends as its lower one does: at once if that is gone, with the same grace if that is leaving."""
    home = view.pair.key.cluster
    for cluster in sorted(c for c, grade in view.wanted.items() if grade is Grade.CHOSEN):
        lower = view.pair.lowers.get(cluster)
        if view.sides[cluster] is not _Standing.OURS or not isinstance(lower, Object):
            yield Delete(home, upper, f"its lower object in {cluster} is lost", grace=0)
            return
        if lower.is_leaving and not view.lifecycle.is_finished(lower):
            grace = lower.metadata.deletion_grace_period_seconds
            yield Delete(home, upper, f"its lower object in {cluster} was told to leave", grace)
            return


def _ends_without(view: _View, upper: Object) -> bool:
    return view.lifecycle.ends_with_lower and view.lifecycle.was_below(upper)


def _rivals(view: _View) -> list[str]:
    """Where copies are, or may be, that must be gone before the chosen one is made."""
    rivals = {_Standing.OURS, _Standing.FORMER, _Standing.UNSEEN}
    return [c for c, standing in view.sides.items() if c not in view.wanted and standing in rivals]


def _strongest(intents: Mapping[str, Grade]) -> Mapping[str, Grade]:
    """Candidates count until a choice is made; where it was before it is not wanted."""
    best = max(intents.values(), default=Grade.CANDIDATE)
    return {cluster: grade for cluster, grade in intents.items() if grade is best and grade is not Grade.PAST}


def _standing(pair: Pair, cluster: str, upper: Object | None) -> _Standing:
    side, link = pair.lowers.get(cluster), pair.links.get(cluster)
    if link is None:
        return _Standing.UNSEEN
    if isinstance(side, Unknown):
        # A cluster that nobody meant matters while it cannot be seen only if a copy was there.
        is_meant = not isinstance(pair.intents, Unknown) and cluster in pair.intents
        was_there = side.last is not None and _whose(side.last, pair.key, link, upper) is _Standing.OURS
        return _Standing.UNSEEN if is_meant or was_there else _Standing.ABSENT
    return _Standing.ABSENT if side is None else _whose(side, pair.key, link, upper)


def _whose(lower: Object, key: Key, link: Link, upper: Object | None) -> _Standing:
    origin = stamp.of(lower)
    if origin is None or (origin.upper, origin.namespace, origin.name) != (link.upper_id, key.namespace, key.name):
        return _Standing.FOREIGN
    if upper is None:
        return _Standing.OURS
    if origin.uid != upper.uid:
        return _Standing.FORMER
    return _Standing.BESIDE if origin.is_beside(link.nodes) else _Standing.OURS
