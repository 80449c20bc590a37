"""Regular expressions of users that are searched in labels of another cluster: only those that are fast. Pure."""

import functools
import re
from typing import Final

from hansa.runtime import errors

LONGEST_PATTERN: Final = 256  # characters
MOST_CHOICES: Final = 3  # repetitions and groups: each multiplies the time of a search
# Not in Go's syntax, or exponential in Python's: lookarounds, back references, a repetition of a group.
_REFUSED: Final = re.compile(r"\(\?|\\[1-9]|\)[*+?{]")
_CHOICE: Final = re.compile(r"(?<!\\)[*+?{(]")


class InvalidPattern(errors.HansaError):
    """The regular expression is not supported; the message has the remedy."""


@functools.lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """The expression, which is searched in "key=value" of a label. Raises InvalidPattern."""
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidPattern(f"has {len(pattern)} characters; use at most {LONGEST_PATTERN}")
    if found := _REFUSED.search(pattern):
        raise InvalidPattern(f'"{found[0]}" is not supported; use alternatives, classes and plain repetitions')
    if len(_CHOICE.findall(pattern)) > MOST_CHOICES:
        raise InvalidPattern(f"has more than {MOST_CHOICES} repetitions and groups; use a simpler expression")
    try:
        return re.compile(pattern, re.ASCII)
    except re.error as error:
        raise InvalidPattern(f"not a regular expression: {error}") from None
