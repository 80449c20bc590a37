"""What a tenant sees of a node: its own pods, in its own names."""

import json

import pytest

from hansa.kube.objects import Object
from hansa.kubelet.pages import Page
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.tenants.lists import OwnPods
from hansa.kubelet.tenants.tenant import Tenant
from hansa.kubelet.usage.readings import LARGEST
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


@pytest.mark.parametrize("page", [Page.RUNNING_PODS, Page.STATS, Page.METRICS])
@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"\xff",
        b'{"items": [{}], "pods": []}',
        b'{"items": 1, "node": {"nodeName": "n1"}, "pods": [{}]}',
        b'{"items": [{"metadata": {"uid": "super-a"}, "spec": 7}], "node": 7}',
        b"[" * 100_000,
        b"# TYPE a counter\na{b=} 1 default-0-b-shop\n",
        b" " * (LARGEST + 1),
    ],
)
def test_an_answer_that_cannot_be_read_is_refused_without_a_word_of_it(own, page, body):
    with pytest.raises(Refusal) as raised:
        own.report(page, body)
    assert (raised.value.status, str(page) in str(raised.value)) == (502, True)
    assert "default-0-b" not in str(raised.value)


def test_a_pod_that_cannot_be_read_is_refused():
    pod = a_copy(OURS).with_fields(spec={"containers": 7})
    with pytest.raises(Refusal, match="cannot be read"):
        OwnPods(OURS, [pod]).pods()


def test_a_status_has_the_fields_that_are_synced_and_the_names_of_the_tenant():
    status = {
        "phase": "Pending",
        "message": "cannot mount default-0-a-shop/data, see https://10.9.9.9:6443/api/v1",
        "nominatedNodeName": "super-node",
        "injected": "by the super cluster",
        "conditions": [{"type": "Ready", "status": "False", "observedGeneration": 3, "message": "default-0-a-shop"}],
    }
    [found] = json.loads(OwnPods(OURS, [a_copy(OURS).with_fields(status=status)]).pods())["items"]
    assert found["status"] == {
        "phase": "Pending",
        "message": "cannot mount shop/data, see https://super-cluster/api/v1",
        "conditions": [{"type": "Ready", "status": "False", "message": "shop"}],
    }


def test_a_volume_has_only_its_use(own):
    volume = {"name": "data", "usedBytes": 5, "injected": "default-0-a-shop"}
    pods = [{"podRef": {"uid": "super-a"}, "volume": [volume]}]
    body = json.dumps({"node": {"nodeName": "n1"}, "pods": pods}).encode()
    assert json.loads(own.report(Page.STATS, body))["pods"] == [
        {"podRef": OWN, "volume": [{"name": "data", "usedBytes": 5}]}
    ]
