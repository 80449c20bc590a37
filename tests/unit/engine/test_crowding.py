"""Each upper cluster has a few objects at once in a queue that all share."""

import pytest

from hansa.control.store import Store
from hansa.engine import crowding
from hansa.kube.objects import Object
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


async def test_one_alone_has_the_whole_queue_and_those_on_their_way_count(cache):
    put(cache, *(pod("a", number) for number in range(crowding.MOST - 2)))
    assert not crowding.is_full(cache, "a", coming=1)
    assert crowding.is_full(cache, "a", coming=2)


async def test_many_share_it_and_each_has_a_few_places_however_many_they_are(cache):
    for upper in range(crowding.MOST):
        put(cache, *(pod(f"u{upper}", number) for number in range(crowding.LEAST)))
    assert crowding.is_full(cache, "u0", coming=0)
    assert not crowding.is_full(cache, "another", coming=0)


async def test_pods_that_the_scheduler_has_looked_at_take_no_place(cache):
    put(cache, *(pod("a", number, node="n1") for number in range(crowding.MOST)))
    unfit = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    put(cache, *(pod("a", f"unfit-{number}", conditions=[unfit]) for number in range(crowding.MOST)))
    assert not crowding.is_full(cache, "a", coming=0)
