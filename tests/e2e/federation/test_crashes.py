"""Agents are killed in the middle of pod lives: each proxy pod has one delegate, and in the end nothing is left."""

import asyncio
import contextlib
import random

import pytest

import soaking
from eventually import eventually
from federation import elected
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.model import keys
from league import PATIENCE

LIVES, SHORT_LIVES = 300, 30
MOST_PODS = 40  # at the same time


class Storm:
    """Users that create and delete elected pods in the source."""

    def __init__(self, client, namespace, chance):
        self.client, self.namespace, self.chance = client, namespace, chance
        self.there = []

    async def create(self, name, *, dry_run=False):
        """Create a pod as soon as the webhook answers."""
        pod = Object.of(elected(name, cpu="10m"))

        async def accepted():
            try:
                await self.client.create(resources.PODS, pod, namespace=self.namespace, dry_run=dry_run)
            except errors.AlreadyExists:
                return True
            except errors.ApiError as error:
                raise AssertionError(str(error)) from None
            return True

        await eventually(accepted, within=PATIENCE)

    async def remove(self):
        name = self.there.pop(self.chance.randrange(len(self.there)))
        with contextlib.suppress(errors.NotFound):
            await self.client.delete(resources.PODS, name, namespace=self.namespace)

    async def play(self, lives, pause):
        for number in range(lives):
            await self.create(f"p-{number}")
            self.there.append(f"p-{number}")
            while len(self.there) > MOST_PODS or (self.there and self.chance.random() < 0.3):
                await self.remove()
            await asyncio.sleep(pause)


async def crashing(federation, storm, chance, crashes):
    """Kill agents at random moments, and start them again. On a busy machine a start takes longer than any pause."""
    while True:
        await asyncio.sleep(chance.uniform(0.1, 2))
        names = chance.choice([("east",), ("east",), ("west",), ("east", "west")])
        for name in names:
            await federation.kill(name)
        crashes.append(names)
        await federation.start(*names)
        if chance.random() < 0.7:
            await storm.create("probe", dry_run=True)


async def one_delegate_each(federation, pods, names):
    """Every pod of these names runs, each with exactly one delegate, and there are no other delegates."""

    async def look():
        proxies = await pods.east.all("pods", namespace=pods.namespace, labels=keys.HAS_FINALIZER)
        assert {one["metadata"]["name"] for one in proxies} == set(names)
        assert {one["status"]["phase"] for one in proxies} <= {"Running"}
        found = [one for member in (pods.east, pods.west) for one in await federation.delegates(member, pods.namespace)]
        parents = [one["metadata"]["labels"][keys.PARENT_UID] for one in found]
        assert sorted(parents) == sorted(one["metadata"]["uid"] for one in proxies)
        return True

    assert await eventually(look, within=PATIENCE, every=0.5)


async def nothing_is_left(pods, names):
    for name in names:
        await pods.delete("pod", name)
    await pods.have_counts(0, 0)

    async def look():
        found = await pods.east.all("pods", namespace=pods.namespace)
        assert found == [], [(one["metadata"]["name"], one["metadata"].get("finalizers")) for one in found]
        return True

    assert await eventually(look, within=PATIENCE)


async def survive(federation, pods, seed, lives, pause):
    chance = random.Random(seed)
    async with pods.east.cluster.client("storm") as client:
        storm, crashes = Storm(client, pods.namespace, chance), []
        killer = asyncio.create_task(crashing(federation, storm, random.Random(seed), crashes))
        try:
            await storm.play(lives, pause)
        finally:
            killer.cancel()
            await asyncio.wait([killer])
    if missing := [name for name in federation.members if name not in federation.agents]:
        await federation.start(*missing)
    assert crashes
    await one_delegate_each(federation, pods, storm.there)
    await nothing_is_left(pods, storm.there)


async def test_agents_are_killed_in_a_few_pod_lives(federation, namespace, nodes, pods):
    await survive(federation, pods, 1, SHORT_LIVES, 0.1)


@pytest.mark.soak
@pytest.mark.timeout(0)
async def test_agents_are_killed_in_hundreds_of_pod_lives(federation, namespace, nodes, pods):
    for seed in soaking.seeds():
        await survive(federation, pods, seed, LIVES, 0.05)
