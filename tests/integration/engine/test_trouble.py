"""Outages of clusters and of the engine, and the requests of an idle engine."""

import asyncio
import json
import random
import secrets
import signal
import sys
import time
from pathlib import Path

import pytest

import engine_lab as lab
import engine_program
import soaking
from eventually import eventually
from hansa.engine.registry import Route
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.model import keys

PODS, CONFIG_MAPS = resources.PODS, resources.CONFIG_MAPS
NOTICED = 6.0  # seconds until a cluster that hangs counts as unreachable: about four on a machine that has time
QUICK_ENOUGH = 4.0  # seconds from a pod to its copy on a busy machine; a worker that hangs is stuck for ten


def is_running(pod):
    return pod.status.get("phase") == "Running"


@pytest.mark.timeout(180)
async def test_a_lower_cluster_that_hangs_delays_no_other_and_recovers(engine, clients, see, home, stopped):
    up = clients["up"]
    for node in ("vn1", "vn2"):
        await up.create(PODS, lab.pod(f"first-{node}", node, namespace=home))
        await eventually(see["up"].has(PODS, f"first-{node}", home, is_running))
    before = await see["up"].find(PODS, "first-vn2", home)

    frozen = stopped("low2")
    for number in range(60):  # more than all workers
        await up.create(PODS, lab.pod(f"stuck-{number}", "vn2", namespace=home))
    waits = []
    for number in range(12):
        began = time.monotonic()
        await up.create(PODS, lab.pod(f"meanwhile-{number}", "vn1", namespace=home))
        await eventually(see["low1"].has(PODS, f"meanwhile-{number}", home), every=0.02)
        waits.append(time.monotonic() - began)
    assert max(waits) < QUICK_ENOUGH
    cluster = engine.registry.clusters["low2"]
    await eventually(lambda: _is(not cluster.health.is_reachable))
    assert (await see["up"].find(PODS, "first-vn2", home)).version == before.version, "unknown is not absent"

    frozen.signal(signal.SIGCONT)
    for number in range(60):
        await eventually(see["up"].has(PODS, f"stuck-{number}", home, is_running), within=60)
    await up.delete_collection(PODS, namespace=home, grace=0)


@pytest.mark.timeout(180)
async def test_a_lower_cluster_that_hangs_does_not_delay_what_it_shares_with_another(
    engine, clients, see, home, stopped
):
    up, maps = clients["up"], see["low1"]
    await up.create(CONFIG_MAPS, lab.config_map("shared", namespace=home))
    for node in ("vn1", "vn2"):
        await up.create(PODS, lab.pod(f"first-{node}", node, namespace=home, config_map="shared"))
        await eventually(see["up"].has(PODS, f"first-{node}", home, is_running))
    frozen = stopped("low2")
    waits = []
    for number in range(12):
        began, data = time.monotonic(), {"a": f"turn {number}"}
        await up.patch(CONFIG_MAPS, "shared", {"data": data}, namespace=home)
        await eventually(maps.has(CONFIG_MAPS, "shared", home, lambda o, now=data: o.get("data") == now), every=0.02)
        waits.append(time.monotonic() - began)
    assert max(waits) < QUICK_ENOUGH

    frozen.signal(signal.SIGCONT)
    last = {"a": "turn 11"}
    await eventually(see["low2"].has(CONFIG_MAPS, "shared", home, lambda o: o.get("data") == last), within=60)
    await up.delete_collection(PODS, namespace=home, grace=0)


@pytest.mark.timeout(180)
async def test_a_cluster_that_hangs_is_noticed_soon_and_requests_to_it_end(engine, clients, see, home, stopped):
    await clients["up"].create(PODS, lab.pod("first", "vn2", namespace=home))
    await eventually(see["up"].has(PODS, "first", home, is_running))
    frozen = stopped("low2")
    cluster, began = engine.registry.clusters["low2"], time.monotonic()
    await clients["up"].create(PODS, lab.pod("stuck", "vn2", namespace=home))
    await eventually(lambda: _is(not cluster.health.is_reachable), every=0.02)
    assert time.monotonic() - began < NOTICED
    await eventually(lambda: _is(not cluster.inflight), every=0.02, within=1)
    frozen.signal(signal.SIGCONT)
    await eventually(see["up"].has(PODS, "stuck", home, is_running), within=60)
    await clients["up"].delete_collection(PODS, namespace=home, grace=0)


async def test_deletions_made_while_the_engine_was_down_are_carried_out(start_engine, clients, see, home):
    async with start_engine():
        await clients["up"].create(CONFIG_MAPS, lab.config_map("settings", namespace=home))
        for name in ("stays", "leaves", "forced"):
            await clients["up"].create(PODS, lab.pod(name, "vn1", namespace=home, config_map="settings"))
            await eventually(see["up"].has(PODS, name, home, is_running))
        lower = await see["low1"].find(PODS, "stays", home)
    await clients["up"].delete(PODS, "leaves", namespace=home, grace=1)
    await clients["up"].delete(PODS, "forced", namespace=home, grace=0)
    await clients["up"].patch(CONFIG_MAPS, "settings", {"data": {"a": "new"}}, namespace=home)
    async with start_engine():
        for name in ("leaves", "forced"):
            await eventually(see["low1"].lacks(PODS, name, home))
            await eventually(see["up"].lacks(PODS, name, home))
        await eventually(see["low1"].has(CONFIG_MAPS, "settings", home, lambda o: o.get("data") == {"a": "new"}))
        assert (await see["low1"].find(PODS, "stays", home)).uid == lower.uid


async def test_a_cluster_that_comes_later_and_one_that_leaves(start_engine, clients, see, home, league):
    async with start_engine(lowers=["low1"]) as engine, league["low2"].client("hansa-engine") as low2:
        await clients["up"].create(PODS, lab.pod("early", "vn2", namespace=home))
        await clients["up"].create(PODS, lab.pod("other", "vn1", namespace=home))
        await eventually(see["up"].has(PODS, "other", home, is_running))
        engine.join("low2", low2)
        engine.registry.link(Route("up", "low2", settings={"not": "yet"}))
        engine.registry.link(Route("up", "low2", settings={"now": "so"}, nodes=frozenset({"vn2"})))
        await eventually(see["up"].has(PODS, "early", home, is_running))

        await engine.registry.leave("low2")
        await clients["up"].create(PODS, lab.pod("late", "vn1", namespace=home))
        await eventually(see["up"].has(PODS, "late", home, is_running))
        assert await see["low2"].find(PODS, "early", home), "what travelled stays"
        assert is_running(await see["up"].find(PODS, "early", home))


@pytest.mark.timeout(180)
async def test_nothing_is_listed_and_little_is_written_when_the_caches_are_warm(
    start_engine, clients, see, home, league
):
    agent, pods = f"hansa-{secrets.token_hex(4)}", 20
    async with start_engine(agent=agent):
        await clients["up"].create(CONFIG_MAPS, lab.config_map("settings", namespace=home))
        await clients["up"].create(PODS, lab.pod("warm", "vn1", namespace=home, config_map="settings"))
        await eventually(see["up"].has(PODS, "warm", home, is_running))
        warm = {name: len(_requests(league[name], agent)) for name in league}
        for number in range(pods):
            await clients["up"].create(PODS, lab.pod(f"p{number}", "vn1", namespace=home, config_map="settings"))
        for number in range(pods):
            await eventually(see["up"].has(PODS, f"p{number}", home, is_running))
            await clients["up"].delete(PODS, f"p{number}", namespace=home, grace=1)
        for number in range(pods):
            await eventually(see["up"].lacks(PODS, f"p{number}", home))
    seen = {name: _requests(league[name], agent)[warm[name] :] for name in league}
    reads = [r for each in seen.values() for r in each if r["verb"] in ("list", "get") and "objectRef" in r]
    writes = [r for each in seen.values() for r in each if r["verb"] in ("create", "update", "patch", "delete")]
    assert reads == []
    assert len(writes) <= 6 * pods, [(r["verb"], r["objectRef"]["resource"]) for r in writes]


def _requests(cluster, agent):
    lines = (cluster.folder / "log" / "audit.log").read_text().splitlines()
    entries = [json.loads(line) for line in lines if f'"userAgent":"{agent}"' in line]
    return [entry for entry in entries if entry["stage"] == "ResponseComplete" and entry["verb"] != "watch"]


async def test_an_engine_that_was_killed_carries_on_with_what_changed_meanwhile(league, clients, see, home):
    await clients["up"].create(CONFIG_MAPS, lab.config_map("settings", namespace=home))
    engine = await _start(league)
    try:
        for name, node in (("kept", "vn1"), ("deleted", "vn1")):
            await clients["up"].create(PODS, lab.pod(name, node, namespace=home, config_map="settings"))
            await eventually(see["up"].has(PODS, name, home, is_running))
        engine.kill()
        await engine.wait()
        await clients["up"].delete(PODS, "deleted", namespace=home, grace=0)
        await clients["up"].create(PODS, lab.pod("made", "vn2", namespace=home, config_map="settings"))
        await clients["up"].patch(CONFIG_MAPS, "settings", {"data": {"a": "last"}}, namespace=home)
        engine = await _start(league)
        await eventually(lambda: _agree(clients, home, {"kept", "made"}), within=90, every=0.2)
    finally:
        engine.kill()
        await engine.wait()


@pytest.mark.soak
async def test_an_engine_that_is_killed_at_any_moment_converges(league, clients):
    """Creates, updates and deletes go on while the engine dies again and again; then both sides agree exactly."""
    for seed in soaking.seeds():
        home = f"soak-{seed}"
        await clients["up"].create(resources.NAMESPACES, Object.of({"metadata": {"name": home}}))
        await _play(league, clients, home, random.Random(seed))
        await clients["up"].delete(resources.NAMESPACES, home)


async def _play(league, clients, home, rolls):
    theirs = await clients["low1"].create(CONFIG_MAPS, lab.config_map(f"theirs-{home}"))
    await clients["up"].create(CONFIG_MAPS, lab.config_map("settings", namespace=home))
    wanted = set()
    churn = asyncio.create_task(_churn(clients["up"], home, wanted, rolls))
    runs = 0
    engine = await _start(league)
    try:
        while not churn.done():
            await asyncio.wait([churn], timeout=rolls.uniform(0.3, 2.5))
            engine.kill()
            await engine.wait()
            engine, runs = await _start(league), runs + 1
        await churn
        await eventually(lambda: _agree(clients, home, wanted), within=90, every=0.5)
    finally:
        churn.cancel()
        engine.kill()
        await engine.wait()
    assert runs >= 5
    assert (await clients["low1"].get(CONFIG_MAPS, theirs.name, namespace="default")).version == theirs.version


async def _churn(up, home, wanted, rolls):
    for number in range(200):
        name = f"pod-{number}"
        await up.create(PODS, lab.pod(name, rolls.choice(["vn1", "vn2"]), namespace=home, config_map="settings"))
        wanted.add(name)
        if rolls.random() < 0.5:
            gone = rolls.choice(sorted(wanted))
            wanted.discard(gone)
            await up.delete(PODS, gone, namespace=home, grace=rolls.choice([0, 1]))
        if wanted and rolls.random() < 0.5:
            label = {"metadata": {"labels": {"turn": str(number)}}}
            await up.patch(PODS, rolls.choice(sorted(wanted)), label, namespace=home)
        await asyncio.sleep(0.04)  # about as long as a pod takes, so that some are always on their way
    await up.patch(CONFIG_MAPS, "settings", {"data": {"a": "last"}}, namespace=home)


async def _start(league):
    lowers = [f"{name}={node}={league[name].kubeconfig}" for name, node in (("low1", "vn1"), ("low2", "vn2"))]
    return await asyncio.create_subprocess_exec(
        sys.executable,
        engine_program.__file__,
        str(league["up"].kubeconfig),
        *lowers,
        cwd=Path(engine_program.__file__).parent,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def _agree(clients, home, wanted):
    uppers = {pod.name: pod for pod in (await clients["up"].list(PODS, namespace=home)).items}
    assert set(uppers) == wanted
    lowers = {}
    for name, node in (("low1", "vn1"), ("low2", "vn2")):
        below = {pod.name: pod for pod in (await clients[name].list(PODS, namespace=home)).items}
        assert set(below) == {pod.name for pod in uppers.values() if pod.spec["nodeName"] == node}
        copies = (await clients[name].list(CONFIG_MAPS, namespace=home, labels=keys.UPPER)).items
        assert [(copy.name, copy.get("data")) for copy in copies] == [("settings", {"a": "last"})]
        lowers |= below
    for name, upper in uppers.items():
        assert lowers[name].annotations[keys.UPPER_UID] == upper.uid
        assert upper.annotations.get(keys.LOWER_UID) == lowers[name].uid
        assert lowers[name].labels.get("turn") == upper.labels.get("turn")
        assert is_running(upper)
    return True


async def _is(answer):
    return answer


async def test_a_pod_in_a_terminating_namespace_is_released(engine, clients, see, home):
    await clients["up"].create(PODS, lab.pod("web", "vn1", namespace=home))
    await eventually(see["up"].has(PODS, "web", home, is_running))
    await clients["up"].delete(resources.NAMESPACES, home)
    await eventually(see["low1"].lacks(PODS, "web", home))

    async def is_gone():
        try:
            await clients["up"].get(resources.NAMESPACES, home)
        except errors.NotFound:
            return True
        return False

    await eventually(is_gone)


@pytest.mark.timeout(180)
async def test_two_engines_with_different_nodes_leave_each_others_objects_alone(
    start_engine, clients, see, home, league
):
    """Both lead from the same upper to the same lower cluster."""
    await clients["up"].create(CONFIG_MAPS, lab.config_map("shared", namespace=home))
    node = lab.virtual_node("vn3")
    await clients["up"].create(resources.NODES, node)
    async with start_engine(lowers=["low1"]), start_engine(lowers=[]) as other, league["low1"].client("other") as low1:
        other.join("low1", low1)
        other.registry.link(Route("up", "low1", nodes=frozenset({"vn3"})))
        for name, on in (("one", "vn1"), ("three", "vn3")):
            await clients["up"].create(PODS, lab.pod(name, on, namespace=home, config_map="shared"))
        before = {}
        for name in ("one", "three"):
            await eventually(see["up"].has(PODS, name, home, is_running))
            before[name] = (await see["low1"].find(PODS, name, home)).uid
        copy = await see["low1"].find(CONFIG_MAPS, "shared", home)
        for number in range(3):  # each change has both engines look at both
            for name in ("one", "three"):
                label = {"metadata": {"labels": {"turn": str(number)}}}
                await clients["up"].patch(PODS, name, label, namespace=home)
                turned = see["low1"].has(PODS, name, home, lambda o, n=number: o.labels.get("turn") == str(n))
                assert (await eventually(turned)).uid == before[name]
        assert (await see["low1"].find(CONFIG_MAPS, "shared", home)).uid == copy.uid
        # The one that brought the ConfigMap takes it away with its last pod; the other one's pod gets it again.
        await clients["up"].delete(PODS, "one", namespace=home, grace=0)
        await eventually(see["low1"].lacks(PODS, "one", home))
        await eventually(see["low1"].has(CONFIG_MAPS, "shared", home))
        await clients["up"].delete(PODS, "three", namespace=home, grace=0)
        await eventually(see["low1"].lacks(PODS, "three", home))
        await eventually(see["low1"].lacks(CONFIG_MAPS, "shared", home))
    await clients["up"].delete(resources.NODES, "vn3")
