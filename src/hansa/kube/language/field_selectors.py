"""Field selectors: parsed, matched and printed as the API server does (`spec.nodeName=n1,status.phase!=Running`).

Any dotted path can be matched here; a server supports a few per kind and refuses others itself.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansa.kube.language import selectors

CACHED: Final = 1024  # like label selectors, there are few different ones


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One field that must have a value, or must not."""

    field: str
    value: str
    negated: bool = False

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether the fields, named by their paths, meet the term; a missing field is empty."""
        return (fields.get(self.field, "") == self.value) is not self.negated

    def __str__(self) -> str:
        return f"{self.field}{'!=' if self.negated else '='}{_SPECIAL.sub(_escaped, self.value)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Terms on fields that must all hold."""

    terms: tuple[FieldTerm, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether the fields, named by their paths, meet every term."""
        return all(term.matches(fields) for term in self.terms)

    def matches_object(self, obj: Mapping[str, Any]) -> bool:
        """Whether an object in its JSON form meets every term."""
        return self.matches({term.field: field_of(obj, term.field) for term in self.terms})

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


@functools.lru_cache(maxsize=CACHED)
def parse(text: str) -> FieldSelector:
    r"""Read a field selector: `metadata.name=x,status.phase!=Running`, with `\,` `\=` `\\` in values."""
    return FieldSelector(tuple(_term(text, part) for part in sorted(_PARTS.findall(text))))


def field_of(obj: Mapping[str, Any], path: str) -> str:
    """The value at a dotted path in a field selector: a missing one is empty, a missing boolean is false."""
    at: Any = obj
    for name in path.split("."):
        at = at.get(name) if isinstance(at, Mapping) else None
    match at:
        case None:
            return "false" if path in _SWITCHES else ""
        case bool():
            return "true" if at else "false"
        case _:
            return str(at)


_PARTS: Final = re.compile(r"(?:[^,\\]|\\.?)+", re.DOTALL)
_TERM: Final = re.compile(r"([^\s=!,\\]+)(!=|==|=)((?:[^\\,=]|\\[\\,=])*)")
_SPECIAL: Final = re.compile(r"[\\,=]")
_ESCAPE: Final = re.compile(r"\\(.)")
_SWITCHES: Final = frozenset({"spec.hostNetwork", "spec.unschedulable"})  # selectable fields that are booleans


def _term(text: str, part: str) -> FieldTerm:
    match = _TERM.fullmatch(part)
    if match is None:
        raise selectors.SelectorError(
            f'field selector "{text}" cannot be read: "{part}" is not field=value or field!=value '
            r"(in a value, write \, for a comma, \= for an equals sign and \\ for a backslash)"
        )
    field, sign, value = match.groups()
    return FieldTerm(field, _ESCAPE.sub(r"\1", value), negated=sign == "!=")


def _escaped(special: re.Match[str]) -> str:
    return f"\\{special.group()}"
