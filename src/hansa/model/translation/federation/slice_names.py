"""Names of EndpointSlices that are made for the federation: a readable prefix, and a digest of what is unique. Pure."""

import hashlib
from typing import Final

_DIGITS: Final = 10
_LONGEST_PREFIX: Final = 200  # characters; the name of a slice has 253


def named(prefix: str, unique: str) -> str:
    """The name of a slice."""
    return f"{prefix[:_LONGEST_PREFIX]}-{digest(unique)}"


def digest(text: str) -> str:
    """A digest that is short enough for the name of a Service, too."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
