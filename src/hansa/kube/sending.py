"""Whether requests that write may still be sent: checked when a connection is ready, just before the bytes are written.

A replica that was frozen, or that waited for a connection, may have lost the right to write meanwhile. Reads are sent
in any case. Who may write is left to callers.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Final

MaySend = Callable[[], bool]
READS: Final = frozenset({"GET", "HEAD"})
_current: contextvars.ContextVar[MaySend | None] = contextvars.ContextVar("may_send", default=None)


@contextlib.contextmanager
def only_while(may_send: MaySend) -> Iterator[None]:
    """Requests made inside are sent only while this is true."""
    token = _current.set(may_send)
    try:
        yield
    finally:
        _current.reset(token)


def check_of(method: str, own: MaySend | None) -> MaySend | None:
    """The check of a request that is made now, by a client with a check of its own; None without any."""
    inside = _current.get()
    if method in READS or (own is None and inside is None):
        return None
    return lambda: (own is None or own()) and (inside is None or inside())
