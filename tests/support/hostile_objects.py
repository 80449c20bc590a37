"""Objects that a hostile tenant may create: each has random values in random fields of the API server's own schema.

The fields come from /openapi/v3, so that a field that a new Kubernetes adds is tried, too. Values are valid often
enough that the tenant's API server accepts a good part of the objects. The same seed makes the same objects.
"""

import base64
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hansa.kube.resource import Resource

Schema = Mapping[str, Any]
Path = tuple[str, ...]
Frame = tuple[Mapping[str, Any], tuple[str, ...]]
ITEM, VALUE = "[]", "{}"  # steps of a path: an item of a list, a value of a map
DEEPEST: Final = 12
_TEXTS: Final = ("a", "default", "kube-system", "true", "10.0.0.1", "/etc", "../..", "", "x" * 300, "é{{")
_NUMBERS: Final = (0, 1, 1, 2, 30, 80, 1000, 8080, 65535, -1, 2**31 - 1)
# "": a quantity, or an int or string.
_SCALARS: Final[Mapping[str, Sequence[Any]]] = {
    "boolean": (True, True, True, False),
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "": ("1", "100m", "1Gi", 80, "http"),
}
# Fields that the server sets, or by which it refuses any new object.
LEFT_OUT: Final = frozenset(
    {"apiVersion", "kind", "status", "name", "namespace", "generateName", "managedFields", "resourceVersion", "uid"}
    | {
        "ephemeralContainers",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "generation",
    }
)
NESTED: Final = frozenset({"apiVersion", "kind", "name", "namespace", "uid"})  # not of the object itself
# Lists whose first item gets the fields: another item would seldom be valid.
MERGED: Final = frozenset({"containers", "ports", "rules", "subsets", "endpoints"})


class Schemas:
    """The schemas of an API server."""

    def __init__(self, documents: Sequence[Mapping[str, Any]]) -> None:
        self._schemas: dict[str, Schema] = {}
        for document in documents:
            self._schemas |= document["components"]["schemas"]

    def of(self, resource: Resource) -> Schema:
        """The schema of a kind."""
        wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        kinds = "x-kubernetes-group-version-kind"
        return next(one for one in self._schemas.values() if one.get(kinds) == [wanted])

    def resolved(self, schema: Schema) -> Schema:
        """The schema behind references."""
        while True:
            references = [schema, *schema.get("allOf", ())]
            target = next((one["$ref"] for one in references if "$ref" in one), None)
            if target is None:
                return schema
            schema = self._schemas[target.rpartition("/")[2]]

    def paths(self, schema: Schema, parents: tuple[int, ...] = ()) -> Iterator[Path]:
        """The paths of all fields."""
        schema = self.resolved(schema)
        if id(schema) in parents or len(parents) > DEEPEST:
            return
        within = (*parents, id(schema))
        if properties := schema.get("properties"):
            for name, one in properties.items():
                if name not in LEFT_OUT or (len(parents) > 1 and name in NESTED):
                    yield from ((name, *rest) for rest in self.paths(one, within))
        elif "items" in schema:
            yield from ((ITEM, *rest) for rest in self.paths(schema["items"], within))
        elif isinstance(schema.get("additionalProperties"), Mapping):
            yield from ((VALUE, *rest) for rest in self.paths(schema["additionalProperties"], within))
        else:
            yield ()


class Generator:
    """Makes objects of one kind after another.

    `hints` has values for fields of a name, or of `parent.name`; `frames` has fields that objects of a name need
    besides, and the fields that exclude them.
    """

    def __init__(
        self, schemas: Schemas, random: random.Random, hints: Mapping[str, Sequence[Any]], frames: Mapping[str, Frame]
    ) -> None:
        self._schemas, self._random, self._hints, self._frames = schemas, random, hints, frames
        self._paths: dict[Resource, list[Path]] = {}

    def make(self, resource: Resource, base: Mapping[str, Any]) -> dict[str, Any]:
        """An object with up to three random fields on top of a valid one."""
        schema = self._schemas.of(resource)
        if resource not in self._paths:
            self._paths[resource] = list(self._schemas.paths(schema))
        made: dict[str, Any] = dict(base)
        for _ in range(self._random.choice((1, 1, 2, 3))):
            made = self._merged(made, schema, self._random.choice(self._paths[resource]))
        return made

    def _merged(self, base: Any, schema: Schema, path: Path, name: str = "") -> Any:
        schema = self._schemas.resolved(schema)
        if not path or base is None:
            return self._built(schema, path, name)
        step, rest = path[0], path[1:]
        if step == ITEM:
            if base and name in MERGED:
                return [self._merged(base[0], schema["items"], rest, name), *base[1:]]
            return [*base, self._built(schema["items"], rest, name)]
        if step == VALUE:
            return {**base, self._key(name): self._built(schema["additionalProperties"], rest, name)}
        return {**base, step: self._merged(base.get(step), schema["properties"][step], rest, step)}

    def _built(self, schema: Schema, path: Path, name: str, parent: str = "") -> Any:
        """A value that has the field of a path, and besides only what is required."""
        schema = self._schemas.resolved(schema)
        if not path:
            return self._value(schema, name, parent)
        step, rest = path[0], path[1:]
        if step == ITEM:
            return [self._built(schema["items"], rest, name, parent)]
        if step == VALUE:
            return {self._key(name): self._built(schema["additionalProperties"], rest, name)}
        frame = self._required(schema, name) | self._frame(name, step)
        if step in frame and rest:
            return {**frame, step: self._merged(frame[step], schema["properties"][step], rest, step)}
        return {**frame, step: self._built(schema["properties"][step], rest, step, name)}

    def _frame(self, name: str, step: str) -> dict[str, Any]:
        """What an object needs by the server's validation, beyond the schema: unless the field is one of its rivals."""
        frame, rivals = self._frames.get(name, ({}, ()))
        return {} if step in rivals else dict(frame)

    def _required(self, schema: Schema, name: str) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        return {one: self._value(self._schemas.resolved(properties[one]), one, name) for one in required}

    def _value(self, schema: Schema, name: str, parent: str = "") -> Any:
        match schema.get("type"):
            case "array":
                return [self._value(self._schemas.resolved(schema["items"]), name, parent)]
            case "object":
                return self._object(schema, name)
        hints = self._hints.get(f"{parent}.{name}") or self._hints.get(name)
        choices = hints or schema.get("enum") or _SCALARS.get(schema.get("type", ""))
        return self._random.choice(choices) if choices else self._text(schema)

    def _object(self, schema: Schema, name: str) -> dict[str, Any]:
        if isinstance(schema.get("additionalProperties"), Mapping):
            more = self._schemas.resolved(schema["additionalProperties"])
            return {self._key(name): self._value(more, name)}
        return self._required(schema, name) | self._frame(name, "")

    def _text(self, schema: Schema) -> str:
        match schema.get("format"):
            case "byte":
                return base64.b64encode(self._random.randbytes(8)).decode()
            case "date-time":
                return "2030-01-01T00:00:00Z"
        return self._random.choice(_TEXTS)

    def _key(self, name: str) -> str:
        return str(self._random.choice(self._hints.get(f"{name} key", ("a", "app", "example.com/a"))))
