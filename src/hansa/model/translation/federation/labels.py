"""Labels of delegates: with the prefix of the federation, so that controllers of the target do not adopt them. Pure.

`app.kubernetes.io/name` becomes `multicluster.admiralty.io/name`. The annotation no-prefix-label-regexp names labels
that keep their keys.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansa.model import keys
from hansa.runtime import errors

LONGEST_PATTERN: Final = 256  # characters
MOST_REPETITIONS: Final = 3  # of one pattern: each multiplies the time of a search by the length of the label
# Not in Go's syntax, or exponential in Python's: lookarounds, back references, a repetition of a group.
_REFUSED: Final = re.compile(r"\(\?|\\[1-9]|\)[*+{]")
_REPETITION: Final = re.compile(r"(?<!\\)[*+{]")


class InvalidPattern(errors.HansaError):
    """The regular expression is not supported; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class Relabeling:
    """How the keys of labels change on the way to a target."""

    kept: re.Pattern[str] | None = None  # of "key=value": labels that keep their key

    def key(self, key: str, value: str) -> str:
        """The key of a label of a delegate."""
        if self.kept is not None and self.kept.search(f"{key}={value}"):
            return key
        return f"{keys.FEDERATION}/{key.rpartition('/')[2]}"

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """The labels of a delegate. Of two keys that differ in their domain only, the one without a domain is used."""
        ordered = sorted(labels, key=lambda key: ("/" not in key, key))
        return {self.key(key, labels[key]): labels[key] for key in ordered if key != keys.HAS_FINALIZER}

    def selector(self, selector: Mapping[str, Any]) -> dict[str, Any]:
        """A LabelSelector of source pods as one of their delegates."""
        labels = {self.key(key, value): value for key, value in (selector.get("matchLabels") or {}).items()}
        expressions = [
            one | {"key": self._expression_key(one["key"], one.get("values") or [])}
            for one in selector.get("matchExpressions") or ()
        ]
        parts = {"matchLabels": labels, "matchExpressions": expressions}
        return dict(selector) | {name: part for name, part in parts.items() if part}

    def _expression_key(self, key: str, values: list[str]) -> str:
        """The key of an expression. It keeps its key if it would with each of its values."""
        wanted = {self.key(key, value) for value in values or [""]}
        return wanted.pop() if len(wanted) == 1 else self.key(key, values[0])


def of(annotations: Mapping[str, str]) -> Relabeling:
    """The relabeling for an object with these annotations. Raises InvalidPattern."""
    return _relabeling(annotations.get(keys.NO_PREFIX, ""))


def check(annotations: Mapping[str, str]) -> str:
    """Why the annotation no-prefix-label-regexp is not valid; empty if it is."""
    try:
        of(annotations)
    except InvalidPattern as error:
        return str(error)
    return ""


@functools.lru_cache(maxsize=256)
def _relabeling(pattern: str) -> Relabeling:
    if not pattern:
        return Relabeling()
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidPattern(f"has {len(pattern)} characters; use at most {LONGEST_PATTERN}")
    if found := _REFUSED.search(pattern):
        raise InvalidPattern(f'"{found[0]}" is not supported; use alternatives, classes and plain repetitions')
    if len(_REPETITION.findall(pattern)) > MOST_REPETITIONS:
        raise InvalidPattern(f"repeats more than {MOST_REPETITIONS} times; use a simpler expression")
    try:
        return Relabeling(re.compile(pattern, re.ASCII))
    except re.error as error:
        raise InvalidPattern(f"not a regular expression: {error}") from None
