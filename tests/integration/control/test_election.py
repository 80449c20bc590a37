"""Leader election and shutdown, with real processes that are frozen and ended by signals."""

import asyncio
import contextlib
import itertools
import os
import signal
import sys

import candidate as program
from eventually import eventually
from hansa.control import election, informer
from hansa.control.lease_timing import LeaseTiming
from hansa.kube import resources
from hansa.kube.objects import NamespacedName
from hansa.programs import components
from machinery import Machine

PAUSE = 0.3  # seconds; a leader prints a line every hundredth, and stops well before its lease ends


class Candidate:
    """A process of `candidate.py`, and its output: (time, word)."""

    def __init__(self, identity, process):
        self.identity, self.process, self.printed = identity, process, []
        self.reading = asyncio.create_task(self.read())

    async def read(self):
        async for line in self.process.stdout:
            time, word = line.decode().split()
            self.printed.append((float(time), word))

    def times(self, word):
        return [time for time, printed in self.printed if printed.startswith(word)]

    async def prints(self, word, *, more_than=0, within=60.0):
        async def has_printed():
            return len(self.times(word)) > more_than

        await eventually(has_printed, within=within)

    def signal(self, number):
        os.kill(self.process.pid, number)

    async def end(self, number):
        self.signal(number)
        async with asyncio.timeout(60):
            code = await self.process.wait()
            await self.reading
        return code


@contextlib.asynccontextmanager
async def candidates(kubeconfig, namespace, count):
    started = []
    try:
        for number in range(count):
            identity = f"candidate-{number}"
            process = await asyncio.create_subprocess_exec(
                sys.executable, program.__file__, kubeconfig, namespace, identity, stdout=asyncio.subprocess.PIPE
            )
            started.append(Candidate(identity, process))
            await started[-1].prints("candidate" if started[1:] else "leading")
        yield started
    finally:
        for one in started:
            if one.process.returncode is None:
                one.signal(signal.SIGCONT)
                await one.end(signal.SIGKILL)


def pauses(*processes):
    """The seconds without a leader, at each change of the leader."""
    leading = sorted((time, one.identity) for one in processes for time in one.times("leading"))
    return [later - before for (before, a), (later, b) in itertools.pairwise(leading) if a != b]


def assert_never_two_lead(*processes):
    leading = sorted((time, one.identity) for one in processes for time in one.times("leading"))
    changes = [(a, b) for (_, a), (_, b) in itertools.pairwise(leading) if a != b]
    assert len(changes) == len(set(changes)), f"leadership went to and fro: {changes}"


async def test_a_frozen_holder_is_replaced_and_does_nothing_when_it_wakes(cluster, namespace):
    async with candidates(cluster.kubeconfig, namespace, 2) as (holder, other):
        holder.signal(signal.SIGSTOP)
        frozen_at = max(holder.times("leading"))
        await other.prints("leading")
        assert min(other.times("leading")) - frozen_at >= 4 - 0.5 - 0.1, "the lease was not waited for"
        holder.signal(signal.SIGCONT)
        await other.prints("leading", more_than=len(other.times("leading")) + 100)
        assert min(pauses(holder, other)) > PAUSE, "two lead at once"


async def test_a_lease_that_another_took_is_not_taken_back(cluster, client, namespace):
    async with candidates(cluster.kubeconfig, namespace, 1) as (one,):
        await client.patch(resources.LEASES, "lease", {"spec": {"holderIdentity": "another"}}, namespace=namespace)
        await asyncio.sleep(1.5)  # three renewals; the lease is valid for four seconds
        assert (await client.get(resources.LEASES, "lease", namespace=namespace)).spec["holderIdentity"] == "another"
        led = len(one.times("leading"))
        await asyncio.sleep(program.STEP * 30)
        assert len(one.times("leading")) == led, "it leads without the lease"


async def test_who_ends_gives_back_no_lease_that_another_took(client, namespace):
    async with Machine() as machine:
        informers = machine.informers("c", client)
        timing = LeaseTiming(lease=30, renew=20, retry=10)  # no renewal comes between
        one = election.Election(
            "lease",
            namespace=namespace,
            identity="one",
            client=client,
            informers=informers,
            timing=timing,
            **machine.injected(),
        )

        async def lose():
            taken = {"spec": {"holderIdentity": "another"}}
            version = (await client.patch(resources.LEASES, "lease", taken, namespace=namespace)).version
            scope = informer.Scope(resources.LEASES, namespace=namespace, fields="metadata.name=lease")
            async with informers.share(scope) as leases:

                async def is_cached():
                    return leases.get(NamespacedName(namespace, "lease")).version == version

                await eventually(is_cached)

        await one.lead(lose)
        assert (await client.get(resources.LEASES, "lease", namespace=namespace)).spec["holderIdentity"] == "another"


async def test_who_ends_gives_the_lease_back_and_the_next_begins_at_once(cluster, client, namespace):
    async with candidates(cluster.kubeconfig, namespace, 2) as (holder, other):
        assert await holder.end(signal.SIGTERM) == 0
        await other.prints("leading")
        assert min(other.times("leading")) - max(holder.times("ended")) < 1.0
        assert_never_two_lead(holder, other)
        lease = await client.get(resources.LEASES, "lease", namespace=namespace)
        assert lease.spec["holderIdentity"] == other.identity
        assert lease.spec["leaseTransitions"] >= 1


async def test_sigterm_lets_what_is_in_hand_finish_and_nothing_new_begin(cluster, namespace):
    async with candidates(cluster.kubeconfig, namespace, 1) as (one,):
        await one.prints("finishes", more_than=2)
        assert await one.end(signal.SIGTERM) == 0
        begun = {word.split("-")[1] for _, word in one.printed if word.startswith("begins")}
        finished = {word.split("-")[1] for _, word in one.printed if word.startswith("finishes")}
        assert begun == finished
        assert len(begun) < 1000
        assert max(one.times("ended")) >= max(one.times("finishes"))
        in_hand = [time for time in one.times("finishes") if time > max(one.times("leading"))]
        assert in_hand, "nothing was in hand at the signal, so the test shows nothing"


async def test_a_holder_that_cannot_reach_the_server_stops_before_its_lease_ends(fresh_cluster):
    broken = await fresh_cluster(scheduler=False)
    apiserver = broken.process(components.APISERVER)
    async with candidates(broken.kubeconfig, "default", 1) as (one,):
        apiserver.signal(signal.SIGSTOP)
        stopped_at = max(one.times("leading"))

        async def silent():
            before = len(one.times("leading"))
            await asyncio.sleep(program.STEP * 30)
            return len(one.times("leading")) == before

        await eventually(silent)
        assert max(one.times("leading")) - stopped_at <= 2.5 + 0.1
        apiserver.signal(signal.SIGCONT)
        await one.prints("leading", more_than=len(one.times("leading")))
