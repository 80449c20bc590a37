"""Errors of requests to an API server, one class per reaction of the caller.

The message is the failed action and the server's own message.

ApiError
├── Unreachable        no usable answer: no connection, too late, or 5xx   → keep the cache, retry
├── Throttled          429 after our own retries                           → wait `retry_after` seconds
├── Conflict           409, the object changed meanwhile                   → read again, decide again
│   └── AlreadyExists  409, the name is taken                              → read the existing object
├── Gone               410, the version is no longer kept                  → list again
├── NotFound           404                                                 → drop from the cache, decide again
├── Denied             not allowed                                         → report the missing permission, retry rarely
│   ├── Unauthorized   401, the credentials were refused
│   ├── Forbidden      403, the credentials lack a permission
│   └── BadCredentials the credentials cannot be read
└── Invalid            400, 422 and other 4xx                              → no retry until the object changes
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from hansa.runtime.errors import HansaError

LONGEST_SENTENCE = 2000  # characters of a server's message; longer ones are cut


class Cause(msgspec.Struct, frozen=True, gc=False):
    """A cause in the details of a Status: a field and why it was refused."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """The machine-readable part of a Status."""

    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """A Status of the API server, its answer to a request that failed."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class ApiError(HansaError):
    """A request to an API server failed."""

    def __init__(
        self,
        sentence: str,
        *,
        code: int = 0,
        reason: str = "",
        causes: Sequence[Cause] = (),
        said: str = "",
        server: str = "",
    ) -> None:
        super().__init__(sentence)
        self.server = server  # its URL, as the sentence has it
        self.code = code  # 0 when there was no answer
        self.reason = reason
        self.causes = tuple(causes)
        self.said = said or sentence  # the server's own message

    def with_cluster(self, cluster: str) -> str:
        """The sentence with the name of the cluster instead of its URL: not all who read it may know that."""
        return str(self).replace(f"at {self.server}", f"in {cluster}", 1) if self.server else str(self)


class Unreachable(ApiError):
    """No usable answer: no connection, no answer in time, or the server itself failed."""


class Throttled(ApiError):
    """The server throttles requests; retry after `retry_after` seconds."""

    retry_after: float = 1.0


class Conflict(ApiError):
    """The object was changed by another client meanwhile."""


class AlreadyExists(Conflict):
    """The name is taken."""


class Gone(ApiError):
    """The server does not have the requested resourceVersion, or not any more: list again."""


class NotFound(ApiError):
    """The object or the path does not exist."""


class Denied(ApiError):
    """The request is not allowed."""


class Unauthorized(Denied):
    """The server refused the credentials."""


class Forbidden(Denied):
    """The credentials lack a permission."""


class BadCredentials(Denied):
    """The credentials cannot be read, so no request was sent."""


class Invalid(ApiError):
    """The request is invalid, so that a retry would fail too: our bug or the user's."""


class Answer(StrEnum):
    """How a request ended, as the label `answer` of metrics."""

    OK = "ok"
    UNREACHABLE = "unreachable"
    THROTTLED = "throttled"
    ALREADY_EXISTS = "already-exists"
    CONFLICT = "conflict"
    GONE = "gone"
    NOT_FOUND = "not-found"
    DENIED = "denied"
    INVALID = "invalid"
    TIMEOUT = "timeout"  # the caller's own time limit, shorter than that of a request
    DROPPED = "dropped"  # not sent: too many requests are waiting
    ERROR = "error"  # any other error


_ANSWERS: dict[type[Exception], Answer] = {  # a class before its base class
    Unreachable: Answer.UNREACHABLE,
    Throttled: Answer.THROTTLED,
    AlreadyExists: Answer.ALREADY_EXISTS,
    Conflict: Answer.CONFLICT,
    Gone: Answer.GONE,
    NotFound: Answer.NOT_FOUND,
    Denied: Answer.DENIED,
    Invalid: Answer.INVALID,
    TimeoutError: Answer.TIMEOUT,
}
_BY_CODE: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: Throttled,
}
_STATUS = msgspec.json.Decoder(Status)


def answer_of(error: Exception) -> Answer:
    """The label of a request that failed."""
    return next((answer for kind, answer in _ANSWERS.items() if isinstance(error, kind)), Answer.ERROR)


def parse_status(code: int, body: bytes) -> Status:
    """The Status in a response body. Proxies and old paths answer in plain text, which becomes the message."""
    try:
        status = _STATUS.decode(body)
    except msgspec.DecodeError:
        status = Status(message=body.decode(errors="replace").strip())
    return msgspec.structs.replace(status, code=code)


def from_status(status: Status, doing: str, server: str = "") -> ApiError:
    """The error for a Status; `doing` completes "cannot …"."""
    doing = f"{doing} at {server}" if server else doing
    details = status.details or Details()
    sentence = (status.message or status.reason or "no message")[:LONGEST_SENTENCE]
    error = _class_of(status, details)(
        f"cannot {doing}: {sentence} ({status.code})",
        code=status.code,
        reason=status.reason,
        causes=details.causes,
        said=sentence,
        server=server,
    )
    if isinstance(error, Throttled):
        error.retry_after = float(details.retry_after_seconds or Throttled.retry_after)
    return error


def _class_of(status: Status, details: Details) -> type[ApiError]:
    if status.reason == "AlreadyExists":
        return AlreadyExists
    # A version that is newer than the server's: etcd was restored from a backup. The cache is invalid, so list again.
    if any(cause.reason == "ResourceVersionTooLarge" for cause in details.causes):
        return Gone
    return _BY_CODE.get(status.code) or (Unreachable if status.code >= 500 else Invalid)
