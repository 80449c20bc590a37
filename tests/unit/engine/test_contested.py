"""Writes of objects that are changed back each time."""

import pytest

import simulation
from hansa.engine import contested
from hansa.engine.contested import Contested
from hansa.kube import resources
from hansa.model.pair import Key

WEB, OTHER = (Key("up", resources.PODS, "default", name) for name in ("web", "other"))


def test_an_object_is_written_so_often_in_a_period_and_others_are_not_affected():
    async def main(world):
        writes = Contested(world.clock)
        assert writes.delay(WEB, "up") == 0.0
        await world.clock.sleep(3)
        assert [writes.delay(WEB, "up") for _ in range(contested.MOST - 1)] == [0.0] * (contested.MOST - 1)
        assert writes.delay(WEB, "up") == pytest.approx(contested.PERIOD - 3)
        assert (writes.delay(WEB, "low"), writes.delay(OTHER, "up")) == (0.0, 0.0)
        await world.clock.sleep(contested.PERIOD - 2)
        assert not writes._writes
        assert writes.delay(WEB, "up") == 0.0

    simulation.run(main)
