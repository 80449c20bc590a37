"""What a tenant writes to hurt Hansa itself: it stays the tenant's own problem."""

import asyncio
import contextlib
import itertools

import pytest

from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.resource import Resource
from tenant_league import pod

pytestmark = pytest.mark.timeout(300)
WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    kind="ValidatingWebhookConfiguration",
    namespaced=False,
)
PODS = 40


@contextlib.asynccontextmanager
async def silent_webhook(tenant, namespace):
    """A webhook for the status of pods in a namespace, which never answers."""
    connections = []
    server = await asyncio.start_server(lambda *streams: connections.append(streams), "127.0.0.1", 0)
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
        for _, writer in connections:
            writer.close()


async def test_a_webhook_that_never_answers_keeps_no_other_tenant_waiting(mallory, alice, namespace):
    async with silent_webhook(mallory, namespace) as connections:
        numbers = itertools.count()

        async def stalled():
            await mallory.make(resources.PODS, f"stalled{next(numbers)}", namespace, **pod())
            return connections

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
