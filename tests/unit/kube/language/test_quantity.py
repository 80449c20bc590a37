"""Quantities: read exactly, counted exactly, written as the API server writes them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kube.language import quantity
from hansa.kube.language.quantity import Format, Quantity, QuantityError, parse
from hansa.runtime.errors import HansaError

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

digits = st.text("0123456789", min_size=1, max_size=25)
exponents = st.integers(-30, 60).flatmap(lambda e: st.sampled_from([f"e{e}", f"E{e}", f"e{e:+}"]))
suffixes = st.sampled_from([*DECIMAL, *BINARY]) | exponents
texts = st.builds(
    "{}{}{}{}".format, st.sampled_from(["", "", "+", "-"]), digits, st.just("") | digits.map(".{}".format), suffixes
)
quantities = st.builds(Quantity, st.integers(-(10**30), 10**30), st.sampled_from(list(Format)))


def exact(text: str) -> Fraction:
    """The value of a text, by the definition of its suffix."""
    number = text.rstrip("numkMGTPEKi")
    suffix = text[len(number) :]
    mantissa, _, exponent = number.lower().partition("e")
    power = Fraction(2 ** BINARY[suffix]) if suffix in BINARY else Fraction(10 ** (DECIMAL[suffix] + 9), 10**9)
    shift = int(exponent or "0")
    return Fraction(mantissa) * power * (10**shift if shift >= 0 else Fraction(1, 10**-shift))


def away_from_zero(value: Fraction) -> int:
    return -(-value.numerator // value.denominator) if value > 0 else value.numerator // value.denominator


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("100m", "100m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.1", "100m"),
        ("1.5", "1500m"),
        ("16Gi", "16Gi"),
        ("1024Ki", "1Mi"),
        ("1500Mi", "1500Mi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("1.1Ki", "1126400m"),
        ("0.3Gi", "322122547200m"),
        ("1000Ki", "1000Ki"),
        ("12e6", "12e6"),
        ("12000e3", "12e6"),
        ("1.5e3", "1500"),
        ("1e20", "100e18"),
        ("1000000", "1M"),
        ("1000k", "1M"),
        ("0", "0"),
        ("-0", "0"),
        ("0Gi", "0"),
        ("0e5", "0"),
        ("-1500Mi", "-1500Mi"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1e-12", "1e-9"),
        ("1.0000000001", "1000000001n"),
        ("8Ei", "9223372036854775807"),
        ("-16Ei", "-9223372036854775807"),
        ("7Ei", "7Ei"),
        ("10E", "10E"),
        ("1.0Ki", "1Ki"),
        ("+999999999999Ki", "999999999999Ki"),
        ("+9223372036854775807", "9223372036854775807"),
        (" 5 ", "5"),
    ],
)
def test_the_canonical_form_has_the_largest_suffix_and_no_fraction(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize("text", ["+5", "007", "1.250", "5E0", "+100", "+4Gi", "2.000001", "999999999.999999999"])
def test_short_spellings_without_a_larger_suffix_are_returned_as_they_came(text: str) -> None:
    assert str(parse(text)) == text


def test_what_is_past_the_last_suffix_keeps_its_value() -> None:
    assert str(parse("1000E")) == "1000E"
    assert str(parse("1" + "0" * 24)) == "1000000E"
    assert str(parse("7Ei") * 1024) == "7168Ei"


@pytest.mark.parametrize("text", ["+", "-", ".", "Ki", "m", "e3", "+.Ti"])
def test_a_suffix_without_digits_is_zero_as_for_the_server(text: str) -> None:
    assert str(parse(text)) == "0"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "abc",
            "1.2.3",
            "1K",
            "1ki",
            "1mi",
            "1 Gi",
            "--1",
            "1e",
            "1e+",
            "1e1.5",
            "1Gii",
            "Pi",
            ".Ei",
            "e-10",
        ),
        *("0x10", "1_000", "\uff11", "1e1000", "1e-1000", "1" * 1001, "inf", "nan", "1\n", "1Ki\n"),
    ],
)
def test_a_text_that_is_no_quantity_is_refused_with_a_sentence_that_names_it(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(text)
    assert isinstance(caught.value, HansaError)
    assert isinstance(caught.value, ValueError)
    assert f'"{text.strip(" ")[:80]}' in str(caught.value)
    assert len(str(caught.value)) < 250


def test_plain_numbers_of_a_manifest_are_quantities() -> None:
    assert str(parse(2)) == "2"
    assert str(parse(0.25)) == "250m"
    assert str(parse(-3)) == "-3"
    assert str(parse(1e21)) == "1e21"
    for no_number in (True, float("inf"), float("nan")):
        with pytest.raises(QuantityError, match="is not a quantity"):
            parse(no_number)


@given(texts)
def test_a_text_is_read_exactly_or_rounded_away_from_zero_to_a_nano_unit(text: str) -> None:
    expected = away_from_zero(exact(text) * 10**9)
    if text.endswith("i"):
        expected = max(-quantity.GREATEST_BINARY, min(quantity.GREATEST_BINARY, expected))
    assert parse(text).nano == expected


@given(texts)
def test_a_printed_quantity_reads_back_and_prints_the_same(text: str) -> None:
    first = parse(text)
    again = parse(str(first))
    assert again == first
    assert str(again) == str(first)


@given(quantities)
def test_the_canonical_form_reads_back_to_the_same_value(one: Quantity) -> None:
    assert parse(str(one)) == one or (str(one).endswith("i") and abs(one.nano) > quantity.GREATEST_BINARY)


@given(quantities, quantities, st.integers(-(10**6), 10**6))
def test_arithmetic_is_that_of_fractions(a: Quantity, b: Quantity, times: int) -> None:
    x, y = Fraction(a.nano, quantity.UNIT), Fraction(b.nano, quantity.UNIT)
    assert Fraction((a + b).nano, quantity.UNIT) == x + y
    assert Fraction((a - b).nano, quantity.UNIT) == x - y
    assert Fraction((a * times).nano, quantity.UNIT) == Fraction((times * a).nano, quantity.UNIT) == x * times
    assert (a < b, a <= b, a > b, a >= b, a == b) == (x < y, x <= y, x > y, x >= y, x == y)
    assert a.value() == away_from_zero(x)
    assert a.milli() == away_from_zero(x * 1000)
    assert -a + a == quantity.ZERO
    assert bool(a) == bool(x)
    if b:
        assert a // b == x // y


@given(quantities, quantities)
def test_equal_values_are_one_key_whatever_their_format(a: Quantity, b: Quantity) -> None:
    twin = Quantity(a.nano, b.format)
    assert twin == a
    assert len({a, twin}) == 1
    assert a != a.nano


@given(quantities, st.sampled_from([quantity.MILLI, quantity.UNIT]))
def test_rounding_up_gives_the_next_multiple_away_from_zero(one: Quantity, step: int) -> None:
    rounded = one.rounded_up(step)
    assert rounded.nano % step == 0
    assert abs(one.nano) <= abs(rounded.nano) < abs(one.nano) + step
    assert rounded.nano * one.nano >= 0


def test_a_sum_takes_the_format_of_its_first_part_that_is_not_zero() -> None:
    assert str(parse("512Mi") + parse("512M")) == "1024288Ki"
    assert str(parse("512Mi") + parse("512Mi")) == "1Gi"
    assert str(quantity.ZERO + parse("3Gi")) == "3Gi"
    assert str(quantity.ZERO - parse("3Gi")) == "-3Gi"
    assert str(sum([parse("1e3"), parse("1k")], quantity.ZERO)) == "2e3"
    assert str(parse("512") + parse("512Ki")) == "524800"
    assert str(parse("0.0009765625Ki") * 1024) == "1Ki"
    assert str(parse("0.0009Ki") * 10**7) == "9216k"


def test_floor_division_counts_the_slices_that_fit() -> None:
    assert parse("16Gi") // parse("1.5Gi") == 10
    assert parse("1") // parse("300m") == 3
    assert parse("100m") // parse("1") == 0


def test_values_round_up_as_kubernetes_does() -> None:
    assert parse("100m").value() == 1
    assert parse("1n").milli() == 1
    assert parse("-100m").value() == -1
    assert parse("1100m").value() == 2
    assert quantity.of(3) == parse("3")
    assert str(quantity.of(2048, Format.BINARY)) == "2Ki"
    assert str(parse("1.5u").rounded_up()) == "1m"


def test_a_quantity_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        quantity.ZERO.nano = 1  # type: ignore[misc]


def test_the_same_amount_is_equal_however_it_is_written():
    assert parse("16") == parse("16000m")
    assert not parse("16") != parse("16000m")  # noqa: SIM202 - msgspec has an opinion of its own on "!="
    assert parse("1Ki") != parse("1k")
