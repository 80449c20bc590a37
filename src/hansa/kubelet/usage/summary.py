"""The answer of /stats/summary, as far as CPU and memory. Pure."""

import datetime
from typing import Any

import msgspec

from hansa.kubelet.usage.meter import Usage
from hansa.kubelet.usage.stats import NodeStats, PodStats
from hansa.runtime import timestamps

NANO = 10**9


def of(node: NodeStats) -> bytes:
    """The summary as JSON."""
    of_node = {"nodeName": node.name} | ({} if node.usage is None else _fields(node.usage))
    return msgspec.json.encode({"node": of_node, "pods": [_pod(one) for one in node.pods]})


def _pod(pod: PodStats) -> dict[str, Any]:
    containers = [{"name": one.name, "startTime": _text(one.started), **_fields(one.usage)} for one in pod.containers]
    reference = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    return {"podRef": reference, "startTime": _text(pod.started), "containers": containers, **_fields(pod.usage)}


def _fields(usage: Usage) -> dict[str, Any]:
    at = _text(datetime.datetime.fromtimestamp(usage.time, datetime.UTC))
    cpu = {"usageNanoCores": int(usage.cores * NANO), "usageCoreNanoSeconds": int(usage.core_seconds * NANO)}
    return {"cpu": {"time": at, **cpu}, "memory": {"time": at, "workingSetBytes": int(usage.memory)}}


def _text(at: datetime.datetime) -> str:
    return timestamps.time(at.astimezone(datetime.UTC))
