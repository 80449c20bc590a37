"""200 namespaces over five super clusters: quotas and slices change at random, and a checker sums up the holdings."""

import asyncio
import json
import random
from collections import Counter
from math import ceil

import pytest

from eventually import eventually
from hansa.kube import resources
from hansa.kube.language import quantity
from hansa.local import ClusterSpec, NodeShape
from hansa.tenancy import api
from league import fresh_name
from pool_league import PLACEMENTS, SLICE
from tenant_league import clusters_up

NAMESPACES, CHANGES, AT_ONCE = 200, 150, 16
MORE = {"r3": ("6", "8Gi"), "r4": ("8", "24Gi"), "r5": ("10", "12Gi")}
SIZES = ({"cpu": "100m", "memory": "300Mi"}, {"cpu": "250m"}, {"cpu": "70m", "memory": "1Gi"}, {"memory": "128Mi"})


@pytest.fixture
async def five(pool, fleet, kubectl):
    """The pool with three more super clusters, which have nodes and nothing else."""
    wishes = [
        ClusterSpec(f"scheduled-{name}", nodes=1, shape=NodeShape(cpu, memory), scheduler=False, lift_limits=True)
        for name, (cpu, memory) in MORE.items()
    ]
    await pool.empty()
    async with clusters_up(fleet, kubectl, wishes) as sides:
        pool.supers |= dict(zip(MORE, sides.values(), strict=True))
        for name in MORE:
            await pool.add(name)
        yield pool
        quotas = (await pool.meta.client.list(resources.QUOTAS, limit=0)).items
        await asyncio.gather(
            *(pool.meta.client.delete(resources.QUOTAS, q.name, namespace=q.namespace) for q in quotas)
        )
        await pool.empty()
        for name in MORE:
            await pool.meta.kubectl("delete", "cluster.cluster.x-k8s.io", name)
            del pool.supers[name]


class Checker:
    """Adds up what namespaces hold and what nodes have, in one moment."""

    def __init__(self, pool):
        self._pool, self.wishes, self.looks = pool, {}, 0
        self._room = {}

    async def measure(self):
        """Read what the nodes have."""
        for name, side in self._pool.supers.items():
            self._room[name] = Counter()
            for node in (await side.client.list(resources.NODES)).items:
                self._room[name].update(_amounts(node.status["allocatable"]))

    async def left(self):
        """What is left in each cluster, and what each namespace holds; holdings may not exceed the capacity."""
        self.looks += 1
        left, held = {name: Counter(room) for name, room in self._room.items()}, {}
        [vc] = (await self._pool.meta.client.list(api.VIRTUAL_CLUSTERS)).items
        for namespace, record in (vc.status.get("placements") or {}).items():
            planned = held[namespace] = {"placements": record["slices"], "slice": record["slice"]}
            for cluster, number in planned["placements"].items():
                for name, amount in _amounts(planned["slice"]).items():
                    left[cluster][name] -= amount * number
        below = {name: dict(amounts) for name, amounts in left.items() if min(amounts.values()) < 0}
        if below:
            pytest.fail(f"more is held than there is: {below}")
        return left, held

    async def waiting(self):
        """Who waits, if everybody else has what they want, and there is no room for one more slice of theirs."""
        (left, held), waiting = await self.left(), []
        for namespace, (slice_, quota) in self.wishes.items():
            size, wanted = _amounts(slice_), _amounts(quota)
            number = max((ceil(wanted[name] / size[name]) for name in size if name in wanted), default=0)
            has = held.get(namespace, {"placements": {}, "slice": slice_})
            assert _amounts(has["slice"]) == size, f"{namespace} has slices of a former size"
            count = sum(has["placements"].values())
            assert count <= number, f"{namespace} has {count} slices, and its quota makes {number}"
            if count == number:
                continue
            waiting.append(namespace)
            for cluster, free in left.items():
                fits = all(free[name] >= amount for name, amount in size.items())
                assert not fits, f"{namespace} waits for room, and there is some in {cluster}"
        return waiting


def _amounts(spelled):
    return {name: quantity.parse(text).nano for name, text in spelled.items() if name in ("cpu", "memory")}


def _quota(chance):
    return {"cpu": f"{chance.randint(50, 700)}m", "memory": f"{chance.randint(100, 3000)}Mi"}


async def _change(pool, checker, chance, namespace):
    """Something that people do."""
    slice_, quota = checker.wishes[namespace]
    annotations = {}
    match chance.randrange(5):
        case 0:
            slice_ = annotations[SLICE] = chance.choice(SIZES)
        case 1:
            annotations[PLACEMENTS] = None
        case 2:
            annotations[PLACEMENTS] = {chance.choice(("r1", "r4", "r9")): chance.randint(1, 4)}
        case 3:
            quota = {}
        case _:
            quota = _quota(chance)
    checker.wishes[namespace] = slice_, quota
    if annotations:
        texts = {key: value and json.dumps(value) for key, value in annotations.items()}
        await pool.meta.client.patch(resources.NAMESPACES, namespace, {"metadata": {"annotations": texts}})
    elif quota:
        await pool.quota(namespace, **quota)
    elif await pool.meta.look(resources.QUOTAS, "all", namespace):
        await pool.meta.client.delete(resources.QUOTAS, "all", namespace=namespace)


@pytest.mark.timeout(400)
async def test_200_namespaces_over_5_clusters_never_hold_more_than_there_is(five):
    pool, chance, slots = five, random.Random(11), asyncio.Semaphore(AT_ONCE)
    checker = Checker(pool)
    await checker.measure()
    prefix = fresh_name("many")
    names = [f"{prefix}-{number}" for number in range(NAMESPACES)]
    checker.wishes = {name: (chance.choice(SIZES), _quota(chance)) for name in names}

    async def make(name):
        slice_, quota = checker.wishes[name]
        async with slots:
            annotations = {SLICE: json.dumps(slice_)}
            await pool.meta.make(resources.NAMESPACES, name, metadata={"annotations": annotations})
            await pool.meta.make(resources.QUOTAS, "all", name, spec={"hard": quota})

    async def change(name):
        async with slots:
            await _change(pool, checker, chance, name)

    async def work():
        await asyncio.gather(*map(make, names))
        await pool.kill()
        await pool.start()
        for part in range(3):
            await asyncio.gather(*map(change, chance.sample(names, CHANGES // 3)))
            if part == 1:
                await pool.kill()
                await pool.start()

    working = asyncio.create_task(work())
    try:
        while not working.done():
            await checker.left()
        await working
    finally:
        working.cancel()
    assert await eventually(checker.waiting, within=120), "the pool is full"
    assert checker.looks > 10
