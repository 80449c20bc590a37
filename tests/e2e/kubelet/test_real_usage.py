"""The pages of a virtual node: its own pods, in upper names."""

import json

import pytest

import kubelet_calls
from eventually import eventually
from hansa.kubelet.usage import readings
from hansa.kubelet.usage.readings import Container


@pytest.fixture
async def page(administrator):
    """Reads a page of a virtual node. Not through the API server's proxy of nodes, which allows no loopback address."""

    async def read(way, path):
        status, body = await kubelet_calls.call(await way.port(), path, token=administrator)
        assert status == 200, body
        return body

    return read


async def test_pods_are_those_of_the_node(way, page):
    pods = json.loads(await page(way, "/pods"))
    assert pods["kind"] == "PodList"
    assert {one["metadata"]["namespace"] for one in pods["items"]} == {way.namespace}
    assert {one["spec"]["nodeName"] for one in pods["items"]} == {way.node}
    running = {one["metadata"]["name"]: one for one in json.loads(await page(way, "/runningpods/"))["items"]}
    assert {"box", "web"} <= set(running)
    [container] = running["web"]["spec"]["containers"][:1]
    assert (container["name"], container["image"] != "") == ("main", True)
    assert await page(way, "/healthz") == "ok"


async def test_cpu_and_memory_are_those_that_the_lower_kubelet_reports(tensile, page):
    box = Container(tensile.namespace, "box", "main")

    async def reported():
        before = (await tensile.readings_below())["box"]
        found = readings.of_resource_metrics(await page(tensile, "/metrics/resource"))
        after = (await tensile.readings_below())["box"]
        assert before.time <= found[box].time <= after.time
        assert before.core_seconds <= round(found[box].core_seconds, 9) <= after.core_seconds
        assert found[box].memory > 0
        assert {key.namespace for key in found} == {tensile.namespace}
        return True

    await eventually(reported, within=120, every=1.0)
    summary = json.loads(await page(tensile, "/stats/summary"))
    assert summary["node"]["nodeName"] == tensile.node
    assert summary["node"]["memory"]["workingSetBytes"] > 0
    pods = {one["podRef"]["name"]: one for one in summary["pods"]}
    found = await tensile.upper.find("pod", "box", namespace=tensile.namespace)
    assert pods["box"]["podRef"]["uid"] == found["metadata"]["uid"]
    assert pods["box"]["containers"][0]["memory"]["workingSetBytes"] > 0


async def test_without_rights_below_and_without_a_metrics_api_there_are_none(federated, page):
    """A source may neither read nodes of its target nor be its proxy to kubelets."""
    text = await page(federated, "/metrics/resource")
    assert [line for line in text.splitlines() if not line.startswith("#")] == ["resource_scrape_error 0.0"]
    assert json.loads(await page(federated, "/stats/summary"))["pods"] == []
