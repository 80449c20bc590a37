"""What lists and watches answer: pages of objects, and events. The hot path of every cache."""

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


class _ListMetadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: _ListMetadata = _ListMetadata()
    items: list[dict[str, Raw]] | None = None


class _Usual(msgspec.Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """What most kinds have: read in one pass, which is a third faster than field by field."""

    metadata: Metadata
    api_version: str = ""
    kind: str = ""
    spec: Raw | UnsetType = UNSET
    status: Raw | UnsetType = UNSET
    data: Raw | UnsetType = UNSET
    type: Raw | UnsetType = UNSET


class _UsualEvent(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: _Usual


class _Event(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: dict[str, Raw]


_LIST = msgspec.json.Decoder(_List)
_EVENT = msgspec.json.Decoder(_Event)
_USUAL_EVENT = msgspec.json.Decoder(_UsualEvent)


def parse_page(data: bytes, *, keep_managed_fields: bool = False) -> Page:
    """Read a list. Its items do not tell their kind, the list does: each item gets it."""
    page = _LIST.decode(data)
    head = {
        "apiVersion": Raw(msgspec.json.encode(page.api_version)),
        "kind": Raw(msgspec.json.encode(page.kind.removesuffix("List"))),
    }
    items = tuple(Object.build(head | item, keep_managed_fields=keep_managed_fields) for item in page.items or ())
    meta = page.metadata
    return Page(items, meta.resource_version, meta.continue_, meta.remaining_item_count)


def parse_event(line: bytes, *, keep_managed_fields: bool = False) -> tuple[str, Object | Status]:
    """Read one line of a watch: the event's type and its object, which is a Status for ERROR."""
    try:
        event = _USUAL_EVENT.decode(line)
    except msgspec.ValidationError:
        return _parse_unusual_event(line, keep_managed_fields=keep_managed_fields)
    usual = event.object
    content = {}
    if usual.spec is not UNSET:
        content["spec"] = usual.spec.copy()
    if usual.status is not UNSET:
        content["status"] = usual.status.copy()
    if usual.data is not UNSET:
        content["data"] = usual.data.copy()
    if usual.type is not UNSET:
        content["type"] = usual.type.copy()
    metadata = usual.metadata
    if metadata.managed_fields is not UNSET:
        metadata.settle(keep_managed_fields=keep_managed_fields)
    return event.type, Object(sys.intern(usual.api_version), sys.intern(usual.kind), metadata, content)


def _parse_unusual_event(line: bytes, *, keep_managed_fields: bool) -> tuple[str, Object | Status]:
    event = _EVENT.decode(line)
    if event.type == "ERROR":
        return event.type, msgspec.json.decode(msgspec.json.encode(event.object), type=Status)
    return event.type, Object.build(event.object, keep_managed_fields=keep_managed_fields)
