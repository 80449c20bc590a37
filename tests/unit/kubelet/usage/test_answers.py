"""The two forms in which CPU and memory are published."""

import datetime
import json

from hansa.kube.objects import Object
from hansa.kubelet.usage import readings, resource_metrics, stats, summary
from hansa.kubelet.usage.meter import Usage
from hansa.kubelet.usage.readings import Container, Reading
from hansa.kubelet.usage.stats import ContainerStats, NodeStats, PodStats

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
USAGE = Usage(1760000000.25, 12.5, 0.25, 4096.0)
POD = PodStats("shop", "web", "uid", (ContainerStats("app", START, USAGE), ContainerStats("log", START, USAGE)))
NODE = NodeStats("vn", Usage(1760000000.25, 25.0, 0.5, 8192.0), (POD,))
EMPTY = NodeStats("vn", None, ())


def test_the_summary():
    found = json.loads(summary.of(NODE))
    assert found["node"]["memory"] == {"time": "2025-10-09T08:53:20Z", "workingSetBytes": 8192}
    [pod] = found["pods"]
    assert pod["podRef"] == {"name": "web", "namespace": "shop", "uid": "uid"}
    assert pod["cpu"]["usageNanoCores"] == 500_000_000
    assert [one["cpu"]["usageCoreNanoSeconds"] for one in pod["containers"]] == [12_500_000_000] * 2
    assert json.loads(summary.of(EMPTY)) == {"node": {"nodeName": "vn"}, "pods": []}


def test_resource_metrics_can_be_read_by_what_reads_those_of_kubelets():
    text = resource_metrics.of(NODE).decode()
    found = readings.of_resource_metrics(text)
    assert found[Container("shop", "web", "log")] == Reading(1760000000.25, 4096.0, core_seconds=12.5)
    for line in (
        'container_start_time_seconds{container="app",namespace="shop",pod="web"} 1.7672256e+09',
        'pod_memory_working_set_bytes{namespace="shop",pod="web"} 8192.0 1760000000250',
        "node_cpu_usage_seconds_total 25.0 1760000000250",
        "resource_scrape_error 0.0",
    ):
        assert f"{line}\n" in text
    empty = resource_metrics.of(EMPTY).decode()
    assert "resource_scrape_error 0.0\n" in empty
    assert readings.of_resource_metrics(empty) == {}
    assert [line for line in empty.splitlines() if not line.startswith("#")] == ["resource_scrape_error 0.0"]


def test_only_containers_that_run_have_statistics():
    started = "2026-01-01T00:00:00Z"
    status = {
        "containerStatuses": [
            {"name": "app", "state": {"running": {"startedAt": started}}},
            {"name": "done", "state": {"terminated": {"exitCode": 0}}},
        ],
        "ephemeralContainerStatuses": [{"name": "debugger", "state": {"running": {"startedAt": started}}}],
    }
    pod = Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "status": status})
    assert stats.running(pod) == {"app": START, "debugger": START}
    assert stats.running(pod.with_fields(status={"containerStatuses": 1})) == {}
