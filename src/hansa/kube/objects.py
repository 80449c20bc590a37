"""A Kubernetes object as an immutable value: typed metadata, everything else kept as raw JSON and decoded when asked.

Most readers look at metadata only; raw bytes are small, cost the garbage collector nothing and compare fast.
What a kind's spec means is left to others; fields that nobody here knows survive a round trip.
"""

import datetime
import functools
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hansa.kube.errors import Invalid, Status

T = TypeVar("T")


class Key(NamedTuple):
    """What names an object among those of its resource; the namespace of a cluster-wide one is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class OwnerReference(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """One entry of `metadata.ownerReferences`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """`metadata`, typed. Fields that it does not know are kept by the Object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime.datetime | None = None
    deletion_timestamp: datetime.datetime | None = None
    deletion_grace_period_seconds: int | None = None
    _labels: dict[str, str] | None = msgspec.field(name="labels", default=None)
    _annotations: dict[str, str] | None = msgspec.field(name="annotations", default=None)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: Raw | UnsetType = UNSET

    def __repr__(self) -> str:
        # Annotations can hold a whole Secret (kubectl's last-applied-configuration), and reprs end up in logs.
        return f"Metadata({Key(self.namespace, self.name)} @{self.resource_version})"

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels, read-only."""
        return MappingProxyType(self._labels or {})

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations, read-only."""
        return MappingProxyType(self._annotations or {})


class Object(msgspec.Struct, frozen=True, gc=False):
    """Any Kubernetes object. Make one with `parse` or `of`; change one with `with_fields` and `with_metadata`."""

    api_version: str
    kind: str
    metadata: Metadata
    _content: dict[str, Raw]  # every other top-level field, as JSON
    _unknown: dict[str, Raw] | None = None  # metadata fields that Metadata does not know

    def __repr__(self) -> str:
        return f"{self.kind or 'Object'}({self.key} @{self.version})"

    @classmethod
    def parse(cls, data: bytes | str, *, keep_managed_fields: bool = False) -> Self:
        """Read JSON."""
        return cls._build(_FIELDS.decode(data), keep_managed_fields=keep_managed_fields)

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        """Take an object in its plain form, as from YAML."""
        try:
            return cls.parse(msgspec.json.encode(value), keep_managed_fields=True)
        except (msgspec.DecodeError, TypeError) as error:
            raise Invalid(f"this is not a Kubernetes object: {error}") from None

    @classmethod
    def _build(cls, fields: dict[str, Raw], *, keep_managed_fields: bool) -> Self:
        """Take ownership of freshly decoded fields; they are copied, since a view would keep the whole answer alive."""
        metadata, unknown = _metadata(fields.pop("metadata", _EMPTY), keep_managed_fields=keep_managed_fields)
        api_version = _text(bytes(fields.pop("apiVersion", _NO_TEXT)))
        kind = _text(bytes(fields.pop("kind", _NO_TEXT)))
        for name, raw in fields.items():
            fields[name] = raw.copy()
        return cls(api_version, kind, metadata, fields, unknown)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace; empty for a cluster-wide object."""
        return self.metadata.namespace

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def version(self) -> str:
        """The resourceVersion."""
        return self.metadata.resource_version

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations

    @property
    def is_leaving(self) -> bool:
        """Deletion was asked for and waits for finalizers or a grace period."""
        return self.metadata.deletion_timestamp is not None

    @property
    def spec(self) -> dict[str, Any]:
        """The spec, decoded anew at each call; empty when there is none."""
        return self.get("spec") or {}

    @property
    def status(self) -> dict[str, Any]:
        """The status, decoded anew at each call; empty when there is none."""
        return self.get("status") or {}

    def raw(self, field: str) -> bytes:
        """A top-level field as JSON; empty when there is none. Equal bytes mean equal values."""
        raw = self._content.get(field)
        return b"" if raw is None else bytes(raw)

    def get(self, field: str, default: Any = None) -> Any:
        """A top-level field other than metadata, decoded anew at each call."""
        raw = self._content.get(field)
        return default if raw is None else msgspec.json.decode(raw)

    def decode(self, field: str, into: type[T]) -> T:
        """A top-level field as a type of the caller, such as a msgspec Struct of the few parts that it needs."""
        return msgspec.json.decode(self._content.get(field, _EMPTY), type=into)

    def with_fields(self, **fields: Any) -> Self:
        """The same with some top-level fields replaced; None takes a field away."""
        content = self._content | {name: Raw(msgspec.json.encode(value)) for name, value in fields.items()}
        for name in [name for name, value in fields.items() if value is None]:
            del content[name]
        return msgspec.structs.replace(self, _content=content)

    def with_metadata(self, **fields: Any) -> Self:
        """The same with some metadata replaced, by Metadata's names (labels, resource_version, owner_references, …)."""
        for name, table in (("labels", "_labels"), ("annotations", "_annotations")):
            if name in fields:
                fields[table] = dict(fields.pop(name) or {}) or None
        for name in ("finalizers", "owner_references"):
            if name in fields:
                fields[name] = tuple(fields[name])
        metadata = msgspec.structs.replace(self.metadata, **fields)
        unknown = self._unknown
        if unknown and "owner_references" in fields:
            unknown = {name: raw for name, raw in unknown.items() if name != "ownerReferences"}
        return msgspec.structs.replace(self, metadata=metadata, _unknown=unknown)

    def to_json(self) -> bytes:
        """The object as the API server takes it."""
        metadata: Any = self.metadata
        if self._unknown:
            metadata = _FIELDS.decode(msgspec.json.encode(metadata)) | self._unknown
        head = {"apiVersion": self.api_version, "kind": self.kind}
        return msgspec.json.encode({k: v for k, v in head.items() if v} | {"metadata": metadata} | self._content)

    def to_dict(self) -> dict[str, Any]:
        """The object in its plain form: a fresh copy that may be changed."""
        decoded: dict[str, Any] = msgspec.json.decode(self.to_json())
        return decoded


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


_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_METADATA = msgspec.json.Decoder(Metadata)
_LIST = msgspec.json.Decoder(_List)
_EVENT = msgspec.json.Decoder(_Event)
_USUAL_EVENT = msgspec.json.Decoder(_UsualEvent)
_EMPTY = Raw(b"{}")
_NO_TEXT = Raw(b'""')


def parse_page(data: bytes, *, keep_managed_fields: bool = False) -> Page:
    """Read a list. Its items do not tell their kind, the list does: each item gets it."""
    page = _LIST.decode(data)
    head = {
        "apiVersion": Raw(msgspec.json.encode(page.api_version)),
        "kind": Raw(msgspec.json.encode(page.kind.removesuffix("List"))),
    }
    items = tuple(Object._build(head | item, keep_managed_fields=keep_managed_fields) for item in page.items or ())
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
    if not isinstance(usual.spec, UnsetType):
        content["spec"] = usual.spec.copy()
    if not isinstance(usual.status, UnsetType):
        content["status"] = usual.status.copy()
    if not isinstance(usual.data, UnsetType):
        content["data"] = usual.data.copy()
    if not isinstance(usual.type, UnsetType):
        content["type"] = usual.type.copy()
    _drop_managed_fields(usual.metadata, keep=keep_managed_fields)
    return event.type, Object(sys.intern(usual.api_version), sys.intern(usual.kind), usual.metadata, content)


def _parse_unusual_event(line: bytes, *, keep_managed_fields: bool) -> tuple[str, Object | Status]:
    event = _EVENT.decode(line)
    if event.type == "ERROR":
        return event.type, msgspec.json.decode(msgspec.json.encode(event.object), type=Status)
    return event.type, Object._build(event.object, keep_managed_fields=keep_managed_fields)


def _metadata(raw: Raw, *, keep_managed_fields: bool) -> tuple[Metadata, dict[str, Raw] | None]:
    unknown: dict[str, Raw] = {}
    try:
        metadata = _METADATA.decode(raw)
    except msgspec.ValidationError:
        metadata, unknown = _unusual_metadata(raw)
    _drop_managed_fields(metadata, keep=keep_managed_fields)
    return metadata, unknown or None


def _drop_managed_fields(metadata: Metadata, *, keep: bool) -> None:
    """Forget the managedFields of freshly read metadata, or keep a copy: a view would keep the whole answer alive."""
    managed = metadata.managed_fields
    if not isinstance(managed, UnsetType):
        msgspec.structs.force_setattr(metadata, "managed_fields", managed.copy() if keep else UNSET)


def _unusual_metadata(raw: Raw) -> tuple[Metadata, dict[str, Raw]]:
    """The slow way, for metadata with nulls or with fields that came after this program."""
    fields = _FIELDS.decode(raw)
    unknown = {name: fields.pop(name).copy() for name in fields.keys() - _KNOWN_METADATA}
    known: dict[str, Any] = {name: value for name, value in fields.items() if bytes(value) != b"null"}
    if (references := known.get("ownerReferences")) is not None:
        plain = msgspec.json.decode(references, type=list[dict[str, Any]])
        known["ownerReferences"] = [{k: v for k, v in ref.items() if k in _KNOWN_REFERENCE} for ref in plain]
        if known["ownerReferences"] != plain:
            unknown["ownerReferences"] = references.copy()  # as a whole: `to_json` writes it instead of the typed ones
    return _METADATA.decode(msgspec.json.encode(known)), unknown


_KNOWN_METADATA = frozenset(Metadata.__struct_encode_fields__)
_KNOWN_REFERENCE = frozenset(OwnerReference.__struct_encode_fields__)


@functools.lru_cache(maxsize=512)
def _text(raw: bytes) -> str:
    """The few apiVersions and kinds of millions of objects, each once in memory."""
    return msgspec.json.decode(raw, type=str)
