"""What a lower cluster says about the CPU and memory of its containers, in one of two formats. Pure.

Only names and numbers are taken. Which of the containers are of interest is left to the caller.
"""

import contextlib
import datetime
import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
from prometheus_client import parser

from hansa.kube.language import quantity
from hansa.runtime.errors import HansaError

CPU, MEMORY = "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"
_PREFIXES = (f"{CPU}{{", f"{MEMORY}{{")
LARGEST = 8 * 2**20  # bytes of the text of a kubelet; with a thousand containers it has 0.4 MB


class Container(NamedTuple):
    """A container of a pod."""

    namespace: str
    pod: str
    name: str


class Reading(NamedTuple):
    """The use of one container: of CPU either the present rate, or the sum since its start."""

    time: float  # seconds since the epoch
    memory: float  # bytes of the working set
    cores: float | None = None
    core_seconds: float | None = None


Readings = Mapping[Container, Reading]


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Container(msgspec.Struct):
    name: str = ""
    usage: dict[str, str] = {}


class _Pod(msgspec.Struct):
    metadata: _Metadata
    timestamp: datetime.datetime
    containers: list[_Container] = []


class _Pods(msgspec.Struct):
    items: list[_Pod] = []


def of_metrics_api(body: bytes) -> Readings:
    """The readings in a PodMetricsList of metrics.k8s.io. Raises a HansaError if it is none."""
    try:
        pods = msgspec.json.decode(body, type=_Pods)
    except (msgspec.DecodeError, RecursionError) as error:
        raise HansaError(f"the metrics API sent no PodMetricsList: {error}") from None
    return {
        Container(pod.metadata.namespace, pod.metadata.name, one.name): reading
        for pod in pods.items
        for one in pod.containers
        if (reading := _reading(pod.timestamp, one.usage)) is not None
    }


def of_resource_metrics(text: str) -> Readings:
    """The readings in the /metrics/resource of a kubelet. Raises a HansaError if it can't be parsed."""
    if len(text) > LARGEST:
        raise HansaError(f"a kubelet sent more than {LARGEST >> 20} MiB of metrics")
    samples: dict[Container, dict[str, tuple[float, float]]] = {}
    for name, labels, value, time in _samples(text):
        key = Container(labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", ""))
        samples.setdefault(key, {})[name] = value, time
    return {
        key: Reading(found[CPU][1], found[MEMORY][0], core_seconds=found[CPU][0])
        for key, found in samples.items()
        if found.keys() == {CPU, MEMORY}
    }


def _reading(at: datetime.datetime, usage: Mapping[str, str]) -> Reading | None:
    with contextlib.suppress(quantity.QuantityError, KeyError):
        cores, memory = (quantity.parse(usage[name]).nano / quantity.UNIT for name in ("cpu", "memory"))
        if cores >= 0 and memory >= 0:
            return Reading(at.timestamp(), memory, cores=cores)
    return None


def _samples(text: str) -> Iterator[tuple[str, Mapping[str, str], float, float]]:
    """The samples of the two metrics that have a time; kubelets give one to each."""
    lines = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(_PREFIXES))
    try:
        for family in parser.text_string_to_metric_families(lines):
            for sample in family.samples:
                if sample.timestamp is not None and math.isfinite(sample.value) and sample.value >= 0:
                    yield sample.name, sample.labels, sample.value, float(sample.timestamp)
    except (ValueError, LookupError, TypeError) as error:
        raise HansaError(f"a kubelet sent no metrics in Prometheus' text format: {error}") from None
