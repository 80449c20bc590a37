"""Where the vn-agent finds pods of tenants: at the super cluster's API server, or at the kubelet of its own node."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from hansa.kube import decoding, errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.kubelet import forwarding
from hansa.kubelet.pages import Page
from hansa.kubelet.pods import LowerPod
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.routes import Call
from hansa.kubelet.tenants.tenant import Tenant, missing
from hansa.model import keys, tenant_names

_PATHS = {
    Page.PODS: "/pods",
    Page.RUNNING_PODS: "/runningpods/",
    Page.STATS: "/stats/summary",
    Page.METRICS: "/metrics/resource",
}
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


@dataclass(frozen=True, slots=True)
class Kubelet:
    """The kubelet of the vn-agent's own node. It knows all its pods, so no right in the super cluster is needed."""

    client: Client

    async def find(self, tenant: Tenant, call: Call) -> LowerPod:
        for pod in await self.pods(tenant):
            if tenant.has(pod, call):
                return KubeletPod(SUPER, self.client, NamespacedName(pod.namespace, pod.name))
        raise missing(call)

    async def pods(self, tenant: Tenant) -> list[Object]:
        try:
            return _own(decoding.parse_page(await self.report(Page.PODS)).items, tenant)
        except msgspec.DecodeError as error:
            raise Refusal(502, f"the kubelet's list of pods cannot be read: {error}") from None

    async def report(self, page: Page) -> bytes:
        try:
            return (
                await self.client.request("GET", _PATHS[page], doing=f"read {page} of the kubelet", accept="*/*")
            ).body
        except errors.ApiError as error:
            raise forwarding.refusal(error, SUPER, error.said) from None


def _own(pods: Iterable[Object], tenant: Tenant) -> list[Object]:
    return [pod for pod in pods if tenant.origin(pod) is not None]
