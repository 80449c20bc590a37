"""A mode: the table of policies that turns the one engine into one system. It reads like the seed that it fulfils."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import diff, stamp
from hansa.model.lifecycle import COPY, Lifecycle
from hansa.model.pair import Key, Link
from hansa.model.placement import Facts, Intents, Named, Placement, nowhere
from hansa.model.references import Reference


@dataclass(frozen=True, slots=True)
class Part:
    """A merge patch of an object, or of a subresource of it."""

    patch: Mapping[str, Any]
    subresource: str = ""


Step = Callable[[Object, Link], Object]
DownPatches = Callable[[Object, Object], Iterable[Part]]
UpPatches = Callable[[Object, Object, Link], Iterable[Part]]
Yields = Callable[[Mapping[str, Any], Iterable[str], Iterable[Object]], Mapping[str, Any] | None]


def _nothing_up(_upper: Object, _lower: Object, _link: Link) -> Iterable[Part]:
    return ()


def patches_of(*fields: str) -> DownPatches:
    """Labels, annotations and these top-level fields follow the upper object, in one patch."""

    def patches(lower: Object, wanted: Object) -> Iterable[Part]:
        patch = diff.metadata_patch(lower, wanted) | diff.fields_patch(lower, wanted, fields)
        return [Part(patch)] if patch else []

    return patches


def _no_objection(_upper: Object, _link: Link) -> str:
    return ""


def _insists(_spec: Mapping[str, Any], _refused: Iterable[str], _going: Iterable[Object]) -> None:
    return None


def _no_node(_lower: Object) -> str:
    return ""


def _no_word(_upper: Object, _sentence: str) -> Iterable[Part]:
    return ()


def _as_it_is(message: str, _link: Link) -> str:
    return message


def _same_name(node: str, _link: Link) -> str:
    return node


def _no_status(_obj: Object) -> None:
    return None


def _as_wanted(wanted: Object) -> Object:
    return wanted


def _metadata_only(lower: Object, wanted: Object) -> Iterable[Part]:
    patch = diff.metadata_patch(lower, wanted)
    return [Part(patch)] if patch else []


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of object: how it looks below, what follows, what comes back."""

    resource: Resource
    down: tuple[Step, ...] = ()
    # What of it can be there at once, when the rest can only be added later.
    at_birth: Callable[[Object], Object] = _as_wanted
    down_patches: DownPatches = _metadata_only
    up_patches: UpPatches = _nothing_up
    lifecycle: Lifecycle = COPY
    # Where it should be.
    placement: Placement = nowhere
    # The label selector of the upper objects that are looked at; others are as if they were not there.
    watched: str = ""
    # Where it should be hangs on where its namespace should be.
    goes_with_namespace: bool = False
    # What it cannot do without: it is there wherever this object lives, and before it.
    references: Callable[[Object], Iterable[Named]] = lambda _: ()
    # Where what it refers to is needed, if that is not where it is placed itself.
    needed_at: Placement | None = None
    # What its copies say besides what it says itself, by its key: it is looked at again when one of those changes, and
    # comes after them. One without a name stands for all of its kind in that namespace.
    made_of: Callable[[Key], Iterable[Reference]] = lambda _: ()
    # Whose users its placement asks for: it is looked at again when they change.
    follows: Callable[[Object], Iterable[Named]] = lambda _: ()
    # A sentence why this upper object may not travel. What travelled before stays as it is.
    check: Callable[[Object, Link], str] = _no_objection
    # What is asked for instead of a spec of which a server refused these fields; None if nothing else will do.
    # Copies that are about to go hold what is free soon.
    yields: Yields = _insists
    # What an upper object is told when it, or its copy, was refused; an Event says so in any case.
    refused: Callable[[Object, str], Iterable[Part]] = _no_word
    # What an upper object is told when nothing of it is left in a lower cluster where it was before (Grade.PAST).
    handed_over: Callable[[Object, str], Iterable[Part]] = _no_word
    # The node that a lower pod runs on: its upper pod, if it has none, is bound to the upper node of that name.
    binds: Callable[[Object], str] = _no_node
    # Every lower object tells its part, where otherwise one of several speaks for all.
    all_tell: bool = False
    # The upper cluster of a lower object that still waits in a queue which all share there, such as the scheduler's:
    # a few of each are let in at once, so that the many of one hold up no other.
    queues: Callable[[Object], tuple[str, ...]] | None = None
    # What of its status goes down: what nobody below would fill in. Asked of both sides, to see a difference.
    status_down: Callable[[Object], Mapping[str, Any] | None] = _no_status

    @property
    def travels(self) -> bool:
        """Whether there can be copies of it."""
        return self.placement is not nowhere

    @property
    def carries_status(self) -> bool:
        """Whether anything of its status goes down."""
        return self.status_down is not _no_status

    @property
    def tells(self) -> bool:
        """Whether anything of it comes back."""
        return self.up_patches is not _nothing_up

    def needs(self, upper: Object, key: Key, facts: Facts) -> Intents:
        """Where what this object refers to is needed, until it is finished."""
        return {} if self.lifecycle.is_finished(upper) else (self.needed_at or self.placement)(upper, key, facts)


@dataclass(frozen=True, slots=True)
class Mode:
    """All policies of one system. What it cannot say here, it does not do."""

    name: str
    rules: Mapping[Resource, Rule]
    # The lower name of an upper object; the way back is told by the mark alone.
    lower_place: Callable[[Key, Link], Place] = lambda key, _link: Place(key.namespace, key.name)
    # Many upper clusters have copies in the same lower one: these are watched once for all of them.
    shares_lowers: bool = False
    # Whether lower Events about kinds that tell something are told on their upper objects …
    echoes: bool = True
    # … and how their messages read there.
    retold: Callable[[str, Link], str] = _as_it_is
    # The upper node that stands for a lower one, by their names.
    upper_node: Callable[[str, Link], str] = _same_name

    def desired(self, upper: Object, key: Key, link: Link) -> Object:
        """The lower object as it should be: every step of the way down, the lower name, then the mark.

        Steps see the upper object whole, with the namespace, uid and owners that it has above.
        """
        rule, place = self.rules[key.resource], self.lower_place(key, link)
        lower = upper
        for step in rule.down:
            lower = step(lower, link)
        lower = lower.with_metadata(
            name=place.name,
            namespace=place.namespace,
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
        ).with_fields(status=rule.status_down(lower))
        return stamp.put(lower, stamp.Origin(link.upper_id, upper.uid, upper.namespace, upper.name, link.nodes))
