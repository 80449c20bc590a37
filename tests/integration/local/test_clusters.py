"""Local clusters as real processes: created, repaired, changed and deleted."""

import asyncio
import signal
import socket

import pytest

from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.local import ClusterSpec, NodeShape
from hansa.local.control_plane import command_lines
from hansa.local.spec import Taint
from hansa.programs import components, ports, process
from hansa.runtime.errors import HansaError

POD = Object.of(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    }
)


@pytest.fixture(scope="module")
async def lab(fleet):
    """One cluster that the tests of this module change and break in turn: `await lab(nodes=1)` makes it so."""

    async def make(**wishes):
        [cluster] = await fleet.up([ClusterSpec("lab", **wishes)])
        return cluster

    yield make
    await fleet.down(["lab"])


async def runs(client, pod):
    async def phase():
        return (await client.get(resources.PODS, pod.name, namespace=pod.namespace)).status.get("phase") == "Running"

    await eventually(phase)


async def test_a_pod_runs_in_a_new_cluster_and_nothing_of_it_comes_back_with_the_name(fleet, fresh_cluster):
    first = await fresh_cluster(name="again", nodes=1)
    async with first.client() as client:
        await client.create(resources.PODS, POD)
        await runs(client, POD)
    await fleet.down(["again"])
    assert not first.folder.exists()
    second = await fresh_cluster(name="again", nodes=1)
    async with second.client() as client:
        with pytest.raises(errors.NotFound):
            await client.get(resources.PODS, "web", namespace="default")


async def test_three_clusters_start_side_by_side_and_know_nothing_of_each_other(fleet):
    names = ["r1", "r2", "r3"]
    try:
        clusters = await fleet.up([ClusterSpec(name, nodes=1) for name in names])
        assert len({cluster.server for cluster in clusters}) == 3
        for cluster in clusters:
            async with cluster.client() as client:
                page = await client.list(resources.NODES)
                assert [node.name for node in page.items] == [f"{cluster.name}-0"]
    finally:
        await fleet.down(names)


@pytest.mark.parametrize("component", [components.ETCD, *command_lines.COMPONENTS])
async def test_a_killed_component_is_repaired_by_the_next_up(fleet, lab, component):
    cluster = await lab(nodes=1)
    killed = cluster.process(component)
    killed.signal(signal.SIGKILL)
    assert await killed.ended(10)
    assert cluster.missing() == [component]
    others = process.running(fleet.state.root)
    repaired = await lab(nodes=1)
    assert repaired.missing() == []
    assert repaired.server == cluster.server
    assert others.items() <= process.running(fleet.state.root).items(), "what still ran was left alone"
    async with repaired.client() as client:
        pod = POD.with_metadata(name=f"after-{component}")
        await client.create(resources.PODS, pod)
        await runs(client, pod)


async def test_up_changes_nothing_where_nothing_is_missing(fleet, lab):
    await lab(nodes=1)
    before = process.running(fleet.state.root)
    await lab(nodes=1)
    assert process.running(fleet.state.root) == before


async def test_two_ups_at_once_make_one_cluster(fleet, fresh_cluster):
    first, second = await asyncio.gather(fresh_cluster(name="twice", nodes=1), fresh_cluster(name="twice", nodes=1))
    assert first.record == second.record
    assert first.missing() == []


async def test_other_flags_restart_only_their_component(lab):
    cluster = await lab()
    before = {c: cluster.process(c).pid for c in (components.APISERVER, components.CONTROLLERS)}
    changed = await lab(flags={components.CONTROLLERS: ("--v=3",)})
    assert changed.process(components.APISERVER).pid == before[components.APISERVER]
    assert changed.process(components.CONTROLLERS).pid != before[components.CONTROLLERS]


async def test_a_wrong_flag_is_reported_in_one_sentence_and_the_cluster_recovers_without_it(lab):
    with pytest.raises(
        HansaError, match="kube-scheduler of cluster lab ended during its start: .*unknown flag: --nonsense"
    ):
        await lab(flags={components.SCHEDULER: ("--nonsense",)})
    assert (await lab()).missing() == []


async def test_a_cluster_can_live_without_a_scheduler_and_get_one_later(lab):
    cluster = await lab(scheduler=False)
    with pytest.raises(HansaError, match="kube-scheduler of cluster lab is not running"):
        cluster.process(components.SCHEDULER)
    assert (await lab()).process(components.SCHEDULER)


async def test_nodes_have_the_shape_that_was_asked_for_and_change_with_it(lab):
    shape = NodeShape(
        cpu="3", memory="5Gi", pods="7", labels={"zone": "a"}, taints=(Taint("gpu", "NoSchedule", "yes"),)
    )
    cluster = await lab(nodes=2, shape=shape)
    async with cluster.client() as client:
        node = await client.get(resources.NODES, "lab-1")
        assert node.labels["zone"] == "a"
        assert {"key": "gpu", "value": "yes", "effect": "NoSchedule"} in node.spec["taints"]
        for kind in ("capacity", "allocatable"):
            assert node.status[kind] == {"cpu": "3", "memory": "5Gi", "pods": "7"}
        await lab(nodes=1, shape=NodeShape(cpu="4"))
        page = await client.list(resources.NODES)
        assert [(n.name, n.status["capacity"]["cpu"]) for n in page.items] == [("lab-0", "4")]


async def test_a_foreign_node_of_the_same_name_is_left_alone_and_reported(lab):
    cluster = await lab(nodes=0)
    foreign = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "lab-0", "labels": {"whose": "mine"}}}
    async with cluster.client() as client:
        made = await client.create(resources.NODES, Object.of(foreign))
        with pytest.raises(HansaError, match='cluster lab has a node "lab-0" that hansa local did not create'):
            await lab(nodes=1)
        assert (await client.get(resources.NODES, "lab-0")).uid == made.uid
        await client.delete(resources.NODES, "lab-0", uid=made.uid)


async def test_a_demanded_port_that_is_taken_is_refused_and_harms_nothing(fleet, fresh_cluster):
    with socket.create_server((ports.LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(HansaError, match=f"port {port} on 127.0.0.1 is taken by another program"):
            await fresh_cluster(name="port", port=port)
    assert "port" not in fleet.names()


async def test_the_audit_log_records_requests_with_their_user_agent(lab):
    cluster = await lab(audit=True)
    async with cluster.client("hansa-audit-test") as client:
        await client.list(resources.CONFIG_MAPS, namespace="default")

    async def logged():
        return '"userAgent":"hansa-audit-test"' in cluster.log("audit").read_text()

    await eventually(logged)


async def test_one_cluster_that_fails_does_not_stop_the_others(fleet):
    try:
        with pytest.raises(HansaError, match="of cluster bad ended during its start"):
            await fleet.up([ClusterSpec("bad", flags={components.APISERVER: ("--nonsense",)}), ClusterSpec("good")])
        assert fleet.cluster("good").missing() == []
    finally:
        await fleet.down(["bad", "good"])


async def test_a_thousand_kwok_nodes_become_ready(lab):
    cluster = await lab(nodes=1000)
    async with cluster.client() as client:
        assert sum([len(page.items) async for page in client.pages(resources.NODES)]) == 1000


async def test_an_api_server_keeps_its_port_when_up_comes_right_after_its_death(lab):
    cluster = await lab()
    cluster.process(components.APISERVER).signal(signal.SIGKILL)
    assert (await lab()).server == cluster.server
