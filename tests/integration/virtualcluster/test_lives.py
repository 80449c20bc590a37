"""Tenants and the syncer fail, recover or are deleted: nothing is lost, duplicated or orphaned."""

import asyncio
import contextlib
import random
import signal

import pytest

import soaking
from eventually import eventually
from hansa.kube import errors, resources
from hansa.tenancy import installing
from hansa.tenancy.syncing.service_ranges import SERVICE_CIDRS
from league import fresh_name
from tenant_league import Tenants, pod

OPERATIONS, MOST_PODS, CONFIGS = 150, 20, 4
FLOOD = 300  # pods
SUPER_IP = "transparency.tenancy.x-k8s.io/clusterIP"
MARK = "hansa.dev/upper-uid"


async def test_objects_of_a_tenant_with_a_frozen_api_server_stay_and_delay_no_other(tenants, blue, green, namespace):
    await blue.make(resources.CONFIG_MAPS, "c", namespace, data={"a": "1"})
    await tenants.super.there(resources.CONFIG_MAPS, "c", blue.below(namespace))
    server = blue.cluster.process("kube-apiserver")
    server.signal(signal.SIGSTOP)
    try:
        await tenants.super.client.patch(
            resources.CONFIG_MAPS, "c", {"data": {"a": "x"}}, namespace=blue.below(namespace)
        )
        await green.make(resources.PODS, "p", namespace, **pod())
        await green.phase("p", namespace)
        await tenants.super.kubectl("wait", "vc/blue", "--for=condition=Synced=false", "--timeout=60s")
        kept = await tenants.super.there(resources.CONFIG_MAPS, "c", blue.below(namespace))
        assert "deletionTimestamp" not in kept["metadata"]
    finally:
        server.signal(signal.SIGCONT)
    await tenants.super.there(
        resources.CONFIG_MAPS, "c", blue.below(namespace), when=lambda found: found["data"] == {"a": "1"}
    )
    await tenants.super.kubectl("wait", "vc/blue", "--for=condition=Synced", "--timeout=60s")


async def test_a_deleted_virtual_clusters_objects_are_deleted_and_no_others(tenants, clusters, blue, namespace):
    """Its service range is in use by another, too: then Services have addresses of the super cluster."""
    await tenants.super.there(resources.NAMESPACES, blue.below(namespace))
    spare, name = clusters["spare"], fresh_name("vc")
    [cidr] = (await spare.kubectl.get("servicecidr", "kubernetes"))["spec"]["cidrs"]
    await tenants.super.make(SERVICE_CIDRS, name, spec={"cidrs": [cidr.replace("/16", "/28")]})
    tenant = await Tenants(tenants.super, tenants.folder).add(name, spare)
    service = await tenant.make(
        resources.SERVICES, "db", "default", metadata={"annotations": {"a": "b"}}, spec={"ports": [{"port": 5432}]}
    )
    below = await tenants.super.there(resources.SERVICES, "db", tenant.below())
    assert below["spec"]["clusterIP"] != service["spec"]["clusterIP"]
    await tenant.there(
        resources.SERVICES, "db", "default", when=lambda s: SUPER_IP in s["metadata"].get("annotations", {})
    )
    await tenant.make(resources.PODS, "p", "default", **pod())
    await tenant.phase("p")
    config = await tenants.super.there(resources.CONFIG_MAPS, "services.hansa.dev", tenant.below())
    assert config["data"]["DB_SERVICE_HOST"] == below["spec"]["clusterIP"]

    await tenants.super.kubectl("delete", "vc", name)

    async def is_clean():
        left = [one.name for one in (await tenants.super.client.list(resources.NAMESPACES)).items]
        assert not [one for one in left if one.startswith(tenant.key)], left
        return True

    await eventually(is_clean, within=90)
    kept = await tenants.super.there(resources.NAMESPACES, blue.below(namespace))
    assert kept["status"]["phase"] == "Active"
    assert await tenant.look(resources.PODS, "p", "default"), "the tenant's own control plane is untouched"
    await tenants.super.client.delete(SERVICE_CIDRS, name)
    for resource, one in ((resources.PODS, "p"), (resources.SERVICES, "db")):
        await tenant.client.delete(resource, one, namespace="default")


async def test_a_recreated_namespace_is_synced_as_soon_as_the_former_one_is_gone(blue):
    """A namespace below stays for a while after its deletion, though nothing in its metadata holds it."""
    name = fresh_name()
    for _ in range(2):
        await blue.make(resources.NAMESPACES, name)
        await blue.make(resources.PODS, "p", name, **pod())
        # Before the audit, which finds what was missed.
        await blue.there(resources.PODS, "p", name, when=lambda p: p["status"]["phase"] == "Running", within=30)
        await blue.kubectl("delete", "namespace", name)


async def test_virtual_clusters_of_another_meta_cluster_are_never_taken_for_deleted(tenants, clusters, blue, tmp_path):
    meta = clusters["spare"]
    await installing.install(meta.client)
    apart = Tenants(meta, tmp_path, flags=("--meta-cluster-kubeconfig", str(meta.cluster.kubeconfig)))
    tenant = await apart.add("vc", meta)  # the meta cluster is its own tenant
    apart.super = tenants.super
    await apart.start()
    try:
        await tenants.super.there(resources.NAMESPACES, tenant.below("kube-system"))
        await tenant.make(resources.CONFIG_MAPS, "c", "default", data={"a": "1"})
        await tenants.super.there(resources.CONFIG_MAPS, "c", tenant.below())
        await meta.kubectl("delete", "vc", "vc")
        await tenants.super.gone(resources.NAMESPACES, tenant.below())
        await meta.client.delete(resources.CONFIG_MAPS, "c", namespace="default")
    finally:
        await apart.stop()
    assert (await tenants.super.there(resources.NAMESPACES, blue.below()))["status"]["phase"] == "Active"


async def test_what_changed_while_the_syncer_was_killed_is_synced_when_it_is_back(tenants, blue, namespace):
    below = blue.below(namespace)
    for name in ("deleted", "changed", "again"):
        await blue.make(resources.PODS, name, namespace, **pod())
    former = {name: await blue.phase(name, namespace) for name in ("deleted", "changed", "again")}
    await tenants.kill()
    for name in ("deleted", "again"):
        await blue.client.delete(resources.PODS, name, namespace=namespace, grace=0)
    await blue.client.patch(resources.PODS, "changed", {"metadata": {"labels": {"a": "b"}}}, namespace=namespace)
    for name in ("again", "made"):
        await blue.make(resources.PODS, name, namespace, **pod())
    await tenants.start()
    await blue.phase("made", namespace)
    again = await blue.phase("again", namespace)
    assert again["metadata"]["uid"] != former["again"]["metadata"]["uid"]
    copy = await tenants.super.there(resources.PODS, "again", below)
    assert copy["metadata"]["annotations"][MARK] == again["metadata"]["uid"]
    changed = await tenants.super.there(
        resources.PODS, "changed", below, when=lambda one: one["metadata"]["labels"].get("a") == "b"
    )
    assert changed["metadata"]["annotations"][MARK] == former["changed"]["metadata"]["uid"], "it is the same copy"
    await tenants.super.gone(resources.PODS, "deleted", below)


class Storm:
    """Random work of a tenant's user."""

    def __init__(self, tenant, namespace, chance):
        self.tenant, self.namespace, self.random = tenant, namespace, chance
        self.pods = set()
        self.numbers = iter(range(10_000))

    async def operation(self):
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await self.random.choice(
                [self.create, self.create, self.create, self.change, self.configure, self.remove]
            )()

    async def create(self):
        if len(self.pods) < MOST_PODS:
            name = f"p-{next(self.numbers)}"
            volume = {"name": "c", "configMap": {"name": f"c-{self.random.randrange(CONFIGS)}"}}
            await self.tenant.make(resources.PODS, name, self.namespace, **pod(volumes=[volume]))
            self.pods.add(name)

    async def change(self):
        if self.pods:
            patch = {"metadata": {"labels": {"changed": str(self.random.random())}}}
            name = self.random.choice(sorted(self.pods))
            await self.tenant.client.patch(resources.PODS, name, patch, namespace=self.namespace)

    async def configure(self):
        name, patch = f"c-{self.random.randrange(CONFIGS)}", {"data": {"k": str(self.random.random())}}
        await self.tenant.client.patch(resources.CONFIG_MAPS, name, patch, namespace=self.namespace)

    async def remove(self):
        if self.pods:
            name = self.random.choice(sorted(self.pods))
            self.pods.remove(name)
            grace = self.random.choice([0, None, 5])
            await self.tenant.client.delete(resources.PODS, name, namespace=self.namespace, grace=grace)


@pytest.mark.soak
async def test_killed_at_random_moments_the_syncer_brings_both_sides_to_agree_exactly(tenants, blue, green):
    for seed in soaking.seeds():
        namespace = fresh_name()
        for tenant in (blue, green):
            await tenant.make(resources.NAMESPACES, namespace)
        await play(tenants, (blue, green), namespace, random.Random(seed))
        for tenant in (blue, green):
            await tenant.client.delete(resources.NAMESPACES, namespace)


async def play(tenants, both, namespace, chance):
    storms = [Storm(tenant, namespace, chance) for tenant in both]
    for storm in storms:
        for number in range(CONFIGS):
            await storm.tenant.make(resources.CONFIG_MAPS, f"c-{number}", namespace, data={"k": "0"})
    killer, crashes = None, []
    try:
        killer = asyncio.create_task(crash_at_random(tenants, chance, crashes))
        for _ in range(OPERATIONS):
            await asyncio.gather(*(storm.operation() for storm in storms))
            await asyncio.sleep(0.04)  # the storm lasts long enough for many crashes
    finally:
        killer.cancel()
        await asyncio.wait([killer])
        if tenants.program is None:
            await tenants.start()
    assert len(crashes) >= 3
    for storm in storms:
        await eventually(lambda storm=storm: agree(tenants, storm), within=90, every=0.5)


async def crash_at_random(tenants, chance, crashes):
    while True:
        await asyncio.sleep(chance.uniform(0.3, 3.0))
        await tenants.kill()
        crashes.append(tenants)
        await asyncio.sleep(chance.uniform(0, 0.5))
        await tenants.start()


async def agree(tenants, storm):
    """Every pod of the tenant runs once below, and nothing else of its namespace does."""
    tenant, namespace = storm.tenant, storm.namespace
    above = {one.name: one for one in (await tenant.client.list(resources.PODS, namespace=namespace)).items}
    page = await tenants.super.client.list(resources.PODS, namespace=tenant.below(namespace))
    below = {one.name: one for one in page.items}
    assert above.keys() == storm.pods, above.keys() ^ storm.pods
    assert below.keys() == storm.pods, below.keys() ^ storm.pods
    for name, lower in below.items():
        upper = above[name]
        assert lower.annotations[MARK] == upper.uid, name
        assert lower.labels.get("changed") == upper.labels.get("changed"), name
        assert upper.spec.get("nodeName") == lower.spec.get("nodeName"), name
        assert upper.status["phase"] == lower.status["phase"] == "Running", name
    for number in range(CONFIGS):
        upper = await tenant.client.get(resources.CONFIG_MAPS, f"c-{number}", namespace=namespace)
        lower = await tenants.super.client.get(resources.CONFIG_MAPS, f"c-{number}", namespace=tenant.below(namespace))
        assert upper.get("data") == lower.get("data"), number
    return True


@pytest.mark.timeout(240)
async def test_a_tenant_with_a_flood_of_objects_delays_no_other_in_either_direction(tenants, blue, green, namespace):
    async def flood(lane):
        for number in range(lane, FLOOD, 8):
            await blue.make(resources.PODS, f"flood-{number}", namespace, **pod())

    await tenants.stop()  # so that all of it is in the queue when the first pod is created
    async with asyncio.TaskGroup() as group:
        for lane in range(8):
            group.create_task(flood(lane))
    names = {f"p-{number}" for number in range(3)}
    async with (
        tenants.super.watched(resources.PODS, blue.below(namespace)) as flood_below,
        blue.watched(resources.PODS, namespace) as flood_above,
        tenants.super.watched(resources.PODS, green.below(namespace)) as below,
        green.watched(resources.PODS, namespace) as above,
    ):
        await tenants.start()
        await eventually(lambda: has_all(flood_below, 1), within=120, every=0.001)
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(green.make(resources.PODS, name, namespace, **pod()))
        await eventually(lambda: has_all({one.name for one in below}, len(names)), within=60, every=0.01)
        down = len({one.name for one in flood_below})
        await eventually(lambda: has_all(running(above), len(names)), within=60, every=0.01)
        up = len(running(flood_above))
    # In the order of arrival they would come behind the whole flood.
    assert down < FLOOD / 2, "the pods are created before those of the flood"
    assert up < FLOOD / 2, "their status is synced before those of the flood"


def running(versions):
    return {one.name for one in versions if one.status.get("phase") == "Running"}


async def has_all(found, number):
    return len(found) >= number
