"""What a tenant writes to hurt Hansa itself: it stays the tenant's own problem."""

import asyncio
import base64
import contextlib
import itertools

import pytest

import lying_server
import mutating_hook
from eventually import eventually
from hansa.control import pace
from hansa.engine import contested
from hansa.kube import errors, resources
from hansa.kube.objects import NamespacedName
from hansa.kube.resource import Resource
from hansa.tenancy import api
from tenant_league import WITHIN, pod

pytestmark = pytest.mark.timeout(300)
WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    kind="ValidatingWebhookConfiguration",
    namespaced=False,
)
PODS, REQUESTS = 40, 4


class Connections:
    """Connections that are held open without an answer, until the other side closes them."""

    def __init__(self):
        self.open, self.most = set(), 0

    async def hold(self, reader, writer):
        self.open.add(writer)
        self.most = max(self.most, len(self.open))
        with contextlib.suppress(ConnectionError):
            while await reader.read(4096):
                pass
        self.open.discard(writer)
        writer.close()

    def close(self):
        for one in self.open:
            one.close()


@contextlib.asynccontextmanager
async def silent_webhook(tenant, namespace):
    """A webhook for the status of pods in a namespace, which never answers; yields its open connections."""
    connections = Connections()
    server = await asyncio.start_server(connections.hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/status"], "operations": ["UPDATE"]}
    hook = {
        "name": "silent.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,
    }
    await tenant.make(WEBHOOKS, namespace, webhooks=[hook])
    try:
        yield connections
    finally:
        with contextlib.suppress(errors.NotFound):
            await tenant.client.delete(WEBHOOKS, namespace)
        server.close()
        connections.close()


async def test_a_webhook_that_never_answers_keeps_no_other_tenant_waiting(mallory, alice, namespace):
    async with silent_webhook(mallory, namespace) as connections:
        numbers = itertools.count()

        async def stalled():
            await mallory.make(resources.PODS, f"stalled{next(numbers)}", namespace, **pod())
            return connections.open

        await eventually(stalled, every=0.5)  # the API server needs a moment to learn of the webhook
        for _ in range(PODS):
            await stalled()
        for number in range(5):
            await alice.make(resources.PODS, f"web{number}", namespace, **pod())
            await alice.phase(f"web{number}", namespace)
        page = await mallory.client.list(resources.PODS, namespace=namespace)
        waiting = [one.name for one in page.items if one.status.get("phase") == "Pending"]
        assert len(waiting) >= PODS, "the webhook answered"
    await mallory.phase(waiting[0], namespace)


async def test_requests_that_hang_are_limited_and_the_condition_says_that_others_wait(mallory, below, namespace):
    patch = below.client.patch
    await patch(api.VIRTUAL_CLUSTERS, "mallory", {"spec": {"limits": {"requests": REQUESTS}}}, namespace="default")
    try:
        async with silent_webhook(mallory, namespace) as connections:
            numbers = itertools.count()

            async def stalled():
                await mallory.make(resources.PODS, f"stalled{next(numbers)}", namespace, **pod())
                return connections.open

            await eventually(stalled, every=0.5)
            for _ in range(PODS):
                await stalled()
            await below.there(api.VIRTUAL_CLUSTERS, "mallory", "default", when=are_requests_full)
            # The API server may not have closed those of requests that ended a moment ago.
            assert connections.most <= 2 * REQUESTS
        await mallory.phase(f"stalled{PODS}", namespace)
        await below.there(api.VIRTUAL_CLUSTERS, "mallory", "default", when=lambda vc: not are_requests_full(vc))
    finally:
        await patch(api.VIRTUAL_CLUSTERS, "mallory", {"spec": {"limits": None}}, namespace="default")


def are_requests_full(vc):
    messages = [one["message"] for one in vc["status"]["conditions"] if one["type"] == "WithinLimits"]
    return any(f"requests: {REQUESTS} of {REQUESTS} to the control plane have no answer yet" in one for one in messages)


async def test_objects_that_a_webhook_changes_back_are_written_a_few_times_and_then_wait(mallory, below, namespace):
    def change(obj, number):
        return [{"op": "add", "path": "/status/message", "value": f"turn {number}"}] if obj.get("status") else []

    hook = mutating_hook.mutating(mallory, namespace, "pods/status", namespace=namespace, patch=change)
    async with hook as calls:
        numbers = itertools.count()

        async def mutated():
            await mallory.make(resources.PODS, f"before{next(numbers)}", namespace, **pod())
            return calls[0]

        await eventually(mutated, every=0.5)  # the API server needs a moment to learn of the webhook
        await mallory.make(resources.PODS, "web", namespace, **pod())
        event = await mallory.event("Contested", "web", namespace)
        assert f"written {contested.MOST} times" in event["message"]
        async with mallory.watched(resources.PODS, namespace) as versions:
            began = asyncio.get_running_loop().time()
            await asyncio.wait_for(written(versions, 2 * contested.MOST), WITHIN)
            assert asyncio.get_running_loop().time() - began > contested.PERIOD / 2
    await mallory.there(resources.PODS, "web", namespace, when=lambda found: "message" not in found["status"])


async def written(versions, number):
    """Wait for so many versions of the pod `web`."""

    async def look():
        return len([one for one in versions if one.name == "web"]) > number

    await eventually(look, within=WITHIN)


async def test_an_api_server_that_invents_objects_keeps_no_other_tenant_waiting(alice, below, namespace, tmp_path):
    async with lying_server.lying(tmp_path) as (liar, kubeconfig):
        config = base64.b64encode(kubeconfig.read_bytes()).decode()
        metadata = {"annotations": {"tenancy.x-k8s.io/admin-kubeconfig": config}}
        spec = {"clusterVersionName": "cv-sample-np", "serviceCidr": "10.77.0.0/16"}
        made = await below.make(api.VIRTUAL_CLUSTERS, "liar", "default", metadata=metadata, spec=spec)
        key = api.root_namespace(NamespacedName("default", "liar"), made["metadata"]["uid"])
        status = {"status": {"phase": "Running", "clusterNamespace": key}}
        patch = below.client.patch
        await patch(api.VIRTUAL_CLUSTERS, "liar", status, namespace="default", subresource="status")
        try:
            await below.there(resources.NAMESPACES, f"{key}-default")
            liar.floods.set()
            await eventually(lambda: has_sent(liar, 2 * pace.BURST), within=WITHIN)
            for number in range(3):
                await alice.make(resources.PODS, f"web{number}", namespace, **pod())
                await alice.phase(f"web{number}", namespace)
        finally:
            await below.client.delete(api.VIRTUAL_CLUSTERS, "liar", namespace="default")
        await below.gone(resources.NAMESPACES, f"{key}-default")


async def has_sent(liar, number):
    return liar.sent > number


async def test_names_that_are_as_long_as_they_may_be_and_deep_annotations_are_synced(mallory, alice, below, namespace):
    deep = "[" * 80_000
    words = {"scheduler.tenancy.x-k8s.io/slice": deep, "tenancy.x-k8s.io/ownerReferences": deep, "example.com/it": deep}
    await mallory.make(resources.CONFIG_MAPS, "n" * 253, namespace, metadata={"annotations": {"example.com/it": deep}})
    await mallory.make(resources.SERVICES, "s" * 63, namespace, spec={"ports": [{"port": 80}]})
    await mallory.make(resources.PODS, "p" * 253, namespace, **pod(metadata={"annotations": words}))
    await alice.make(resources.PODS, "web", namespace, **pod())
    await alice.phase("web", namespace)
    await below.there(resources.CONFIG_MAPS, "n" * 253, mallory.below(namespace))
    await mallory.phase("p" * 253, namespace)
