"""Event correlation: equal events are counted, similar ones aggregated, and an object with too many is rate limited.

Rules and limits are client-go's. Pure: the recorder writes the Events.
"""

import collections
import dataclasses
import enum
from collections.abc import Hashable
from typing import Generic, TypeVar

from hansa.kube import objects

WINDOW = 600.0  # seconds after which an equal occurrence starts a new series
ALIKE = 10  # different messages for one reason and object, in a window, before they are combined
BURST = 25.0  # Events of one object at once …
REFILL = 1 / 300  # … and how many a second after that
MOST = 4096  # objects and series that are remembered
COMBINED = "(combined from similar events): "
T = TypeVar("T")


class EventType(enum.StrEnum):
    """The value of `type` of an Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclasses.dataclass(frozen=True, slots=True)
class InvolvedObject:
    """The object that an Event is about (`involvedObject`)."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, obj: objects.Object) -> "InvolvedObject":
        """The reference to an object."""
        return cls(obj.api_version, obj.kind, obj.namespace, obj.name, obj.uid)


@dataclasses.dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened to an object: the content of an Event, without count and times."""

    subject: InvolvedObject
    event_type: EventType
    reason: str
    message: str


@dataclasses.dataclass(slots=True, eq=False)
class Series:
    """One Event object: a occurrence, how often it was, and the times of its first and last."""

    occurrence: Occurrence
    first: float
    last: float
    count: int = 0
    name: str = ""  # of the Event, when it is written


class Correlator:
    """Assigns occurrences to series. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._series: _Recent[Hashable, Series] = _Recent()
        self._alike: _Recent[Hashable, tuple[float, set[int]]] = _Recent()  # with hashes of messages, which may be long
        self._buckets: _Recent[InvolvedObject, tuple[float, float]] = _Recent()

    def count(self, occurrence: Occurrence, now: float) -> Series | None:
        """The series that the occurrence belongs to, counted; None if its object causes too many."""
        combined = self._combined(occurrence, now)
        # Aggregated occurrences are one series, whatever their messages.
        key: Hashable = (
            occurrence if combined is occurrence else (occurrence.subject, occurrence.event_type, occurrence.reason)
        )
        series = self._series.get(key)
        if series is None or now - series.last > WINDOW:
            series = Series(combined, now, now)
        if not self._may(occurrence.subject, now):
            return None
        series.occurrence, series.last, series.count = combined, now, series.count + 1
        self._series.put(key, series)
        return series

    def _combined(self, occurrence: Occurrence, now: float) -> Occurrence:
        key = (occurrence.subject, occurrence.event_type, occurrence.reason)
        last, messages = self._alike.get(key) or (now, set())
        if now - last > WINDOW:
            messages = set()
        if len(messages) < ALIKE:
            messages.add(hash(occurrence.message))
        self._alike.put(key, (now, messages))
        if len(messages) < ALIKE:
            return occurrence
        return dataclasses.replace(occurrence, message=COMBINED + occurrence.message)

    def _may(self, subject: InvolvedObject, now: float) -> bool:
        tokens, last = self._buckets.get(subject) or (BURST, now)
        tokens = min(BURST, tokens + (now - last) * REFILL)
        self._buckets.put(subject, (tokens - 1 if tokens >= 1 else tokens, now))
        return tokens >= 1


K = TypeVar("K", bound=Hashable)


class _Recent(Generic[K, T]):
    """A dict with at most MOST entries; the one that was put least recently is dropped."""

    def __init__(self) -> None:
        self._items: collections.OrderedDict[K, T] = collections.OrderedDict()

    def get(self, key: K) -> T | None:
        return self._items.get(key)

    def put(self, key: K, value: T) -> None:
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > MOST:
            self._items.popitem(last=False)
