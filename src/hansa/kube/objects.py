"""A Kubernetes object as an immutable value: typed metadata; other fields are raw JSON, decoded on access.

Most readers need metadata only; raw bytes are small, free for the garbage collector, and fast to compare.
Unknown fields are kept. The meaning of specs is left to callers.
"""

import datetime
import functools
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hansa.kube.errors import Invalid
from hansa.runtime.errors import HansaError

T = TypeVar("T")
SHORT = 512  # characters; shorter labels and annotations are often equal on many objects and are shared


class Malformed(HansaError):
    """A field of an object does not have the type that the API defines. Only a server that is not genuine sends it."""


class NamespacedName(NamedTuple):
    """Namespace and name of an object; the namespace of a cluster-scoped one is empty."""

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
    """Typed `metadata`. Unknown fields are kept by the Object."""

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
        return f"Metadata({NamespacedName(self.namespace, self.name)} @{self.resource_version})"

    def compact(self, *, keep_managed_fields: bool) -> None:
        """The last step of parsing: drop managedFields, or copy them, since a view would keep the whole response alive.

        Equal values of labels and annotations of many objects are kept once in memory.
        """
        managed = self.managed_fields
        if not isinstance(managed, UnsetType):
            msgspec.structs.force_setattr(self, "managed_fields", managed.copy() if keep_managed_fields else UNSET)
        for table in (self._labels or {}, self._annotations or {}):
            for name, value in table.items():
                if len(value) <= SHORT:
                    table[name] = _interned(value)

    @property
    def memory(self) -> int:
        """About the bytes that it takes in memory, besides what an outline keeps."""
        return sum(map(sys.getsizeof, self._parts()))

    def outlined(self) -> Self:
        """The fields that identify an object and its version, without those that can have any length."""
        empty = dict.fromkeys(("owner_references", "finalizers"), ())
        tables = dict.fromkeys(("_labels", "_annotations"))
        return msgspec.structs.replace(self, **empty, **tables, generate_name="", managed_fields=UNSET)

    def _parts(self) -> Iterator[object]:
        for table in filter(None, (self._labels, self._annotations)):
            yield from (table, *table, *table.values())
        for one in self.owner_references:
            yield from (one, one.api_version, one.kind, one.name, one.uid)
        yield from self.finalizers
        yield from filter(None, (self.generate_name, self.owner_references, self.finalizers))
        if not isinstance(self.managed_fields, UnsetType):
            yield bytes(self.managed_fields)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels, read-only."""
        return MappingProxyType(self._labels or {})

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations, read-only."""
        return MappingProxyType(self._annotations or {})


class Object(msgspec.Struct, frozen=True, gc=False):
    """Any Kubernetes object. Created with `parse` or `of`; `with_fields` and `with_metadata` return changed copies."""

    api_version: str
    kind: str
    metadata: Metadata
    # Every other top-level field, as JSON. Most objects have at most these two, for which a dict would be too large.
    _spec: bytes = b""
    _status: bytes = b""
    _others: dict[str, bytes] | None = None
    _unknown: dict[str, Raw] | None = None  # metadata fields that Metadata does not know
    _left_out: int = 0  # bytes of content that were left out

    def __repr__(self) -> str:
        return f"{self.kind or 'Object'}({self.key} @{self.version})"

    @classmethod
    def parse(cls, data: bytes | str, *, keep_managed_fields: bool = False) -> Self:
        """Parse JSON."""
        return cls.build(_FIELDS.decode(data), keep_managed_fields=keep_managed_fields)

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        """An object from a plain mapping, as from YAML."""
        try:
            return cls.parse(msgspec.json.encode(value), keep_managed_fields=True)
        except (msgspec.DecodeError, TypeError) as error:
            raise Invalid(f"not a Kubernetes object: {error}") from None

    @classmethod
    def build(cls, fields: dict[str, Raw], *, keep_managed_fields: bool) -> Self:
        """An object from decoded fields; they are copied, since a view would keep the whole response alive."""
        metadata, unknown = _metadata(fields.pop("metadata", _EMPTY), keep_managed_fields=keep_managed_fields)
        api_version = _text(bytes(fields.pop("apiVersion", _NO_TEXT)))
        kind = _text(bytes(fields.pop("kind", _NO_TEXT)))
        return cls(
            api_version, kind, metadata, **_parts({k: bytes(raw) for k, raw in fields.items()}), _unknown=unknown
        )

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace; empty for a cluster-scoped object."""
        return self.metadata.namespace

    @property
    def key(self) -> NamespacedName:
        return NamespacedName(self.metadata.namespace, self.metadata.name)

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
    def is_deleting(self) -> bool:
        """Whether the object is being deleted (it has a deletionTimestamp)."""
        return self.metadata.deletion_timestamp is not None

    @property
    def spec(self) -> dict[str, Any]:
        """The spec, decoded anew at each call; empty when there is none."""
        return self.decode("spec", _TABLE) or {}

    @property
    def status(self) -> dict[str, Any]:
        """The status, decoded anew at each call; empty when there is none."""
        return self.decode("status", _TABLE) or {}

    @property
    def size(self) -> int:
        """Bytes of labels, annotations and fields other than the status, about as the server stores them.

        That is what a copy has of it: owner references and finalizers are never copied.
        """
        size = self._left_out + self._fields_size
        for table in (self.metadata.labels, self.metadata.annotations):
            size += sum(map(len, table)) + sum(map(len, table.values()))
        return size

    @property
    def memory(self) -> int:
        """About the bytes that it takes in memory besides its outline: all metadata and fields, with the status."""
        unknown = sum(map(sys.getsizeof, map(bytes, self._unknown.values()))) if self._unknown else 0
        return self._left_out + self._fields_size + len(self._status) + self.metadata.memory + unknown

    @property
    def identity_size(self) -> int:
        """The characters of what an outline keeps."""
        meta = self.metadata
        names = (self.api_version, self.kind, meta.name, meta.namespace, meta.uid, meta.resource_version)
        return sum(map(len, names))

    @property
    def _fields_size(self) -> int:
        return len(self._spec) + (sum(map(len, self._others.values())) if self._others else 0)

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out of it."""
        return not self._left_out

    def outlined(self) -> Self:
        """The object without fields, with the metadata that identifies it and its version. Its size stays."""
        if not self.memory:
            return self
        return type(self)(self.api_version, self.kind, self.metadata.outlined(), _left_out=max(1, self.size))

    def raw(self, field: str) -> bytes:
        """A top-level field as JSON; empty when there is none. Equal bytes mean equal values."""
        if field == "spec":
            return self._spec
        if field == "status":
            return self._status
        return self._others.get(field, b"") if self._others else b""

    def get(self, field: str, default: Any = None) -> Any:
        """A top-level field other than metadata, decoded anew at each call."""
        raw = self.raw(field)
        return self.decode(field, Any) if raw else default

    def decode(self, field: str, into: type[T]) -> T:
        """A top-level field decoded into a type, such as a msgspec Struct of the few fields that a caller needs.

        Raises Malformed.
        """
        try:
            return msgspec.json.decode(self.raw(field) or b"{}", type=into)
        except (msgspec.DecodeError, RecursionError) as error:
            what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise Malformed(f"{field} of {self.kind} {self.key} is malformed: {what}") from None

    def with_fields(self, **fields: Any) -> Self:
        """A copy with some top-level fields replaced; None removes a field."""
        wanted = {name: b"" if value is None else msgspec.json.encode(value) for name, value in fields.items()}
        return msgspec.structs.replace(self, **_parts(self._content | wanted))

    def with_metadata(self, **fields: Any) -> Self:
        """A copy with some metadata replaced, by Metadata's names (labels, resource_version, owner_references, …)."""
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
        """The object as JSON."""
        metadata: Any = self.metadata
        if self._unknown:
            metadata = _FIELDS.decode(msgspec.json.encode(metadata)) | self._unknown
        head = {"apiVersion": self.api_version, "kind": self.kind}
        content = {name: Raw(raw) for name, raw in self._content.items()}
        return msgspec.json.encode({k: v for k, v in head.items() if v} | {"metadata": metadata} | content)

    def to_dict(self) -> dict[str, Any]:
        """The object as a new dict, which the caller may change."""
        decoded: dict[str, Any] = msgspec.json.decode(self.to_json())
        return decoded

    @property
    def _content(self) -> dict[str, bytes]:
        found = {"spec": self._spec, "status": self._status} | (self._others or {})
        return {name: raw for name, raw in found.items() if raw}


def _parts(content: dict[str, bytes]) -> dict[str, Any]:
    """Top-level fields as fields of an Object."""
    others = {name: raw for name, raw in content.items() if raw and name not in ("spec", "status")}
    return {"_spec": content.get("spec", b""), "_status": content.get("status", b""), "_others": others or None}


_TABLE: Any = dict[str, Any] | None
_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_METADATA = msgspec.json.Decoder(Metadata)
_EMPTY = Raw(b"{}")
_NO_TEXT = Raw(b'""')


def _metadata(raw: Raw, *, keep_managed_fields: bool) -> tuple[Metadata, dict[str, Raw] | None]:
    unknown: dict[str, Raw] = {}
    try:
        metadata = _METADATA.decode(raw)
    except msgspec.ValidationError:
        metadata, unknown = _unusual_metadata(raw)
    metadata.compact(keep_managed_fields=keep_managed_fields)
    return metadata, unknown or None


def _unusual_metadata(raw: Raw) -> tuple[Metadata, dict[str, Raw]]:
    """The slow path, for metadata with nulls or with unknown fields of newer servers."""
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


@functools.lru_cache(maxsize=4096)
def _interned(text: str) -> str:
    """One shared instance of equal texts."""
    return text


@functools.lru_cache(maxsize=512)
def _text(raw: bytes) -> str:
    """Decodes apiVersion and kind; one shared instance of equal texts."""
    return msgspec.json.decode(raw, type=str)
