"""Nodes and pods of lower clusters, as tests of capacity need them."""

from hansa.kube.objects import Object


def node(name="n1", *, ready="True", cordoned=False, taints=(), labels=None, conditions=(), **allocatable):
    """A node; `gpu` stands for example.com/gpu."""
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


def container(name="c", *, sidecar=False, **requests):
    """A container that asks for something."""
    policy = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": name, "image": "i", "resources": {"requests": spelled(requests)}, **policy}


def pod(name="p", *, on="n1", phase="Running", labels=None, annotations=None, containers=(), status=None, **spec):
    """A pod; its containers ask for one CPU if nothing else is said."""
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


def spelled(requests):
    return {name.replace("gpu", "example.com/gpu"): value for name, value in requests.items()}
