"""What is known of one upper cluster and of the lower clusters that it is linked to: caches in, pairs out.

Nothing here writes or waits. What keeps a key from being decided is noted, so that its coming wakes the key.
"""

from collections.abc import Iterator, Mapping

from hansa.engine import references, waiting
from hansa.engine.side import Side
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import pair, placement, stamp
from hansa.model.mode import Mode
from hansa.model.pair import Key, Link, Pair, Unknown


class View:
    """One upper cluster. Lower clusters are attached and detached at run time."""

    def __init__(self, upper: Side, upper_id: str, mode: Mode, *, waiting: waiting.Waiting) -> None:
        self.upper, self.upper_id, self.mode = upper, upper_id, mode
        self.lowers: dict[str, Side] = {}
        self.links: dict[str, Link] = {}
        self._nodes: dict[str, frozenset[str]] = {}
        self._waiting = waiting
        self._settled: dict[tuple[Key, str], int] = {}
        self.references = references.References(self.name, mode, self._replaced)
        self.facts = self._facts()

    @property
    def name(self) -> str:
        return self.upper.cluster.name

    def attach(self, link: Link, side: Side, nodes: frozenset[str]) -> None:
        """Objects can be in this lower cluster, too, from now on."""
        self.links[link.lower], self.lowers[link.lower], self._nodes[link.lower] = link, side, nodes
        self._refresh()

    def detach(self, lower: str) -> None:
        """Forget a lower cluster; nothing there is looked at or touched any more."""
        for table in (self.links, self.lowers, self._nodes):
            table.pop(lower, None)
        self._refresh()

    def key(self, resource: Resource, place: Place) -> Key:
        """The key of an object of this upper cluster."""
        return Key(self.name, resource, *place)

    def side(self, cluster: str) -> Side:
        """The side of a cluster, upper or lower."""
        return self.upper if cluster == self.name else self.lowers[cluster]

    def get(self, key: Key) -> Object | None:
        """The upper object, as far as it is known."""
        return self.upper.stores[key.resource].get(Place(key.namespace, key.name))

    def look(self, name: references.Name) -> None:
        """An upper object may have changed."""
        self.references.look(name, self.upper.stores[name.resource].get(name.place), self.facts)

    def keys_above(self, resource: Resource, upper: Object) -> tuple[Key]:
        """The key of an upper object."""
        return (self.key(resource, upper.key),)

    def keys_of(self, resource: Resource, lower: Object) -> tuple[Key, ...]:
        """The key of the upper object that a lower one is a copy of, if it is one of ours."""
        origin = stamp.of(lower)
        if origin is None or origin.upper != self.upper_id:
            return ()
        return (Key(self.name, resource, origin.namespace, origin.name),)

    def all_keys(self) -> Iterator[Key]:
        """The keys of all upper objects and of all lower ones of ours."""
        for resource, cache in self.upper.stores.items():
            yield from (self.key(resource, place) for place in cache)
        for lower in self.lowers.values():
            for resource, cache in lower.stores.items():
                yield from (key for obj in cache.values() for key in self.keys_of(resource, obj))

    def concerned(self, key: Key) -> list[str]:
        """The lower clusters that the key is about now: where its object should be, or is."""
        upper = self.get(key)
        intents = {} if upper is None else self.mode.rules[key.resource].placement(upper, key, self.facts)
        wanted = () if isinstance(intents, Unknown) else intents
        return [name for name in self.lowers if name in wanted or self._lower(key, name) is not None]

    def snapshot(self, key: Key) -> Pair:
        """All that a decision on the key reads."""
        if self.upper.trouble:
            self._waiting.put(key, until=self.name)
            return Pair(key, Unknown(self.upper.trouble))
        upper = self.get(key)
        intents = {} if upper is None else self.mode.rules[key.resource].placement(upper, key, self.facts)
        lowers: dict[str, pair.Side] = {}
        for name, side in self.lowers.items():
            lower = self._lower(key, name)
            if lower is None and (isinstance(intents, Unknown) or name not in intents):
                continue
            lowers[name] = lower
            if side.trouble:
                lowers[name] = Unknown(side.trouble, last=lower)
                self._waiting.put(key, until=name)
        return Pair(
            key,
            upper,
            links=self.links,
            lowers=lowers,
            intents=intents,
            waits_for=self._missing(key, lowers) if upper is not None else {},
            settled=self._unchanged(key, upper, lowers),
        )

    def settle(self, pair_: Pair, *, unsettled: frozenset[str]) -> None:
        """A pair was decided: where nothing was to be done, remember what both sides were."""
        for name, lower in pair_.lowers.items():
            if isinstance(pair_.upper, Object) and isinstance(lower, Object) and name not in unsettled:
                self._settled[pair_.key, name] = hash((pair.content(pair_.upper), pair.content(lower)))
            else:
                self._settled.pop((pair_.key, name), None)

    def _lower(self, key: Key, cluster: str) -> Object | None:
        return self.lowers[cluster].stores[key.resource].get(self.mode.lower_place(key, self.links[cluster]))

    def _unchanged(self, key: Key, upper: Object | None, lowers: Mapping[str, pair.Side]) -> frozenset[str]:
        if upper is None:
            return frozenset()
        return frozenset(
            name
            for name, lower in lowers.items()
            if (key, name) in self._settled
            and isinstance(lower, Object)
            and self._settled[key, name] == hash((pair.content(upper), pair.content(lower)))
        )

    def _missing(self, key: Key, lowers: Mapping[str, pair.Side]) -> dict[str, str]:
        """What must be in a cluster before this object: what it refers to, exists above, and belongs there."""
        absent = [name for name, lower in lowers.items() if lower is None]
        if not absent:
            return {}
        missing = {}
        for name in self.references.names(key.resource, Place(key.namespace, key.name)):
            for cluster in absent:
                if not self._is_there(name, cluster):
                    self._waiting.put(key, until=self.key(*name))
                    missing[cluster] = f"{name.resource} {name.place} is not in {cluster} yet"
        return missing

    def _is_there(self, name: references.Name, cluster: str) -> bool:
        key = self.key(*name)
        rule = self.mode.rules.get(name.resource)
        upper = None if rule is None else self.get(key)
        if rule is None or upper is None:
            return True  # nothing that we could bring
        intents = rule.placement(upper, key, self.facts)
        if not isinstance(intents, Unknown) and cluster not in intents:
            return True
        lower = self._lower(key, cluster)
        origin = None if lower is None else stamp.of(lower)
        return lower is not None and (origin is None or origin.uid == upper.uid)

    def _replaced(self, name: references.Name) -> None:
        """The users of an object have changed: it may have to be elsewhere, and so may what it refers to."""
        if name.resource in self.mode.rules:
            self.look(name)
            self._waiting.wake(self.key(*name))

    def _refresh(self) -> None:
        self.facts = self._facts()
        for resource, cache in self.upper.stores.items():
            for place in tuple(cache):
                self.look(references.Name(resource, place))
                self._waiting.wake(self.key(resource, place))

    def _facts(self) -> placement.Facts:
        return placement.Facts(
            lowers=frozenset(self.links),
            cluster_of_node={node: lower for lower, nodes in self._nodes.items() for node in nodes},
            users=self.references.users,
        )
