"""Replicas that share a thousand keys by Leases on a real API server, as processes that are killed and frozen."""

import signal

from eventually import eventually
from hansa.control.lease_timing import LeaseTiming
from hansa.kube import resources
from sharing import TENANTS, replicas

TIMING = LeaseTiming(lease=3, renew=2, retry=0.5)
LONG = LeaseTiming(lease=30, renew=25, retry=1)
TAKEOVER = 3 + 6  # seconds: the lease duration, and time for a busy machine
WITHIN = 60.0


async def test_a_replica_that_dies_or_freezes_is_replaced_and_no_key_is_served_twice(cluster, client, namespace):
    async with replicas(cluster.kubeconfig, namespace, TIMING) as group:
        first, second, third = [await group.start() for _ in range(3)]
        await group.wait(lambda: group.served() and all(one.keys for one in group.all), within=WITHIN)

        killed = await first.end(signal.SIGKILL)
        served = await group.wait(group.served, within=WITHIN)
        assert served - killed < TAKEOVER

        frozen = second.signal(signal.SIGSTOP)
        lost = second.keys
        served = await group.wait(lambda: group.served(without=second), within=WITHIN)
        assert served - frozen < TAKEOVER
        second.signal(signal.SIGCONT)
        await group.wait(lambda: bool(second.keys) and second.keys == lost and group.served(), within=WITHIN)

        fourth = await group.start()
        await group.wait(lambda: bool(fourth.keys) and group.served(), within=WITHIN)
        await third.end(signal.SIGTERM)
        await group.wait(group.served, within=WITHIN)
        assert group.doubled() == []
        names = {one.name for one in (await client.list(resources.LEASES, namespace=namespace)).items}
        assert names == {second.name, fourth.name}, "those of members that are gone are deleted"


async def test_a_replica_whose_lease_is_deleted_takes_part_again(cluster, client, namespace):
    async with replicas(cluster.kubeconfig, namespace, TIMING) as group:
        only = await group.start()
        await group.wait(group.served, within=WITHIN)
        before = await client.get(resources.LEASES, only.name, namespace=namespace)
        await client.delete(resources.LEASES, only.name, namespace=namespace)

        async def is_renewed():
            lease = await client.get(resources.LEASES, only.name, namespace=namespace)
            return lease.uid != before.uid and lease.annotations == before.annotations and group.served()

        await eventually(is_renewed, within=WITHIN)


async def test_keys_are_shared_about_equally_and_a_replica_that_ends_hands_over_at_once(cluster, namespace):
    async with replicas(cluster.kubeconfig, namespace, LONG) as group:
        first, _ = [await group.start() for _ in range(2)]
        share = len(TENANTS) / 2
        await group.wait(lambda: all(abs(one.keys.bit_count() - share) < share / 3 for one in group.all), within=WITHIN)
        await group.wait(group.served, within=WITHIN)
        ended = await first.end(signal.SIGTERM)
        served = await group.wait(group.served, within=WITHIN)
        assert served - ended < LONG.lease / 2, "its Lease had to expire"
        assert group.doubled() == []
