"""The summary of a target is read at a pace of ours, however often and however slowly that is."""

import asyncio

import simulation
from hansa.federation.summaries import TargetSummary
from hansa.federation.summary_reader import PAUSE, SHARE, SummaryReader
from hansa.kube.objects import Object


def a_summary(version):
    head = {"apiVersion": "multicluster.admiralty.io/v1alpha1", "kind": "ClusterSummary"}
    return Object.of({**head, "metadata": {"name": "singleton", "resourceVersion": str(version)}})


class Clock:
    """The clock of the simulated loop, on which a read takes some time."""

    def __init__(self, seconds):
        self._seconds, self._spent, self.reads = seconds, 0.0, []

    def now(self):
        return asyncio.get_running_loop().time() + self._spent

    def read(self, summary):
        self._spent += self._seconds
        self.reads.append(summary.version)
        return TargetSummary(version=summary.version)


def a_reader(seconds=0.0):
    clock = Clock(seconds)
    return clock, SummaryReader(clock.read, lambda: None, clock=clock)


def test_the_newest_of_many_versions_is_read_once_a_pause():
    async def main(_world):
        clock, reader = a_reader()
        for version in range(1000):
            reader.offer(a_summary(version))
        await asyncio.sleep(PAUSE)
        assert clock.reads == ["0", "999"]
        assert (reader.version, reader.summary.version) == ("999", "999")
        await asyncio.sleep(PAUSE)
        reader.offer(None)
        assert (reader.version, reader.summary.version) == ("", "")

    simulation.run(main)


def test_a_slow_read_is_followed_by_a_longer_pause():
    async def main(_world):
        clock, reader = a_reader(seconds=1.0)
        for version in range(20):
            reader.offer(a_summary(version))
            await asyncio.sleep(1)
        assert len(clock.reads) <= 1 + 20 / SHARE * 1.2
        reader.close()

    simulation.run(main)
