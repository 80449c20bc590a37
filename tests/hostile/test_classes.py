"""Classes of the super cluster: a tenant sees and uses only those that are offered to it."""

import pytest

from hansa.kube import resources
from tenant_league import pod

pytestmark = pytest.mark.timeout(180)
OFFERED_TO = "tenancy.x-k8s.io/offered-to"


async def test_a_runtime_class_runs_pods_of_the_tenants_that_it_is_offered_to(mallory, alice, below, namespace):
    kata = f"kata-{namespace}"
    await below.make(resources.RUNTIME_CLASSES, kata, handler="kata")
    # Its own class of that name is enough for the tenant's admission.
    await mallory.make(resources.RUNTIME_CLASSES, kata, handler="kata")
    await mallory.make(resources.PODS, "web", namespace, **pod(runtimeClassName=kata))
    event = await mallory.event("Refused", "web", namespace)
    assert f"spec.runtimeClassName: RuntimeClass {kata} is not offered to tenant mallory" in event["message"]
    assert await below.look(resources.PODS, "web", mallory.below(namespace)) is None
    # As soon as it is offered, the pod runs, and only that tenant sees the class.
    await mallory.client.delete(resources.RUNTIME_CLASSES, kata)
    offer = {"metadata": {"annotations": {OFFERED_TO: "default/somebody, default/mallory"}}}
    await below.client.patch(resources.RUNTIME_CLASSES, kata, offer)
    await below.there(resources.PODS, "web", mallory.below(namespace))
    shown = await mallory.there(resources.RUNTIME_CLASSES, kata)
    assert OFFERED_TO not in shown["metadata"]["annotations"]
    assert await alice.look(resources.RUNTIME_CLASSES, kata) is None
    await below.client.delete(resources.RUNTIME_CLASSES, kata)
    await mallory.gone(resources.RUNTIME_CLASSES, kata)
