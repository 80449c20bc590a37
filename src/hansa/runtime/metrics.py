"""Metrics of one program, kept by prometheus_client, and their text for Prometheus.

Adds to prometheus_client: no global registry, gauges that are computed at each scrape, and dropping all series of a
cluster that is gone. Serving the text is left to `control.health_server`; docs/metrics.md lists all metrics.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import prometheus_client
from prometheus_client import Counter, Histogram, metrics_core, registry

from hansa.runtime import errors, listeners

__all__ = ["CONTENT_TYPE", "SECONDS", "Counter", "Gauge", "Histogram", "Registry"]

Labels = tuple[str, ...]
Source = Callable[[], Mapping[Labels, float]]
Combine = Callable[[Iterable[float]], float]
Metric = TypeVar("Metric", Counter, Histogram, "Gauge")
CONTENT_TYPE = prometheus_client.CONTENT_TYPE_PLAIN_0_0_4
SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Gauge(registry.Collector):
    """A gauge whose series are computed when they are scraped, so that it costs nothing in between.

    `combine` makes one value of those that several sources give for the same labels.
    """

    def __init__(self, name: str, text: str, labels: Labels, combine: Combine) -> None:
        self._name, self._text, self._labels, self._combine = name, text, labels, combine
        self._sources: listeners.Listeners[Source] = listeners.Listeners()

    def read(self, source: Source) -> Callable[[], None]:
        """Add a source of values by label values. The returned function removes it, and its series with it."""
        return self._sources.add(source)

    def describe(self) -> Iterator[metrics_core.Metric]:
        """The gauge without series; the registry refuses a second metric of the same name by it."""
        yield self._family()

    def collect(self) -> Iterator[metrics_core.Metric]:
        """The gauge with the values of all sources."""
        values: dict[Labels, list[float]] = {}
        for source in self._sources:
            for labels, value in source().items():
                values.setdefault(labels, []).append(value)
        family = self._family()
        for labels, found in values.items():
            family.add_metric(labels, self._combine(found))
        yield family

    def _family(self) -> metrics_core.GaugeMetricFamily:
        return metrics_core.GaugeMetricFamily(self._name, self._text, labels=self._labels)


class Registry:
    """All metrics of a program. The same name twice is the same metric, if it has the same type and labels.

    `labels(...)` of a counter or histogram costs about a microsecond: a caller that counts per key keeps the child.
    """

    def __init__(self) -> None:
        # One more series per counter, with the time of its creation, that only OpenMetrics needs.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = prometheus_client.CollectorRegistry()
        self._metrics: dict[str, tuple[Labels, Counter | Histogram | Gauge]] = {}

    def counter(self, name: str, text: str, *, labels: Iterable[str] = ()) -> Counter:
        """The counter of this name."""
        names = tuple(labels)
        return self._get(name, names, Counter, lambda: Counter(name, text, names, registry=self._registry))

    def histogram(
        self, name: str, text: str, *, labels: Iterable[str] = (), bounds: Sequence[float] = SECONDS
    ) -> Histogram:
        """The histogram of this name."""
        names = tuple(labels)
        return self._get(
            name, names, Histogram, lambda: Histogram(name, text, names, registry=self._registry, buckets=bounds)
        )

    def gauge(self, name: str, text: str, *, labels: Iterable[str] = (), combine: Combine = sum) -> Gauge:
        """The gauge of this name."""
        names = tuple(labels)

        def make() -> Gauge:
            made = Gauge(name, text, names, combine)
            self._registry.register(made)
            return made

        return self._get(name, names, Gauge, make)

    def forget(self, label: str, value: str) -> None:
        """Drop every series of counters and histograms with this label value: its subject left the program."""
        for labels, metric in self._metrics.values():
            if label in labels and not isinstance(metric, Gauge):
                metric.remove_by_labels({label: value})

    def text(self) -> str:
        """Everything in Prometheus' text format 0.0.4."""
        return prometheus_client.generate_latest(self._registry).decode()

    def _get(self, name: str, labels: Labels, kind: type[Metric], make: Callable[[], Metric]) -> Metric:
        if (found := self._metrics.get(name)) is None:
            made = make()
            self._metrics[name] = labels, made
            return made
        if type(found[1]) is not kind or found[0] != labels:
            raise errors.HansaError(
                f"metric {name} is defined twice: as {_form(kind, labels)} and as {_form(type(found[1]), found[0])}; "
                "rename one of them"
            )
        return found[1]


def _form(kind: type[Counter | Histogram | Gauge], labels: Labels) -> str:
    return f"{kind.__name__.lower()}({', '.join(labels)})"
