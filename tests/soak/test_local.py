"""Local clusters under random kills: whatever dies, the next `up` repairs, and `down` removes."""

import asyncio
import random
import signal

import pytest

import soaking
from hansa.kube import resources
from hansa.local import ClusterSpec
from hansa.programs import components, process

pytestmark = pytest.mark.soak
BREAKS = 5  # a round


async def test_clusters_survive_random_kills(fleet):
    wishes = [ClusterSpec(name, nodes=3) for name in ("r1", "r2", "r3")]
    for seed in soaking.seeds():
        chance = random.Random(seed)
        for _ in range(BREAKS):
            await _is_well(await fleet.up(wishes))
            await _break(fleet, chance, [wish.name for wish in wishes])
        await _is_well(await fleet.up(wishes))
    await fleet.down([wish.name for wish in wishes])
    assert process.running(fleet.state.root) == {}


async def _is_well(clusters):
    for cluster in clusters:
        assert cluster.missing() == []
        async with cluster.client() as client:
            assert len((await client.list(resources.NODES)).items) == 3


async def _break(fleet, chance, names):
    """Kill some processes, or an `up` or `down` in the middle, or stop one for a while."""
    running = list(process.running(fleet.state.root).values())
    match chance.choice(["kill", "stop", "up", "down"]):
        case "kill":
            for victim in chance.sample(running, chance.randint(1, len(running))):
                victim.signal(signal.SIGKILL)
        case "stop":
            victim = chance.choice([p for p in running if p.identity.component != components.ETCD])
            victim.signal(signal.SIGSTOP)
            await asyncio.sleep(chance.uniform(0, 5))
            victim.signal(signal.SIGCONT)
        case "up":
            await _cut_short(fleet.up([ClusterSpec(chance.choice(names), nodes=chance.randint(0, 6))]), chance)
        case "down":
            await _cut_short(fleet.down([chance.choice(names)]), chance)


async def _cut_short(job, chance):
    task = asyncio.create_task(job)
    await asyncio.wait([task], timeout=chance.uniform(0, 3))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
