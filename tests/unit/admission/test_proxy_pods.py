"""An elected pod becomes a proxy pod, by the same rules however often the webhook is called."""

import json
from typing import Any

import pytest

from hansa.admission import json_patch, mutation, proxy_pods
from hansa.admission.mutation import Operation, Refused, Request
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.translation.federation import source_pod
from hansa.modes import admiralty_admission
from hansa.modes.admiralty_settings import AdmiraltySettings

DEFAULTS = [
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
]
SPEC: dict[str, Any] = {
    "containers": [{"name": "nginx", "image": "nginx"}],
    "nodeSelector": {"topology.kubernetes.io/region": "eu"},
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "tolerations": [{"key": "gpu", "operator": "Exists"}, *DEFAULTS],
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
}


def elected(spec: dict[str, Any] | None = None, **annotations: str) -> dict[str, Any]:
    metadata = {"generateName": "nginx-", "labels": {"app": "nginx"}, "annotations": {keys.ELECT: ""} | annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": SPEC | (spec or {})}


def constraints_of(pod: dict[str, Any]) -> dict[str, Any]:
    return {name: pod["spec"].get(name) for name in source_pod.CONSTRAINTS}


def test_the_proxy_pod_has_the_constraints_of_virtual_nodes() -> None:
    proxy = proxy_pods.proxy(elected())
    assert proxy["spec"]["schedulerName"] == "admiralty-proxy"
    assert proxy["spec"]["terminationGracePeriodSeconds"] == 0
    assert constraints_of(proxy) == {
        "nodeSelector": {"virtual-kubelet.io/provider": "admiralty"},
        "affinity": None,
        "topologySpreadConstraints": None,
        "tolerations": [*proxy_pods.TOLERATIONS, *DEFAULTS],
    }
    assert proxy["metadata"]["labels"] == {"app": "nginx", keys.HAS_FINALIZER: "true"}
    assert proxy["metadata"]["finalizers"] == [keys.POD_FINALIZER]
    assert proxy["spec"]["containers"] == SPEC["containers"]


def test_the_pod_as_its_user_created_it_is_kept() -> None:
    pod = elected()
    kept = json.loads(proxy_pods.proxy(pod)["metadata"]["annotations"][keys.SOURCE_POD])
    assert kept["spec"] == pod["spec"]
    assert kept["metadata"]["annotations"] == {keys.ELECT: ""}
    assert source_pod.of(Object.of(proxy_pods.proxy(pod))).spec == pod["spec"]


def test_what_the_api_server_writes_is_not_kept() -> None:
    pod = elected()
    pod["metadata"] |= {"managedFields": [{"manager": "kubectl"}], "labels": {"app": "web"}}
    proxy = proxy_pods.proxy(pod | {"status": {}})
    kept = json.loads(proxy["metadata"]["annotations"][keys.SOURCE_POD])
    assert kept["metadata"]["labels"] == {"app": "web"}
    assert {"managedFields", "finalizers"}.isdisjoint(kept["metadata"])
    assert "status" not in kept
    assert proxy["metadata"]["managedFields"] == [{"manager": "kubectl"}]


def test_a_second_call_changes_nothing() -> None:
    given = {keys.PROXY_CONSTRAINTS: "nodeSelector: {a: b}"}
    for pod in (elected(), elected(**{keys.USE_CONSTRAINTS: ""}), elected(**given)):
        once = proxy_pods.proxy(pod)
        assert proxy_pods.proxy(once) == once
        assert list(json_patch.between(once, proxy_pods.proxy(once))) == []


def test_what_a_later_webhook_adds_is_part_of_the_pod() -> None:
    once = proxy_pods.proxy(elected())
    injected = {"name": "sidecar", "image": "sidecar"}
    later = once | {"spec": once["spec"] | {"containers": [*SPEC["containers"], injected]}}
    again = proxy_pods.proxy(later)
    kept = json.loads(again["metadata"]["annotations"][keys.SOURCE_POD])
    assert kept["spec"] == SPEC | {"containers": [*SPEC["containers"], injected]}


def test_a_manifest_that_a_user_wrote_is_not_believed() -> None:
    forged = {"spec": {"containers": [{"name": "evil", "securityContext": {"privileged": True}}]}}
    pod = elected(**{keys.SOURCE_POD: json.dumps(forged), keys.CANDIDATE: "some-node"})
    proxy = proxy_pods.proxy(pod)
    assert json.loads(proxy["metadata"]["annotations"][keys.SOURCE_POD])["spec"] == SPEC
    assert keys.CANDIDATE not in proxy["metadata"]["annotations"]
    as_proxy = pod | {"spec": pod["spec"] | {"schedulerName": keys.PROXY_SCHEDULER}}
    delegate = source_pod.of(Object.of(proxy_pods.proxy(as_proxy)))
    assert delegate.spec["containers"] == SPEC["containers"]


def test_the_constraints_of_the_proxy_pod_can_be_given() -> None:
    text = "nodeSelector: {region: eu}\ntolerations: [{key: slow, operator: Exists}]\naffinity: {nodeAffinity: {}}\n"
    proxy = proxy_pods.proxy(elected(**{keys.PROXY_CONSTRAINTS: text}))
    assert proxy["spec"]["nodeSelector"] == {"virtual-kubelet.io/provider": "admiralty", "region": "eu"}
    assert {"key": "slow", "operator": "Exists"} in proxy["spec"]["tolerations"]
    assert proxy["spec"]["affinity"] == {"nodeAffinity": {}}


def test_the_constraints_of_the_pod_can_be_those_of_the_proxy_pod() -> None:
    proxy = proxy_pods.proxy(elected(**{keys.USE_CONSTRAINTS: ""}))
    assert proxy["spec"]["nodeSelector"] == SPEC["nodeSelector"] | {"virtual-kubelet.io/provider": "admiralty"}
    assert proxy["spec"]["affinity"] == SPEC["affinity"]
    assert proxy["spec"]["topologySpreadConstraints"] == SPEC["topologySpreadConstraints"]
    assert {"key": "gpu", "operator": "Exists"} in proxy["spec"]["tolerations"]


BOMB = "nodeSelector: {a: &x [1], b: *x}"


@pytest.mark.parametrize("text", ["[", "containers: []", "nodeSelector: [a]", "nodeSelector: {a: 1}", BOMB, "[" * 9999])
def test_constraints_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(Refused, match=r"metadata\.annotations\[multicluster\.admiralty\.io/proxy-pod-scheduling"):
        proxy_pods.proxy(elected(**{keys.PROXY_CONSTRAINTS: text}))


def test_a_pod_that_is_bound_already_is_refused() -> None:
    with pytest.raises(Refused, match=r"spec\.nodeName"):
        proxy_pods.proxy(elected({"nodeName": "worker-1"}))


def test_an_invalid_expression_is_refused() -> None:
    with pytest.raises(Refused, match="no-prefix-label-regexp"):
        proxy_pods.proxy(elected(**{keys.NO_PREFIX: "(a+)+"}))


def test_only_elected_pods_are_mutated() -> None:
    mutations = admiralty_admission.mutations(AdmiraltySettings())
    plain = {"metadata": {"name": "web"}, "spec": SPEC}
    assert mutation.mutated(Request(resources.PODS, Operation.CREATE, "shop", plain), mutations, {}) is plain
    changed = mutation.mutated(Request(resources.PODS, Operation.CREATE, "shop", elected()), mutations, {})
    assert changed == proxy_pods.proxy(elected())


def test_the_api_server_sends_elected_pods_of_labelled_namespaces_only() -> None:
    mutations = admiralty_admission.mutations(AdmiraltySettings())
    selectors = mutation.selectors(mutations[:1])
    assert selectors["namespaceSelector"] == {
        "matchExpressions": [{"key": "multicluster-scheduler", "operator": "In", "values": ["enabled"]}]
    }
    [condition] = selectors["matchConditions"]
    assert keys.ELECT in condition["expression"]
    assert mutation.rules(mutations)[0]["operations"] == ["CREATE"]
