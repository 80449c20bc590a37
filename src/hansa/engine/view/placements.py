"""Where the objects of one upper cluster are placed, kept up to date as objects and links change.

Objects may be placed by what refers to them, and by their namespace: when one of these changes, `requeue` gets the keys
of all objects that may be placed elsewhere now.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable
from typing import Any

from hansa.engine import tokens
from hansa.engine.view import namespaces, placeholders, references
from hansa.engine.view.clusters import LinkedClusters
from hansa.engine.view.topics import ObjectRef
from hansa.kube import resources
from hansa.kube.objects import Malformed, NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import pair, placement
from hansa.model.pair import Key, Unknown


class Placements:
    """The placement of every object of one upper cluster."""

    def __init__(
        self,
        clusters: LinkedClusters,
        requeue: Callable[[Key], None],
        *,
        decisions: placement.Decisions | None = None,
    ) -> None:
        self._decisions = decisions
        self._clusters, self._mode, self._requeue = clusters, clusters.mode, requeue
        self.references = references.References(clusters.name, self._mode, self._users_changed, also=self._tokens_of)
        self.tokens: tokens.Tokens | None = None  # if the mode mints tokens
        self._namespaces = namespaces.Namespaces(clusters.upper, self._mode)
        self._context = self._new_context()
        # Placements that were computed for a change, until the decision on it: one computation per event.
        self._computed: dict[Key, tuple[Object, placement.Intents]] = {}

    def changed(self, ref: ObjectRef) -> None:
        """An upper object changed: its references, and the placement of the objects it refers to, may have changed.

        A malformed one keeps the references that it had: its reconcile reports it.
        """
        with contextlib.suppress(Malformed):
            self._changed(ref)

    def _changed(self, ref: ObjectRef) -> None:
        if self.tokens is not None and ref.resource == resources.SERVICE_ACCOUNTS:
            self.tokens.account_changed(ref.name)
        key = self._clusters.key(ref)
        self.forget(key)
        upper = self._clusters.get(key)
        if upper is not None and not upper.is_whole and not self._mode.rules[key.resource].unused_last:
            return  # it keeps the references that it had
        is_synced = self._mode.rules[key.resource].is_synced
        placed = self._compute(key, upper) if is_synced and upper is not None else None
        self.references.update(ref, upper, self._context, placed)
        if self._namespaces and ref.resource == resources.NAMESPACES:
            for one in self._namespaces.update(ref.name.name, self._of_namespace(ref.name.name)):
                self.changed(one)
                self._requeue(self._clusters.key(one))

    def decision_changed(self, namespace: str) -> None:
        """The placements of a namespace were decided anew, outside of the upper cluster."""
        ref = ObjectRef(resources.NAMESPACES, NamespacedName("", namespace))
        self.changed(ref)
        self._requeue(self._clusters.key(ref))

    def links_changed(self) -> None:
        """A lower cluster was linked or unlinked: every object may be placed elsewhere now."""
        self._context = self._new_context()
        for resource, cache in self._clusters.upper.stores.items():
            for ref in [ObjectRef(resource, name) for name in cache]:
                self.changed(ref)
                self._requeue(self._clusters.key(ref))
        if self.tokens is not None:
            self.tokens.lower_changed()
        for key in self.generated():
            self._requeue(key)

    def generated(self) -> list[Key]:
        """The keys of tokens and placeholders that are needed: these have no upper object, so no cache lists them."""
        keys = (self._clusters.key(ref) for ref in self.references.needed() if ref.resource in self._mode.rules)
        return [key for key in keys if self._clusters.get(key) is None and self.source(key) is not None]

    def source(self, key: Key) -> pair.Side:
        """What is copied: the upper object, a token, or a placeholder for an object that does not exist."""
        if (upper := self._clusters.get(key)) is not None:
            return upper
        name = NamespacedName(key.namespace, key.name)
        token = self.tokens.secret(name) if self.tokens is not None and key.resource == resources.SECRETS else None
        if token is None and self.references.is_placeholder(ObjectRef(key.resource, name)):
            return placeholders.placeholder(key)
        return token

    def of(self, key: Key, upper: Object) -> placement.Intents:
        """Where an upper object is placed."""
        known = self._computed.get(key)
        if known is not None and known[0] is upper:
            return known[1]
        return self._mode.rules[key.resource].placed(upper, key, self._context)

    def forget(self, key: Key) -> None:
        """Forget the placement that was computed for a change: the next decision may have another one."""
        self._computed.pop(key, None)

    def concerned(self, key: Key) -> list[str]:
        """The lower clusters that a key concerns now: where its object is placed, or has a copy."""
        if not self._mode.rules[key.resource].is_synced:
            return []
        source = self.source(key)
        intents = self._compute(key, source) if isinstance(source, Object) else {}
        placed = () if isinstance(intents, Unknown) else intents
        uid = source.uid if isinstance(source, Object) else ""
        clusters = self._clusters
        found = [name for name in clusters.lowers if name in placed or any(clusters.below(key, name, uid))]
        if not found:
            self.forget(key)  # it will not be decided
        return found

    def is_held(self, key: Key) -> bool:
        """Whether an upper object waits for the removal of our finalizer, even if it concerns no lower cluster."""
        finalizer = self._mode.rules[key.resource].lifecycle.finalizer
        upper = self._clusters.get(key) if finalizer else None
        return upper is not None and upper.is_deleting and finalizer in upper.metadata.finalizers

    def users(self, key: Key) -> frozenset[str]:
        """The lower clusters with objects that refer to this one."""
        return self.references.users(key.resource, NamespacedName(key.namespace, key.name))

    def copies(self, key: Key) -> list[Object] | None:
        """The copies of an upper object; None while every lower cluster that needs it is unknown."""
        users = self.users(key)
        lowers = self._clusters.lowers
        if all(lower.unknown_reason_of(key.resource) for name, lower in lowers.items() if name in users):
            return None
        found = ((cluster, self._clusters.copy(key, cluster)) for cluster in lowers)
        return [obj for cluster, obj in found if obj and self._clusters.topic(cluster, key.resource, obj) == key]

    def _compute(self, key: Key, upper: Object) -> placement.Intents:
        intents = self.of(key, upper)
        self._computed[key] = upper, intents
        return intents

    def _users_changed(self, ref: ObjectRef) -> None:
        """Other objects refer to this one now: it may be placed elsewhere, and so may what it refers to."""
        if ref.resource in self._mode.rules:
            if self.tokens is not None and ref.resource == resources.SECRETS:
                self.tokens.use(ref.name, is_used=bool(self.references.users(*ref)))
            self.changed(ref)
            self._requeue(self._clusters.key(ref))

    def _tokens_of(self, resource: Resource, obj: Object) -> Iterable[ObjectRef]:
        return self.tokens.needed_by(obj) if self.tokens is not None and resource == resources.PODS else ()

    def _of_namespace(self, name: str) -> placement.Intents:
        key = Key(self._clusters.name, resources.NAMESPACES, "", name)
        namespace = self._clusters.get(key) if resources.NAMESPACES in self._mode.rules else None
        return {} if namespace is None else self.of(key, namespace)

    def _new_context(self) -> placement.PlacementContext:
        routes = self._clusters.routes.values()
        return placement.PlacementContext(
            lowers=frozenset(self._clusters.links),
            cluster_of_node={node: route.lower for route in routes for node in route.nodes},
            users=self.references.users,
            of_namespace=self._of_namespace,
            links=dict(self._clusters.links),
            **self._decided(),
        )

    def _decided(self) -> dict[str, Callable[..., Any]]:
        if self._decisions is None:
            return {}
        upper = self._clusters.name
        return {
            "decided": functools.partial(self._decisions.placed, upper),
            "all_decided": functools.partial(self._decisions.all_placed, upper),
        }
