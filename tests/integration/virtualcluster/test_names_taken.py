"""Foreign objects in a tenant's super namespace: pods of the tenant never use them by name."""

import asyncio

import pytest

from hansa.kube import errors, resources
from tenant_league import pod

MAPS, SECRETS, ACCOUNTS = resources.CONFIG_MAPS, resources.SECRETS, resources.SERVICE_ACCOUNTS
CLAIMS, PODS = resources.PERSISTENT_VOLUME_CLAIMS, resources.PODS
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
FOREIGN = {SECRETS: {"stringData": {"a": "b"}}, MAPS: {"data": {"a": "b"}}, CLAIMS: {"spec": CLAIM}}
NAMED = {
    SECRETS: {"secret": {"secretName": "x"}},
    MAPS: {"configMap": {"name": "x"}},
    CLAIMS: {"persistentVolumeClaim": {"claimName": "x"}},
}


@pytest.fixture
async def below(tenants, blue, namespace):
    """The super namespace of a tenant, with strangers' objects in it."""
    name = blue.below(namespace)
    await tenants.super.there(resources.NAMESPACES, name)
    for resource, fields in FOREIGN.items():
        await tenants.super.make(resource, "x", name, **fields)
    return name


async def is_not_made(tenants, name, below):
    """It is not, although one that came later is."""
    await tenants.super.there(PODS, "last", below)
    assert await tenants.super.look(PODS, name, below) is None


async def test_a_pod_waits_for_objects_that_its_tenant_does_not_have_and_gets_an_event(tenants, blue, namespace, below):
    for resource, source in NAMED.items():
        await blue.make(PODS, resource.plural, namespace, **pod(volumes=[{"name": "v", **source}]))
    reported = await asyncio.gather(*(blue.event("Refused", resource.plural, namespace) for resource in NAMED))
    for event, resource in zip(reported, NAMED, strict=True):
        assert f"{resource.kind} {namespace}/x" in event["message"]
    await blue.make(PODS, "last", namespace, **pod())
    for resource in NAMED:
        await is_not_made(tenants, resource.plural, below)


async def test_a_pod_waits_while_a_foreign_object_has_the_name_and_then_uses_its_own(tenants, blue, namespace, below):
    for resource, source in NAMED.items():
        await blue.make(resource, "x", namespace, **FOREIGN[resource])
        await blue.make(PODS, resource.plural, namespace, **pod(volumes=[{"name": "v", **source}]))
    for resource in NAMED:
        await blue.event("NameTaken", resource.plural, namespace)
    await blue.make(PODS, "last", namespace, **pod())
    for resource in NAMED:
        await is_not_made(tenants, resource.plural, below)
        await tenants.super.client.delete(resource, "x", namespace=below)
    for resource in NAMED:
        await tenants.super.there(PODS, resource.plural, below)
        copy = await tenants.super.look(resource, "x", below)
        assert copy["metadata"]["annotations"]["tenancy.x-k8s.io/namespace"] == namespace


async def test_a_pod_never_runs_as_a_foreign_service_account(tenants, blue, namespace, below):
    await tenants.super.make(ACCOUNTS, "robot", below)
    await blue.make(ACCOUNTS, "robot", namespace)
    await blue.make(PODS, "p", namespace, **pod(serviceAccountName="robot"))
    await blue.event("NameTaken", "p", namespace)
    await blue.make(PODS, "last", namespace, **pod())
    await is_not_made(tenants, "p", below)
    await tenants.super.client.delete(ACCOUNTS, "robot", namespace=below)
    await blue.phase("p", namespace)


async def test_an_optional_reference_never_leads_to_a_foreign_object(tenants, blue, namespace, below):
    sources = [{"secret": {"secretName": "x", "optional": True}}, {"configMap": {"name": "x", "optional": True}}]
    await blue.make(PODS, "p", namespace, **pod(volumes=[{"name": f"v{i}", **one} for i, one in enumerate(sources)]))
    await blue.event("NameTaken", "p", namespace)
    await blue.make(PODS, "last", namespace, **pod())
    await is_not_made(tenants, "p", below)
    for resource in (SECRETS, MAPS):
        await tenants.super.client.delete(resource, "x", namespace=below)
    await blue.phase("p", namespace)
    for resource in (SECRETS, MAPS):
        assert "data" not in await tenants.super.there(resource, "x", below), "nothing stands for what is not there"
    # An object that is created later is found as in any cluster, and a copy without references is deleted.
    await blue.make(MAPS, "x", namespace, data={"a": "c"})
    await tenants.super.there(MAPS, "x", below, when=lambda found: found.get("data") == {"a": "c"})
    await blue.client.delete(PODS, "p", namespace=namespace, grace=0)
    await tenants.super.gone(SECRETS, "x", below)
    assert await tenants.super.look(MAPS, "x", below) is not None


async def test_a_name_stays_the_tenants_while_a_pod_reads_the_deleted_object(tenants, blue, namespace):
    below = blue.below(namespace)
    await blue.make(SECRETS, "x", namespace, stringData={"a": "b"})
    await blue.make(PODS, "p", namespace, **pod(volumes=[{"name": "v", **NAMED[SECRETS]}]))
    await blue.phase("p", namespace)
    await blue.client.delete(SECRETS, "x", namespace=namespace)
    await blue.make(MAPS, "last", namespace)
    await tenants.super.there(MAPS, "last", below)
    with pytest.raises(errors.AlreadyExists):
        await tenants.super.make(SECRETS, "x", below)
    await blue.client.delete(PODS, "p", namespace=namespace, grace=0)
    await tenants.super.gone(SECRETS, "x", below)


async def test_an_ephemeral_container_reaches_no_foreign_object_either(tenants, blue, namespace, below):
    await blue.make(PODS, "p", namespace, **pod())
    await blue.phase("p", namespace)
    debugger = {"name": "look", "image": "example.com/app:1", "envFrom": [{"secretRef": {"name": "x"}}]}
    patch = {"spec": {"ephemeralContainers": [debugger]}}
    await blue.client.patch(PODS, "p", patch, namespace=namespace, subresource="ephemeralcontainers")
    assert (
        f"Secret {namespace}/x: not found in the super cluster"
        in (await blue.event("Refused", "p", namespace))["message"]
    )
    copy = await tenants.super.look(PODS, "p", below)
    assert not copy["spec"].get("ephemeralContainers")
