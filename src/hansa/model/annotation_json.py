"""JSON in annotations. Whoever may edit the object wrote it, so its size and depth are bounded before it is decoded.

Used for annotations of upper objects. What API servers send is bounded by `kube.http.limits` and `kube.decoding`.
"""

import re
from typing import Final, TypeVar

import msgspec

from hansa.runtime import errors

LONGEST: Final = 16 * 1024  # characters; annotations that we read have a few hundred
WHOLE: Final = 256 * 1024  # the API server's own limit, for annotations that hold parts of a pod's spec
DEEPEST: Final = 32  # levels of nesting; a node affinity in an annotation has ten
_SHOWN: Final = 80  # characters of an invalid text in a message
# Strings are matched whole, so that brackets in them don't count.
_MARKS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')

T = TypeVar("T")


class AnnotationJsonError(errors.HansaError, ValueError):
    """The text is not valid JSON of the type, or too large."""


def decode(text: str, into: type[T], *, longest: int = LONGEST) -> T:
    """Decode JSON into a type."""
    if len(text) > longest:
        raise AnnotationJsonError(f"the JSON has {len(text)} characters, more than the maximum of {longest}")
    if _depth(text) > DEEPEST:
        raise AnnotationJsonError(f"the JSON is nested more than {DEEPEST} levels deep")
    try:
        return msgspec.json.decode(text, type=into)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise AnnotationJsonError(str(error)) from None


def shown(text: str) -> str:
    """A text for a message, cut if it is long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _depth(text: str) -> int:
    if text.count("[") + text.count("{") <= DEEPEST:
        return 0
    depth = deepest = 0
    for mark in _MARKS.findall(text):
        if mark in ("[", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif mark in ("]", "}"):
            depth -= 1
    return deepest
