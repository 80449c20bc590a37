"""What an API server answers: objects, pages of them, and the events of a watch. The hot path of every cache."""

import sys

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hansa.kube.errors import Status
from hansa.kube.objects import Metadata, Object


class Page(msgspec.Struct, frozen=True, gc=False):
    """One answer to a list request."""

    items: tuple[Object, ...]
    version: str
    next: str  # what continues the list; empty on the last page
    remaining: int | None = None


class _Usual(msgspec.Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """What most kinds have: read in one pass, which is a third faster than field by field."""

    metadata: Metadata
    api_version: str = ""
    kind: str = ""
    spec: Raw | UnsetType = UNSET
    status: Raw | UnsetType = UNSET
    data: Raw | UnsetType = UNSET
    type: Raw | UnsetType = UNSET

    def object(self, *, api_version: str, kind: str, keep_managed_fields: bool) -> Object:
        """The object; what it keeps is copied, since a view would keep the whole answer alive."""
        others = {}
        if self.data is not UNSET:
            others["data"] = bytes(self.data)
        if self.type is not UNSET:
            others["type"] = bytes(self.type)
        self.metadata.settle(keep_managed_fields=keep_managed_fields)
        return Object(
            sys.intern(api_version),
            sys.intern(kind),
            self.metadata,
            b"" if self.spec is UNSET else bytes(self.spec),
            b"" if self.status is UNSET else bytes(self.status),
            others or None,
        )


class _UsualEvent(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: _Usual


class _Event(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: dict[str, Raw]


class _ListMetadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: _ListMetadata = _ListMetadata()
    items: Raw = Raw(b"[]")


_USUAL = msgspec.json.Decoder(_Usual)
_USUAL_EVENT = msgspec.json.Decoder(_UsualEvent)
_USUAL_ITEMS = msgspec.json.Decoder(list[_Usual] | None)
_EVENT = msgspec.json.Decoder(_Event)
_LIST = msgspec.json.Decoder(_List)
_ITEMS = msgspec.json.Decoder(list[dict[str, Raw]])


def parse_object(data: bytes, *, keep_managed_fields: bool = False) -> Object:
    """Read one object."""
    try:
        usual = _USUAL.decode(data)
    except msgspec.ValidationError:
        return Object.parse(data, keep_managed_fields=keep_managed_fields)
    return usual.object(api_version=usual.api_version, kind=usual.kind, keep_managed_fields=keep_managed_fields)


def parse_event(line: bytes, *, keep_managed_fields: bool = False) -> tuple[str, Object | Status]:
    """Read one line of a watch: the event's type and its object, which is a Status for ERROR."""
    try:
        event = _USUAL_EVENT.decode(line)
    except msgspec.ValidationError:
        return _parse_unusual_event(line, keep_managed_fields=keep_managed_fields)
    usual = event.object
    return event.type, usual.object(
        api_version=usual.api_version, kind=usual.kind, keep_managed_fields=keep_managed_fields
    )


def parse_page(data: bytes, *, keep_managed_fields: bool = False) -> Page:
    """Read a list. Its items do not tell their kind, the list does: each item gets it."""
    page = _LIST.decode(data)
    kind, meta = page.kind.removesuffix("List"), page.metadata
    try:
        items = tuple(
            usual.object(api_version=page.api_version, kind=kind, keep_managed_fields=keep_managed_fields)
            for usual in _USUAL_ITEMS.decode(page.items) or ()
        )
    except msgspec.ValidationError:
        head = {"apiVersion": Raw(msgspec.json.encode(page.api_version)), "kind": Raw(msgspec.json.encode(kind))}
        items = tuple(
            Object.build(head | item, keep_managed_fields=keep_managed_fields) for item in _ITEMS.decode(page.items)
        )
    return Page(items, meta.resource_version, meta.continue_, meta.remaining_item_count)


def _parse_unusual_event(line: bytes, *, keep_managed_fields: bool) -> tuple[str, Object | Status]:
    event = _EVENT.decode(line)
    if event.type == "ERROR":
        return event.type, msgspec.json.decode(msgspec.json.encode(event.object), type=Status)
    return event.type, Object.build(event.object, keep_managed_fields=keep_managed_fields)
