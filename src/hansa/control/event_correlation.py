"""Which Events are written for what happens: the same again is counted, many alike are combined, spam is left out.

The rules and figures are client-go's. Pure: writing the Events is the recorder's.
"""

import collections
import dataclasses
import enum
from collections.abc import Hashable
from typing import Generic, TypeVar

from hansa.kube import objects

WINDOW = 600.0  # seconds after which the same happening is a new one
ALIKE = 10  # different messages for one reason and object, in a window, before they are combined
BURST = 25.0  # Events of one object at once …
REFILL = 1 / 300  # … and how many a second after that
MOST = 4096  # objects and happenings that are remembered
COMBINED = "(combined from similar events): "
T = TypeVar("T")


class Kind(enum.StrEnum):
    """The two kinds of Events."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclasses.dataclass(frozen=True, slots=True)
class Subject:
    """What an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, obj: objects.Object) -> "Subject":
        """The subject that an object is."""
        return cls(obj.api_version, obj.kind, obj.namespace, obj.name, obj.uid)


@dataclasses.dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that a person may want to know about an object."""

    subject: Subject
    kind: Kind
    reason: str
    message: str


@dataclasses.dataclass(slots=True, eq=False)
class Series:
    """One Event object: a happening, how often it was, and the times of its first and last."""

    happening: Occurrence
    first: float
    last: float
    count: int = 0
    name: str = ""  # of the Event, when it is written


class Correlator:
    """Sorts happenings into series. Times are seconds of any clock that goes forward."""

    def __init__(self) -> None:
        self._series: _Recent[Hashable, Series] = _Recent()
        self._alike: _Recent[Hashable, tuple[float, set[str]]] = _Recent()
        self._buckets: _Recent[Subject, tuple[float, float]] = _Recent()

    def count(self, happening: Occurrence, now: float) -> Series | None:
        """The series that the happening belongs to, counted; None if its object causes too many."""
        combined = self._combined(happening, now)
        # The combined ones are one series, whatever they say.
        key: Hashable = happening if combined is happening else (happening.subject, happening.kind, happening.reason)
        series = self._series.get(key)
        if series is None or now - series.last > WINDOW:
            series = Series(combined, now, now)
        if not self._may(happening.subject, now):
            return None
        series.happening, series.last, series.count = combined, now, series.count + 1
        self._series.put(key, series)
        return series

    def _combined(self, happening: Occurrence, now: float) -> Occurrence:
        key = (happening.subject, happening.kind, happening.reason)
        last, messages = self._alike.get(key) or (now, set())
        if now - last > WINDOW:
            messages = set()
        if len(messages) < ALIKE:
            messages.add(happening.message)
        self._alike.put(key, (now, messages))
        if len(messages) < ALIKE:
            return happening
        return dataclasses.replace(happening, message=COMBINED + happening.message)

    def _may(self, subject: Subject, now: float) -> bool:
        tokens, last = self._buckets.get(subject) or (BURST, now)
        tokens = min(BURST, tokens + (now - last) * REFILL)
        self._buckets.put(subject, (tokens - 1 if tokens >= 1 else tokens, now))
        return tokens >= 1


K = TypeVar("K", bound=Hashable)


class _Recent(Generic[K, T]):
    """A dict that forgets what was not put for the longest time."""

    def __init__(self) -> None:
        self._items: collections.OrderedDict[K, T] = collections.OrderedDict()

    def get(self, key: K) -> T | None:
        return self._items.get(key)

    def put(self, key: K, value: T) -> None:
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > MOST:
            self._items.popitem(last=False)
