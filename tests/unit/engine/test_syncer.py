"""The syncer of an engine: lanes of its queue have the weights of their routes."""

import types

import engine_lab as lab
import simulation
from hansa.engine.registry import ClusterRegistry, Route
from hansa.engine.syncer import SEVERAL, QueueGroup, Syncer
from hansa.kube import resources
from hansa.model.pair import Key


def test_a_group_is_labelled_by_its_upper_and_lower_cluster():
    assert str(QueueGroup("up", "a")) == "up to a"
    assert str(QueueGroup("up", SEVERAL)) == "up to several"


def test_a_replaced_value_is_reported_with_the_message_of_the_server():
    async def main(world):
        syncer = Syncer(lab.SMALL, ClusterRegistry(), clock=world.clock, random=world.random, metrics=world.metrics)
        reported = []
        syncer._views.warn = lambda *event: reported.append(event)
        key = Key("up", resources.SERVICES, "default", "web")
        syncer._replaced(key, "a", "port 30000 is already allocated (422)")
        return reported == [(key, "ValueReplaced", "port 30000 is already allocated (422); another value is used")]

    assert simulation.run(main)


def test_lanes_have_the_weights_of_their_routes():
    async def main(world):
        syncer = Syncer(lab.SMALL, ClusterRegistry(), clock=world.clock, random=world.random, metrics=world.metrics)
        routes = {"a": Route("up", "a", weight=3.0), "b": Route("up", "b", weight=0.5)}
        syncer._views._views["up"] = types.SimpleNamespace(clusters=types.SimpleNamespace(routes=routes))
        return [
            syncer._weight(QueueGroup(*ends)) for ends in (("up", "a"), ("up", "b"), ("up", SEVERAL), ("gone", "a"))
        ]

    assert simulation.run(main) == [3.0, 0.5, 3.0, 1.0]
