"""What is known of one upper cluster and of the lower clusters that it is linked to: caches in, pairs out.

Nothing here writes or waits. What keeps a key from being decided is noted, so that its coming wakes the key.
"""

import collections
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeGuard

import msgspec

from hansa.engine import absence, around, crowding, lingering, namespaces, references, tokens, waiting
from hansa.engine.references import Name
from hansa.engine.registry import Route
from hansa.engine.side import Side
from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys, pair, placement, stamp
from hansa.model.mode import Mode
from hansa.model.pair import Key, Link, Pair, Unknown
from hansa.model.references import Reference
from hansa.runtime import clock

UNDER_WAY = "a write is under way there"  # its end wakes the key
BY_UPPER = "upper"  # the index of a lower cache by the upper cluster that marks name


def by_upper(obj: Object) -> tuple[str, ...]:
    """The upper cluster whose object this is a copy of, if it is one."""
    upper = obj.labels.get(keys.UPPER)
    return (upper,) if upper else ()


class Spot(NamedTuple):
    """A place in a lower cluster that somebody else's object has."""

    cluster: str
    resource: Resource
    place: Place


class Area(NamedTuple):
    """All upper objects of a kind in a namespace, and their copies."""

    cluster: str
    resource: Resource
    namespace: str


class View:
    """One upper cluster. Lower clusters are attached and detached at run time."""

    def __init__(self, upper: Side, upper_id: str, mode: Mode, *, waiting: waiting.Waiting, clock: clock.Clock) -> None:
        self.upper, self.upper_id, self.mode = upper, upper_id, mode
        self._clock, self._lingering = clock, lingering.Lingering(clock)
        self.lowers: dict[str, Side] = {}
        self.links: dict[str, Link] = {}
        self.routes: dict[str, Route] = {}
        self._waiting = waiting
        self._settled: dict[str, dict[Key, int]] = collections.defaultdict(dict)  # by the lower cluster
        # For kinds that queue below, by the lower cluster.
        self._lines: dict[Resource, dict[str, crowding.Line]] = collections.defaultdict(dict)
        self.under_way: set[tuple[Key, str]] = set()  # the clusters where a write for the key goes on
        self.references = references.References(self.name, mode, self._moved, also=self._also)
        self.tokens: tokens.Tokens | None = None  # of those modes whose pods get tokens of the upper cluster
        self._namespaces = namespaces.Namespaces(upper, mode)
        self.facts = self._facts()

    @property
    def name(self) -> str:
        """The name of the upper cluster."""
        return self.upper.cluster.name

    def attach(self, route: Route, side: Side) -> None:
        """Objects can be in this lower cluster, too, from now on."""
        seen = around.Around(self, route.lower)
        self.links[route.lower] = Link(self.name, self.upper_id, route.lower, route.settings, route.nodes, seen)
        self.lowers[route.lower], self.routes[route.lower] = side, route
        for resource, cache in side.stores.items():
            cache.index(BY_UPPER, by_upper)
            if (queues := self.mode.rules[resource].queues) is not None:
                cache.index(crowding.QUEUEING, queues)
                self._lines[resource][route.lower] = crowding.Line(cache, self.upper_id)
        self._replace_all()

    def detach(self, lower: str) -> None:
        """Forget a lower cluster; nothing there is looked at or touched any more."""
        for table in (self.links, self.lowers, self.routes, self._settled):
            table.pop(lower, None)
        for lines in self._lines.values():
            lines.pop(lower, None)
        self._replace_all()

    def side(self, cluster: str) -> Side:
        """The side of a cluster, upper or lower."""
        return self.upper if cluster == self.name else self.lowers[cluster]

    def get(self, key: Key) -> Object | None:
        """The upper object, as far as it is known."""
        return self.upper.stores[key.resource].get(Place(key.namespace, key.name))

    def wanted(self, key: Key) -> pair.Side:
        """What is to be copied: the upper object, or one that we keep in its stead."""
        if (upper := self.get(key)) is not None:
            return upper
        place = Place(key.namespace, key.name)
        token = self.tokens.side(place) if self.tokens is not None and key.resource == resources.SECRETS else None
        if token is None and self.references.is_kept_free(Name(key.resource, place)):
            return absence.stand_in(key)
        return token

    def copies(self, key: Key) -> list[Object] | None:
        """The lower objects that are copies of this upper one; none can be told while nobody who needs it is seen."""
        users = self.references.users(key.resource, Place(key.namespace, key.name))
        if all(lower.trouble for name, lower in self.lowers.items() if name in users):
            return None
        found = ((cluster, self.lower(key, cluster)) for cluster in self.lowers)
        return [obj for cluster, obj in found if obj and self.topics(cluster, key.resource, obj) == (key,)]

    def look(self, name: Name) -> None:
        """An upper object may have changed: so may what it refers to."""
        if self.tokens is not None and name.resource == resources.SERVICE_ACCOUNTS:
            self.tokens.account_changed(name.place)
        self.references.look(name, self.upper.stores[name.resource].get(name.place), self.facts)
        if self._namespaces and name.resource == resources.NAMESPACES:
            for one in self._namespaces.look(name.place.name, self._of_namespace(name.place.name)):
                self.look(one)
                self._waiting.wake(self.key(one))

    def key(self, name: Name) -> Key:
        """The key of an object of this upper cluster."""
        return Key(self.name, name.resource, name.place.namespace, name.place.name)

    def topics(self, cluster: str, resource: Resource, lower: Object) -> tuple[Key | Spot]:
        """What a lower object is about: its upper object, or the place that it takes if it is not ours."""
        origin = stamp.of(lower)
        if origin is None or origin.upper != self.upper_id:
            return (Spot(cluster, resource, lower.key),)
        return (Key(self.name, resource, origin.namespace, origin.name),)

    def __iter__(self) -> Iterator[Key]:
        """The keys of all upper objects, and of those lower ones of ours that have none any more."""
        for resource, cache in self.upper.stores.items():
            yield from (self.key(Name(resource, place)) for place in cache)
        for cluster, lower in self.lowers.items():
            for resource, cache in lower.stores.items():
                topics = (self.topics(cluster, resource, obj)[0] for obj in cache.find(BY_UPPER, self.upper_id))
                yield from (topic for topic in topics if isinstance(topic, Key) and self.get(topic) is None)

    def concerned(self, key: Key) -> list[str]:
        """The lower clusters that the key is about now: where its object should be, or is."""
        if not self.mode.rules[key.resource].travels:
            return []
        upper = self.wanted(key)
        intents = self._intents(key, upper) if isinstance(upper, Object) else {}
        wanted = () if isinstance(intents, Unknown) else intents
        return [name for name in self.lowers if name in wanted or self.lower(key, name) is not None]

    def snapshot(self, key: Key) -> Pair:
        """All that a decision on the key reads."""
        pair = self._snapshot(key)
        for one in self._made_of(key):
            self._waiting.put(key, until=Area(self.name, one.resource, one.namespace))
        for cluster, line in self._lines[key.resource].items():
            if cluster not in pair.waits_for:
                line.leave(key)
        return pair

    def _snapshot(self, key: Key) -> Pair:
        if self.upper.trouble:
            self._waiting.put(key, until=self.name)
            return Pair(key, Unknown(self.upper.trouble))
        upper = Unknown(UNDER_WAY) if (key, self.name) in self.under_way else self.wanted(key)
        if isinstance(upper, Unknown):
            return Pair(key, upper)
        intents = {} if upper is None else self._intents(key, upper)
        wanted = () if isinstance(intents, Unknown) else intents
        lowers = {
            name: self._seen(key, name, lower)
            for name in self.lowers
            if (lower := self.lower(key, name)) is not None or name in wanted
        }
        seconds = self.mode.rules[key.resource].lifecycle.lingers
        is_made = all(lower is not None for lower in lowers.values())
        lacks = "" if upper is None or is_made else self._lacks(key)
        return Pair(
            key,
            upper,
            links=self.links,
            lowers=lowers,
            intents=intents,
            waits_for={} if upper is None or upper.is_leaving or lacks else self._missing(key, lowers),
            lacks=lacks,
            in_use=frozenset() if upper is not None else frozenset(c for c in lowers if self._is_in_use(key, c)),
            patience=absence.patience(upper, self._clock) if upper is not None and lacks else 0.0,
            lingers=self._lingering.left(key, lowers, wanted, seconds) if seconds else {},
            settled=frozenset() if upper is None else self._unchanged(key, upper, lowers),
        )

    def settle(self, decided: Pair, *, unsettled: frozenset[str]) -> None:
        """A pair was decided: where nothing was to be done, remember what both sides were."""
        upper = decided.upper
        if self._made_of(decided.key):
            return  # those can change as well
        for name, lower in decided.lowers.items():
            if name in unsettled or not _is_alive(upper) or not _is_alive(lower):
                self._settled[name].pop(decided.key, None)
            elif name not in decided.settled:
                self._settled[name][decided.key] = self._content(decided.key, upper, lower)

    def lower(self, key: Key, cluster: str) -> Object | None:
        """The object in the place of the key's copy in a lower cluster, whoever's it is, as far as it is known."""
        cache = self.lowers[cluster].stores.get(key.resource)  # none for what never travels
        return None if cache is None else cache.get(self.mode.lower_place(key, self.links[cluster]))

    def going(self, resource: Resource, cluster: str) -> Iterator[Object]:
        """Copies in a lower cluster whose upper object is gone or leaves: they are about to go, too."""
        lower = self.lowers.get(cluster)
        for copy in () if lower is None else lower.stores[resource].find(BY_UPPER, self.upper_id):
            [topic] = self.topics(cluster, resource, copy)
            upper = self.get(topic) if isinstance(topic, Key) else None
            if upper is None or upper.is_leaving or upper.uid != copy.annotations.get(keys.UPPER_UID):
                yield copy

    def _intents(self, key: Key, upper: Object) -> placement.Intents:
        return self.mode.rules[key.resource].placement(upper, key, self.facts)

    def _seen(self, key: Key, cluster: str, lower: Object | None) -> pair.Side:
        trouble = self.lowers[cluster].trouble
        if trouble:
            self._waiting.put(key, until=cluster)
            return Unknown(trouble, last=lower)
        if (key, cluster) in self.under_way:
            return Unknown(UNDER_WAY, last=lower)
        if lower is not None and lower.labels.get(keys.UPPER) != self.upper_id:
            self._waiting.put(key, until=Spot(cluster, key.resource, lower.key))
        return lower

    def _unchanged(self, key: Key, upper: Object, lowers: Mapping[str, pair.Side]) -> frozenset[str]:
        return frozenset(
            name
            for name, lower in lowers.items()
            if isinstance(lower, Object)
            and (settled := self._settled[name].get(key)) is not None
            and settled == self._content(key, upper, lower)
        )

    def _content(self, key: Key, upper: Object, lower: Object) -> int:
        rule, both = self.mode.rules[key.resource], (upper, lower)
        carried = [msgspec.json.encode(rule.status_down(one)) for one in both] if rule.carries_status else ()
        return hash((*map(pair.content, both), *carried))

    def _missing(self, key: Key, lowers: Mapping[str, pair.Side]) -> dict[str, str]:
        """What must be in a cluster before this object: what it refers to, exists above, and belongs there."""
        missing = {}
        for cluster in (name for name, lower in lowers.items() if lower is None):
            line = self._lines[key.resource].get(cluster)
            if line is not None and not line.lets_in(key):
                missing[cluster] = f"as many of {self.name} as may wait in {cluster} at once"
                continue
            for name in self._needed(key):
                if not self._is_there(name, cluster):
                    needed = self.key(name)
                    self._waiting.put(key, until=needed)
                    # What comes may be somebody else's that serves as well, as a service account of the same name.
                    place = self.mode.lower_place(needed, self.links[cluster])
                    self._waiting.put(key, until=Spot(cluster, name.resource, place))
                    missing[cluster] = f"{name.resource} {name.place} is not in {cluster} yet"
        return missing

    def _lacks(self, key: Key) -> str:
        """What this object refers to and has to be there above before any copy of it is made: the first that is not."""
        for name in self.references.awaited(key.resource, Place(key.namespace, key.name)):
            needed = self.key(name)
            if name.resource in self.upper.stores and self.get(needed) is None:
                self._waiting.put(key, until=needed)
                return absence.sentence(needed)
        return ""

    def _is_in_use(self, key: Key, cluster: str) -> bool:
        """Whether something in a lower cluster reads the copy of this object, which is not there above any more."""
        name = Name(key.resource, Place(key.namespace, key.name))
        if cluster not in self.references.users(*name):
            return False
        return any(self.lower(self.key(reader), cluster) is not None for reader in self.references.readers(name))

    def let_in(self, resource: Resource) -> None:
        """Where there is room in the queue below, whoever waits longest for it, and is there yet, is looked at."""
        for cluster in self._lines[resource]:
            if (first := self._first_in_line(resource, cluster)) is not None:
                self._waiting.wake(first)

    def _first_in_line(self, resource: Resource, cluster: str) -> Key | None:
        return self._lines[resource][cluster].next(lambda key: cluster in self.concerned(key))

    @contextlib.contextmanager
    def coming(self, resource: Resource, clusters: Iterable[str]) -> Iterator[None]:
        """Objects are being created in these clusters, while the caller stays inside."""
        with contextlib.ExitStack() as stack:
            for cluster in clusters:
                if (line := self._lines[resource].get(cluster)) is not None:
                    stack.enter_context(line.coming())
            yield

    def _needed(self, key: Key) -> Iterable[Name]:
        """What an object cannot be without: its namespace, where namespaces travel, and what it names or is made of."""
        if key.namespace and resources.NAMESPACES in self.mode.rules:
            yield Name(resources.NAMESPACES, Place("", key.namespace))
        yield from self.references.names(key.resource, Place(key.namespace, key.name))
        yield from (Name(one.resource, Place(one.namespace, one.name)) for one in self._made_of(key) if one.name)

    def _made_of(self, key: Key) -> tuple[Reference, ...]:
        return tuple(self.mode.rules[key.resource].made_of(key))

    def _is_there(self, name: Name, cluster: str) -> bool:
        key, rule = self.key(name), self.mode.rules.get(name.resource)
        upper = None if rule is None else self.wanted(key)
        if rule is None or upper is None:
            return True  # nothing that we could bring
        if isinstance(upper, Unknown):
            return False
        intents = self._intents(key, upper)
        if not isinstance(intents, Unknown) and cluster not in intents:
            return True
        lower = self.lower(key, cluster)
        if lower is None or lower.is_leaving:
            return False
        origin = stamp.of(lower)
        return rule.lifecycle.shares_name(lower.name) or (origin is not None and origin.uid == upper.uid)

    def _moved(self, name: Name) -> None:
        """The users of an object are others now: it may have to be elsewhere, and so may what it refers to."""
        if name.resource in self.mode.rules:
            if self.tokens is not None and name.resource == resources.SECRETS:
                self.tokens.use(name.place, is_used=bool(self.references.users(*name)))
            self.look(name)
            self._waiting.wake(self.key(name))

    def _also(self, resource: Resource, obj: Object) -> Iterable[Name]:
        return self.tokens.needed_by(obj) if self.tokens is not None and resource == resources.PODS else ()

    def _replace_all(self) -> None:
        self.facts = self._facts()
        for resource, cache in self.upper.stores.items():
            for name in [Name(resource, place) for place in cache]:
                self.look(name)
                self._waiting.wake(self.key(name))

    def _facts(self) -> placement.Facts:
        return placement.Facts(
            lowers=frozenset(self.links),
            cluster_of_node={node: route.lower for route in self.routes.values() for node in route.nodes},
            users=self.references.users,
            of_namespace=self._of_namespace,
        )

    def _of_namespace(self, name: str) -> placement.Intents:
        namespace = Key(self.name, resources.NAMESPACES, "", name)
        upper = self.get(namespace) if resources.NAMESPACES in self.mode.rules else None
        return {} if upper is None else self._intents(namespace, upper)


def _is_alive(side: pair.Side) -> TypeGuard[Object]:
    return isinstance(side, Object) and not side.is_leaving
