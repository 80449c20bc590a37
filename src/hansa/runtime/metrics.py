"""Counters, gauges and histograms with labels, and their text for Prometheus.

There is no global registry: whoever measures is given one. Serving the text is left to others.
"""

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from hansa.runtime import errors, listeners

Labels = tuple[str, ...]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Value:
    """One number of a counter or a gauge."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0.0

    def inc(self, by: float = 1.0) -> None:
        """Add to it."""
        self.number += by

    def set(self, number: float) -> None:
        """Replace it; for gauges."""
        self.number = number


class Distribution:
    """One series of a histogram."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, number: float) -> None:
        """Count one observation."""
        self.counts[bisect.bisect_left(self.bounds, number)] += 1
        self.total += number

    @property
    def count(self) -> int:
        """How many observations there were."""
        return sum(self.counts)


class Metric:
    """What all metrics have: a name, a sentence of help, the names of its labels."""

    kind = "untyped"

    def __init__(self, name: str, text: str, labels: Labels) -> None:
        self.name, self.text, self.labels = name, text, labels

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """Each line of it: name, labels, number."""
        raise NotImplementedError

    def _pairs(self, values: Labels) -> dict[str, str]:
        return dict(zip(self.labels, values, strict=True))


class Counter(Metric):
    """A number that only grows, for each set of label values."""

    kind = "counter"

    def __init__(self, name: str, text: str, labels: Labels) -> None:
        super().__init__(name, text, labels)
        self._values: dict[Labels, Value] = {}

    def of(self, *values: str) -> Value:
        """The series of these label values; keep it where it is used often."""
        found = self._values.get(values)
        if found is None:
            _check(self, values)
            found = self._values[values] = Value()
        return found

    def drop(self, *values: str) -> None:
        """Forget a series whose subject is gone."""
        self._values.pop(values, None)

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        for values, value in self._values.items():
            yield self.name, self._pairs(values), value.number


class Gauge(Counter):
    """A number that goes up and down; or one that is asked for when somebody looks."""

    kind = "gauge"

    def __init__(self, name: str, text: str, labels: Labels) -> None:
        super().__init__(name, text, labels)
        self._sources: listeners.Listeners[Callable[[], Mapping[Labels, float]]] = listeners.Listeners()

    def read(self, source: Callable[[], Mapping[Labels, float]]) -> Callable[[], None]:
        """Ask `source` at each look: it costs nothing in between. The answer ends it."""
        return self._sources.add(source)

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        yield from super().samples()
        for values, number in itertools.chain.from_iterable(source().items() for source in self._sources):
            yield self.name, self._pairs(values), number


class Histogram(Metric):
    """A distribution over fixed bounds, for each set of label values."""

    kind = "histogram"

    def __init__(self, name: str, text: str, labels: Labels, bounds: Sequence[float]) -> None:
        super().__init__(name, text, labels)
        self.bounds = tuple(sorted(bounds))
        self._series: dict[Labels, Distribution] = {}

    def of(self, *values: str) -> Distribution:
        """The series of these label values; keep it where it is used often."""
        found = self._series.get(values)
        if found is None:
            _check(self, values)
            found = self._series[values] = Distribution(self.bounds)
        return found

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        for values, series in self._series.items():
            pairs = self._pairs(values)
            bounds = (*self.bounds, math.inf)
            for bound, count in zip(bounds, itertools.accumulate(series.counts), strict=True):
                yield f"{self.name}_bucket", {**pairs, "le": _number(bound)}, count
            yield f"{self.name}_sum", pairs, series.total
            yield f"{self.name}_count", pairs, series.count


M = TypeVar("M", bound=Metric)


class Registry:
    """All metrics of a program. The same name twice is the same metric, if it has the same form."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def counter(self, name: str, text: str, *, labels: Iterable[str] = ()) -> Counter:
        """The counter of this name."""
        return self._keep(Counter(name, text, tuple(labels)))

    def gauge(self, name: str, text: str, *, labels: Iterable[str] = ()) -> Gauge:
        """The gauge of this name."""
        return self._keep(Gauge(name, text, tuple(labels)))

    def histogram(
        self, name: str, text: str, *, labels: Iterable[str] = (), bounds: Sequence[float] = SECONDS
    ) -> Histogram:
        """The histogram of this name."""
        return self._keep(Histogram(name, text, tuple(labels), bounds))

    def text(self) -> str:
        """Everything in Prometheus' text format 0.0.4."""
        return "".join(itertools.chain.from_iterable(map(_lines, self._metrics.values())))

    def _keep(self, metric: M) -> M:
        found = self._metrics.setdefault(metric.name, metric)
        if type(found) is not type(metric) or found.labels != metric.labels:
            raise errors.HansaError(
                f"metric {metric.name} is asked for as {metric.kind}{metric.labels}, "
                f"but is {found.kind}{found.labels}: give one of them another name"
            )
        return found


def _check(metric: Metric, values: Labels) -> None:
    if len(values) != len(metric.labels):
        raise errors.HansaError(f"metric {metric.name} has the labels {metric.labels}, but was given {values}")


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {_escaped(metric.text)}\n"
    yield f"# TYPE {metric.name} {metric.kind}\n"
    for name, pairs, number in metric.samples():
        labels = ",".join(f'{label}="{_quoted(value)}"' for label, value in pairs.items())
        yield f"{name}{{{labels}}} {_number(number)}\n" if labels else f"{name} {_number(number)}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _number(number: float) -> str:
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    if math.isnan(number):
        return "NaN"
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)
