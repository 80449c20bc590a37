"""Tenants have shares by weight when many objects of many tenants wait."""

import asyncio

import pytest

from eventually import eventually
from hansa.kube import resources

WEIGHT = "tenancy.x-k8s.io/weight"
MANY = 400  # objects of each tenant: enough that what begins and ends does not count
SHARES = {"blue": 1, "green": 4}


@pytest.fixture
async def weighed(tenants):
    """The tenants have weights, and the syncer knows."""
    await tenants.kill()
    for name, share in SHARES.items():
        await tenants.super.kubectl("annotate", "vc", name, f"{WEIGHT}={share}", "--overwrite")
    await tenants.start()
    yield tenants
    await tenants.super.kubectl("annotate", "vc", *SHARES, f"{WEIGHT}-")


@pytest.mark.timeout(400)
async def test_a_tenant_of_weight_4_is_carried_about_4_times_as_fast_as_one_of_weight_1(
    weighed, blue, green, namespace
):
    light, heavy = blue.below(namespace), green.below(namespace)
    for tenant in (blue, green):  # both are synced from here on
        await tenant.make(resources.CONFIG_MAPS, "first", namespace)
        await weighed.super.there(resources.CONFIG_MAPS, "first", tenant.below(namespace))
    with weighed.super.frozen():  # so that all of both wait when it goes on
        await asyncio.gather(*(make_many(tenant, namespace) for tenant in (blue, green)))
    order = await eventually(lambda: carried(weighed.super, (light, heavy)), within=180)
    # Beside all of the heavy one, a quarter as many of the light one were made; it would be all with the same weight.
    last = max(index for index, where in enumerate(order) if where == heavy)
    others = order[:last].count(light)
    assert MANY / 10 < others < MANY / 2, f"{others} of weight 1 were made while {MANY} of weight 4 were"


async def make_many(tenant, namespace):
    for number in range(MANY):
        await tenant.make(resources.CONFIG_MAPS, f"c-{number}", namespace, data={"number": str(number)})


async def carried(below, namespaces):
    """The namespaces of all copies, in the order in which they were created; they are never changed afterwards."""
    found = [
        one
        for namespace in namespaces
        async for page in below.client.pages(resources.CONFIG_MAPS, namespace=namespace)
        for one in page.items
        if one.name.startswith("c-")
    ]
    assert len(found) == MANY * len(namespaces), f"{len(found)} are there"
    return [one.namespace for one in sorted(found, key=lambda one: int(one.version))]
