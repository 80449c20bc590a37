"""Limits on what an API server may send: a server that exceeds one fails the request, not the process.

Used by the transport, by lines of streams and by lists. The framing of HTTP has fixed limits of its own.
"""

from dataclasses import dataclass

from hansa.kube.errors import Unreachable

MIB, GIB = 2**20, 2**30
LONGEST_RETRY_AFTER = 60.0  # seconds; a server that asks for more is asked again after these


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one client; a caller that needs more passes its own."""

    answer: int = 64 * MIB  # bytes of one object or page; etcd stores objects of up to 1.5 MiB by default
    refusal: int = MIB  # bytes of an answer that is an error
    line: int = 8 * MIB  # bytes of a watch event or of a line of a log
    list_objects: int = 2_000_000  # objects of a whole list, in pages or streamed
    list_bytes: int = 2 * GIB  # bytes of a whole list
    list_pages: int = 20_000  # five times what 2,000,000 objects need in pages of 500


class TooLarge(Unreachable):
    """The answer exceeds a limit. A smaller page may not."""


class ListBudget:
    """What is left of the limits of one list."""

    def __init__(self, limits: Limits, doing: str) -> None:
        self._limits = limits
        self._doing = doing
        self._objects = self._bytes = self._pages = 0

    def spend(self, objects: int, size: int) -> None:
        """Count a part of the list; raises TooLarge when a limit is exceeded."""
        self._objects += objects
        self._bytes += size
        self._pages += 1
        limits = self._limits
        if self._objects > limits.list_objects:
            raise TooLarge(f"cannot {self._doing}: the list has more than {limits.list_objects} objects")
        if self._bytes > limits.list_bytes:
            raise TooLarge(f"cannot {self._doing}: the list has more than {limits.list_bytes // MIB} MiB")

    def next_page(self) -> None:
        """Check that one more page may be requested."""
        if self._pages >= self._limits.list_pages:
            raise TooLarge(f"cannot {self._doing}: the list has more than {self._limits.list_pages} pages")
