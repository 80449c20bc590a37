"""A thousand tenants over ten replicas, by real Leases: balance, movement, writes of Leases, takeover and handover.

The replicas are processes that take part in the group and sync nothing; what a tenant costs is measured elsewhere.
"""

import asyncio
import os
import signal

import pytest

from figures import figure
from hansa.control.sharding.share import TIMING
from hansa.kube import resources, watching
from sharing import TENANTS, replicas

pytestmark = pytest.mark.timeout(900)
REPLICAS = int(os.environ.get("HANSA_BENCH_REPLICAS", "10"))
STEP = 0.25
WITHIN = 120.0
SECONDS = 30.0  # in which the writes of Leases are counted


class Writes:
    """Counts the writes of Leases."""

    def __init__(self, client, namespace):
        self.count = 0
        self._changes = watching.watch(client, resources.LEASES, namespace=namespace)

    async def run(self):
        async for change in self._changes:
            self.count += isinstance(change, watching.Added | watching.Modified | watching.Deleted)


def moved(before, group):
    """The tenants whose replica changed, besides those of replicas that ended."""
    return sum(
        (before[one] & ~one.keys).bit_count() for one in group.all if one in before and one.process.returncode is None
    )


async def test_a_thousand_tenants_over_ten_replicas(cluster, client, namespace):
    async with replicas(cluster.kubeconfig, namespace, TIMING, step=STEP) as group:
        for _ in range(REPLICAS):
            await group.start()
        await group.wait(lambda: group.served() and all(one.keys for one in group.all), within=WITHIN)
        counts = sorted(one.keys.bit_count() for one in group.all)
        share = len(TENANTS) / REPLICAS
        figure("fewest tenants of a replica, relative to the mean", counts[0] / share, least=0.7)
        figure("most tenants of a replica, relative to the mean", counts[-1] / share, most=1.3)

        writes = Writes(client, namespace)
        counting = asyncio.create_task(writes.run())
        await asyncio.sleep(SECONDS)
        figure("writes of Leases per second", writes.count / SECONDS, most=REPLICAS / 1.5)

        began, before = writes.count, {one: one.keys for one in group.all}
        one = group.all[0]
        since = await one.end(signal.SIGKILL)
        taken = await group.wait(group.served, within=WITHIN)
        figure("kill -9: seconds until all its tenants are served", taken - since, most=15)
        figure("kill -9: tenants of other replicas that moved", moved(before, group), most=0)
        await asyncio.sleep(2)
        figure("kill -9: writes of Leases until 2 s later", writes.count - began, most=12 * REPLICAS)

        new = await group.start()
        await group.wait(lambda: group.served() and bool(new.keys), within=WITHIN)
        figure("a new replica: tenants that moved to it", new.keys.bit_count(), most=1.3 * share)

        leaving = group.all[1]
        since = await leaving.end(signal.SIGTERM)
        taken = await group.wait(group.served, within=WITHIN)
        figure("SIGTERM: seconds until all its tenants are served", taken - since, most=5)

        frozen = group.all[2]
        since = frozen.signal(signal.SIGSTOP)
        taken = await group.wait(lambda: group.served(without=frozen), within=WITHIN)
        figure("SIGSTOP: seconds until all its tenants are served", taken - since, most=15)
        frozen.signal(signal.SIGCONT)
        await group.wait(lambda: bool(frozen.keys) and group.served(), within=WITHIN)
        counting.cancel()
        assert group.doubled() == []
