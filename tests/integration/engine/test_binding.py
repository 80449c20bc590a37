"""Bindings, as a real API server answers them."""

import math
import types

import pytest

import engine_lab as lab
from hansa.engine import write_gate
from hansa.engine.applier import Applier, Stale
from hansa.engine.cluster import Cluster
from hansa.kube import resources
from hansa.model import plan
from hansa.model.pair import Key, Pair
from hansa.runtime import metrics
from hansa.runtime.clock import SystemClock

PODS = resources.PODS


@pytest.fixture
async def bound(engine, clients, home):
    """Makes an applier bind a pod to a node: the problems, and what the cache observed."""
    cluster: Cluster = engine.registry.clusters["up"]
    applier = Applier(
        metrics=metrics.Registry(),
        gate=write_gate.OPEN,
        ended=lambda *_: None,
        replaced=lambda *_: None,
        wake=lambda _: None,
        clock=SystemClock(),
    )

    async def bind(obj, node):
        seen, gone = [], []
        store = types.SimpleNamespace(observe=seen.append, observe_gone=lambda key, _uid: gone.append(key))
        side = types.SimpleNamespace(cluster=cluster, stores={PODS: store})
        clusters = types.SimpleNamespace(side=lambda _: side)
        usage = types.SimpleNamespace(most_requests=lambda _: math.inf)
        view = types.SimpleNamespace(clusters=clusters, in_flight=set(), usage=usage, name="up")
        pair = Pair(Key("up", PODS, obj.namespace, obj.name), obj)
        problems = await applier.apply(plan.Plan((plan.Bind("up", obj, node, "a test"),)), pair, view)
        return problems, seen, gone

    return bind


def unbound(name, namespace):
    made = lab.pod(name, "", namespace=namespace)
    spec = {k: v for k, v in made.spec.items() if k != "nodeName"} | {"schedulerName": "nobody"}
    return made.with_fields(spec=spec)


async def test_a_pod_is_bound_once_and_the_same_again_is_fine(bound, clients, home):
    obj = await clients["up"].create(PODS, unbound("web", home))
    assert await bound(obj, "vn1") == ([], [], [])
    assert (await clients["up"].get(PODS, "web", namespace=home)).spec["nodeName"] == "vn1"
    problems, [seen], _ = await bound(obj, "vn1")
    assert (problems, seen.spec["nodeName"]) == ([], "vn1")
    [problem], _, _ = await bound(obj, "vn2")
    assert isinstance(problem, Stale)
    assert (await clients["up"].get(PODS, "web", namespace=home)).spec["nodeName"] == "vn1"
    await clients["up"].delete(PODS, "web", namespace=home, grace=0)


async def test_the_next_pod_of_that_name_is_not_bound(bound, clients, home):
    old = await clients["up"].create(PODS, unbound("web", home))
    await clients["up"].delete(PODS, "web", namespace=home, grace=0)
    assert await bound(old, "vn1") == ([], [], [old.key])
    await clients["up"].create(PODS, unbound("web", home))
    [problem], _, _ = await bound(old, "vn1")
    assert isinstance(problem, Stale)
    assert not (await clients["up"].get(PODS, "web", namespace=home)).spec.get("nodeName")
