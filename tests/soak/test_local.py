"""Local clusters under random kills: whatever dies, the next `up` repairs, and `down` removes."""

import asyncio
import os
import random
import signal
import time

from hansa.kube import resources
from hansa.local import ClusterSpec, components, process


async def test_clusters_survive_random_kills(fleet):
    seed = int(os.environ.get("SOAK_SEED") or time.time())
    print(f"\nseed {seed} (SOAK_SEED repeats it)")
    chance = random.Random(seed)
    end = time.monotonic() + 60 * float(os.environ.get("SOAK_MINUTES") or 10)
    wishes = [ClusterSpec(name, nodes=3) for name in ("r1", "r2", "r3")]
    rounds = 0
    while time.monotonic() < end:
        clusters = await fleet.up(wishes)
        for cluster in clusters:
            assert cluster.missing() == []
            async with cluster.client() as client:
                assert len((await client.list(resources.NODES)).items) == 3
        rounds += 1
        print(f"round {rounds}: all well", flush=True)
        await _break(fleet, chance, [cluster.name for cluster in clusters])
    await fleet.down([wish.name for wish in wishes])
    assert process.running(fleet.state.root) == {}


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
