"""Volumes of the super cluster: a tenant gets those that are meant for it, and sees no others."""

import pytest

from hansa.kube import resources
from tenant_league import pod

pytestmark = pytest.mark.timeout(180)
CLAIMS, VOLUMES = resources.PERSISTENT_VOLUME_CLAIMS, resources.PERSISTENT_VOLUMES
SIZE = {"accessModes": ["ReadWriteOnce"]}


def claim(**spec):
    return {"spec": {**SIZE, "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "", **spec}}


def volume(path, **spec):
    disk = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": path}, "storageClassName": ""}
    return {"spec": {**SIZE, **disk, **spec}}


async def is_in_phase(side, resource, name, phase, namespace=""):
    return await side.there(resource, name, namespace, when=lambda found: found["status"].get("phase") == phase)


async def test_a_claim_gets_no_volume_of_the_administrator_or_of_another_tenant(mallory, alice, below, namespace):
    secret, own = f"etc-{namespace}", f"own-{namespace}"
    await below.make(VOLUMES, secret, **volume("/etc"))
    await is_in_phase(below, VOLUMES, secret, "Available")
    await mallory.make(CLAIMS, "named", namespace, **claim(volumeName=secret))
    await mallory.make(CLAIMS, "any", namespace, **claim())
    await below.there(CLAIMS, "any", mallory.below(namespace))
    # An administrator reserves a volume for the claim of another tenant.
    await alice.make(CLAIMS, "data", namespace, **claim())
    reserved = {"claimRef": {"namespace": alice.below(namespace), "name": "data"}}
    await below.make(VOLUMES, own, **volume("/data", **reserved))
    await is_in_phase(alice, CLAIMS, "data", "Bound", namespace)
    assert await alice.there(VOLUMES, own)
    await mallory.make(CLAIMS, "others", namespace, **claim(volumeName=own))
    for name, wanted in (("named", secret), ("others", own)):
        event = await mallory.event("Refused", name, namespace)
        assert f"spec.volumeName: {wanted} is not a PersistentVolume for this claim" in event["message"]
        assert await below.look(CLAIMS, name, mallory.below(namespace)) is None
        assert await mallory.look(VOLUMES, wanted) is None
    await is_in_phase(below, CLAIMS, "any", "Pending", mallory.below(namespace))
    await is_in_phase(below, VOLUMES, secret, "Available")
    # With the tenant's key as label, it is for all claims of that tenant.
    label = {"metadata": {"labels": {"tenancy.x-k8s.io/cluster": mallory.key}}}
    await below.client.patch(VOLUMES, secret, label)
    await is_in_phase(mallory, CLAIMS, "any", "Bound", namespace)
    for name in (secret, own):
        await below.client.delete(VOLUMES, name)


async def test_a_claim_gets_only_classes_that_are_offered_and_pods_that_wait_for_it_say_why(mallory, below, namespace):
    gold = f"gold-{namespace}"
    await below.make(resources.STORAGE_CLASSES, gold, provisioner="example.com/gold")
    await mallory.make(CLAIMS, "data", namespace, **claim(storageClassName=gold))
    ephemeral = {"volumeClaimTemplate": claim(storageClassName=gold)}
    await mallory.make(resources.PODS, "own", namespace, **pod(volumes=[{"name": "v", "ephemeral": ephemeral}]))
    mounted = {"persistentVolumeClaim": {"claimName": "data"}}
    await mallory.make(resources.PODS, "web", namespace, **pod(volumes=[{"name": "v", **mounted}]))
    refusal = f"storageClassName: StorageClass {gold} is not offered to tenant mallory"
    assert f"spec.{refusal}" in (await mallory.event("Refused", "data", namespace))["message"]
    event = await mallory.event("Refused", "own", namespace)
    assert f"spec.volumes[v].ephemeral.volumeClaimTemplate.spec.{refusal}" in event["message"]

    def says_why(found):
        return [one for one in found["status"].get("conditions", ()) if refusal in one.get("message", "")]

    await mallory.there(resources.PODS, "web", namespace, when=says_why)
    assert not (await below.client.list(CLAIMS, namespace=mallory.below(namespace))).items
    offer = {"metadata": {"annotations": {"tenancy.x-k8s.io/offered-to": "default/mallory"}}}
    await below.client.patch(resources.STORAGE_CLASSES, gold, offer)
    await below.there(CLAIMS, "data", mallory.below(namespace))
    await mallory.there(resources.STORAGE_CLASSES, gold)
    await below.client.delete(resources.STORAGE_CLASSES, gold)
