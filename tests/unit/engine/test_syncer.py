"""The syncer of an engine: the weights of its lanes, and what it reports."""

import math
import types
from dataclasses import replace

import pytest

import engine_lab as lab
import simulation
from hansa.control import controller
from hansa.engine import contested
from hansa.engine.inflight import InflightRequests
from hansa.engine.registry import ClusterRegistry, Route
from hansa.engine.syncer import RETRY, SEVERAL, QueueGroup, Syncer
from hansa.kube import errors, resources
from hansa.model import plan
from hansa.model.pair import Key
from view_world import MAP, MAPS, PODS, World


def quiet_server(most=math.inf):
    health = types.SimpleNamespace(listen=lambda _: None, trust=lambda: None, suspect=lambda: None, error="")
    made = InflightRequests(health)
    made.most = most
    return made


UNUSED_LAST = replace(lab.SMALL, rules={**lab.SMALL.rules, MAPS: replace(lab.SMALL.rules[MAPS], unused_last=True)})


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


@pytest.mark.parametrize(
    ("error", "answer", "events"),
    [
        (
            errors.Forbidden("no right"),
            "error",
            [("Refused", "no right; grant the credentials for up get of configmaps")],
        ),
        (errors.Unreachable("no answer"), "error", []),
        (errors.NotFound("gone"), "after", []),
    ],
    ids=lambda one: type(one).__name__,
)
def test_content_that_cannot_be_read_is_retried_with_back_off_and_a_missing_right_is_reported(error, answer, events):
    async def refused(*_, **__):
        raise error

    async def main(world):
        syncer = Syncer(UNUSED_LAST, ClusterRegistry(), clock=world.clock, random=world.random, metrics=world.metrics)
        caches = World(world, UNUSED_LAST)
        caches.upper.cluster.client = types.SimpleNamespace(get=refused)
        caches.upper.cluster.inflight = quiet_server()
        caches.put(caches.upper, MAPS, lab.config_map("settings").outlined())
        caches.put(caches.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        reported = []
        syncer._views._views["up"] = caches.view
        syncer._views.warn = lambda key, *event: reported.append((key, *event))
        try:
            outcome = await syncer._reconcile(MAP)
        except errors.ApiError as raised:
            return "error", raised is error, reported
        return "after", outcome == controller.After(RETRY), reported

    assert simulation.run(main) == (answer, True, [(MAP, *one) for one in events])


@pytest.mark.parametrize(("is_computed", "kept"), [(False, ["low2"]), (True, ["low1", "low2"])])
def test_a_write_in_one_cluster_waits_where_it_was_changed_back_too_often(is_computed, kept):
    async def main(world):
        rule = replace(lab.SMALL.rules[MAPS], computed_from=lambda _: [1] if is_computed else [])
        mode = replace(lab.SMALL, rules={**lab.SMALL.rules, MAPS: rule})
        syncer = Syncer(mode, ClusterRegistry(), clock=world.clock, random=world.random, metrics=world.metrics)
        reported, made = [], lab.config_map("settings")
        syncer._views.warn = lambda key, reason, message: reported.append((key, reason, message))
        todo = plan.Plan(tuple(plan.Create(name, made, plan.Reason.PLACED) for name in ("low1", "low2")))
        for _ in range(contested.MOST):
            syncer._contested.delay(MAP, "low1")
        assert [one.cluster for one in syncer._uncontested(MAP, todo).actions] == kept
        removal = plan.Plan((plan.Delete("low1", made, plan.Reason.NOT_PLACED, None),))
        assert syncer._uncontested(MAP, removal) == removal
        return [(key, reason) for key, reason, _ in reported]

    assert simulation.run(main) == ([] if is_computed else [(MAP, "Contested")])
