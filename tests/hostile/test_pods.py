"""Fields of a pod by which it would leave its namespace: for its node, the control plane, or other namespaces."""

import pytest

from hansa.kube import resources
from tenant_league import pod

pytestmark = pytest.mark.timeout(180)


async def test_a_pod_that_is_refused_says_why_and_another_tenants_pod_runs(mallory, alice, below, namespace):
    for tenant in (mallory, alice):
        is_bad = tenant is mallory
        await tenant.make(resources.PODS, "web", namespace, **pod(hostNetwork=is_bad))
    event = await mallory.event("Refused", "web", namespace)
    assert "spec.hostNetwork: true is not allowed for tenant mallory" in event["message"]
    await alice.phase("web", namespace)
    assert await below.look(resources.PODS, "web", mallory.below(namespace)) is None
