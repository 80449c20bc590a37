"""Each upper cluster has a few objects at once in a queue that all share."""

import contextlib

import pytest

from hansa.control.store import Store
from hansa.engine import crowding
from hansa.kube import resources, watching
from hansa.kube.objects import Object
from hansa.model.pair import Key
from hansa.model.translation.tenant import pod as tenant_pod
from hansa.runtime import clock, metrics


def pod(upper, number, *, node="", conditions=()):
    metadata = {"name": f"{upper}-{number}", "namespace": "n", "labels": {"hansa.dev/upper": upper}}
    spec = {"nodeName": node} if node else {}
    status = {"conditions": list(conditions)}
    return Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})


@pytest.fixture
async def cache():
    made = Store("pods", clock=clock.SystemClock(), metrics=metrics.Registry())
    made.index(crowding.QUEUEING, tenant_pod.unscheduled)
    return made


def put(cache, *pods):
    for one in pods:
        cache.put(one.key, one)


def key(name):
    return Key("up", resources.PODS, "n", name)


async def test_one_alone_has_the_whole_queue_and_those_on_their_way_count(cache):
    put(cache, *(pod("a", number) for number in range(crowding.MOST - 2)))
    line = crowding.Line(cache, "a")
    with line.coming():
        assert not line.is_full
        with line.coming():
            assert line.is_full
    assert not line.is_full


async def test_many_share_it_and_each_has_a_few_places_however_many_they_are(cache):
    for upper in range(crowding.MOST):
        put(cache, *(pod(f"u{upper}", number) for number in range(crowding.LEAST)))
    assert crowding.Line(cache, "u0").is_full
    assert not crowding.Line(cache, "another").is_full


async def test_pods_that_the_scheduler_has_looked_at_take_no_place(cache):
    put(cache, *(pod("a", number, node="n1") for number in range(crowding.MOST)))
    unfit = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    put(cache, *(pod("a", f"unfit-{number}", conditions=[unfit]) for number in range(crowding.MOST)))
    assert not crowding.Line(cache, "a").is_full


async def test_who_came_first_is_let_in_first_however_often_anybody_asks(cache):
    full = [pod("a", number) for number in range(crowding.MOST)]
    put(cache, *full)
    line = crowding.Line(cache, "a")
    for name in ("first", "second", "first"):
        assert not line.lets_in(key(name))
    assert line.next(lambda _: True) is None
    cache.apply(watching.Deleted(full[0]))
    assert not line.lets_in(key("second"))
    assert not line.lets_in(key("newcomer"))
    assert line.next(lambda _: True) == key("first")
    assert line.lets_in(key("first"))
    assert line.next(lambda _: True) == key("second")


async def test_who_is_gone_takes_nobodys_turn(cache):
    line = crowding.Line(cache, "a")
    with contextlib.ExitStack() as stack:
        for _ in range(crowding.MOST):
            stack.enter_context(line.coming())
        for name in "abcd":
            assert not line.lets_in(key(name))
    line.leave(key("a"))
    assert line.next(lambda one: one != key("b")) == key("c")
    assert line.lets_in(key("c"))
    assert line.next(lambda _: False) is None
    assert line.lets_in(key("newcomer"))
