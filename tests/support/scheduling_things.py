"""Views, nodes and pods for tests of scheduling."""

from typing import Any

from hansa.kube.objects import Object
from hansa.scheduling import evaluation, pod_request
from hansa.scheduling.cluster_view import ClusterView

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ALLOCATABLE = {"cpu": "4", "memory": "8Gi", "pods": "10"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def a_node(name: str, *, ready: bool = True, labels: Any = None, taints: Any = (), **spec_or_amounts: Any) -> Object:
    """A node with its name as a label; by default with four CPUs, in no zone."""
    is_cordoned = spec_or_amounts.pop("cordoned", False)
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {HOST: name, **(labels or {})}},
            "spec": {"taints": [{"effect": "NoSchedule", **taint} for taint in taints], "unschedulable": is_cordoned},
            "status": {
                "allocatable": ALLOCATABLE | spec_or_amounts,
                "conditions": [{"type": "Ready", "status": str(ready)}],
            },
        }
    )


def a_pod(
    name: str = "new",
    *,
    on: str = "",
    cpu: str = "1",
    labels: Any = None,
    namespace: str = "shop",
    phase: str = "Pending",
    **spec: Any,
) -> Object:
    """A pod; by default it requests one CPU."""
    resources = {"requests": spec.pop("requests", {"cpu": cpu})}
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
            "spec": {"nodeName": on, "containers": [{"name": "c", "image": "i", "resources": resources}], **spec},
            "status": {"phase": phase},
        }
    )


def a_view(*things: Object, cluster: str = "r1") -> ClusterView:
    """The view of a cluster with these objects."""
    view = ClusterView(cluster)
    for thing in things:
        view = view.with_node(thing) if thing.kind == "Node" else view.with_pod(thing)
    return view


def answer(pod: Object, *views: ClusterView) -> str:
    """The verdict as a sentence; where it fits: cluster and node."""
    verdict = evaluation.verdict(pod_request.of_pod(pod), views)
    return f"{verdict.best.cluster}/{verdict.best.node}" if verdict.best else str(verdict)


def term(topology: str, **labels: str) -> dict[str, Any]:
    """One term of pod affinity or anti-affinity."""
    return {"topologyKey": topology, "labelSelector": {"matchLabels": labels}}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}
