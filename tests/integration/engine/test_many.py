"""Many upper clusters over one lower cluster: their objects are kept apart, and it is watched once for all of them."""

import asyncio
import contextlib
import json
import secrets
import signal
import time
from typing import NamedTuple

import pytest

import engine_lab as lab
from eventually import eventually
from hansa.engine.registry import Route
from hansa.kube import errors, resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, lifecycle, placement
from hansa.model.mode import Mode, Rule, patches_of
from hansa.model.translation.common.pod import unschedulable

PODS, MAPS, NAMESPACES, NODES = resources.PODS, resources.CONFIG_MAPS, resources.NAMESPACES, resources.NODES
QUICK_ENOUGH = 8.0  # seconds until a pod runs on a busy machine; a request to a server that hangs takes ten
UPPERS = {"up": "blue", "low2": "green"}  # what stands before their namespaces below


class Settings(NamedTuple):
    """Settings of the route of one upper cluster."""

    prefix: str
    may_use_hosts: bool = False


def unscheduled(pod, link):
    """A pod as its user made it."""
    spec = {name: value for name, value in lab.bare_pod(pod, link).spec.items() if name != "schedulerName"}
    return pod.with_fields(spec=spec)


def may_not(pod, link):
    is_refused = pod.spec.get("hostNetwork") and not link.settings.may_use_hosts
    return "it asks for the host's network" if is_refused else ""


def lower_name(key, _uid, link):
    if key.namespace:
        return NamespacedName(f"{link.settings.prefix}-{key.namespace}", key.name)
    return NamespacedName("", f"{link.settings.prefix}-{key.name}")


MANY = Mode(
    name="many",
    rules={
        rule.resource: rule
        for rule in (
            Rule(NAMESPACES, placement=placement.everywhere, lifecycle=lifecycle.NAMESPACE),
            Rule(NODES),
            Rule(
                PODS,
                down=(unscheduled,),
                up_patches=lab.status_up,
                lifecycle=lifecycle.POD,
                placement=placement.everywhere,
                check=may_not,
                on_refused=unschedulable.unscheduled,
                bound_node=lambda pod: pod.spec.get("nodeName", ""),
            ),
            Rule(MAPS, down_patches=patches_of("data"), placement=placement.everywhere),
        )
    },
    lower_name=lower_name,
    shares_lowers=True,
    upper_message=lambda message, link: message.replace(f"{link.settings.prefix}-", ""),
)


def pod(name, namespace, **spec):
    made = lab.pod(name, "", namespace=namespace)
    own = {k: v for k, v in made.spec.items() if k != "nodeName"}
    return made.with_fields(spec=own | {"schedulerName": "nobody"} | spec)


def is_running(obj):
    return obj.status.get("phase") == "Running"


@pytest.fixture
def start_many(league):
    """Makes engines with two upper clusters over low1."""

    @contextlib.asynccontextmanager
    async def start(agent="hansa-many"):
        async with contextlib.AsyncExitStack() as stack:
            names = (*UPPERS, "low1")
            clients = {name: await stack.enter_async_context(league[name].client(agent)) for name in names}
            engine = await stack.enter_async_context(lab.Engine(mode=MANY, watch_all=()))
            for name, client in clients.items():
                engine.join(name, client)
            for name, prefix in UPPERS.items():
                engine.registry.link(Route(name, "low1", settings=Settings(prefix)))
            yield engine

    return start


@pytest.fixture
async def homes(clients):
    """A fresh namespace with the same name in both upper clusters."""
    name = f"home-{secrets.token_hex(3)}"
    for upper in UPPERS:
        await clients[upper].create(NAMESPACES, lab.namespace(name))
    yield name
    for upper in UPPERS:
        with contextlib.suppress(errors.NotFound):
            await clients[upper].delete(NAMESPACES, name)


@pytest.fixture
async def mirrored(clients):
    """The nodes of the lower cluster in both upper ones."""
    names = [node.name for node in (await clients["low1"].list(NODES)).items]
    for upper in UPPERS:
        for name in names:
            await clients[upper].create(NODES, lab.virtual_node(name))
    yield
    for upper in UPPERS:
        for name in names:
            await clients[upper].delete(NODES, name)


async def test_objects_of_the_same_names_stay_separate_and_are_deleted_with_their_own_cluster(
    start_many, clients, see, homes, mirrored
):
    async with start_many():
        for upper in UPPERS:
            await clients[upper].create(MAPS, lab.config_map("settings", namespace=homes, data={"of": upper}))
            await clients[upper].create(PODS, pod("web", homes))
        for upper, prefix in UPPERS.items():
            above = await eventually(see[upper].has(PODS, "web", homes, is_running))
            below = await see["low1"].find(PODS, "web", f"{prefix}-{homes}")
            assert above.spec["nodeName"] == below.spec["nodeName"]
            assert below.annotations[keys.UPPER_UID] == above.uid
            copy = await eventually(see["low1"].has(MAPS, "settings", f"{prefix}-{homes}"))
            assert copy.get("data") == {"of": upper}

        scheduled = await eventually(see["low2"].event("web", homes, "Scheduled"))
        assert f" {homes}/web" in scheduled.get("message"), scheduled.get("message")

        await clients["up"].delete(NAMESPACES, homes)
        await eventually(see["up"].lacks(NAMESPACES, homes, ""))
        await eventually(see["low1"].lacks(NAMESPACES, f"blue-{homes}", ""))
        assert is_running(await see["low2"].find(PODS, "web", homes))
        assert is_running(await see["low1"].find(PODS, "web", f"green-{homes}"))


async def test_a_binding_waits_for_its_node_and_a_pod_that_is_not_allowed_is_refused_with_an_event(
    start_many, clients, see, homes
):
    async with start_many():
        await clients["up"].create(PODS, pod("early", homes))
        await clients["up"].create(PODS, pod("refused", homes, hostNetwork=True))
        below = await eventually(see["low1"].has(PODS, "early", f"blue-{homes}", is_running))
        reported = await eventually(see["up"].event("refused", homes, "Refused"))
        assert "it asks for the host's network" in reported.get("message")
        assert await see["low1"].find(PODS, "refused", f"blue-{homes}") is None
        assert not (await see["up"].find(PODS, "early", homes)).spec.get("nodeName")
        node = below.spec["nodeName"]
        await clients["up"].create(NODES, lab.virtual_node(node))
        try:
            await eventually(see["up"].has(PODS, "early", homes, is_running))
            await clients["up"].delete_collection(PODS, namespace=homes)
            await eventually(see["up"].lacks(PODS, "early", homes))
            await eventually(see["low1"].lacks(PODS, "early", f"blue-{homes}"))
        finally:
            await clients["up"].delete(NODES, node)


@pytest.mark.timeout(180)
async def test_an_upper_cluster_that_hangs_delays_no_other_and_loses_nothing(
    start_many, clients, see, homes, mirrored, stopped
):
    async with start_many() as engine:
        for number in range(60):
            await clients["low2"].create(PODS, pod(f"stuck-{number}", homes))
        frozen = stopped("low2")
        waits = []
        for number in range(8):
            began = time.monotonic()
            await clients["up"].create(PODS, pod(f"web-{number}", homes))
            await eventually(see["up"].has(PODS, f"web-{number}", homes, is_running), every=0.02)
            waits.append(time.monotonic() - began)
        await eventually(lambda: _is(not engine.registry.clusters["low2"].health.is_reachable))
        below = {one.name for one in (await clients["low1"].list(PODS, namespace=f"green-{homes}")).items}
        frozen.signal(signal.SIGCONT)
        for number in range(60):
            await eventually(see["low2"].has(PODS, f"stuck-{number}", homes, is_running), within=60)
        after = {one.name for one in (await clients["low1"].list(PODS, namespace=f"green-{homes}")).items}
        assert below <= after
        assert max(waits) < QUICK_ENOUGH
        for upper in UPPERS:
            await clients[upper].delete_collection(PODS, namespace=homes, grace=0)


async def _is(answer):
    return answer


def is_refused(because):
    def is_so(obj):
        by_type = {one["type"]: one for one in obj.status.get("conditions", ())}
        reported = by_type.get("PodScheduled", {})
        return (reported.get("status"), reported.get("reason")) == ("False", "Refused") and because in reported[
            "message"
        ]

    return is_so


async def test_a_refusal_of_the_lower_cluster_is_a_condition_of_the_upper_pod_until_it_succeeds(
    start_many, clients, see, homes, mirrored
):
    below = f"blue-{homes}"
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": below}}
    async with start_many():
        await eventually(see["low1"].has(NAMESPACES, below, ""))
        await clients["low1"].create(resources.QUOTAS, Object.of(quota | {"spec": {"hard": {"pods": "0"}}}))
        await eventually(see["low1"].has(resources.QUOTAS, "q", below, lambda o: "hard" in o.status))
        await clients["up"].create(PODS, pod("web", homes))
        reported = await eventually(see["up"].event("web", homes, "Refused"))
        assert "exceeded quota" in reported.get("message")
        assert below not in reported.get("message")
        await eventually(see["up"].has(PODS, "web", homes, is_refused("exceeded quota")))
        await clients["low1"].delete(resources.QUOTAS, "q", namespace=below)
        running = await eventually(see["up"].has(PODS, "web", homes, is_running))
        assert not is_refused("")(running)
        await clients["up"].delete(PODS, "web", namespace=homes, grace=0)


async def test_a_refused_pod_is_synced_when_the_settings_of_its_route_allow_it(start_many, clients, see, homes):
    async with start_many() as engine:
        await clients["up"].create(PODS, pod("host", homes, hostNetwork=True))
        await eventually(see["up"].event("host", homes, "Refused"))
        await eventually(see["up"].has(PODS, "host", homes, is_refused("it asks for the host's network")))
        engine.registry.link(Route("up", "low1", settings=Settings("blue", may_use_hosts=True)))
        await eventually(see["low1"].has(PODS, "host", f"blue-{homes}"))


async def test_a_lower_cluster_is_watched_once_for_all_upper_clusters(start_many, clients, see, homes, league):
    agent = f"hansa-{secrets.token_hex(4)}"
    async with start_many(agent=agent) as engine:
        for upper, prefix in UPPERS.items():
            await clients[upper].create(MAPS, lab.config_map("settings", namespace=homes))
            await eventually(see["low1"].has(MAPS, "settings", f"{prefix}-{homes}"))
        await engine.registry.leave("low2")
        await clients["up"].patch(MAPS, "settings", {"data": {"a": "new"}}, namespace=homes)
        await eventually(see["low1"].has(MAPS, "settings", f"blue-{homes}", lambda o: o.get("data") == {"a": "new"}))
        assert await see["low1"].find(MAPS, "settings", f"green-{homes}"), "what travelled stays"

    async def were_watched():  # a watch is in the audit log when it has ended
        watched = await asyncio.to_thread(_watched, league["low1"], agent)
        assert sorted(watched) == ["configmaps", "events", "namespaces", "pods", "resourcequotas"]
        return True

    await eventually(were_watched)


def _watched(cluster, agent):
    lines = (cluster.folder / "log" / "audit.log").read_text().splitlines()
    entries = [json.loads(line) for line in lines if f'"userAgent":"{agent}"' in line]
    watches = [e for e in entries if e["verb"] == "watch" and e["stage"] == "ResponseComplete"]
    return [entry["objectRef"]["resource"] for entry in watches]
