"""What one decision costs: on a status event, on a creation, and when there is nothing to do."""

import time
import timeit
from collections.abc import Callable
from typing import Any

import pytest

from figures import figure
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import decision, pair
from hansa.model.mode import Mode
from hansa.model.pair import Grade, Key, Link, Pair
from hansa.modes import tensile
from hansa.modes.tensile_settings import CredentialSource, LowerSettings, TensileSettings, link
from hansa.nodes.settings import NodeSettings

MICROSECONDS = 1_000_000
NODE = NodeSettings("vn1", "a")
LINKS = {"a": Link("up", "0d9c3d8e-upper", "a", link(NODE, upper_address="10.0.0.1:6443"))}
KEY = Key("up", resources.PODS, "shop", "web-5d4f8c7b9-x2x7k")
MADE = "2026-11-15T11:00:00Z"


def manifest() -> dict[str, Any]:
    """A pod of a Deployment as an API server and its admission leave it."""
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    root_ca = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    name = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    access = {"name": "kube-api-access-abcde", "projected": {"defaultMode": 420}}
    access["projected"] |= {"sources": [token, root_ca, {"downwardAPI": {"items": [name]}}]}
    never = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    container = {
        "name": "main",
        "image": "registry.example/shop/web:1.2.3",
        "env": [{"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "web", "key": "mode"}}}],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "volumeMounts": [
            {"name": "settings", "mountPath": "/settings"},
            {"name": access["name"], "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True},
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f8c7b9", "uid": "8f0e", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": KEY.name,
            "namespace": KEY.namespace,
            "uid": "4b9d6a0e-8c52-4a2b-93d5-cf1a1d3f2f11",
            "resourceVersion": "4711",
            "generation": 1,
            "creationTimestamp": MADE,
            "labels": {"app": "web", "pod-template-hash": "5d4f8c7b9"},
            "annotations": {"clusterSelector": '{"nodeSelector":{"disk":"ssd"}}'},
            "ownerReferences": [owner],
        },
        "spec": {
            "containers": [container],
            "volumes": [{"name": "settings", "configMap": {"name": "web", "defaultMode": 420}}, access],
            "nodeName": "vn1",
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "tolerations": never,
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30,
            "securityContext": {},
            "enableServiceLinks": True,
        },
        "status": {"phase": "Pending", "qosClass": "Burstable", "conditions": [condition("PodScheduled", "True")]},
    }


def condition(kind: str, status: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": MADE, "observedGeneration": 1}


def running(status: str) -> dict[str, Any]:
    """The status of a pod that runs, and is ready or not."""
    kinds = ("Initialized", "PodReadyToStartContainers", "PodScheduled")
    conditions = [condition(kind, "True") for kind in kinds] + [
        condition(k, status) for k in ("Ready", "ContainersReady")
    ]
    container = {
        "name": "main",
        "image": "registry.example/shop/web:1.2.3",
        "imageID": "registry.example/shop/web@sha256:" + "0" * 64,
        "containerID": "containerd://" + "1" * 64,
        "state": {"running": {"startedAt": MADE}},
        "lastState": {},
        "ready": status == "True",
        "started": True,
        "restartCount": 0,
    }
    ips = {"podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "hostIP": "10.0.0.7", "hostIPs": [{"ip": "10.0.0.7"}]}
    return {"phase": "Running", "startTime": MADE, "conditions": conditions, "containerStatuses": [container]} | ips


def a_pair(mode: Mode, *, above: str, below: str, is_in_sync: bool) -> Pair:
    """A pod that runs, with one readiness above and one below."""
    upper = Object.of(manifest())
    lower = mode.desired(upper, KEY, LINKS["a"]).with_metadata(uid="77aa", resource_version="9")
    lower = lower.with_fields(status=running(below))
    upper = upper.with_fields(status=running(above) | {"qosClass": "Burstable"})
    upper = upper.with_metadata(annotations={**upper.annotations, "hansa.dev/lower-uid": "77aa"})
    places = {"a": Grade.CHOSEN}
    return Pair(KEY, upper, LINKS, {"a": lower}, places, in_sync=frozenset("a") if is_in_sync else frozenset())


def cost(work: Callable[[], object]) -> float:
    """Microseconds of CPU, in the calmest of many moments."""
    timer = timeit.Timer(work, timer=time.process_time)
    return min(timer.repeat(repeat=20, number=200)) / 200 * MICROSECONDS


@pytest.fixture
def mode() -> Mode:
    return tensile.mode(TensileSettings(CredentialSource(), (LowerSettings(CredentialSource(), NODE, link(NODE)),)))


def test_what_a_decision_costs(mode: Mode) -> None:
    new = Pair(KEY, Object.of(manifest()), LINKS, {"a": None}, {"a": Grade.CHOSEN})
    changed = a_pair(mode, above="False", below="True", is_in_sync=True)
    same = a_pair(mode, above="True", below="True", is_in_sync=True)
    not_in_sync = a_pair(mode, above="True", below="True", is_in_sync=False)
    assert isinstance(changed.upper, Object)
    upper = changed.upper
    measured = {
        "creation": (cost(lambda: decision.decide(new, mode)), 250),
        "status event": (cost(lambda: decision.decide(changed, mode)), 60),
        "nothing new": (cost(lambda: decision.decide(same, mode)), 60),
        "nothing new, not in sync": (cost(lambda: decision.decide(not_in_sync, mode)), 350),
        "the content of an object": (cost(lambda: pair.content(upper)), 10),
    }
    assert len(decision.decide(new, mode).writes) == 1
    assert len(decision.decide(changed, mode).writes) == 1
    assert decision.decide(not_in_sync, mode).actions == decision.decide(same, mode).actions == ()
    print()
    for name, (microseconds, most) in measured.items():
        figure(f"{name}, µs", microseconds, most=most)
