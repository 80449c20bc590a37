"""When a super cluster of a pool is lost, for a replica that does not reach it."""

import types

import simulation
from hansa.engine.registry import ClusterRegistry
from hansa.tenancy.syncing.super_clusters import SuperClusters


def lost_at(*reports):
    """When an unreachable super cluster is lost that other replicas reported at these times."""

    async def main(world):
        lost = []
        health = types.SimpleNamespace(error="no answer", answered=world.clock.now(), listen=lambda _: None)
        supers = SuperClusters(ClusterRegistry(), lambda *_: None, lost_after=60.0, is_pooled=True, clock=world.clock)
        supers.changed = lambda: lost.append(world.clock.now())
        supers.add(types.SimpleNamespace(name="r1", health=health, client=None))
        for when in reports:
            await world.clock.sleep(when - world.clock.now())
            supers.report_reachable("r1")
            assert supers.is_reported("r1", within=1.0)
        await world.clock.sleep(200)
        assert not supers.is_reported("r1", within=1.0)
        return lost

    return simulation.run(main)


def test_it_is_lost_when_no_replica_reached_it_for_a_while():
    assert lost_at() == [60.0]


def test_a_report_by_another_replica_counts_as_an_answer():
    assert lost_at(50.0, 100.0) == [160.0]
