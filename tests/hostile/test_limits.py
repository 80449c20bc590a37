"""A tenant that fills the super cluster: what is left waits within its limits, and others feel nothing."""

import contextlib
import itertools
from pathlib import Path

import pytest

from eventually import eventually
from hansa.kube import resources
from hansa.tenancy import api
from tenant_league import WITHIN, pod

pytestmark = pytest.mark.timeout(300)
MAPS, KIB = resources.CONFIG_MAPS, 1024
PORTS = [{"port": 80 + number, "name": f"p{number}"} for number in range(2)]


@contextlib.asynccontextmanager
async def limited(below, tenant, namespace, **limits):
    """A tenant with these limits, and with no load balancers, by which is seen that they apply; without them after."""
    patch, name = below.client.patch, tenant.cluster.name
    await patch(api.VIRTUAL_CLUSTERS, name, {"spec": {"limits": {"loadBalancers": 0, **limits}}}, namespace="default")
    numbers = itertools.count()
    balanced = {"type": "LoadBalancer", "ports": PORTS, "allocateLoadBalancerNodePorts": False}

    async def applied():
        await tenant.make(resources.SERVICES, f"balanced{next(numbers)}", namespace, spec=balanced)
        return (await tenant.client.list(resources.EVENTS, namespace=namespace, fields="reason=OverLimit")).items

    try:
        await eventually(applied, within=WITHIN, every=0.5)
        for one in (await tenant.client.list(resources.SERVICES, namespace=namespace)).items:
            await tenant.client.delete(resources.SERVICES, one.name, namespace=namespace)
        yield
    finally:
        await patch(api.VIRTUAL_CLUSTERS, name, {"spec": {"limits": None}}, namespace="default")


async def condition(below, name, status):
    def holds(vc):
        found = {one["type"]: one for one in vc["status"].get("conditions", ())}.get("WithinLimits", {})
        return found.get("status") == status and found

    vc = await below.there(api.VIRTUAL_CLUSTERS, name, "default", when=holds)
    return holds(vc)["message"]


async def copies(below, namespace):
    page = await below.client.list(MAPS, namespace=namespace)
    return [one for one in page.items if one.name.startswith("big")]


async def settled(below, namespace, number):
    """Wait until there are this many copies."""

    async def look():
        found = await copies(below, namespace)
        assert len(found) == number, [one.name for one in found]
        return found

    return await eventually(look, within=WITHIN)


async def test_what_exceeds_a_limit_waits_and_what_pods_use_goes_first(mallory, alice, below, namespace):
    async with limited(below, mallory, namespace, bytes="8Mi"):
        for number in range(14):
            await mallory.make(MAPS, f"big{number}", namespace, data={"text": "x" * 600 * KIB})
        there = await settled(below, mallory.below(namespace), 11)  # 1/8 is reserved for what pods reference
        message = await condition(below, "mallory", "False")
        assert "of 8.0 MiB in super are used" in message
        assert "largest kinds: configmaps" in message
        assert f"largest namespaces: {namespace}" in message
        waiting = sorted({f"big{number}" for number in range(14)} - {one.name for one in there})
        event = await mallory.event("OverLimit", waiting[0], namespace)
        assert "the tenant's limit of bytes in super is reached" in event["message"]
        for tenant in (mallory, alice):
            name = waiting[0] if tenant is mallory else "kube-root-ca.crt"
            volume = {"name": "it", "configMap": {"name": name}}
            await tenant.make(resources.PODS, "web", namespace, **pod(volumes=[volume]))
            await tenant.phase("web", namespace)
        for one in there[:3]:
            await mallory.client.delete(MAPS, one.name, namespace=namespace)
        for name in waiting:
            await below.there(MAPS, name, mallory.below(namespace))
        assert "no object waits" in await condition(below, "mallory", "True")


async def test_a_copy_that_grows_over_a_limit_stays_as_it_is(mallory, below, namespace):
    async with limited(below, mallory, namespace, bytes="1Mi"):
        await mallory.make(MAPS, "big", namespace, data={"text": "small"})
        await below.there(MAPS, "big", mallory.below(namespace))
        patch = {"data": {"text": "x" * 990 * KIB}}
        await mallory.client.patch(MAPS, "big", patch, namespace=namespace)
        await mallory.event("OverLimit", "big", namespace)
        assert (await below.there(MAPS, "big", mallory.below(namespace)))["data"] == {"text": "small"}
    await below.there(MAPS, "big", mallory.below(namespace), when=lambda found: len(found["data"]["text"]) > KIB)


async def test_node_ports_balancers_pods_and_namespaces_are_limited(mallory, below, namespace):
    there = {"nodePorts": 3, "pods": 1, "namespaces": 5}
    async with limited(below, mallory, namespace, **there):
        for name in ("one", "two"):
            await mallory.make(resources.SERVICES, name, namespace, spec={"type": "NodePort", "ports": PORTS})
        for name in ("first", "second"):
            await mallory.make(resources.PODS, name, namespace, **pod())
        await mallory.make(resources.NAMESPACES, f"{namespace}-more")

        async def refused():
            reported = set()
            for where in (namespace, "default"):
                page = await mallory.client.list(resources.EVENTS, namespace=where, fields="reason=OverLimit")
                reported |= {one.get("message").split(" in ")[0].rpartition(" ")[2] for one in page.items}
            assert reported >= {*there, "loadBalancers"}, reported
            return True

        await eventually(refused, within=WITHIN)
    for resource, name in ((resources.SERVICES, "two"), (resources.PODS, "second")):
        await below.there(resource, name, mallory.below(namespace))
    await below.there(resources.NAMESPACES, mallory.below(f"{namespace}-more"))
    await mallory.client.delete(resources.NAMESPACES, f"{namespace}-more")


async def test_by_setting_only_what_pods_use_is_synced(mallory, below, namespace):
    patch = below.client.patch
    await patch(api.VIRTUAL_CLUSTERS, "mallory", {"spec": {"syncUnused": False}}, namespace="default")
    try:
        for name in ("big-used", "big-unused"):
            await mallory.make(MAPS, name, namespace, data={"text": "moin"})
        volume = {"name": "it", "configMap": {"name": "big-used"}}
        await mallory.make(resources.PODS, "web", namespace, **pod(volumes=[volume]))
        await mallory.phase("web", namespace)

        async def only_used():
            return [one.name for one in await copies(below, mallory.below(namespace))] == ["big-used"]

        await eventually(only_used, within=WITHIN)
    finally:
        await patch(api.VIRTUAL_CLUSTERS, "mallory", {"spec": {"syncUnused": None}}, namespace="default")
    await below.there(MAPS, "big-unused", mallory.below(namespace))


async def test_the_syncers_memory_does_not_grow_with_what_a_tenant_stores(tenants, mallory, below, namespace):
    async with limited(below, mallory, namespace, bytes="8Mi"):
        await mallory.make(MAPS, "big", namespace, data={"text": "x" * 900 * KIB})
        await below.there(MAPS, "big", mallory.below(namespace))
        before = memory(tenants.program)
        for number in range(60):
            await mallory.make(MAPS, f"big{number}", namespace, data={"text": f"{number}" * 450 * KIB})
        await condition(below, "mallory", "False")
        last = {"name": "it", "configMap": {"name": "big59"}}
        await mallory.make(resources.PODS, "web", namespace, **pod(volumes=[last]))
        await mallory.phase("web", namespace)  # its content is read when it is needed
        found = await below.there(MAPS, "big59", mallory.below(namespace))
        assert found["data"]["text"].startswith("5959")
        assert memory(tenants.program) - before < 40 * 1024  # of 54 MB, which were kept twice


def memory(program):
    """The resident memory of a program, in KiB."""
    [line] = [one for one in Path(f"/proc/{program.pid}/status").read_text().splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1])
