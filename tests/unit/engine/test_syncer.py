"""The syncer of an engine: lanes of its queue have the weights of their routes."""

import types

import engine_lab as lab
import simulation
from hansa.engine.registry import ClusterRegistry, Route
from hansa.engine.syncer import SEVERAL, QueueGroup, Syncer


def test_lanes_have_the_weights_of_their_routes():
    async def main(world):
        syncer = Syncer(lab.SMALL, ClusterRegistry(), clock=world.clock, random=world.random, metrics=world.metrics)
        routes = {"a": Route("up", "a", weight=3.0), "b": Route("up", "b", weight=0.5)}
        syncer._views._views["up"] = types.SimpleNamespace(clusters=types.SimpleNamespace(routes=routes))
        return [
            syncer._weight(QueueGroup(*ends)) for ends in (("up", "a"), ("up", "b"), ("up", SEVERAL), ("gone", "a"))
        ]

    assert simulation.run(main) == [3.0, 0.5, 3.0, 1.0]
