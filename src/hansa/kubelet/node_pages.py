"""Answers requests about a whole virtual node: its pods, and their CPU and memory, in upper names."""

import asyncio
from dataclasses import dataclass, field

import msgspec

from hansa.kube.objects import Object
from hansa.kubelet.exchange import Exchange
from hansa.kubelet.pages import Page
from hansa.kubelet.pausing import pausing
from hansa.kubelet.pods import LinkedPods
from hansa.kubelet.usage import resource_metrics, stats, summary
from hansa.kubelet.usage.node_usage import NodeUsage

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class NodePages:
    """The pages of one node."""

    node: str
    pods: LinkedPods
    usage: NodeUsage = field(repr=False)

    async def answer(self, page: Page, exchange: Exchange) -> None:
        """Send a page."""
        match page:
            case Page.HEALTH:
                await exchange.answer(200, b"ok")
            case Page.PODS | Page.RUNNING_PODS:
                await self._list(exchange, only_running=page is Page.RUNNING_PODS)
            case Page.STATS:
                body = await asyncio.to_thread(summary.of, await self.usage.stats())
                await exchange.answer(200, body, content=JSON)
            case Page.METRICS:
                body = await asyncio.to_thread(resource_metrics.of, await self.usage.stats())
                await exchange.answer(200, body, content=resource_metrics.CONTENT_TYPE)

    async def _list(self, exchange: Exchange, *, only_running: bool) -> None:
        """A PodList, pod by pod: a node can have thousands."""
        await exchange.start(content=JSON)
        separator = b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":['
        async for pod in pausing(self.pods.on(self.node)):
            item = None if pod is None else _running(pod) if only_running else pod.to_json()
            if item is not None:
                await exchange.send(separator + item)
                separator = b","
        await exchange.send((separator if separator != b"," else b"") + b"]}")
        await exchange.end()


class _Container(msgspec.Struct):
    name: str
    image: str = ""


class _Spec(msgspec.Struct):
    containers: list[_Container] = []


def _running(pod: Object) -> bytes | None:
    """A pod with its running containers; None if it has none."""
    names = stats.running(pod)
    images = {one.name: one.image for one in pod.decode("spec", _Spec).containers}
    containers = [{"name": name, "image": images.get(name, ""), "resources": {}} for name in names]
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid, "creationTimestamp": None}
    found = {"metadata": metadata, "spec": {"containers": containers}, "status": {}}
    return msgspec.json.encode(found) if containers else None
