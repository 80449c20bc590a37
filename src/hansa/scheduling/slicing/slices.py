"""Slices: the portions in which a namespace's quota is laid out over clusters, in exact arithmetic.
Which clusters get them is left to planning; what a quota is, to quotas.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import msgspec

from hansa.kube.language import quantity
from hansa.model import requests
from hansa.runtime import errors

MOST: Final = 10_000
"""Slices of one namespace. More is a slice that somebody made too small, and every one of them is placed by itself."""
DEFAULT: Final[Mapping[str, int]] = {"cpu": 2 * quantity.UNIT, "memory": 4 * quantity.UNIT << 30}
"""The slice of a namespace that names none: 2 CPU and 4Gi of memory."""
_REQUESTS, _LIMITS = "requests.", "limits."
_EXAMPLE = '{"cpu": "2", "memory": "4Gi"}'

Slice = Mapping[str, int]  # amounts by resource, each more than nothing


class SliceError(errors.HansaError, ValueError):
    """A slice cannot be read, or does not go with the quota."""


def read(text: str) -> Slice:
    """A slice as its annotation has it: {"cpu": "100m", "memory": "100Mi"}; requests.cpu is another word for cpu."""
    try:
        spelled = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable(text, str(error)) from None
    amounts: dict[str, int] = {}
    for name, value in spelled.items():
        resource = name.removeprefix(_REQUESTS)
        if resource.startswith(_LIMITS):
            raise _unreadable(text, f"{name} cannot be reserved, name {resource.removeprefix(_LIMITS)} instead")
        if resource in amounts:
            raise _unreadable(text, f"it names {resource} twice")
        amounts[resource] = _amount(text, name, value)
    if not amounts:
        raise _unreadable(text, "it names no resource")
    return amounts


def count(quota: Mapping[str, int], slice_: Slice) -> int:
    """How many slices it takes to cover the quota in every resource that both name; none if they name none together."""
    counts = [-(-quota[name] // nano) for name, nano in slice_.items() if name in quota]
    most = max(counts, default=0)
    if most > MOST:
        raise SliceError(f"the quota makes {most} slices, and {MOST} is the most: make the slice larger")
    return max(0, most)


def needed(used: Mapping[str, int], slice_: Slice) -> int:
    """How many slices cover what is used."""
    return max((-(-used.get(name, 0) // nano) for name, nano in slice_.items()), default=0)


def holds(amounts: Mapping[str, int], slice_: Slice) -> int:
    """How many whole slices there are in these amounts."""
    return max(0, min(amounts.get(name, 0) // nano for name, nano in slice_.items()))


def share(used: Mapping[str, int], slice_: Slice, number: int) -> Fraction:
    """How much of so many slices is in use: of the resources, the fullest counts."""
    return max((Fraction(used.get(name, 0), nano * number) for name, nano in slice_.items()), default=Fraction(0))


def recut(number: int, old: Slice, new: Slice) -> Fraction:
    """How many new slices so many old ones come to, in the resource where that is most."""
    if old == new:
        return Fraction(number)
    return max((Fraction(number * old[name], new[name]) for name in old if name in new), default=Fraction(number))


def times(slice_: Slice, number: int) -> requests.Amounts:
    """So many slices together."""
    return {name: nano * number for name, nano in slice_.items()}


def _amount(text: str, name: str, value: Any) -> int:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise _unreadable(text, f"{name} is not a quantity")
    try:
        nano = quantity.parse(value).nano
    except quantity.QuantityError as error:
        raise _unreadable(text, f"{name}: {error}") from None
    if nano <= 0:
        raise _unreadable(text, f"{name} is {value}, and a slice must have more than nothing of it")
    return nano


def _unreadable(text: str, why: str) -> SliceError:
    shown = text if len(text) <= 80 else f"{text[:80]}…"
    return SliceError(f"the slice '{shown}' cannot be read: {why}; write it like {_EXAMPLE}")
