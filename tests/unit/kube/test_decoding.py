"""Decoding: what an API server sends becomes objects, or a DecodeError and nothing else."""

import contextlib
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kube import decoding, errors
from hansa.kube.errors import Status

DEEP = 100_000  # levels of JSON
PARSERS: list[Callable[[bytes], object]] = [
    decoding.parse_object,
    decoding.parse_event,
    decoding.parse_page,
    lambda data: decoding.parse(data, Status),
]
UNREADABLE = [
    b"",
    b"null",
    b"[" * DEEP,
    b'{"object":' * DEEP,
    b'{"type":"ADDED","items":[{"spec":' + b"[" * DEEP,
    b'{"type":"\xff","object":{"metadata":{"name":"\xff"}},"metadata":{"name":"\xff"},"items":[],"code":"\xff"}',
]


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("data", UNREADABLE, ids=lambda data: repr(data[:20]))
def test_unreadable_answers_raise_only_decode_errors(parse: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        parse(data)


@given(st.binary(max_size=60))
def test_random_bytes_raise_only_decode_errors(data: bytes) -> None:
    for parse in PARSERS:
        with contextlib.suppress(msgspec.DecodeError):
            parse(data)


@pytest.mark.parametrize("field", ["spec", "status", "data"])
def test_text_that_is_not_utf8_is_refused_in_fields_that_are_decoded_later(field: str) -> None:
    with pytest.raises(msgspec.DecodeError, match="not UTF-8"):
        decoding.parse_object(b'{"metadata":{"name":"x"},"%s":{"a":"\xff"}}' % field.encode())
    assert decoding.parse_object('{"metadata":{"name":"x"},"spec":{"a":"ä"}}'.encode()).spec == {"a": "ä"}


@pytest.mark.parametrize("seconds", ["61", "-5", "1" + "0" * 300])
def test_the_wait_of_a_status_is_limited(seconds: str) -> None:
    status = f'{{"code":429,"details":{{"retryAfterSeconds":{seconds}}}}}'
    for found in (
        decoding.parse_status(429, status.encode()),
        decoding.parse_event(b'{"type":"ERROR","object":%s}' % status.encode())[1],
    ):
        assert isinstance(found, Status)
        error = errors.from_status(found, "list pods")
        assert isinstance(error, errors.Throttled)
        assert 1 <= error.retry_after <= 60


@pytest.mark.parametrize("body", [b"<html>", b'{"a":' + b"[" * DEEP, b'{"message":"\xff"}', b"\xff"])
def test_an_error_that_is_no_status_is_its_own_message(body: bytes) -> None:
    status = decoding.parse_status(502, body)
    assert status.code == 502
    assert status.message == body[: errors.LONGEST_SENTENCE].decode(errors="replace")


def test_a_page_has_its_size() -> None:
    data = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"c"},"items":[]}'
    assert decoding.parse_page(data) == decoding.Page((), "7", "c", None, len(data))
