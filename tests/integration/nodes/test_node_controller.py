"""The controller of virtual nodes on real clusters: heartbeats, conditions, and fields of others that it keeps."""

import asyncio
import contextlib
import dataclasses
import signal
import time

import pytest

from eventually import eventually
from hansa.kube import errors
from hansa.kube.client import PatchType
from hansa.nodes import virtual_node
from hansa.nodes.settings import NodeSettings
from hansa.programs import components
from lower_things import node
from virtual_nodes import BRISK, LEASES, NODES, PLAIN, Audit, get, node_offers, ready, serving


async def test_a_frozen_lower_cluster_makes_the_node_not_ready_within_seconds_until_it_recovers(
    clusters, upper, lower, vn
):
    apiserver = clusters[1].process(components.APISERVER)

    async def not_ready():
        one = await get(upper, vn.name)
        return one if ready(one)["status"] == "False" else None

    async def renewed():
        lease = await upper.get(LEASES, vn.name, namespace="kube-node-lease")
        return lease.spec["renewTime"]

    async with serving(*clusters, vn):
        before = await node_offers(upper, vn.name, **PLAIN)
        began = time.monotonic()
        apiserver.signal(signal.SIGSTOP)
        try:
            frozen = await eventually(not_ready, within=60)
            seconds = time.monotonic() - began
            former = await renewed()

            async def lives():
                return await renewed() > former

            await eventually(lives)
        finally:
            apiserver.signal(signal.SIGCONT)
        await node_offers(upper, vn.name, **PLAIN)
    assert seconds < 40, "a kubelet's silence takes 50"
    assert ready(frozen)["reason"] == "LowerClusterUnreachable"
    assert "gave no answer in" in ready(frozen)["message"]
    assert frozen.status["allocatable"] == before.status["allocatable"]
    assert frozen.labels == before.labels


async def test_a_lower_cluster_unreachable_at_the_start_makes_the_node_not_ready_until_it_answers(
    clusters, upper, lower, vn
):
    apiserver = clusters[1].process(components.APISERVER)

    async def not_ready():
        one = await get(upper, vn.name)
        return one and ready(one)["status"] == "False" and one

    apiserver.signal(signal.SIGSTOP)
    try:
        async with serving(*clusters, vn):
            away = await eventually(not_ready, within=60)
            apiserver.signal(signal.SIGCONT)
            await node_offers(upper, vn.name, within=60, **PLAIN)
    finally:
        apiserver.signal(signal.SIGCONT)
    assert away.status["capacity"]["cpu"] == "0"
    assert ready(away)["reason"] == "LowerClusterUnreachable"


async def test_a_deleted_node_is_made_again_with_its_lease(clusters, upper, vn):
    async with serving(*clusters, vn):
        first = await node_offers(upper, vn.name, **PLAIN)
        await upper.delete(NODES, vn.name, uid=first.uid)

        async def again():
            one = await get(upper, vn.name)
            with contextlib.suppress(errors.NotFound):  # the former lease went with the former node
                lease = await upper.get(LEASES, vn.name, namespace="kube-node-lease")
                return one and one.uid != first.uid and lease.metadata.owner_references[0].uid == one.uid

        await eventually(again)
        await node_offers(upper, vn.name, **PLAIN)


async def test_a_foreign_node_of_the_same_name_is_left_alone_until_it_is_deleted(clusters, upper, vn):
    made = await upper.create(NODES, node(vn.name))
    async with serving(*clusters, vn) as served:

        async def refused():
            return served.nodes.refusals()

        [sentence] = await eventually(refused)
        assert f"Node {vn.name} already exists and is not a virtual node" in sentence
        theirs = await get(upper, vn.name)
        assert (theirs.uid, theirs.labels) == (made.uid, made.labels)
        assert theirs.status["allocatable"] == made.status["allocatable"]
        with pytest.raises(errors.NotFound):
            await upper.get(LEASES, vn.name, namespace="kube-node-lease")
        with pytest.raises(virtual_node.NotOurs):
            await served.nodes.remove(vn.name)
        assert (await get(upper, vn.name)).uid == made.uid
        served.nodes.add(vn, served.lower_cluster)
        await upper.delete(NODES, vn.name, uid=made.uid)
        await node_offers(upper, vn.name, **PLAIN)
        assert served.nodes.refusals() == []


async def test_a_node_of_another_lower_cluster_is_left_alone(clusters, upper, vn):
    async with serving(*clusters, vn):
        one = await node_offers(upper, vn.name, **PLAIN)
    async with serving(*clusters, dataclasses.replace(vn, lower="elsewhere")) as served:

        async def refused():
            return served.nodes.refusals()

        [sentence] = await eventually(refused)
        assert "represents cluster vn-lower" in sentence
    assert (await get(upper, vn.name)).labels == one.labels


async def test_a_node_that_the_upper_cluster_refuses_is_reported(clusters, upper, vn):
    async with serving(*clusters, dataclasses.replace(vn, labels={"team": "not a value"})) as served:

        async def refused():
            return served.nodes.refusals()

        [sentence] = await eventually(refused)
    assert "not a value" in sentence
    assert await get(upper, vn.name) is None


async def test_removing_a_node_takes_its_lease_with_it(clusters, upper, vn):
    async with serving(*clusters, vn) as served:
        await node_offers(upper, vn.name, **PLAIN)
        await served.nodes.remove(vn.name)
        assert await get(upper, vn.name) is None
        with pytest.raises(errors.NotFound):
            await upper.get(LEASES, vn.name, namespace="kube-node-lease")


async def test_fields_of_users_and_controllers_stay_and_managed_fields_are_restored(clusters, upper, vn):
    async with serving(*clusters, vn):
        await node_offers(upper, vn.name, **PLAIN)
        spec = {"unschedulable": True, "taints": [{"key": "mine", "effect": "NoSchedule"}]}
        await upper.patch(
            NODES, vn.name, {"metadata": {"labels": {"team": "blue", "kubernetes.io/role": "x"}}, "spec": spec}
        )
        problem = {"type": "KernelDeadlock", "status": "False", "reason": "None", "message": ""}
        status = {"status": {"capacity": {"cpu": "1"}, "conditions": [problem]}}
        await upper.patch(NODES, vn.name, status, patch_type=PatchType.STRATEGIC, subresource="status")

        async def right():
            one = await get(upper, vn.name)
            assert one.labels["kubernetes.io/role"] == "agent"
            assert one.status["capacity"]["cpu"] == "64"
            return one

        one = await eventually(right)
    assert one.labels["team"] == "blue"
    assert one.spec["unschedulable"]
    assert "mine" in {taint["key"] for taint in one.spec["taints"]}
    assert "virtual-kubelet.io/provider" not in {taint["key"] for taint in one.spec["taints"]}
    assert "KernelDeadlock" in {condition["type"] for condition in one.status["conditions"]}


async def test_new_settings_reach_a_node_that_is_there(clusters, upper, vn):
    async with serving(*clusters, dataclasses.replace(vn, labels={"a": "1", "b": "1"})):
        await node_offers(upper, vn.name, **PLAIN)
    changed = dataclasses.replace(vn, labels={"a": "2"}, taint=None, internal_ip="127.0.0.2", external_ip="127.0.0.3")
    async with serving(*clusters, dataclasses.replace(changed, port=10350)):

        async def followed():
            one = await get(upper, vn.name)
            assert one.status["daemonEndpoints"]["kubeletEndpoint"]["Port"] == 10350
            assert one.labels.get("a") == "2"
            return one

        one = await eventually(followed)
    assert "b" not in one.labels
    assert not [taint for taint in one.spec.get("taints", ()) if taint["key"].startswith("virtual-kubelet")]
    assert one.status["addresses"] == [
        {"type": "InternalIP", "address": "127.0.0.2"},
        {"type": "ExternalIP", "address": "127.0.0.3"},
        {"type": "Hostname", "address": "127.0.0.2"},
    ]


async def test_an_idle_node_costs_its_lease_and_a_report_now_and_then(clusters, upper, vn):
    async with serving(*clusters, vn):
        await node_offers(upper, vn.name, **PLAIN)
        await eventually(lambda: has_lease(upper, vn.name))
        audit = Audit(clusters[0])

        async def renewals():
            requests = audit.requests()
            return requests if sum(resource == "leases" for _, resource, _ in requests) >= 20 else None

        began = time.monotonic()
        requests = await eventually(renewals)
        reports = (time.monotonic() - began) / (BRISK.report * 0.9) + 2
    assert set(requests) <= {("patch", "leases", vn.name), ("patch", "nodes/status", vn.name)}
    assert 1 <= sum(resource == "nodes/status" for _, resource, _ in requests) <= reports


async def has_lease(client, name):
    with contextlib.suppress(errors.NotFound):
        return await client.get(LEASES, name, namespace="kube-node-lease")


async def test_many_nodes_share_one_process_without_a_task_for_each(clusters, upper):
    many = [NodeSettings(f"many-{number}", "vn-lower") for number in range(60)]
    async with serving(*clusters) as served:
        await eventually(lambda: known(served.lower_cluster))
        before = len(asyncio.all_tasks())
        for one in many:
            served.nodes.add(one, served.lower_cluster)
        for one in many:
            await node_offers(upper, one.name, within=60, **PLAIN)
        assert len(asyncio.all_tasks()) <= before + 5
        for one in many:
            await served.nodes.remove(one.name)
    left = await upper.list(NODES, labels="hansa.dev/virtual-node=true")
    assert not [one.name for one in left.items if one.name.startswith("many-")]


async def known(lower_cluster):
    return lower_cluster.pods.freshness.is_known and lower_cluster.nodes.freshness.is_known
