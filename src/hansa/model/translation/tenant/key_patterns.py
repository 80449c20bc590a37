"""Patterns of label and annotation keys: `example.com/zone`, `example.com/*`, and for one kind `Service:example.com/*`.

A pattern without a kind is for every kind but Namespace: policies of the super cluster read the metadata of namespaces.
"""

import functools
import re
from dataclasses import dataclass
from typing import Final

ANY: Final = "*"
_NAMESPACE: Final = "Namespace"
_PATTERN: Final = re.compile(r"(?:[A-Z][A-Za-z]*:)?(?:[A-Za-z0-9][A-Za-z0-9._/-]*\*?|\*)")


def is_pattern(text: str) -> bool:
    """Whether a text is a pattern."""
    return _PATTERN.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class KeyPatterns:
    """The patterns for one kind, ready to match: exact keys, prefixes, and whether one of them is `*`."""

    exact: frozenset[str]
    prefixes: tuple[str, ...]
    has_any: bool

    def match(self, key: str) -> bool:
        """Whether a pattern other than `*` matches."""
        return key in self.exact or key.startswith(self.prefixes)


@functools.lru_cache(maxsize=256)
def of_kind(patterns: frozenset[str], kind: str) -> KeyPatterns:
    """The patterns that are for a kind."""
    own = frozenset(key for of, key in map(_parsed, patterns) if of == kind or (not of and kind != _NAMESPACE))
    prefixes = tuple(sorted(key[:-1] for key in own if key.endswith(ANY) and key != ANY))
    return KeyPatterns(frozenset(key for key in own if not key.endswith(ANY)), prefixes, ANY in own)


def _parsed(pattern: str) -> tuple[str, str]:
    kind, colon, key = pattern.partition(":")
    return (kind, key) if colon else ("", pattern)
