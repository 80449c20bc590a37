"""A mode: the table of policies, one rule per kind, by which the engine runs one of the systems in `modes/`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec import UNSET

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import diff, stamp
from hansa.model.lifecycle import COPY, Lifecycle
from hansa.model.limits import Limits
from hansa.model.lookups import Reads
from hansa.model.pair import Key, Link
from hansa.model.placement import Intents, Placement, PlacementContext, Referable
from hansa.model.references import Reference
from hansa.runtime import errors

# How many objects of a kind in a namespace are considered as such that select others (`Rule.selected_by`): evaluating
# them is work for each object that they may select.
MOST_SELECTING: Final = 256
# The kinds that must be synced where pods get tokens of the upper API server.
TOKEN_KINDS = (resources.PODS, resources.SECRETS, resources.SERVICE_ACCOUNTS)


class InvalidMode(errors.HansaError):
    """A mode's rules don't fit together."""


@dataclass(frozen=True, slots=True)
class PatchPart:
    """A merge patch of an object, or of a subresource of it."""

    patch: Mapping[str, Any]
    subresource: str = ""


Step = Callable[[Object, Link], Object]
DownPatches = Callable[[Object, Object], Iterable[PatchPart]]
UpPatches = Callable[[Object, Object, Link], Iterable[PatchPart]]
Fallback = Callable[[Mapping[str, Any], Iterable[str], Iterable[Object]], Mapping[str, Any] | None]


def patches_of(*fields: str) -> DownPatches:
    """Patches for labels, annotations and these top-level fields of a copy."""

    def patches(lower: Object, wanted: Object) -> Iterable[PatchPart]:
        patch = diff.metadata_patch(lower, wanted) | diff.fields_patch(lower, wanted, fields)
        return [PatchPart(patch)] if patch else []

    return patches


_METADATA_ONLY: Final = patches_of()


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of object: where it is placed, how its copy is translated and updated, what is synced up.

    Optional policies default to None. A kind without a placement is only read.
    """

    resource: Resource
    placement: Placement | None = None
    lifecycle: Lifecycle = COPY
    # The label selector and the field selector of the upper objects that are watched; others are treated as absent.
    selector: str = ""
    fields: str = ""

    # The way down: the steps that make the desired copy, and how an existing copy is brought to it.
    down: tuple[Step, ...] = ()
    down_patches: DownPatches = _METADATA_ONLY
    # The desired copy as it can be created, where the rest can only be added later.
    on_create: Callable[[Object], Object] | None = None
    # The part of the status that is synced down, read from both sides to see a difference.
    status_down: Callable[[Object], Mapping[str, Any] | None] | None = None
    # The spec to request after a server refused these fields of another, or None if there is no alternative. The copies
    # are those being deleted: they still hold values that are free soon.
    fallback: Fallback | None = None

    # The way up.
    up_patches: UpPatches | None = None
    # Every lower object adds to the upper one's status; otherwise the first one is the source of all of it.
    merges_statuses: bool = False
    # The node of a lower pod: the upper pod is bound to the upper node that represents it.
    bound_node: Callable[[Object], str] | None = None

    # What the object depends on.
    # The objects that must be wherever this one is, and before it.
    references: Callable[[Object], Iterable[Referable]] = lambda _: ()
    # Where these are needed, if that is not where the object itself is placed.
    needed_at: Placement | None = None
    # The objects that a copy is computed from, by its key: it is reconciled when one of them changes, and created after
    # them. One without a name means all of its kind in that namespace.
    computed_from: Callable[[Key], Iterable[Reference]] = lambda _: ()
    # Kinds whose objects select others of their namespace, such as this one: it is reconciled when one of them changes.
    # Its reads list them.
    selected_by: frozenset[Resource] = frozenset()
    # A copy whose upper object is gone stays while its namespace has copies of this kind, by its key.
    outlives: Callable[[Key], Resource | None] = lambda _: None
    # The objects whose users decide where this one is placed: it is placed again when these users change.
    placed_with: Callable[[Object], Iterable[Referable]] = lambda _: ()
    # What the steps, the check and the way up read beside the pair.
    reads: Reads | None = None
    # While a limit is nearly reached, objects of this kind that nothing refers to wait for those that are used.
    unused_last: bool = False
    # The placement depends on that of the object's namespace.
    follows_namespace: bool = False

    # Refusals.
    # Why an upper object is not synced, as a message; empty if it may be. An existing copy stays as it is.
    check: Callable[[Object, Link], str] | None = None
    # What of an upper object its copy does not have, as a message; empty if it has all. The rest is synced.
    omitted: Callable[[Object, Link], str] | None = None
    # Patches of an upper object whose copy was refused, in addition to the Event.
    on_refused: Callable[[Object, str], Iterable[PatchPart]] | None = None
    # Patches of an upper object when nothing of it is left in a cluster where it was before (Grade.PAST).
    on_moved: Callable[[Object, str], Iterable[PatchPart]] | None = None
    # Whether an upper object that is placed in a cluster has to be deleted, because that cluster is going away.
    is_evicted: Callable[[Object, Link], bool] | None = None
    # The upper cluster of a lower object that waits in a queue which all upper clusters share, such as the lower
    # scheduler's: each upper cluster has only a few objects in it at once.
    pending_of: Callable[[Object], tuple[str, ...]] | None = None

    @property
    def is_synced(self) -> bool:
        """Whether lower objects of this kind are watched and may be written."""
        return self.placement is not None

    def placed(self, upper: Object, key: Key, context: PlacementContext) -> Intents:
        """Where an upper object is placed."""
        return {} if self.placement is None else self.placement(upper, key, context)

    def needs(self, upper: Object, key: Key, context: PlacementContext, placed: Intents | None = None) -> Intents:
        """Where what an upper object refers to is needed, until it is finished. `placed` is its placement, if known."""
        if self.lifecycle.is_finished(upper):
            return {}
        if self.needed_at is not None:
            return self.needed_at(upper, key, context)
        return self.placed(upper, key, context) if placed is None else placed

    def omission(self, upper: Object, link: Link) -> str:
        """What of an upper object is not synced, although the object is; empty if all of it is."""
        return "" if self.omitted is None else self.omitted(upper, link)

    def refusal(self, upper: Object, link: Link) -> str:
        """Why an upper object is not synced; empty if it may be."""
        return "" if self.check is None else self.check(upper, link)


@dataclass(frozen=True, slots=True)
class Mode:
    """All policies of one system, validated on construction."""

    name: str
    rules: Mapping[Resource, Rule]
    # The namespace and name of a copy, by the key and uid of its upper object (an empty uid: that is gone). The stamp
    # names the upper object, so the way back needs no inverse.
    lower_name: Callable[[Key, str, Link], NamespacedName] = lambda key, _uid, _link: NamespacedName(
        key.namespace, key.name
    )
    # Several upper clusters have copies in the same lower one, which is watched once for all of them.
    shares_lowers: bool = False
    # Pods get tokens of the upper API server, in Secrets.
    mints_tokens: bool = False
    # A namespace that an object needs in a lower cluster is created there, where namespaces are not synced.
    creates_namespaces: bool = False
    # Lower Events about kinds with a way up are mirrored on the upper objects …
    mirrors_events: bool = True
    mirrors_normal_events: bool = True
    # … with names of the lower cluster in messages replaced by those of the upper one.
    upper_message: Callable[[str, Link], str] = lambda message, _link: message
    # What an upper cluster may have in a lower one; None if that is not limited.
    limits_of: Callable[[Link], Limits | None] = lambda _link: None
    # The upper node that represents a lower one, by name.
    upper_node: Callable[[str, Link], str] = lambda node, _link: node

    def __post_init__(self) -> None:
        """Refuse a table with a rule that refers to a kind without one."""
        if defects := list(self._defects()):
            raise InvalidMode(f"mode {self.name}: {'; '.join(defects)}")

    def desired(self, upper: Object, key: Key, link: Link) -> Object:
        """The desired copy: every step of the way down, the lower name, then the stamp.

        Steps see the upper object whole, with its namespace, uid and owners.
        """
        rule, name = self.rules[key.resource], self.lower_name(key, upper.uid, link)
        lower = upper
        for step in rule.down:
            lower = step(lower, link)
        lower = lower.with_metadata(
            name=name.name,
            namespace=name.namespace,
            generate_name="",
            uid="",
            resource_version="",
            generation=0,
            creation_timestamp=None,
            deletion_timestamp=None,
            deletion_grace_period_seconds=None,
            owner_references=(),
            finalizers=(),
            managed_fields=UNSET,
        ).with_fields(status=None if rule.status_down is None else rule.status_down(lower))
        return stamp.put(lower, stamp.Origin(link.upper_id, upper.uid, upper.namespace, upper.name, link.nodes))

    def _defects(self) -> Iterator[str]:
        for resource, rule in self.rules.items():
            if rule.resource != resource:
                yield f"the rule of {resource} is for {rule.resource}"
            needed = frozenset() if rule.reads is None else rule.reads.kinds
            needed |= {resources.NAMESPACES} if rule.follows_namespace else set()
            needed |= {resources.NODES} if rule.bound_node is not None else set()
            lists = frozenset() if rule.reads is None else rule.reads.lists
            yield from (f"{resource} does not list {one}" for one in sorted(rule.selected_by - lists, key=str))
            yield from (f"{resource} needs a rule for {one}" for one in sorted(needed - self.rules.keys(), key=str))
            if rule.unused_last and rule.lifecycle.finalizer:
                yield f"{resource} may be outlined, so its finalizers are unknown"
        if self.mints_tokens:
            unsynced = (one for one in TOKEN_KINDS if one not in self.rules or not self.rules[one].is_synced)
            yield from (f"tokens need {one} to be synced" for one in unsynced)
        if self.creates_namespaces and resources.NAMESPACES in self.rules:
            yield "namespaces are both synced and created on demand"
