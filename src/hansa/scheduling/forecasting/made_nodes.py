"""Nodes of forecasts, as objects: one that is added, and one of a view with other free resources."""

from collections.abc import Mapping

from hansa.kube.objects import Object
from hansa.model import capacity, requests
from hansa.scheduling.node import Node

HOSTNAME = "kubernetes.io/hostname"
READY = {"type": "Ready", "status": "True"}


def added(name: str, amounts: Mapping[str, int]) -> Object:
    """A Ready node with these resources, and no labels but those that every node has."""
    labels = {HOSTNAME: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return _object(name, labels, {}, amounts)


def named(node: Node, name: str, *, more: Mapping[str, int]) -> Object:
    """A node of a view under another name; `more` is added to what is free on it."""
    allocatable = dict(node.free)
    requests.add(allocatable, more)
    taints = [{"key": one.key, "value": one.value, "effect": one.effect} for one in node.shape.taints]
    return _object(name, node.labels(), {"taints": taints, "unschedulable": node.shape.is_cordoned}, allocatable)


def cordoned(node: Object) -> Object:
    """The node, cordoned."""
    return node.with_fields(spec={**node.spec, "unschedulable": True})


def _object(name: str, labels: Mapping[str, str], spec: Mapping[str, object], amounts: Mapping[str, int]) -> Object:
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": dict(labels)},
            "spec": dict(spec),
            "status": {"allocatable": capacity.resource_list(amounts), "conditions": [READY]},
        }
    )
