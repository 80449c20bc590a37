"""Events on a real API server: counted, combined, and never blocking their caller."""

import asyncio
import contextlib

import pytest

from eventually import eventually
from hansa.control import event_recorder
from hansa.control.event_recorder import EventType, InvolvedObject
from hansa.kube import objects, resources
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from kube_proxy import running_proxy
from machinery import Machine


@contextlib.asynccontextmanager
async def recording(client, **options):
    async with Machine() as machine:
        recorder = event_recorder.Recorder("tester", client, **machine.injected(), **options)
        machine.supervisor.start("events", recorder.run)
        yield recorder, machine


@pytest.fixture
async def subject(client, namespace):
    """A real object as the subject of events."""
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}}
    return InvolvedObject.of(await client.create(resources.CONFIG_MAPS, objects.Object.of(obj)))


def listed(client, subject):
    async def found():
        page = await client.list(resources.EVENTS, namespace=subject.namespace)
        return sorted((event.get("reason"), event.get("message"), event.get("count")) for event in page.items)

    return found


async def becomes(client, subject, wanted):
    async def same():
        found = await listed(client, subject)()
        assert found == wanted
        return True

    await eventually(same)


async def test_the_same_again_is_one_event_whose_count_grows(client, subject):
    async with recording(client) as (recorder, _):
        recorder.record(subject, "Placed", "placed in r1")
        await becomes(client, subject, [("Placed", "placed in r1", 1)])
        for _ in range(4):
            recorder.record(subject, "Placed", "placed in r1")
        recorder.record(subject, "Lost", "r1 is gone", event_type=EventType.WARNING)
        await becomes(client, subject, [("Lost", "r1 is gone", 1), ("Placed", "placed in r1", 5)])
        [event, _] = sorted(
            (await client.list(resources.EVENTS, namespace=subject.namespace)).items, key=lambda e: e.get("reason")
        )
        assert event.get("type") == "Warning"
        assert event.get("involvedObject")["uid"] == subject.uid
        assert event.get("source") == {"component": "tester"}


async def test_an_event_that_the_server_has_forgotten_begins_anew(client, subject):
    async with recording(client) as (recorder, _):
        recorder.record(subject, "Placed", "placed in r1")
        await becomes(client, subject, [("Placed", "placed in r1", 1)])
        await client.delete_collection(resources.EVENTS, namespace=subject.namespace)
        recorder.record(subject, "Placed", "placed in r1")
        await becomes(client, subject, [("Placed", "placed in r1", 2)])


async def test_a_flood_is_combined_and_bounded_and_what_is_left_out_is_counted(client, subject):
    async with recording(client) as (recorder, machine):
        for number in range(100):
            recorder.record(subject, "Failed", f"attempt {number} failed")

        async def combined():
            found = await listed(client, subject)()
            return len(found) == 10 and found[0][1:] == ("(combined from similar events): attempt 24 failed", 16)

        await eventually(combined)
        assert 'hansa_events_dropped_total{reason="spam"} 75' in machine.metrics.text()


async def test_what_the_server_refuses_is_dropped_and_the_rest_is_written(client, subject):
    nowhere = InvolvedObject("v1", "ConfigMap", "no-such-namespace", "b", "")
    async with recording(client) as (recorder, machine):
        recorder.record(nowhere, "Placed", "placed in r1")
        recorder.record(subject, "Placed", "placed in r1")
        await becomes(client, subject, [("Placed", "placed in r1", 1)])
        assert 'hansa_events_dropped_total{reason="refused"} 1' in machine.metrics.text()


async def test_an_unreachable_server_blocks_no_caller_and_gets_the_latest_count_when_it_is_back(
    cluster, client, subject, tmp_path
):
    async with (
        running_proxy() as carrier,
        Client(kubeconfig.from_files(carrier.kubeconfig(cluster.kubeconfig, tmp_path)), user_agent="tester") as proxied,
        recording(proxied, most=5) as (recorder, machine),
    ):
        carrier.is_away = True
        for number in range(7):
            other = InvolvedObject("v1", "ConfigMap", subject.namespace, f"other-{number}", "")
            recorder.record(other, "Placed", "placed in r1")
            recorder.record(other, "Placed", "placed in r1")
        await asyncio.sleep(0)
        assert 'hansa_events_dropped_total{reason="full"} 4' in machine.metrics.text()
        carrier.is_away = False
        await becomes(client, subject, [("Placed", "placed in r1", 2)] * 5)


async def test_what_waits_is_written_before_the_end(client, subject):
    async with Machine() as machine:
        recorder = event_recorder.Recorder("tester", client, **machine.injected())
        for number in range(5):
            recorder.record(subject, f"Reason{number}", "at the last moment")
        recorder.drain()
        async with asyncio.timeout(60):
            await recorder.run()
    assert len(await listed(client, subject)()) == 5
