"""Structured logging on the standard library: a constant message and fields, as text or as JSON lines.

Fields come from `extra=` of the call and from `bound(...)` around it. Log levels are left to the caller.
"""

import contextlib
import contextvars
import datetime
import enum
import io
import logging
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import msgspec

_context: contextvars.ContextVar[Mapping[str, object]] = contextvars.ContextVar(
    "log fields", default=types.MappingProxyType({})
)
_OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Form(enum.StrEnum):
    """The format of log lines."""

    TEXT = "text"
    JSON = "json"


def setup(form: Form = Form.TEXT, level: int | str = logging.INFO, *, stream: TextIO | None = None) -> None:
    """Send all logs of this process to one stream (stderr) in one form."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form is Form.JSON else TextFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)


@contextlib.contextmanager
def bound(**fields: object) -> Iterator[None]:
    """Add fields to every line that is logged inside, also by tasks that are started inside."""
    token = _context.set({**_context.get(), **fields})
    try:
        yield
    finally:
        _context.reset(token)


@contextlib.contextmanager
def only(**fields: object) -> Iterator[None]:
    """Like `bound`, but without the fields that are bound outside: for tasks that outlive the code that starts them."""
    token = _context.set(fields)
    try:
        yield
    finally:
        _context.reset(token)


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """The fields of a line: those that are bound around it, then all of the call, in their order."""
    own = {name: value for name, value in vars(record).items() if name not in _OWN_FIELDS}
    return {**{name: value for name, value in _context.get().items() if name not in own}, **own}


class TextFormatter(logging.Formatter):
    """`time LEVEL message field=value …`."""

    def format(self, record: logging.LogRecord) -> str:
        line = io.StringIO()
        line.write(f"{_time(record)} {record.levelname:<7} {record.getMessage()}")
        for name, value in fields_of(record).items():
            line.write(f" {name}={_plain(value)}")
        if record.exc_info:
            line.write(f"\n{self.formatException(record.exc_info)}")
        return line.getvalue()


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        # A field must not replace the line's own time, level, logger and message.
        line: dict[str, Any] = {
            **fields_of(record),
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def _time(record: logging.LogRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: object) -> str:
    text = str(value)
    return text if text and text.isprintable() and not set(text) & set(' "=') else msgspec.json.encode(text).decode()
