"""Random objects of a hostile tenant, with every field of the API: the super cluster has only what the lists allow.

500 objects in `make test`; `make soak` makes 10,000 in each round. Each prints its seed, and how many objects the
tenant's own API server accepted.
"""

import asyncio
import random
from collections import Counter

import msgspec
import pytest

import hostile_hints
import soaking
import super_checker
from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hostile_objects import Generator, Schemas
from league import fresh_name
from tenant_league import pod

FEW, MANY = 500, 10_000
AT_ONCE = 16
QUIET_SECONDS = 4.0
PATIENCE = 600.0  # for the copies of the long run
LEAST_ACCEPTED = 0.2  # a generator whose objects are refused by the tenant tests nothing
DOCUMENTS = ("api/v1", "apis/networking.k8s.io/v1", "apis/discovery.k8s.io/v1")
CASTLE_CLASS = "castle-only"  # of the super cluster, offered to nobody; the tenant has its own of that name
VOLUME = "castle-static"
# Kinds by how many fields they have.
KINDS = [kind for kind in hostile_hints.BASES for _ in range(12 if kind == resources.PODS else 2)]


class Flood:
    """The objects of one run, and what became of them."""

    def __init__(self, mallory, generator, dice, namespace):
        self.mallory, self.generator, self.dice, self.namespace = mallory, generator, dice, namespace
        self.made, self.refused, self.namespaces = Counter(), Counter(), []

    async def create(self, count):
        numbers = iter(range(count))

        async def work():
            for number in numbers:
                await self._create(number)

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    async def _create(self, number):
        resource = self.dice.choice(KINDS)
        fields = self.generator.make(resource, hostile_hints.BASES[resource])
        name = f"h-{number}-{self.namespace}" if resource == resources.NAMESPACES else f"h-{number}"
        metadata = {**fields.get("metadata", {}), "name": name}
        made = {"apiVersion": resource.api_version, "kind": resource.kind, **fields, "metadata": metadata}
        try:
            await self.mallory.client.create(
                resource, Object.of(made), namespace=self.namespace if resource.namespaced else ""
            )
        except errors.ApiError:
            self.refused[resource.kind] += 1
        else:
            self.made[resource.kind] += 1
            self.namespaces += [name] if resource == resources.NAMESPACES else []

    @property
    def accepted(self):
        return self.made.total() / (self.made.total() + self.refused.total())

    def __str__(self):
        each = (f"{kind} {self.made[kind]}/{self.made[kind] + self.refused[kind]}" for kind in self.made | self.refused)
        return f"{self.accepted:.0%} accepted by the tenant: {', '.join(sorted(each))}"


@pytest.fixture
async def castle(below, mallory):
    """What the tenant must not get: classes that are offered to nobody, a volume of the administrators."""
    judge = fresh_name("judge")
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    await below.make(resources.NAMESPACES, judge, metadata={"labels": labels})
    await below.there(resources.SERVICE_ACCOUNTS, "default", judge)
    classes = (
        (resources.RUNTIME_CLASSES, {"handler": "castle"}),
        (resources.PRIORITY_CLASSES, {"value": 1000}),
        (resources.STORAGE_CLASSES, {"provisioner": "example.com/none"}),
        (resources.INGRESS_CLASSES, {"spec": {"controller": "example.com/none"}}),
    )
    for side in (below, mallory):
        for resource, fields in classes:
            await side.make(resource, CASTLE_CLASS, **fields)
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/etc"}}
    spec["persistentVolumeReclaimPolicy"] = "Retain"
    await below.make(resources.PERSISTENT_VOLUMES, VOLUME, spec=spec)
    nodes = (await below.client.list(resources.NODES)).items
    addresses = {one["address"] for node in nodes for one in node.status.get("addresses", ())}
    upper_id = (await mallory.client.get(resources.NAMESPACES, "kube-system")).uid
    yield super_checker.Bounds(
        mallory.key, upper_id, judge, foreign_addresses=frozenset(addresses), static_volume=VOLUME
    )
    for side in (below, mallory):
        for resource, _ in classes:
            await side.client.delete(resource, CASTLE_CLASS)
    await below.client.delete(resources.PERSISTENT_VOLUMES, VOLUME)
    await below.client.delete(resources.NAMESPACES, judge)


async def _schemas(mallory):
    answers = [await mallory.client.request("GET", f"/openapi/v3/{one}", doing="read the schema") for one in DOCUMENTS]
    return Schemas([msgspec.json.decode(one.body) for one in answers])


async def _storm(tenants, mallory, alice, below, castle, namespace, *, count, seed):
    dice = random.Random(seed)
    generator = Generator(await _schemas(mallory), dice, hostile_hints.HINTS, hostile_hints.FRAMES)
    before, offset = await super_checker.inventory(below.client), tenants.log.stat().st_size
    flood = Flood(mallory, generator, dice, namespace)
    creating = asyncio.create_task(flood.create(count))
    await alice.make(resources.PODS, "calm", namespace, **pod())
    await alice.phase("calm", namespace)
    await creating
    print(f"seed {seed}: {flood}")  # noqa: T201
    assert flood.accepted >= LEAST_ACCEPTED, str(flood)
    try:
        # Not until the last object is there: the tenant may have reached its limits before.
        await eventually(lambda: _is_quiet(below, castle), within=PATIENCE, every=1)
        for kind in (resources.PODS, resources.SERVICES, resources.CONFIG_MAPS, resources.SECRETS):
            assert await _copies(below, castle, kind), f"no {kind.kind} was created, so that nothing was checked"
        found = await super_checker.findings(below.client, castle)
        assert not found, "\n".join(found)
        found = super_checker.outside(before, await super_checker.inventory(below.client), mallory.key, alice.key)
        assert not found, "\n".join(found)
        assert not tenants.program.has_ended
        log = tenants.log.read_bytes()[offset:].decode(errors="replace")
        assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:4000]
    finally:
        await _tidy(mallory, flood)


async def _is_quiet(below, castle):
    """Whether no copy appears or goes for a while."""
    before = [await _copies(below, castle, kind) for kind in hostile_hints.BASES]
    await asyncio.sleep(QUIET_SECONDS)
    return [await _copies(below, castle, kind) for kind in hostile_hints.BASES] == before


async def _copies(below, castle, resource):
    pages = below.client.pages(resource)
    return {
        one.uid async for page in pages for one in page.items if (one.namespace or one.name).startswith(castle.prefix)
    }


async def _tidy(mallory, flood):
    for name in flood.namespaces:
        removed = {"metadata": {"finalizers": None}}
        await mallory.client.patch(resources.NAMESPACES, name, removed)
        await mallory.client.delete(resources.NAMESPACES, name)
    for resource in hostile_hints.BASES:
        if resource.namespaced:
            async for page in mallory.client.pages(resource, namespace=flood.namespace):
                for one in page.items:
                    if one.metadata.finalizers:
                        removed = {"metadata": {"finalizers": None}}
                        await mallory.client.patch(resource, one.name, removed, namespace=one.namespace)


@pytest.mark.timeout(600)
async def test_nothing_that_the_lists_do_not_name_reaches_the_super_cluster(
    tenants, mallory, alice, below, castle, namespace
):
    await _storm(tenants, mallory, alice, below, castle, namespace, count=FEW, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(0)
async def test_nothing_that_the_lists_do_not_name_reaches_the_super_cluster_in_the_long_run(
    tenants, mallory, alice, below, castle, namespace
):
    for seed in soaking.seeds():
        await _storm(tenants, mallory, alice, below, castle, namespace, count=MANY, seed=seed)
