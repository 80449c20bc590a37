"""What can go wrong with an API server, one class per reaction of the caller.

The message is what we were doing plus the server's own sentence. Answers that are no failure are not here.

ApiError
├── Unreachable        no usable answer: no connection, too late, or 5xx   → keep what we know, try again
├── Throttled          429 after our own retries                           → wait `retry_after` seconds
├── Conflict           409, somebody was faster                            → read again, decide again
│   └── AlreadyExists  409, the name is taken                              → look whose it is
├── Gone               410, the version is no longer kept                  → list again
├── NotFound           404                                                 → forget, decide again
├── Denied             we may not                                          → tell which right is missing, try rarely
│   ├── Unauthorized   401, the credentials were refused
│   ├── Forbidden      403, the credentials lack a right
│   └── BadCredentials what we would present cannot be read
└── Invalid            400, 422 and other 4xx                              → no retry until the object changes
"""

from collections.abc import Sequence

import msgspec

from hansa.runtime.errors import HansaError

LONGEST_SENTENCE = 2000  # characters of a server's message that a person still reads


class Cause(msgspec.Struct, frozen=True, gc=False):
    """One field's part in a refusal, as the server tells it."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """The machine-readable part of a Status."""

    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """The API server's answer when it is not the object that was asked for."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class ApiError(HansaError):
    """A request to an API server failed."""

    def __init__(self, sentence: str, *, code: int = 0, reason: str = "", causes: Sequence[Cause] = ()) -> None:
        super().__init__(sentence)
        self.code = code  # 0 when there was no answer
        self.reason = reason
        self.causes = tuple(causes)


class Unreachable(ApiError):
    """No usable answer: no connection, no answer in time, or the server itself failed."""


class Throttled(ApiError):
    """The server asked us to come back later."""

    retry_after: float = 1.0


class Conflict(ApiError):
    """Somebody else changed the object first."""


class AlreadyExists(Conflict):
    """The name is taken."""


class Gone(ApiError):
    """The asked-for version is no longer kept (or not known) by the server: list again."""


class NotFound(ApiError):
    """There is no such object or path."""


class Denied(ApiError):
    """We may not do this."""


class Unauthorized(Denied):
    """The server refused the credentials."""


class Forbidden(Denied):
    """The credentials lack a right."""


class BadCredentials(Denied):
    """The credentials cannot be read, so there is nothing to present."""


class Invalid(ApiError):
    """The request is wrong and stays wrong: our bug or the user's."""


_BY_CODE: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: Throttled,
}
_STATUS = msgspec.json.Decoder(Status)


def parse_status(code: int, body: bytes) -> Status:
    """The Status in an answer's body; proxies and old paths answer in plain text, which then is the message."""
    try:
        status = _STATUS.decode(body)
    except msgspec.DecodeError:
        status = Status(message=body.decode(errors="replace").strip())
    return msgspec.structs.replace(status, code=code)


def from_status(status: Status, doing: str) -> ApiError:
    """The error for a refusal; `doing` completes "cannot …"."""
    details = status.details or Details()
    sentence = (status.message or status.reason or "no explanation was given")[:LONGEST_SENTENCE]
    error = _class_of(status, details)(
        f"cannot {doing}: {sentence} ({status.code})", code=status.code, reason=status.reason, causes=details.causes
    )
    if isinstance(error, Throttled):
        error.retry_after = float(details.retry_after_seconds or Throttled.retry_after)
    return error


def _class_of(status: Status, details: Details) -> type[ApiError]:
    if status.reason == "AlreadyExists":
        return AlreadyExists
    # A version from the future: etcd was restored from a backup. What we know is worth nothing now, so list again.
    if any(cause.reason == "ResourceVersionTooLarge" for cause in details.causes):
        return Gone
    return _BY_CODE.get(status.code) or (Unreachable if status.code >= 500 else Invalid)
