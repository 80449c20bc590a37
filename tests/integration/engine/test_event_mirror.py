"""Events of lower objects are mirrored to the upper ones; and API server behaviour that the engine relies on."""

import asyncio
import secrets
import types

import pytest

import engine_lab as lab
from eventually import eventually
from hansa.control.store import Store
from hansa.engine.caches import ClusterCaches
from hansa.engine.events.mirror import EventMirror, EventThrottle
from hansa.engine.events.watch import LowerEvent
from hansa.engine.registry import Route
from hansa.engine.view.upper_view import UpperView
from hansa.engine.wakeups import Wakeups
from hansa.kube import errors, resources, watching
from hansa.kube.objects import Object
from hansa.model import stamp
from hansa.runtime import clock as clocks
from hansa.runtime import metrics

PODS, EVENTS = resources.PODS, resources.EVENTS


def event(pod, reason, **fields):
    involved = {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
    metadata = {"namespace": pod.namespace, "name": f"{pod.name}.{secrets.token_hex(4)}"}
    source = {"component": "kubelet", "host": "low1-0"}
    body = {"involvedObject": involved, "reason": reason, "source": source, "type": "Warning", **fields}
    return Object.of({"apiVersion": "v1", "kind": "Event", "metadata": metadata, **body})


async def test_lower_events_are_mirrored_up_and_counted_once(engine, clients, see, home):
    await clients["up"].create(PODS, lab.pod("web", "vn1", namespace=home))
    lower = await eventually(see["low1"].has(PODS, "web", home))
    scheduled = await eventually(see["up"].event("web", home, "Scheduled"))
    assert "low1-" in scheduled.get("message")
    upper = await see["up"].find(PODS, "web", home)
    assert scheduled.get("involvedObject")["uid"] == upper.uid

    made = event(lower, "BackOff", message="Back-off restarting", count=1, firstTimestamp="2026-01-01T00:00:00Z")
    below = await clients["low1"].create(EVENTS, made)
    above = await eventually(see["up"].event("web", home, "BackOff"))
    assert (above.get("message"), above.get("type"), above.get("source")) == (
        "Back-off restarting",
        "Warning",
        {"component": "kubelet", "host": "low1-0"},
    )
    await clients["low1"].patch(EVENTS, below.name, {"count": 7}, namespace=home)

    async def counted():
        page = await clients["up"].list(EVENTS, namespace=home, fields="involvedObject.name=web,reason=BackOff")
        return [one.get("count") for one in page.items] == [7]

    await eventually(counted)


async def test_a_restart_mirrors_no_event_twice_and_foreign_events_never(start_engine, clients, see, home):
    async with start_engine():
        await clients["up"].create(PODS, lab.pod("web", "vn1", namespace=home))
        lower = await eventually(see["low1"].has(PODS, "web", home))
        reported = await eventually(see["up"].event("web", home, "Scheduled"))
    async with start_engine():
        await clients["low1"].create(EVENTS, event(lower.with_metadata(uid="another"), "Foreign", message="no"))
        await clients["low1"].create(EVENTS, event(lower, "Last", message="yes"))
        await eventually(see["up"].event("web", home, "Last"))
        page = await clients["up"].list(EVENTS, namespace=home, fields="involvedObject.name=web")
        assert [one.get("reason") for one in page.items].count("Scheduled") == 1
        assert "Foreign" not in [one.get("reason") for one in page.items]
        assert reported.name in [one.name for one in page.items]


async def test_events_from_before_the_upper_objects_are_listed_are_mirrored_afterwards(clients, see, home):
    pod = await clients["up"].create(PODS, lab.pod("web", "vn1", namespace=home))
    given = {"clock": clocks.SystemClock(), "metrics": metrics.Registry()}
    store = Store("up pods", **given)
    health = types.SimpleNamespace(error="")
    upper = ClusterCaches(types.SimpleNamespace(name="up", client=clients["up"], health=health), {PODS: store})
    lower = ClusterCaches(types.SimpleNamespace(name="low1", health=health), {})
    view = UpperView(upper, "id", lab.SMALL, wakeups=Wakeups(lambda _: None), clock=given["clock"])
    view.attach(Route("up", "low1", nodes=frozenset({"vn1"})), lower)
    mirror = EventMirror(view, throttle=EventThrottle(lambda: False, clock=given["clock"]), metrics=given["metrics"])
    early = event(pod, "Early", message="yes").with_metadata(uid="early")
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(mirror.run())
        mirror.add(LowerEvent(early, "low1", PODS, stamp.Origin("id", pod.uid, home, "web")))
        await asyncio.sleep(0.1)
        for change in (watching.Restarted(), watching.Added(pod), watching.Synced(pod.version)):
            store.apply(change)
        await eventually(see["up"].event("web", home, "Early"))
        run.cancel()


async def test_a_patch_with_the_uid_of_another_object_is_refused(clients, home):
    """The applier puts the uid into each patch, so that the next object of that name is never changed."""
    up = clients["up"]
    made = await up.create(resources.CONFIG_MAPS, lab.config_map("one", namespace=home))
    with pytest.raises(errors.Invalid) as refusal:
        await up.patch(resources.CONFIG_MAPS, "one", {"metadata": {"uid": "other"}, "data": {}}, namespace=home)
    assert "metadata.uid" in [cause.field for cause in refusal.value.causes]
    await up.create(PODS, lab.pod("web", "vn-nobody", namespace=home))
    status = {"metadata": {"uid": "other", "annotations": {"a": "b"}}, "status": {"phase": "Running"}}
    with pytest.raises(errors.Invalid) as refusal:
        await up.patch(PODS, "web", status, namespace=home, subresource="status")
    assert "metadata.uid" in [cause.field for cause in refusal.value.causes]
    assert (await up.get(resources.CONFIG_MAPS, "one", namespace=home)).version == made.version
    await up.delete(PODS, "web", namespace=home, grace=0)
