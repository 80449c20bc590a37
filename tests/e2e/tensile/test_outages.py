"""A lower cluster that is unreachable or frozen delays no other, loses nothing, and recovers by itself."""

import asyncio
import json
import signal
import time

import pytest

from eventually import eventually
from league import condition, deployment, pod

DELAY = 5.0  # seconds; who waited for an answer of a frozen server would wait ten
NOTICED = 40.0  # seconds until a frozen lower cluster shows on its node; a kubelet's silence takes 50


@pytest.fixture
async def hamburgs_server(league):
    """hamburg's API server, which may be frozen: it answers nothing, but its connections stay."""
    server = league.lowers["hamburg"].cluster.process("kube-apiserver")
    yield server
    server.signal(signal.SIGCONT)
    await league.ready()


async def seconds_in_lubeck(league, namespace, prefix):
    """How long some pods take until they run there."""
    names, began = [f"{prefix}-{n}" for n in range(5)], time.monotonic()
    for name in names:
        await league.upper.kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(pod(name, on="lubeck")))
    for name in names:
        await league.phase(namespace, name, within=60)
    return time.monotonic() - began


async def test_a_frozen_lower_cluster_shows_on_its_node_and_delays_no_other(league, upper_namespace, hamburgs_server):
    usual = await seconds_in_lubeck(league, upper_namespace, "usual")
    hamburgs_server.signal(signal.SIGSTOP)
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(pod("here", on="hamburg")))
    # Also what both clusters are given, such as the token of an account, does not wait for the frozen one.
    now = await seconds_in_lubeck(league, upper_namespace, "there")
    assert now < 2 * usual + DELAY

    async def reported():
        ready = condition(await league.upper.find("node", "vn-hamburg"), "Ready")
        assert ready["status"] == "False", ready
        return ready["reason"] == "LowerClusterUnreachable" and ready["message"]

    await eventually(reported, within=NOTICED)
    assert condition(await league.upper.find("node", "vn-lubeck"), "Ready")["status"] == "True"
    hamburgs_server.signal(signal.SIGCONT)
    await league.ready()
    await league.phase(upper_namespace, "here")


async def test_pods_stay_through_an_outage_and_go_on_after_it(league, upper_namespace):
    kube, hamburg = league.upper.kubectl, league.lowers["hamburg"]
    await kube("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(deployment("web", 3, on="hamburg")))
    await kube("-n", upper_namespace, "rollout", "status", "deployment/web", "--timeout", "120s")
    before = {one["metadata"]["uid"] for one in await league.upper.all("pods", namespace=upper_namespace)}
    server = hamburg.cluster.process("kube-apiserver")
    server.signal(signal.SIGSTOP)
    try:
        await eventually(lambda: _is_not_ready(league), within=NOTICED)
        [doomed, *_] = await league.upper.all("pods", namespace=upper_namespace)
        await kube("-n", upper_namespace, "delete", "pod", doomed["metadata"]["name"], "--wait=false")
        await asyncio.sleep(1)  # nothing may happen, and nothing can be waited for
        during = {one["metadata"]["uid"] for one in await league.upper.all("pods", namespace=upper_namespace)}
        assert before <= during, "no pod ends because its cluster is not seen"
    finally:
        server.signal(signal.SIGCONT)
    await league.ready()
    await league.gone(league.upper, "pod", doomed["metadata"]["name"], namespace=upper_namespace)
    await kube("-n", upper_namespace, "rollout", "status", "deployment/web", "--timeout", "120s")
    after = {one["metadata"]["uid"] for one in await league.upper.all("pods", namespace=upper_namespace)}
    assert before - {doomed["metadata"]["uid"]} <= after


async def _is_not_ready(league):
    return condition(await league.upper.find("node", "vn-hamburg"), "Ready")["status"] == "False"


async def test_a_lower_cluster_that_is_unreachable_at_the_start_joins_later(league, upper_namespace):
    await league.stop()
    server = league.lowers["hamburg"].cluster.process("kube-apiserver")
    server.signal(signal.SIGSTOP)
    try:
        await league.start()
        await league.upper.kubectl(
            "-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(pod("there", on="lubeck"))
        )
        await league.phase(upper_namespace, "there")
    finally:
        server.signal(signal.SIGCONT)
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(pod("here", on="hamburg")))
    await league.ready()
    await league.phase(upper_namespace, "here")
