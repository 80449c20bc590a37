"""What lower clusters say about CPU and memory."""

import json

import pytest

from hansa.kubelet.usage import readings
from hansa.kubelet.usage.readings import Container, Reading
from hansa.runtime.errors import HansaError

TEXT = """\
# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web"} 1.5 1760000000123
container_cpu_usage_seconds_total{container="half",namespace="shop",pod="web"} 1.5 1760000000123
container_cpu_usage_seconds_total{container="bad",namespace="shop",pod="web"} NaN 1760000000123
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="app",namespace="shop",pod="web"} 2.097152e+06 1760000000123
container_memory_working_set_bytes{container="bad",namespace="shop",pod="web"} 1 1760000000123
container_memory_working_set_bytes{container="timeless",namespace="shop",pod="web"} 1
node_cpu_usage_seconds_total 99 1760000000123
"""


def test_the_metrics_of_a_kubelet():
    found = readings.of_resource_metrics(TEXT)
    assert found == {Container("shop", "web", "app"): Reading(1760000000.123, 2097152.0, core_seconds=1.5)}


@pytest.mark.parametrize("line", ['{container="a"', "{} x", '{a="b} 1 1', "{a=1} 1 1"])
def test_text_that_is_not_valid_is_one_error(line):
    with pytest.raises(HansaError, match="Prometheus"):
        readings.of_resource_metrics(f"container_cpu_usage_seconds_total{line}\n")


def test_too_much_text_is_not_parsed():
    with pytest.raises(HansaError, match="8 MiB"):
        readings.of_resource_metrics("x" * (readings.LARGEST + 1))


def metrics(cpu, memory):
    return {
        "metadata": {"name": "web", "namespace": "shop"},
        "timestamp": "2025-10-09T08:53:20Z",
        "window": "15.1s",
        "containers": [{"name": "app", "usage": {"cpu": cpu, "memory": memory}}],
    }


def test_the_metrics_api():
    items = [metrics("250m", "2Mi"), metrics("bad", "1"), metrics("-1", "1")]
    found = readings.of_metrics_api(json.dumps({"kind": "PodMetricsList", "items": items}).encode())
    assert found == {Container("shop", "web", "app"): Reading(1760000000.0, 2097152.0, cores=0.25)}


@pytest.mark.parametrize("body", [b"", b"[]", b'{"items":[{}]}', b'{"items":' + b"[" * 100_000])
def test_an_answer_that_is_no_list_of_metrics_is_one_error(body):
    with pytest.raises(HansaError, match="PodMetricsList"):
        readings.of_metrics_api(body)
