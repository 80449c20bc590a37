"""Each upper cluster has a few objects at once in a queue that all share."""

import pytest

from hansa.control.store import Store
from hansa.engine.view import pending_limit
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
    return Store("pods", clock=clock.SystemClock(), metrics=metrics.Registry())


def limit(cache, upper="a"):
    made = pending_limit.PendingLimit(upper)
    made.add(resources.PODS, "low", cache, tenant_pod.awaiting_scheduler)
    return made


def put(cache, *pods):
    for one in pods:
        cache.put(one.key, one)


def key(name):
    return Key("up", resources.PODS, "n", name)


def admits(limit, name="any"):
    """Whether an object may be created; if not, it waits."""
    is_admitted = limit.admits(key(name), "low")
    limit.update(key(name), () if is_admitted else ("low",))
    return is_admitted


def woken(limit, is_waiting=lambda _key, _cluster: True):
    return [one.name for one in limit.next(resources.PODS, is_waiting)]


async def test_one_alone_has_the_whole_queue_and_objects_being_created_count(cache):
    put(cache, *(pod("a", number) for number in range(pending_limit.MOST - 2)))
    limited = limit(cache)
    with limited.creating(resources.PODS, ["low", "elsewhere"]):
        assert limited.admits(key("p"), "low")
        with limited.creating(resources.PODS, ["low"]):
            assert not limited.admits(key("p"), "low")
            assert limited.admits(key("p"), "elsewhere")
    assert limited.admits(key("p"), "low")


async def test_many_share_it_and_each_has_a_few_however_many_they_are(cache):
    for upper in range(pending_limit.MOST):
        put(cache, *(pod(f"u{upper}", number) for number in range(pending_limit.LEAST)))
    assert not limit(cache, "u0").admits(key("p"), "low")
    assert limit(cache, "another").admits(key("p"), "low")


async def test_pods_that_the_scheduler_has_tried_do_not_count(cache):
    put(cache, *(pod("a", number, node="n1") for number in range(pending_limit.MOST)))
    unfit = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    put(cache, *(pod("a", f"unfit-{number}", conditions=[unfit]) for number in range(pending_limit.MOST)))
    assert limit(cache).admits(key("p"), "low")


async def test_the_oldest_key_is_admitted_first_however_often_others_ask(cache):
    full = [pod("a", number) for number in range(pending_limit.MOST)]
    put(cache, *full)
    limited = limit(cache)
    for name in ("first", "second", "first"):
        assert not admits(limited, name)
    assert woken(limited) == []
    cache.apply(watching.Deleted(full[0]))
    assert not admits(limited, "second")
    assert not admits(limited, "newcomer")
    assert woken(limited) == ["first"]
    assert admits(limited, "first")
    assert woken(limited) == ["second"]


async def test_a_key_that_no_longer_waits_blocks_no_other(cache):
    full = [pod("a", number) for number in range(pending_limit.MOST)]
    put(cache, *full)
    limited = limit(cache)
    for name in "abcd":
        assert not admits(limited, name)
    cache.apply(watching.Deleted(full[0]))
    limited.update(key("a"), ())
    assert woken(limited, lambda one, _cluster: one != key("b")) == ["c"]
    assert admits(limited, "c")
    assert woken(limited, lambda _key, _cluster: False) == []
    assert admits(limited, "newcomer")
    limited.remove("low")
    assert woken(limited) == []
