"""Kubernetes quantities ("100m", "16Gi", "2e3"): exact values, printed as the API server prints them.

A value is a whole number of nano-units, so sums over thousands of nodes are plain integer sums.
Which resources exist, and how resource lists are compared, is left to callers.
"""

import functools
import re
from enum import StrEnum
from typing import Final

import msgspec

from hansa.runtime import errors

UNIT: Final = 10**9
"""One unit (a core, a byte, a pod) in nano-units."""
MILLI: Final = 10**6
"""A thousandth of a unit in nano-units: the server rounds every resource list up to it."""

CACHED: Final = 4096  # a cluster uses a few hundred spellings of quantities
LONGEST: Final = 1000  # characters; parsing digits takes quadratic time
GREATEST_EXPONENT: Final = 999  # "1e999999999" would need half a gigabyte
GREATEST_BINARY: Final = (2**63 - 1) * UNIT  # the server caps long quantities with a binary suffix to int64


class QuantityError(errors.HansaError, ValueError):
    """The text is not a quantity."""


class Format(StrEnum):
    """The format in which a quantity was written, and in which it is printed."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


class Quantity(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An exact amount; equal, ordered and hashed by value, whatever its format."""

    nano: int
    format: Format = Format.DECIMAL
    text: str = ""  # kept for spellings that are not canonical but that the server keeps ("+5", "1.250")

    def __str__(self) -> str:
        return self.text or _canonical(self.nano, self.format)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _divided_up(self.nano, UNIT)

    def milli(self) -> int:
        """Thousandths of a unit, rounded away from zero."""
        return _divided_up(self.nano, MILLI)

    def rounded_up(self, step: int = MILLI) -> "Quantity":
        """The next multiple of step (in nano-units) away from zero; the quantity itself if it is one."""
        return self if self.nano % step == 0 else Quantity(_divided_up(self.nano, step) * step, self.format)

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __neg__(self) -> "Quantity":
        return Quantity(-self.nano, self.format)

    def __mul__(self, times: int) -> "Quantity":
        return Quantity(self.nano * times, self.format)

    __rmul__ = __mul__

    def __floordiv__(self, slice_: "Quantity") -> int:
        """How many whole slices fit."""
        return self.nano // slice_.nano

    def __bool__(self) -> bool:
        return self.nano != 0

    def __hash__(self) -> int:
        return hash(self.nano)

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __ne__(self, other: object) -> bool:  # msgspec would compare the formats, too
        return not self == other

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __le__(self, other: "Quantity") -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: "Quantity") -> bool:
        return self.nano > other.nano

    def __ge__(self, other: "Quantity") -> bool:
        return self.nano >= other.nano


ZERO: Final = Quantity(0)


def of(units: int, form: Format = Format.DECIMAL) -> Quantity:
    """A whole number of units."""
    return Quantity(units * UNIT, form)


@functools.lru_cache(maxsize=CACHED, typed=True)
def parse(text: str | int | float) -> Quantity:
    """Parse a quantity of a manifest: a string or a number."""
    spelled = text.strip(" ") if isinstance(text, str) else msgspec.json.encode(text).decode()
    match = _SPELLING.fullmatch(spelled) if 0 < len(spelled) <= LONGEST else None
    if match is None:
        raise _refused(spelled)
    sign, zeros, whole, fraction, letters = match.groups("")
    form, exponent, nano = _SUFFIXES.get(letters) or _power_of_ten(spelled, int(letters[1:]))
    digits = whole + fraction
    number = int(digits or "0")
    places = len(fraction) + max(0, -9 - exponent)
    amount = _divided_up(number * nano, 10**places) if places else number * nano
    kept = ""
    if _is_short(whole or "0", fraction, form=form, exponent=exponent):
        is_final = number & 7 if form is Format.BINARY else _is_final(whole, digits, exponent - len(fraction))
        kept = spelled if is_final else ""
    elif not (zeros or digits):
        raise _refused(spelled)
    elif form is Format.BINARY:
        amount = min(amount, GREATEST_BINARY)
        form = form if amount >= UNIT or not amount else Format.DECIMAL
    return Quantity(-amount if sign == "-" else amount, form, kept)


_SPELLING: Final = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_DECIMAL_SUFFIXES: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")  # steps of 1000, from 10**-9
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")  # steps of 1024
# suffix -> format, exponent (of ten or of two), nano-units
_SUFFIXES: Final = {
    **{suffix: (Format.BINARY, 10 * i, UNIT << 10 * i) for i, suffix in enumerate(_BINARY_SUFFIXES) if suffix},
    **{suffix: (Format.DECIMAL, 3 * i - 9, 1000**i) for i, suffix in enumerate(_DECIMAL_SUFFIXES)},
}


def _power_of_ten(spelled: str, exponent: int) -> tuple[Format, int, int]:
    if abs(exponent) > GREATEST_EXPONENT:
        raise _refused(spelled)
    return Format.EXPONENT, exponent, 10 ** max(0, exponent + 9)


def _is_short(whole: str, fraction: str, *, form: Format, exponent: int) -> bool:
    """Whether the server reads it into an int64, and so without rounding, caps and a change of format."""
    if form is Format.BINARY:
        return not fraction and len(whole) + exponent * 3 // 10 <= 14
    return len(whole) + len(fraction) <= 18 and exponent - len(fraction) >= -9


def _is_final(whole: str, digits: str, exponent: int) -> bool:
    """Whether the server treats a short decimal spelling as canonical and returns it unchanged."""
    return whole != "" and exponent % 3 == 0 and not digits.endswith("000")


def _canonical(nano: int, form: Format) -> str:
    if nano == 0:
        return "0"
    if form is Format.BINARY and abs(nano) >= 1024 * UNIT and nano % UNIT == 0:
        number, steps = _without_factors(nano // UNIT, 1024, most=len(_BINARY_SUFFIXES) - 1)
        return f"{number}{_BINARY_SUFFIXES[steps]}"
    if form is Format.EXPONENT:
        number, steps = _without_factors(nano, 1000, most=GREATEST_EXPONENT)
        return f"{number}e{3 * steps - 9}" if steps != 3 else str(number)
    # A thousand exa stays "1000E". The server has no suffix for it and prints "1": that is not followed.
    number, steps = _without_factors(nano, 1000, most=len(_DECIMAL_SUFFIXES) - 1)
    return f"{number}{_DECIMAL_SUFFIXES[steps]}"


def _without_factors(number: int, factor: int, *, most: int) -> tuple[int, int]:
    times = 0
    while times < most and number % factor == 0:
        number //= factor
        times += 1
    return number, times


def _divided_up(number: int, by: int) -> int:
    """Divide and round away from zero, so that a small request never becomes zero."""
    return -(-number // by) if number > 0 else number // by


def _refused(spelled: str) -> QuantityError:
    shown = spelled if len(spelled) <= 80 else f"{spelled[:80]}…"
    return QuantityError(
        f'"{shown}" is not a quantity: use a number with an optional suffix, such as 100m, 1.5, 16Gi or 2e3'
    )
