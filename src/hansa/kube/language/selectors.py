"""Label selectors: parsed, matched and printed as the API server does, so that caches can be filtered locally.

A selector that matches nothing requires a label both to exist and not to exist, so it can be sent to a server too.
Field selectors and node selectors are `field_selectors` and `affinity`.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from hansa.runtime import errors

CACHED: Final = 1024  # selectors come from specs and settings: there are few different ones


class SelectorError(errors.HansaError, ValueError):
    """A selector cannot be read."""


class Operator(StrEnum):
    """Operators of requirements, named as in matchExpressions, which do not have the first two."""

    EQUALS = "Equals"
    NOT_EQUALS = "NotEquals"
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement on one label; values are sorted. Use `requirement` to create a validated one."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels match the requirement."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.EQUALS | Operator.IN:
                return value in self.values
            case Operator.NOT_EQUALS | Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GT | Operator.LT:
                number, bound = _int64(value), _int64(self.values[0])
                if number is None or bound is None:
                    return False
                return number > bound if self.operator is Operator.GT else number < bound

    def __str__(self) -> str:
        values = ",".join(self.values)
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.IN:
                return f"{self.key} in ({values})"
            case Operator.NOT_IN:
                return f"{self.key} notin ({values})"
            case _:
                return f"{self.key}{_SIGNS[self.operator]}{values}"


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements on labels that must all match, sorted by key."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels match every requirement; a selector without requirements matches everything."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


class Expression(msgspec.Struct, frozen=True):
    """An entry of matchExpressions or matchFields of an API object."""

    key: str
    operator: str
    values: tuple[str, ...] | None = ()


SET_BASED: Final = (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)
"""The operators of matchExpressions in a LabelSelector."""
EVERYTHING: Final = Selector()
NOTHING: Final = Selector((Requirement("nothing", Operator.EXISTS), Requirement("nothing", Operator.DOES_NOT_EXIST)))


@functools.lru_cache(maxsize=CACHED)
def parse(text: str) -> Selector:
    """Parse the form of command lines and query strings: `a=b,c!=d,e in (x,y),!f,g`."""
    try:
        return _selector(_requirements(text))
    except SelectorError as error:
        raise SelectorError(f'label selector "{text}" cannot be read: {error}') from None


def of_object(selector: Mapping[str, Any] | None) -> Selector:
    """Parse a LabelSelector of an API object: None selects nothing, an empty one selects everything."""
    if selector is None:
        return NOTHING
    try:
        read = msgspec.convert(selector, _LabelSelector)
    except msgspec.ValidationError as error:
        raise SelectorError(f"a label selector cannot be read: {error}") from None
    equal = [requirement(key, Operator.EQUALS, (value,)) for key, value in (read.match_labels or {}).items()]
    return _selector(equal + [of_expression(expression) for expression in read.match_expressions or ()])


def of_labels(labels: Mapping[str, str]) -> Selector:
    """A selector of objects with all of these labels, which are not validated, as for a pod's nodeSelector."""
    return _selector(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items())


def of_expression(expression: Expression, operators: Sequence[Operator] = SET_BASED) -> Requirement:
    """A validated requirement from an expression, whose operator must be one of these."""
    if expression.operator not in operators:
        raise SelectorError(
            f'"{expression.operator}" on label "{expression.key}" is not an operator here: use {", ".join(operators)}'
        )
    return requirement(expression.key, Operator(expression.operator), expression.values or ())


def requirement(key: str, operator: Operator, values: Iterable[str] = ()) -> Requirement:
    """A validated requirement: key and values are valid for labels, and their number fits the operator."""
    values = tuple(values)
    if not is_label_key(key):
        raise SelectorError(
            f'"{key}" is not a valid label key: use a {_NAME_RULE}, optionally after a DNS name and "/"'
        )
    for value in values:
        if not is_label_value(value):
            raise SelectorError(f'"{value}" is not a valid value of label "{key}": it must be empty or a {_NAME_RULE}')
    match operator, len(values):
        case (Operator.EXISTS | Operator.DOES_NOT_EXIST, count) if count > 0:
            raise SelectorError(f'{operator} on label "{key}" takes no values')
        case (Operator.IN | Operator.NOT_IN, 0):
            raise SelectorError(f'{operator} on label "{key}" needs a value')
        case (Operator.EQUALS | Operator.NOT_EQUALS | Operator.GT | Operator.LT, count) if count != 1:
            raise SelectorError(f'{operator} on label "{key}" needs exactly one value')
        case (Operator.GT | Operator.LT, _) if _int64(values[0]) is None:
            raise SelectorError(f'{operator} on label "{key}" needs a whole number, not "{values[0]}"')
    return Requirement(key, operator, tuple(sorted(set(values))))


def is_label_key(key: str) -> bool:
    """Whether it is a name of up to 63 characters, optionally after a DNS name and a slash."""
    prefix, slash, name = key.rpartition("/")
    return _is_name(name) and (not slash or (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix) is not None))


def is_label_value(value: str) -> bool:
    """Whether it is empty or a name of up to 63 characters."""
    return value == "" or _is_name(value)


class _LabelSelector(msgspec.Struct, frozen=True, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Expression, ...] | None = None


_SIGNS: Final = {Operator.EQUALS: "=", Operator.NOT_EQUALS: "!=", Operator.GT: ">", Operator.LT: "<"}
_OPERATORS: Final = {sign: operator for operator, sign in _SIGNS.items()} | {
    "==": Operator.EQUALS,
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
}
_END: Final = ""
_TOKEN: Final = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_SYMBOLS: Final = frozenset({_END, "==", "!=", *"=!(),<>"})
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_NAME_RULE: Final = "name of up to 63 letters, digits, dashes, underscores and dots (none of these three at its ends)"
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")


def _selector(requirements: Iterable[Requirement]) -> Selector:
    return Selector(tuple(sorted(requirements, key=lambda one: one.key)))


def _requirements(text: str) -> Iterable[Requirement]:
    tokens = [_END, *reversed(_TOKEN.findall(text))]
    separator = "," if len(tokens) > 1 else _END
    while separator == ",":
        yield _read_requirement(tokens)
        separator = tokens.pop()
    if separator != _END:
        raise _unexpected(separator, "a comma or the end")


def _read_requirement(tokens: list[str]) -> Requirement:
    if tokens[-1] == "!":
        tokens.pop()
        return requirement(_read_word(tokens, "a label key"), Operator.DOES_NOT_EXIST)
    key = _read_word(tokens, "a label key")
    if tokens[-1] in (_END, ","):
        return requirement(key, Operator.EXISTS)
    operator = _OPERATORS.get(sign := tokens.pop())
    match operator:
        case None:
            raise _unexpected(sign, f"one of {', '.join(_OPERATORS)}")
        case Operator.IN | Operator.NOT_IN:
            return requirement(key, operator, _read_set(tokens))
        case _:
            is_empty = tokens[-1] in (_END, ",")
            return requirement(key, operator, ("" if is_empty else _read_word(tokens, "a value"),))


def _read_set(tokens: list[str]) -> Iterable[str]:
    if (opening := tokens.pop()) != "(":
        raise _unexpected(opening, '"("')
    separator = ","
    while separator == ",":
        yield "" if tokens[-1] in (",", ")") else _read_word(tokens, "a value")
        separator = tokens.pop()
    if separator != ")":
        raise _unexpected(separator, 'a comma or ")"')


def _read_word(tokens: list[str], expected: str) -> str:
    if (word := tokens.pop()) in _SYMBOLS:
        raise _unexpected(word, expected)
    return word


def _unexpected(token: str, expected: str) -> SelectorError:
    return SelectorError(f'expected {expected}, found "{token}"' if token else f"expected {expected}, but it ends")


def _is_name(text: str) -> bool:
    return len(text) <= 63 and _NAME.fullmatch(text) is not None


def _int64(text: str | None) -> int | None:
    if text is None or _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
