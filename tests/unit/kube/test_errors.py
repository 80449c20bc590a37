"""Errors: the class determines the reaction, the text is the server's message and the failed request."""

import json

import pytest

from hansa.kube import errors
from hansa.kube.errors import Status
from hansa.runtime.errors import HansaError


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", errors.Invalid),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.Invalid),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.Throttled),
        (500, "InternalError", errors.Unreachable),
        (503, "ServiceUnavailable", errors.Unreachable),
    ],
)
def test_the_class_follows_from_the_answer(code: int, reason: str, expected: type[errors.ApiError]) -> None:
    error = errors.from_status(Status(code=code, reason=reason, message="no"), "patch pods a/b")
    assert type(error) is expected
    assert isinstance(error, HansaError)
    assert str(error) == f"cannot patch pods a/b: no ({code})"
    assert (error.code, error.reason) == (code, reason)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (errors.Unreachable("no"), "unreachable"),
        (errors.Throttled("no"), "throttled"),
        (errors.Conflict("no"), "conflict"),
        (errors.AlreadyExists("no"), "already-exists"),
        (errors.Gone("no"), "gone"),
        (errors.NotFound("no"), "not-found"),
        (errors.Unauthorized("no"), "denied"),
        (errors.Forbidden("no"), "denied"),
        (errors.BadCredentials("no"), "denied"),
        (errors.Invalid("no"), "invalid"),
        (TimeoutError(), "timeout"),
        (HansaError("no"), "error"),
    ],
)
def test_every_error_has_a_label_for_metrics(error: Exception, answer: str) -> None:
    assert errors.answer_of(error) == answer


def test_every_class_of_errors_has_a_label_of_its_own_kind() -> None:
    labels = {errors.answer_of(kind("no")) for kind in errors.ApiError.__subclasses__()}
    assert errors.Answer.ERROR not in labels


def test_a_version_from_the_future_leads_to_a_new_list() -> None:
    body = {"reason": "Timeout", "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "…"}]}}
    assert isinstance(errors.from_status(errors.parse_status(504, json.dumps(body).encode()), "list pods"), errors.Gone)


def test_an_answer_that_is_no_status_is_its_own_message() -> None:
    assert errors.parse_status(502, b"bad gateway\n") == Status(code=502, message="bad gateway")
    assert errors.parse_status(404, b'{"code": "many"}').code == 404
    assert "no message" in str(errors.from_status(errors.parse_status(500, b""), "x"))


def test_causes_and_the_wait_are_kept() -> None:
    body = {"code": 429, "details": {"retryAfterSeconds": 7, "causes": [{"reason": "r", "field": "spec.x"}]}}
    error = errors.from_status(errors.parse_status(429, json.dumps(body).encode()), "evict")
    assert isinstance(error, errors.Throttled)
    assert (error.retry_after, error.causes) == (7.0, (errors.Cause(reason="r", field="spec.x"),))


def test_a_message_without_end_is_cut() -> None:
    assert len(str(errors.from_status(Status(code=500, message="x" * 10**6), "x"))) < 3000
