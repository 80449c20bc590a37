"""The messages of kube-scheduler's extender API, version v1, as its HTTP client writes and reads them. Pure."""

from dataclasses import dataclass
from typing import TypeVar

import msgspec

from hansa.kube import decoding
from hansa.kube.objects import Object
from hansa.runtime import errors

T = TypeVar("T")


class InvalidMessage(errors.HansaError):
    """The body of a request is not what kube-scheduler sends, or its configuration does not fit this extender."""


class _Message(msgspec.Struct, rename="pascal"):
    pass


class _Candidates(_Message):
    pod: msgspec.Raw
    node_names: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """The arguments of filter and prioritize. Node names are sent with `nodeCacheCapable: true`."""

    pod: Object
    node_names: list[str]


class Filtered(_Message):
    """The nodes that passed, and why each of the others did not."""

    node_names: list[str]
    failed_nodes: dict[str, str]
    error: str = ""


class Priority(_Message):
    """The score of one node, 0 to 10."""

    host: str
    score: int


class Binding(msgspec.Struct):
    """The arguments of bind."""

    name: str = msgspec.field(name="PodName")
    namespace: str = msgspec.field(name="PodNamespace")
    uid: str = msgspec.field(name="PodUID")
    node: str = msgspec.field(name="Node")


class Bound(_Message):
    """The result of bind; empty if the pod is bound."""

    error: str = ""


def candidates(body: bytes) -> Candidates:
    """Decode the arguments of filter or prioritize."""
    found = _decoded(body, _Candidates)
    if found.node_names is None:
        raise InvalidMessage("no NodeNames: set nodeCacheCapable: true for this extender (--write-scheduler-config)")
    try:
        return Candidates(decoding.parse_object(bytes(found.pod)), found.node_names)
    except msgspec.DecodeError as error:
        raise InvalidMessage(f"not a pod: {error}") from None


def binding(body: bytes) -> Binding:
    """Decode the arguments of bind."""
    return _decoded(body, Binding)


def _decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise InvalidMessage(f"not a request of kube-scheduler: {error}") from None
