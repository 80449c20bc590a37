"""Snapshots: all that a decision on one key reads, taken from caches at one moment, without effects.

A snapshot also has the topics whose changes requeue the key. Registering these is left to `upper_view`.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from hansa.engine.view import forbidden, placeholders
from hansa.engine.view.clusters import BY_NAMESPACE, LinkedClusters
from hansa.engine.view.forced_deletions import ForcedDeletions
from hansa.engine.view.in_sync import InSync
from hansa.engine.view.pending_limit import PendingLimit
from hansa.engine.view.placements import Placements
from hansa.engine.view.refusals import Refusals
from hansa.engine.view.retention import Retention
from hansa.engine.view.topics import LowerName, NamespaceScope, ObjectRef, Topic
from hansa.engine.view.usage import Usage
from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys, pair, placement, stamp
from hansa.model.limits import Room
from hansa.model.lookups import Found, Lookups, Undeclared
from hansa.model.mode import MOST_SELECTING, Rule
from hansa.model.pair import Grade, Key, Link, Pair, Unknown
from hansa.model.references import Reference
from hansa.runtime import clock

OVER_BUDGET = "it is not cached: the upper cluster stores too much"
WRITE_IN_FLIGHT = "a write is in flight"  # its end requeues the key


class Snapshot(NamedTuple):
    """A pair; the topics whose change requeues its key; the clusters where it waits because of the pending limit."""

    pair: Pair
    topics: tuple[Topic, ...] = ()
    pending: frozenset[str] = frozenset()


class _Blocked(NamedTuple):
    """Why a copy can't be created yet, by cluster, and the topics that may change it."""

    reasons: Mapping[str, str]
    topics: tuple[Topic, ...] = ()
    pending: frozenset[str] = frozenset()
    forbidden: Mapping[str, str] = MappingProxyType({})  # where it is a missing right, as a message
    refused: Mapping[str, str] = MappingProxyType({})  # where such an object was refused, and why


_NOT_BLOCKED = _Blocked({})


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Takes snapshots of one upper cluster and its lower ones."""

    clusters: LinkedClusters
    placements: Placements
    in_sync: InSync
    pending: PendingLimit
    retention: Retention
    forced: ForcedDeletions
    refusals: Refusals
    usage: Usage
    in_flight: set[tuple[Key, str]]  # keys and clusters with a write that has no answer yet
    clock: clock.Clock

    def of(self, key: Key, *, whole: Object | None = None) -> Snapshot:
        """All that a decision on the key reads. `whole` replaces an outline of the same version."""
        rule, upper_side = self.clusters.mode.rules[key.resource], self.clusters.upper
        sources = rule.computed_from(key)
        topics: list[Topic] = [NamespaceScope(key.cluster, one.resource, one.namespace) for one in sources]
        if reason := upper_side.unknown_reason_of(key.resource):
            return Snapshot(Pair(key, Unknown(reason)), (*topics, key.cluster))
        is_written = (key, key.cluster) in self.in_flight
        upper = Unknown(WRITE_IN_FLIGHT) if is_written else self.placements.source(key)
        if isinstance(upper, Unknown):
            return Snapshot(Pair(key, upper), tuple(topics))
        if upper is not None and whole is not None and (upper.uid, upper.version) == (whole.uid, whole.version):
            upper = whole
        if upper is not None and not upper.is_whole and not rule.unused_last:
            return Snapshot(Pair(key, Unknown(OVER_BUDGET)), tuple(topics))
        return self._known(key, upper, rule, topics)

    def _known(self, key: Key, upper: Object | None, rule: Rule, topics: list[Topic]) -> Snapshot:
        intents = {} if upper is None else self.placements.of(key, upper)
        placed: Mapping[str, Grade] = {} if isinstance(intents, Unknown) else intents
        lowers: dict[str, pair.Side] = {}
        leftovers: dict[str, tuple[Object, ...]] = {}
        for name in self.clusters.lowers:
            below = self.clusters.below(key, name, "" if upper is None else upper.uid)
            if name in placed or any(below):
                lowers[name] = side = self._side(key, name, below.lower)
                topics.extend(self._side_topics(key, name, side))
                if below.leftovers and not isinstance(side, Unknown):
                    leftovers[name] = below.leftovers
        missing = self._missing(key) if upper is not None and None in lowers.values() else None
        blocked = _NOT_BLOCKED
        if upper is not None and not upper.is_deleting and missing is None:
            blocked = self._blocked(key, [name for name, lower in lowers.items() if lower is None])
        in_sync = frozenset[str]() if upper is None else self.in_sync.clusters(key, upper, lowers, placed)
        seconds = rule.lifecycle.retention
        found = Pair(
            key,
            upper,
            links={
                name: self._link(name, rule, upper, side, placed.get(name, Grade.CHOSEN), is_in_sync=name in in_sync)
                for name, side in lowers.items()
            },
            lowers=lowers,
            leftovers=leftovers,
            intents=intents,
            blocked=blocked.reasons,
            forbidden={**self._forbidden(key, rule, placed), **blocked.forbidden},
            refused=blocked.refused,
            missing="" if missing is None else placeholders.message(missing),
            patience=0.0 if upper is None or missing is None else placeholders.patience(upper, self.clock),
            in_use=self._in_use(key, lowers) if upper is None else frozenset(),
            retained=self.retention.left(key, lowers, placed, seconds=seconds) if seconds else {},
            in_sync=in_sync,
            forced=frozenset(self._forced(lowers, leftovers)),
            room={} if upper is None else self._room(key, rule, lowers, blocked.reasons, in_sync),
        )
        topics.extend(blocked.topics if missing is None else (missing,))
        return Snapshot(found, tuple(topics), blocked.pending)

    def _room(
        self, key: Key, rule: Rule, lowers: Mapping[str, pair.Side], blocked: Mapping[str, str], in_sync: frozenset[str]
    ) -> dict[str, Room]:
        """What is left of the upper cluster's limits where a copy may be written."""
        users = self.placements.users(key) if rule.unused_last else lowers.keys()
        found: dict[str, Room] = {}
        for name, side in lowers.items():
            is_settled = isinstance(side, Unknown) or name in in_sync or name in blocked
            if not is_settled and (room := self.usage.room(name, is_used=name in users)) is not None:
                found[name] = room
        return found

    def _forced(self, lowers: Mapping[str, pair.Side], leftovers: Mapping[str, tuple[Object, ...]]) -> Iterator[str]:
        for lower in (*lowers.values(), *itertools.chain.from_iterable(leftovers.values())):
            uid = lower.annotations.get(keys.UPPER_UID, "") if isinstance(lower, Object) else ""
            if uid in self.forced:
                yield uid

    def _side(self, key: Key, cluster: str, lower: Object | None) -> pair.Side:
        if reason := self.clusters.lowers[cluster].unknown_reason_of(key.resource):
            return Unknown(reason, last=lower)
        return Unknown(WRITE_IN_FLIGHT, last=lower) if (key, cluster) in self.in_flight else lower

    def _side_topics(self, key: Key, cluster: str, side: pair.Side) -> Iterator[Topic]:
        if isinstance(side, Unknown) and side.reason != WRITE_IN_FLIGHT:
            yield cluster
        elif isinstance(side, Object) and side.labels.get(keys.UPPER) != self.clusters.upper_id:
            yield LowerName(cluster, key.resource, side.key)

    def _link(
        self, cluster: str, rule: Rule, upper: Object | None, lower: pair.Side, grade: Grade, *, is_in_sync: bool
    ) -> Link:
        """The link with the grade of the placement, and with what the rule reads along it."""
        link = self.clusters.links[cluster]
        references: list[Reference] = []
        if upper is not None and rule.reads is not None and (rule.reads.by_way_up or not is_in_sync):
            references.extend(rule.reads.objects(upper))
        bound_node = None if upper is None or rule.bound_node is None or placement.node_of(upper) else rule.bound_node
        if bound_node is not None and isinstance(lower, Object) and (node := bound_node(lower)):
            references.append(Reference(resources.NODES, "", self.clusters.mode.upper_node(node, link)))
        if not references:
            return link if grade is link.grade else replace(link, grade=grade)
        declared = frozenset({resources.NODES}) | (rule.reads.kinds if rule.reads is not None else frozenset())
        if undeclared := {one.resource for one in references} - declared:
            raise Undeclared(f"{rule.resource} reads {', '.join(map(str, undeclared))}: declare them in Rule.reads")
        return replace(link, grade=grade, lookups=self._lookups(references, cluster, rule))

    def _lookups(self, references: Iterable[Reference], cluster: str, rule: Rule) -> Lookups:
        found: dict[tuple[Resource, NamespacedName], Found] = {}
        listed: dict[tuple[Resource, str], tuple[NamespacedName, ...]] = {}
        for one in references:
            names: tuple[NamespacedName, ...] = (NamespacedName(one.namespace, one.name),)
            if not one.name:
                names = listed[one.resource, one.namespace] = self._names(one, rule)
            for name in names:
                key = self.clusters.key(ObjectRef(one.resource, name))
                found[one.resource, name] = Found(self.clusters.get(key), self.clusters.copy(key, cluster))
        return Lookups(found, listed)

    def _names(self, reference: Reference, rule: Rule) -> tuple[NamespacedName, ...]:
        found = self.clusters.upper.stores[reference.resource].find(BY_NAMESPACE, reference.namespace)
        most = MOST_SELECTING if reference.resource in rule.selected_by else None
        return tuple(obj.key for obj in itertools.islice(found, most))

    def _blocked(self, key: Key, clusters: Iterable[str]) -> _Blocked:
        """Why copies can't be created: the pending limit, or objects that must exist before."""
        reasons: dict[str, str] = {}
        missing_rights: dict[str, str] = {}
        refused: dict[str, str] = {}
        topics: list[Topic] = []
        pending = frozenset(cluster for cluster in clusters if not self.pending.admits(key, cluster))
        for cluster in clusters:
            if cluster in pending:
                reasons[cluster] = f"the limit of pending objects of {self.clusters.name} in {cluster} is reached"
                continue
            for needed in self._required(key):
                if self._is_ready(needed, cluster):
                    continue
                if self.clusters.lowers[cluster].is_forbidden(needed.resource):
                    missing_rights[cluster] = forbidden.message(needed, cluster)
                    topics.append(cluster)
                else:
                    name = NamespacedName(needed.namespace, needed.name)
                    reasons[cluster] = f"waiting for {needed.resource.kind} {name} in {cluster}"
                    # An object that is not ours may be used too, such as a service account of the same name.
                    lower_name = self.clusters.mode.lower_name(needed, "", self.clusters.links[cluster])
                    topics += [needed, LowerName(cluster, needed.resource, lower_name)]
                    if refusal := self.refusals.of(needed, cluster):
                        refused[cluster] = refusal
        return _Blocked(reasons, tuple(topics), pending, missing_rights, refused)

    def _forbidden(self, key: Key, rule: Rule, clusters: Iterable[str]) -> dict[str, str]:
        """The clusters that may not be asked about the object's own kind, for objects that run there.

        Others would have an event each for one missing right. The objects that need them have one, and so has the log.
        """
        lowers = self.clusters.lowers if rule.lifecycle.runs_once else {}
        known = [name for name in clusters if name in lowers]
        return {name: forbidden.message(key, name) for name in known if lowers[name].is_forbidden(key.resource)}

    def _required(self, key: Key) -> Iterator[Key]:
        """What must exist before an object: its namespace, if namespaces are synced, and its references."""
        if key.namespace and resources.NAMESPACES in self.clusters.mode.rules:
            yield Key(key.cluster, resources.NAMESPACES, "", key.namespace)
        name = NamespacedName(key.namespace, key.name)
        yield from map(self.clusters.key, self.placements.references.names(key.resource, name))
        for one in self.clusters.mode.rules[key.resource].computed_from(key):
            if one.name:
                yield Key(key.cluster, one.resource, one.namespace, one.name)

    def _is_ready(self, key: Key, cluster: str) -> bool:
        """Whether an object exists in a lower cluster, or is not placed there."""
        rule = self.clusters.mode.rules.get(key.resource)
        upper = None if rule is None else self.placements.source(key)
        if rule is None or upper is None:
            # Not synced. Without its Namespace, the lower name could be that of a namespace of others.
            return key.resource != resources.NAMESPACES
        if isinstance(upper, Unknown):
            return False
        intents = self.placements.of(key, upper)
        if not isinstance(intents, Unknown) and cluster not in intents:
            return True
        lower = self.clusters.below(key, cluster, upper.uid).lower
        if lower is None or lower.is_deleting:
            return False
        origin = stamp.of(lower)
        is_ours = origin is not None and (origin.upper, origin.uid) == (self.clusters.upper_id, upper.uid)
        return is_ours or rule.lifecycle.may_share(lower.name)

    def _missing(self, key: Key) -> Key | None:
        """The first object that this one refers to, that must exist in the upper cluster, and does not."""
        for ref in self.placements.references.required(key.resource, NamespacedName(key.namespace, key.name)):
            needed = self.clusters.key(ref)
            if ref.resource in self.clusters.upper.stores and self.clusters.get(needed) is None:
                return needed
        return None

    def _in_use(self, key: Key, clusters: Iterable[str]) -> frozenset[str]:
        """The clusters where other objects read the copy of this object, which no longer exists."""
        ref = ObjectRef(key.resource, NamespacedName(key.namespace, key.name))
        users = self.placements.users(key)
        read = {cluster for cluster in clusters if cluster in users and self._is_read(ref, cluster)}
        kept_for = self.clusters.mode.rules[key.resource].outlives(key)
        if kept_for is not None:
            read |= {one for one in clusters if self.clusters.has_copies(kept_for, key.namespace, one)}
        return frozenset(read)

    def _is_read(self, ref: ObjectRef, cluster: str) -> bool:
        readers = map(self.clusters.key, self.placements.references.readers(ref))
        return any(self.clusters.copy(reader, cluster) is not None for reader in readers)
