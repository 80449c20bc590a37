"""The program is killed at random moments of 500 creations, changes and deletions: both sides agree in the end."""

import asyncio
import contextlib
import random

import pytest

import soaking
from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from league import fresh_name, pod

OPERATIONS, CONFIGS, MOST_PODS = 500, 8, 60
LOWERS = ("hamburg", "lubeck")
MARK = "hansa.dev/upper-uid"


class Storm:
    """Random work of a user above."""

    def __init__(self, client, namespace, seed):
        self.client, self.namespace, self.random = client, namespace, random.Random(seed)
        self.pods: dict[str, str] = {}
        self.numbers = iter(range(10_000))

    async def operation(self):
        choices = [self.create] * 4 + [self.change, self.change_config, self.remove, self.remove, self.recreate]
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await self.random.choice(choices)()

    async def create(self, name=""):
        if len(self.pods) >= MOST_PODS:
            return await self.remove()
        name, cluster = name or f"p-{next(self.numbers)}", self.random.choice(LOWERS)
        config = f"c-{self.random.randrange(CONFIGS)}"
        made = pod(name, nodeName=f"vn-{cluster}", volumes=[{"name": "c", "configMap": {"name": config}}])
        await self.client.create(resources.PODS, Object.of(made), namespace=self.namespace)
        self.pods[name] = cluster
        return None

    async def change(self):
        if self.pods:
            patch = {"metadata": {"labels": {"changed": str(self.random.random())}}}
            name = self.random.choice(list(self.pods))
            await self.client.patch(resources.PODS, name, patch, namespace=self.namespace)

    async def change_config(self):
        name = f"c-{self.random.randrange(CONFIGS)}"
        patch = {"data": {"k": str(self.random.random())}}
        await self.client.patch(resources.CONFIG_MAPS, name, patch, namespace=self.namespace)

    async def remove(self):
        if self.pods:
            name = self.random.choice(list(self.pods))
            del self.pods[name]
            grace = self.random.choice([0, None, 5])
            await self.client.delete(resources.PODS, name, namespace=self.namespace, grace=grace)
            return name
        return None

    async def recreate(self):
        """The same name again, often before the first life has left everywhere."""
        if name := await self.remove():
            await self.create(name)


async def crash_at_random(league, chance, crashes):
    while True:
        await asyncio.sleep(chance.uniform(0.2, 2.5))
        await league.kill()
        crashes.append(league)
        await asyncio.sleep(chance.uniform(0, 0.5))
        await league.start()


@pytest.mark.soak
async def test_after_500_operations_and_many_crashes_both_sides_agree_and_nothing_foreign_is_touched(
    league, upper_namespace
):
    for number, seed in enumerate(soaking.seeds()):
        namespace = f"{upper_namespace}-{number}"
        await league.upper.kubectl("create", "namespace", namespace)
        await play(league, namespace, seed)
        await league.upper.kubectl("delete", "namespace", namespace, "--wait=false")


async def play(league, upper_namespace, seed):
    async with contextlib.AsyncExitStack() as stack:
        upper = await stack.enter_async_context(league.upper.cluster.client("test"))
        lowers = {name: await stack.enter_async_context(league.lowers[name].cluster.client("test")) for name in LOWERS}
        foreign = await foreigners(lowers, upper_namespace)
        for n in range(CONFIGS):
            await upper.create(resources.CONFIG_MAPS, config(f"c-{n}"), namespace=upper_namespace)
        storm, crashes = Storm(upper, upper_namespace, seed), []
        killer = asyncio.create_task(crash_at_random(league, random.Random(seed), crashes))
        try:
            for _ in range(OPERATIONS):
                await storm.operation()
                await asyncio.sleep(0.04)  # the storm lasts long enough for many crashes
        finally:
            killer.cancel()
            await asyncio.wait([killer])
        if league.program is None:
            await league.start()
        assert len(crashes) >= 5
        await eventually(lambda: agree(upper, lowers, upper_namespace, storm), within=60, every=0.5)
        assert await foreign_now(lowers, upper_namespace, foreign) == foreign


def config(name):
    metadata = {"name": name}
    return Object.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "0"}})


async def foreigners(lowers, namespace):
    """Objects of others in the same namespaces below; some have names that we want."""
    found = {}
    for cluster, client in lowers.items():
        await client.create(resources.NAMESPACES, Object.of({"metadata": {"name": namespace}}))
        for resource, made in (
            (resources.CONFIG_MAPS, config("theirs")),
            (resources.CONFIG_MAPS, config("c-0")),
            (resources.SECRETS, Object.of({"metadata": {"name": fresh_name()}})),
        ):
            one = await client.create(resource, made, namespace=namespace)
            found[cluster, str(resource), one.name] = (one.uid, one.version)
    return found


async def foreign_now(lowers, namespace, foreign):
    known = {str(resource): resource for resource in (resources.CONFIG_MAPS, resources.SECRETS)}
    now = {}
    for cluster, kind, name in foreign:
        one = await lowers[cluster].get(known[kind], name, namespace=namespace)
        now[cluster, kind, name] = (one.uid, one.version)
    return now


async def agree(upper, lowers, namespace, storm):
    """Every pod above runs where it belongs and nowhere else, what it needs is there, and nothing else of ours is."""
    above = {one.name: one for one in (await upper.list(resources.PODS, namespace=namespace)).items}
    configs = {one.name: one for one in (await upper.list(resources.CONFIG_MAPS, namespace=namespace)).items}
    strays = [str(above[name].to_dict()) if name in above else name for name in above.keys() ^ storm.pods.keys()]
    assert not strays, "\n".join(strays)
    for cluster, client in lowers.items():
        below = {one.name: one for one in (await client.list(resources.PODS, namespace=namespace)).items}
        here = {name: one for name, one in above.items() if one.spec["nodeName"] == f"vn-{cluster}"}
        # A foreign object has the name of one ConfigMap here, so those pods wait, as promised.
        waiting = {name for name, one in here.items() if uses(one) == "c-0"}
        assert below.keys() == here.keys() - waiting, (cluster, below.keys() ^ (here.keys() - waiting))
        for name, lower in below.items():
            assert lower.annotations[MARK] == above[name].uid, name
            assert lower.labels.get("changed") == above[name].labels.get("changed"), name
            for field in ("phase", "podIP", "startTime"):
                assert lower.status.get(field) == above[name].status.get(field), (name, field)
            assert above[name].status["phase"] == "Running", name
        copies = (await client.list(resources.CONFIG_MAPS, namespace=namespace, labels="hansa.dev/upper")).items
        wanted = {uses(one) for one in here.values()} - {"c-0"}
        there = {one.name: one for one in copies if not one.name.startswith("kube-root-ca")}
        assert there.keys() == wanted, (cluster, there.keys() ^ wanted)
        for name, one in there.items():
            assert one.get("data") == configs[name].get("data"), name
    return True


def uses(one):
    [name] = [volume["configMap"]["name"] for volume in one.spec["volumes"] if "configMap" in volume]
    return name
