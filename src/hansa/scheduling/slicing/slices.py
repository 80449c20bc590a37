"""Slices: the units in which a namespace's quota is distributed over clusters. Exact arithmetic on their sizes.

Where slices are placed is left to `planning`.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from hansa.kube.language import quantity
from hansa.model import annotation_json, requests
from hansa.runtime import errors

MOST: Final = 10_000
"""The maximum number of slices of one namespace. Each is placed on its own; more means that the size is too small."""
DEFAULT: Final[Mapping[str, int]] = {"cpu": 2 * quantity.UNIT, "memory": 4 * quantity.UNIT << 30}
"""The default size of a slice: 2 CPU and 4Gi of memory."""
_REQUESTS, _LIMITS = "requests.", "limits."
_EXAMPLE = '{"cpu": "2", "memory": "4Gi"}'

Slice = Mapping[str, int]  # amounts by resource, each greater than zero


class SliceError(errors.HansaError, ValueError):
    """A slice is not valid, or too small for the quota."""


def parse(text: str) -> Slice:
    """Parse the annotation, such as {"cpu": "100m", "memory": "100Mi"}; requests.cpu is the same as cpu."""
    try:
        decoded = annotation_json.decode(text, dict[str, Any])
    except annotation_json.AnnotationJsonError as error:
        raise _invalid(text, str(error)) from None
    amounts: dict[str, int] = {}
    for name, value in decoded.items():
        resource = name.removeprefix(_REQUESTS)
        if resource.startswith(_LIMITS):
            raise _invalid(text, f"{name} is not supported, use {resource.removeprefix(_LIMITS)}")
        if resource in amounts:
            raise _invalid(text, f"duplicate resource {resource}")
        amounts[resource] = _amount(text, name, value)
    if not amounts:
        raise _invalid(text, "no resource is given")
    return amounts


def count(quota: Mapping[str, int], slice_: Slice) -> int:
    """The number of slices that cover the quota in all resources that both have; 0 if they have none in common."""
    counts = [-(-quota[name] // nano) for name, nano in slice_.items() if name in quota]
    most = max(counts, default=0)
    if most > MOST:
        raise SliceError(f"the quota is {most} slices, more than the maximum of {MOST}: use a larger slice")
    return max(0, most)


def needed(used: Mapping[str, int], slice_: Slice) -> int:
    """The number of slices that cover these requests."""
    return max((-(-used.get(name, 0) // nano) for name, nano in slice_.items()), default=0)


def holds(amounts: Mapping[str, int], slice_: Slice) -> int:
    """The number of whole slices in these amounts."""
    return max(0, min(amounts.get(name, 0) // nano for name, nano in slice_.items()))


def share(used: Mapping[str, int], slice_: Slice, number: int) -> Fraction:
    """The fraction of these slices that is used, of the resource that is used most."""
    return max((Fraction(used.get(name, 0), nano * number) for name, nano in slice_.items()), default=Fraction(0))


def recut(number: int, old: Slice, new: Slice) -> Fraction:
    """The number of new slices that equal these old ones, by the resource with the largest result."""
    if old == new:
        return Fraction(number)
    return max((Fraction(number * old[name], new[name]) for name in old if name in new), default=Fraction(number))


def times(slice_: Slice, number: int) -> requests.Amounts:
    """The sum of these slices."""
    return {name: nano * number for name, nano in slice_.items()}


def _amount(text: str, name: str, value: Any) -> int:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise _invalid(text, f"{name} is not a quantity")
    try:
        nano = quantity.parse(value).nano
    except quantity.QuantityError as error:
        raise _invalid(text, f"{name}: {error}") from None
    if nano <= 0:
        raise _invalid(text, f"{name} is {value}, but must be greater than zero")
    return nano


def _invalid(text: str, reason: str) -> SliceError:
    return SliceError(f"invalid slice '{annotation_json.shown(text)}': {reason}; use a JSON object such as {_EXAMPLE}")
