"""Nodes and pods of lower clusters, for tests of capacity and of virtual nodes."""

from collections.abc import Iterable, Mapping
from typing import Any

from hansa.kube.objects import Object


def node(
    name: str = "n1",
    *,
    ready: str = "True",
    cordoned: bool = False,
    taints: Iterable[Mapping[str, Any]] = (),
    labels: Mapping[str, str] | None = None,
    conditions: Iterable[str] = (),
    **allocatable: str,
) -> Object:
    """A node; the keyword `gpu` is the resource example.com/gpu."""
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"unschedulable": True} if cordoned else {"taints": list(taints)},
            "status": {
                "allocatable": spelled(allocatable or {"cpu": "8", "memory": "16Gi", "pods": "110"}),
                "conditions": [
                    {"type": "Ready", "status": ready},
                    *({"type": one, "status": "True"} for one in conditions),
                ],
            },
        }
    )


def container(name: str = "c", *, sidecar: bool = False, **requests: Any) -> dict[str, Any]:
    """A container with resource requests."""
    policy = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": name, "image": "i", "resources": {"requests": spelled(requests)}, **policy}


def pod(
    name: str = "p",
    *,
    on: str = "n1",
    phase: str = "Running",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    containers: Iterable[Mapping[str, Any]] = (),
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Object:
    """A pod on a node; without containers it gets one that requests one CPU."""
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "default",
                "labels": labels or {},
                "annotations": annotations or {},
            },
            "spec": {
                **({"nodeName": on} if on else {}),
                "containers": list(containers) or [container(cpu="1")],
                **spec,
            },
            "status": {"phase": phase, **(status or {})},
        }
    )


def spelled(requests: Mapping[str, str]) -> dict[str, str]:
    """Resource names as Kubernetes writes them, from names of Python keywords."""
    return {name.replace("gpu", "example.com/gpu"): value for name, value in requests.items()}
