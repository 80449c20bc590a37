"""A mutation: which requests an admission webhook changes or refuses, and the pure function that does it.

The webhook serves a list of them. A mode supplies the list; the AdmissionReview format, the server and the
MutatingWebhookConfiguration are left to `review`, `serving` and `configuration`.
"""

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from hansa.control.table import Table
from hansa.kube.resource import Resource
from hansa.runtime import errors

Json = dict[str, Any]
Caches = Mapping[Resource, Table]
LONGEST_VALUE = 120  # characters of a refused value in a message; annotations can hold 256 KiB


class Operation(enum.StrEnum):
    """The operations of requests that can be mutated. Others have no object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"


class Refused(errors.HansaError):
    """The object is not admitted. The message has the form of the API server's own field errors."""

    def __init__(self, field: str, value: object, remedy: str) -> None:
        text = msgspec.json.encode(value).decode()
        shown = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
        super().__init__(f"{field}: Invalid value: {shown}: {remedy}")
        self.field = field


@dataclass(frozen=True, slots=True)
class Request:
    """The object of one AdmissionReview, in its JSON form. `old` is the stored object of an UPDATE."""

    resource: Resource
    operation: Operation
    namespace: str
    object: Json
    old: Json | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects a mutation applies to, among those of its resources.

    The two selectors are matchExpressions for the API server, and the conditions its matchConditions: it then does not
    send the other objects. They may match more than `matches` does, which is decisive: a configuration written by hand
    can send anything.
    """

    matches: Callable[[Request], bool] = lambda _: True
    namespace_selector: tuple[Json, ...] = ()
    object_selector: tuple[Json, ...] = ()
    conditions: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One change, or one check, of objects that are created or updated.

    `mutate` returns the object to store, or raises `Refused`. It must be idempotent, since the API server calls a
    webhook again when another one changed the object after it. It reads `caches`, which has the resources in `reads`.
    """

    name: str
    resources: tuple[Resource, ...]
    mutate: Callable[[Request, Caches], Json]
    operations: tuple[Operation, ...] = (Operation.CREATE,)
    selection: Selection = Selection()
    is_optional: bool = False  # without it, objects are stored as they are while the webhook does not answer
    reads: tuple[Resource, ...] = ()

    def applies_to(self, request: Request) -> bool:
        """Whether the mutation changes or checks objects like this one."""
        # Compared by path: an AdmissionReview does not say whether its resource is namespaced.
        return (
            any(request.resource.collection() == resource.collection() for resource in self.resources)
            and request.operation in self.operations
            and self.selection.matches(request)
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Which mutation refused the object, and its message."""

    mutation: str
    message: str


def mutated(request: Request, mutations: Iterable[Mutation], caches: Caches) -> Json | Refusal:
    """The object after all mutations that apply to it, in their order, or the first refusal."""
    for mutation in mutations:
        if mutation.applies_to(request):
            try:
                request = dataclasses.replace(request, object=mutation.mutate(request, caches))
            except Refused as error:
                return Refusal(mutation.name, str(error))
    return request.object


def rules(mutations: Iterable[Mutation]) -> list[Json]:
    """The rules of a MutatingWebhookConfiguration by which the API server sends what these mutations apply to."""
    found: list[Json] = []
    for mutation in mutations:
        for resource in mutation.resources:
            rule = {
                "apiGroups": [resource.group],
                "apiVersions": [resource.version],
                "operations": [operation.value for operation in mutation.operations],
                "resources": [resource.plural],
                "scope": "Namespaced" if resource.namespaced else "Cluster",
            }
            if rule not in found:
                found.append(rule)
    return found


def selectors(mutations: Sequence[Mutation]) -> dict[str, Any]:
    """The selectors and conditions of a webhook that serves all these mutations: only what they have in common.

    Expressions of one selector must all match, so an object that any of the mutations applies to is sent.
    """
    namespaces = _common([mutation.selection.namespace_selector for mutation in mutations])
    objects = _common([mutation.selection.object_selector for mutation in mutations])
    parts = {"namespaceSelector": namespaces, "objectSelector": objects}
    conditions = _common([mutation.selection.conditions for mutation in mutations])
    return {name: {"matchExpressions": expressions} for name, expressions in parts.items() if expressions} | (
        {"matchConditions": conditions} if conditions else {}
    )


def _common(lists: Sequence[tuple[Json, ...]]) -> list[Json]:
    first, *others = lists or [()]
    return [expression for expression in first if all(expression in other for other in others)]
