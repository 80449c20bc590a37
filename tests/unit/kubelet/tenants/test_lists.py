"""What a tenant sees of a node: its own pods, in its own names."""

import json

import pytest

from hansa.kube.objects import Object
from hansa.kubelet.pages import Page
from hansa.kubelet.tenants.lists import OwnPods
from hansa.kubelet.tenants.tenant import Tenant
from hansa.model import keys, stamp
from hansa.model.stamp import Origin

OURS, THEIRS = Tenant("default-0-a", "default", "a"), Tenant("default-0-b", "default", "b")
SPEC = {
    "nodeName": "n1",
    "containers": [{"name": "main", "image": "app:1", "env": [{"name": "SECRET", "value": "injected"}]}],
    "volumes": [{"name": "host", "hostPath": {"path": "/etc"}}],
}
METRICS = b"""\
# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="main",namespace="default-0-a-shop",pod="web"} 1.5 1700000000000
container_cpu_usage_seconds_total{container="main",namespace="default-0-b-shop",pod="web"} 7.5 1700000000000
# HELP node_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the node in core-seconds
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total 99 1700000000000
"""


def a_copy(tenant):
    metadata = {
        "name": "web",
        "namespace": f"{tenant.key}-shop",
        "uid": f"super-{tenant.name}",
        "annotations": {
            keys.TENANT_CLUSTER: tenant.key,
            keys.VC_NAME: tenant.name,
            keys.VC_NAMESPACE: "default",
            "injected": "by the super cluster",
        },
    }
    pod = Object.of({"metadata": metadata, "spec": SPEC, "status": {"phase": "Running", "podIP": "10.0.0.9"}})
    return stamp.put(pod, Origin("upper", f"upper-{tenant.name}", "shop", "web"))


STRANGER = Object.of({"metadata": {"name": "dns", "namespace": "kube-system", "uid": "super-dns"}, "spec": SPEC})
OWN = {"name": "web", "namespace": "shop", "uid": "upper-a"}


@pytest.fixture
def own():
    return OwnPods(OURS, [a_copy(OURS), a_copy(THEIRS), STRANGER])


def test_pods_are_shown_without_what_the_super_cluster_added(own):
    assert json.loads(own.pods())["items"] == [
        {
            "metadata": OWN,
            "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "app:1"}]},
            "status": {"phase": "Running", "podIP": "10.0.0.9"},
        }
    ]


def test_running_pods_are_found_by_their_uid(own):
    running = {
        "items": [
            {"metadata": {"name": "web", "namespace": one, "uid": uid}, "spec": {"containers": [{"name": "main"}]}}
            for one, uid in (("default-0-a-shop", "super-a"), ("default-0-b-shop", "super-b"), ("x", "super-dns"))
        ]
    }
    [found] = json.loads(own.report(Page.RUNNING_PODS, json.dumps(running).encode()))["items"]
    assert found == {"metadata": OWN, "spec": {"containers": [{"name": "main"}]}}


def test_statistics_have_the_names_of_the_tenant_and_nothing_of_the_node(own):
    volume = {"name": "data", "usedBytes": 5, "pvcRef": {"name": "data", "namespace": "default-0-a-shop"}}
    pods = [
        {"podRef": {"name": "web", "namespace": "x", "uid": uid}, "cpu": {"usageNanoCores": 7}, "volume": [volume]}
        for uid in ("super-a", "super-b", "super-dns")
    ]
    body = json.dumps({"node": {"nodeName": "n1", "cpu": {"usageNanoCores": 9}}, "pods": pods}).encode()
    shown = volume | {"pvcRef": {"name": "data", "namespace": "shop"}}
    assert json.loads(own.report(Page.STATS, body)) == {
        "node": {"nodeName": "n1"},
        "pods": [{"podRef": OWN, "cpu": {"usageNanoCores": 7}, "volume": [shown]}],
    }


def test_metrics_are_those_of_the_tenants_containers(own):
    lines = [line for line in own.report(Page.METRICS, METRICS).decode().splitlines() if not line.startswith("#")]
    assert lines == ['container_cpu_usage_seconds_total{container="main",namespace="shop",pod="web"} 1.5 1700000000000']


def test_a_stamp_that_was_copied_to_another_namespace_makes_no_pod_a_tenants():
    strayed = a_copy(OURS).with_metadata(namespace="kube-system")
    assert json.loads(OwnPods(OURS, [strayed]).pods())["items"] == []
