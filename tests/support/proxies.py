"""Proxy pods, virtual nodes and views of targets for tests of the federation."""

import json
from dataclasses import replace
from typing import Any

from hansa.federation.target_views import TargetView
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.translation.federation.target_link import TargetLink
from scheduling_things import a_node, a_pod, a_view

TOLERATION = {"key": keys.PROVIDER_TAINT, "value": "admiralty"}
SELECTOR = {keys.PROVIDER_TAINT: "admiralty"}


def a_proxy(name: str = "web", *, uid: str = "", annotations: Any = None, conditions: Any = (), **spec: Any) -> Object:
    """A proxy pod as the webhook makes it; `spec` is that of the user's pod, which requests one CPU by default."""
    proxy_spec = spec.pop("proxy", {})
    source = a_pod(name, **spec)
    proxy = {
        **source.to_dict(),
        "spec": {"containers": source.spec["containers"], "nodeSelector": SELECTOR, **proxy_spec},
    }
    proxy["spec"] |= {"schedulerName": keys.PROXY_SCHEDULER, "tolerations": [TOLERATION]}
    proxy["metadata"] |= {
        "uid": uid or f"uid-{name}",
        "annotations": {keys.SOURCE_POD: json.dumps(source.to_dict())} | (annotations or {}),
    }
    proxy["status"] = {"phase": "Pending", "conditions": list(conditions)}
    return Object.of(proxy)


def unscheduled(message: str) -> dict[str, str]:
    """The condition of a proxy pod whose delegate was refused."""
    return {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}


def a_virtual_node(name: str, **changes: Any) -> Object:
    """The virtual node of a target."""
    labels = {keys.VIRTUAL_NODE: "true", **SELECTOR, **changes.pop("labels", {})}
    return a_node(name, labels=labels, taints=[TOLERATION], **changes)


def a_target(name: str, *nodes: Object, problem: str = "", namespace: str = "", version: str = "1") -> TargetView:
    """The view of a target with these nodes; by default one with four CPUs."""
    link = TargetLink(name, name, namespace=namespace)
    view = a_view(*(nodes or (a_node(f"{name}-0"),)), cluster=name)
    return TargetView(link, replace(view, closed=problem), problem=problem, version=version)
