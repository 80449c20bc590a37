"""The answer of /metrics/resource, which metrics-server reads: Prometheus' text format. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import prometheus_client
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hansa.kubelet.usage.meter import Usage
from hansa.kubelet.usage.stats import NodeStats

CONTENT_TYPE = prometheus_client.CONTENT_TYPE_PLAIN_0_0_4
Labels = tuple[str, ...]
_POD: Labels = ("pod", "namespace")
_CONTAINER: Labels = ("container", *_POD)


def of(node: NodeStats) -> bytes:
    """The metrics with the names that kubelets give them."""
    return prometheus_client.generate_latest(_Metrics(node))


@dataclass(frozen=True, slots=True)
class _Metrics(Collector):
    node: NodeStats

    def collect(self) -> Iterator[Metric]:
        pods = [((pod.name, pod.namespace), pod) for pod in self.node.pods]
        containers = [((one.name, *labels), one) for labels, pod in pods for one in pod.containers]
        starts = GaugeMetricFamily("container_start_time_seconds", "Start time of the container.", labels=_CONTAINER)
        for labels, one in containers:
            starts.add_metric(labels, one.started.timestamp())
        yield starts
        yield from _use("container", _CONTAINER, ((labels, one.usage) for labels, one in containers))
        yield from _use("pod", _POD, ((labels, pod.usage) for labels, pod in pods))
        yield from _use("node", (), [] if self.node.usage is None else [((), self.node.usage)])
        yield GaugeMetricFamily("resource_scrape_error", "1 if metrics could not be read.", value=0)


def _use(what: str, labels: Labels, found: Iterable[tuple[Labels, Usage]]) -> Iterator[Metric]:
    cpu = CounterMetricFamily(f"{what}_cpu_usage_seconds", f"CPU time used by the {what}.", labels=labels)
    memory = GaugeMetricFamily(f"{what}_memory_working_set_bytes", f"Working set of the {what}.", labels=labels)
    for values, usage in found:
        cpu.add_metric(values, usage.core_seconds, timestamp=usage.time)
        memory.add_metric(values, usage.memory, timestamp=usage.time)
    yield cpu
    yield memory
