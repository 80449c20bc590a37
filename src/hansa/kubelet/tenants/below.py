"""Where the vn-agent finds pods of tenants: at the super cluster's API server, or at the kubelet of its own node."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from hansa.kube import decoding, errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.kubelet import forwarding
from hansa.kubelet.answers import Answers
from hansa.kubelet.pages import Page
from hansa.kubelet.pods import LowerPod
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.routes import Call
from hansa.kubelet.tenants.tenant import Tenant, missing
from hansa.kubelet.usage.readings import LARGEST
from hansa.model import keys, tenant_names
from hansa.runtime import clock

_PATHS = {
    Page.PODS: "/pods",
    Page.RUNNING_PODS: "/runningpods/",
    Page.STATS: "/stats/summary",
    Page.METRICS: "/metrics/resource",
}
LARGEST_PODS = 4 * LARGEST  # bytes of a kubelet's list of pods
SUPER = "super"  # the name of the super cluster in messages


class Below(Protocol):
    """The super cluster, as far as the vn-agent sees it."""

    async def find(self, tenant: Tenant, call: Call) -> LowerPod:
        """The super pod of a call; raises a Refusal."""

    async def pods(self, tenant: Tenant) -> list[Object]:
        """The super pods of a tenant."""

    async def report(self, page: Page) -> bytes:
        """What the node's kubelet reports of all its pods; raises a Refusal if no kubelet is used."""


@dataclass(frozen=True, slots=True)
class ApiServer:
    """The API server of the super cluster, for all its nodes, or for the pods of one node."""

    client: Client
    node: str = ""

    async def find(self, tenant: Tenant, call: Call) -> LowerPod:
        name = tenant.super_name(call)
        try:
            pod = await self.client.get(resources.PODS, name.name, namespace=name.namespace)
        except errors.NotFound:
            raise missing(call) from None
        except errors.ApiError as error:
            raise forwarding.refusal(error, SUPER, error.said) from None
        if not tenant.has(pod, call) or self.node not in ("", pod.spec.get("nodeName")):
            raise missing(call)
        return LowerPod(SUPER, self.client, name)

    async def pods(self, tenant: Tenant) -> list[Object]:
        labels = f"{keys.VC_NAME}={tenant_names.shortened(tenant.name)},{keys.VC_NAMESPACE}={tenant.namespace}"
        fields, found = f"spec.nodeName={self.node}" if self.node else "", list[Object]()
        try:
            async for page in self.client.pages(resources.PODS, labels=labels, fields=fields):
                found += page.items
        except errors.ApiError as error:
            raise forwarding.refusal(error, SUPER, error.said) from None
        return _own(found, tenant)

    async def report(self, page: Page) -> bytes:
        raise Refusal(501, f"{page} are served by vn-agents that call the kubelet of their node")


@dataclass(frozen=True, slots=True)
class KubeletPod(LowerPod):
    """A pod at a kubelet, whose paths differ from those of an API server."""

    def target(self, call: Call) -> str:
        return call.kubelet_target(self.name.namespace, self.name.name)


class Kubelet:
    """The kubelet of the vn-agent's own node. It knows all its pods, so no right in the super cluster is needed.

    What it reports is kept for a few seconds: all tenants together ask it no more often.
    """

    def __init__(self, client: Client, *, clock: clock.Clock) -> None:
        self._client = client
        self._reports: Answers[Page, bytes] = Answers(clock)
        self._pods: Answers[Page, list[Object]] = Answers(clock)

    async def find(self, tenant: Tenant, call: Call) -> LowerPod:
        """A pod that is not in the list that is kept may be new."""
        for read in (self.pods, self._new_pods):
            for pod in await read(tenant):
                if tenant.has(pod, call):
                    return KubeletPod(SUPER, self._client, NamespacedName(pod.namespace, pod.name))
        raise missing(call)

    async def pods(self, tenant: Tenant) -> list[Object]:
        return _own(await self._pods.get(Page.PODS, self._listed), tenant)

    async def _new_pods(self, tenant: Tenant) -> list[Object]:
        return _own(await self._listed(), tenant)

    async def report(self, page: Page) -> bytes:
        return await self._reports.get(page, lambda: self._read(page))

    async def _listed(self) -> list[Object]:
        body = await self._read(Page.PODS)
        if len(body) > LARGEST_PODS:
            raise Refusal(502, f"the kubelet's list of pods has more than {LARGEST_PODS >> 20} MiB")
        try:
            return list((await asyncio.to_thread(decoding.parse_page, body)).items)
        except msgspec.DecodeError as error:
            raise Refusal(502, f"the kubelet's list of pods cannot be read: {error}") from None

    async def _read(self, page: Page) -> bytes:
        doing = f"read {page} of the kubelet"
        try:
            return (await self._client.request("GET", _PATHS[page], doing=doing, accept="*/*")).body
        except errors.ApiError as error:
            raise forwarding.refusal(error, SUPER, error.said) from None


def _own(pods: Iterable[Object], tenant: Tenant) -> list[Object]:
    return [pod for pod in pods if tenant.origin(pod) is not None]
