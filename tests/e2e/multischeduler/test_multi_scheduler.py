"""The seed's promise of the multi-scheduler: no pod is sent where the lower cluster cannot schedule it."""

import os
import signal

import pytest
import yaml

from eventually import eventually
from league import PATIENCE

PROVIDER = {"key": "virtual-kubelet.io/provider", "value": "k8s", "effect": "NoSchedule"}
pytestmark = pytest.mark.timeout(400)


async def test_a_pod_goes_where_one_node_has_room_and_not_where_the_room_is_in_pieces(scheduler, namespace):
    await scheduler.make(namespace, "three", cpu="3")
    assert await scheduler.node(namespace, "three") == "vn-large"


async def test_a_pending_pod_says_why_each_cluster_refused_and_runs_when_there_is_room(scheduler, namespace):
    await scheduler.make(namespace, "first", cpu="3")
    assert await scheduler.node(namespace, "first") == "vn-large"
    await scheduler.make(namespace, "second", cpu="3")
    message = await scheduler.refusal(namespace, "second")
    assert "small: Insufficient cpu (requested 3, most free 2 on node" in message
    assert "Insufficient cpu" in message.replace("small: Insufficient cpu", ""), "vn-large has too little in all"
    await scheduler.league.upper.kubectl("delete", "pod", "-n", namespace, "first")
    assert await scheduler.node(namespace, "second") == "vn-large"


async def test_constraints_that_the_webhook_parked_are_met_by_nodes_below(scheduler, namespace):
    small = scheduler.league.lowers["small"]
    first, *_ = await small.all("nodes")
    name = first["metadata"]["name"]
    await small.kubectl("label", "node", name, "disk=ssd")
    parked = {"clusterSelector": '{"nodeSelector":{"disk":"ssd"}}'}
    container = {"name": "main", "image": "example.com/app:1"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "picky", "namespace": namespace, "annotations": parked},
        "spec": {"containers": [container], "tolerations": [{"operator": "Exists"}]},
    }
    await scheduler.league.upper.kubectl.apply(pod)
    assert await scheduler.node(namespace, "picky") == "vn-small"
    await small.kubectl("label", "node", name, "disk-")


async def test_ordinary_nodes_take_pods_as_ever(scheduler, namespace):
    container = {"name": "main", "image": "example.com/app:1"}
    await scheduler.league.upper.kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "plain", "namespace": namespace},
            "spec": {"containers": [container]},
        }
    )
    assert not (await scheduler.node(namespace, "plain")).startswith("vn-")


async def test_of_a_burst_as_many_run_as_fit_and_no_copy_waits_below(scheduler, namespace):
    names = [f"p{number}" for number in range(14)]
    await scheduler.make(namespace, *names, cpu="1500m")  # four fit in small, two in large

    async def running() -> bool:
        found = await scheduler.league.upper.all("pods", namespace=namespace)
        phases = [one["status"]["phase"] for one in found]
        assert (phases.count("Running"), phases.count("Pending")) == (6, 8), phases
        return True

    await eventually(running, within=PATIENCE)
    for lower in scheduler.league.lowers.values():
        for copy in await lower.all("pods", namespace=namespace):
            assert copy["spec"].get("nodeName"), f"{copy['metadata']['name']} has no node in {lower.name}"
    bound = [
        one for one in await scheduler.league.upper.all("pods", namespace=namespace) if one["spec"].get("nodeName")
    ]
    assert len(bound) == 6, "no pod was bound beyond the room"


async def test_pods_wait_while_the_extender_is_away_and_go_on_after_a_kill(scheduler, namespace):
    await scheduler.kill()
    await scheduler.make(namespace, "three", cpu="3")

    async def tried() -> bool:
        events = await scheduler.league.upper.all("events", namespace=namespace)
        assert any(one["reason"] == "FailedScheduling" and "connect" in one.get("message", "") for one in events), (
            events
        )
        return True

    await eventually(tried, within=PATIENCE)
    found = await scheduler.league.upper.find("pod", "three", namespace=namespace)
    assert "nodeName" not in found["spec"]
    await scheduler.start()
    assert await scheduler.node(namespace, "three") == "vn-large"


async def test_room_on_one_node_wakes_a_pod_that_the_sums_of_its_cluster_would_not(scheduler, namespace):
    league = scheduler.league
    for lower in league.lowers.values():
        await lower.kubectl("create", "namespace", namespace)
        foreign = [a_pod(f"foreign-{node}", cpu="1") for node in range(4)]
        await lower.kubectl.apply(
            *({**one, "metadata": {**one["metadata"], "namespace": namespace}} for one in foreign)
        )
        for one in foreign:
            await lower.kubectl(
                "wait", "-n", namespace, "--for=condition=Ready", f"pod/{one['metadata']['name']}", "--timeout=60s"
            )
    await scheduler.make(namespace, "waiting", cpu="1500m")
    await scheduler.refusal(namespace, "waiting")
    os.kill(league.program.pid, signal.SIGSTOP)  # it reports no capacity
    try:
        small = league.lowers["small"]
        await small.kubectl("delete", "pod", "-n", namespace, "foreign-0", "--grace-period=0", "--force")
        await eventually(lambda: bound(league.upper, namespace, "waiting"), within=PATIENCE)
    finally:
        os.kill(league.program.pid, signal.SIGCONT)
    assert await scheduler.node(namespace, "waiting") == "vn-small"


async def test_what_explain_says_would_make_a_pod_fit_does(scheduler, namespace, tmp_path):
    await scheduler.make(namespace, "first", cpu="3")
    await scheduler.node(namespace, "first")
    await scheduler.make(namespace, "second", cpu="3")
    await scheduler.refusal(namespace, "second")
    explained = await scheduler.explain("pod", f"{namespace}/second")
    assert explained["node"] == ""
    answers = {one["cluster"]: one for one in explained["answers"]}
    assert answers["small"]["wouldFitIf"].endswith("had 1 CPU more free")
    assert answers["large"]["wouldFitIf"] == "would fit if node multi-large-0 had 2 CPU more free"
    [first] = [one for one in (await scheduler.explain("pod", f"{namespace}/first"))["answers"] if one["fits"]]
    assert first["fitsOn"] == "multi-large-0", "where it is, without its own copy"
    new = tmp_path / "new.yaml"  # the pod with 1 CPU less
    described = a_pod("new", cpu="2") | {"metadata": {"name": "new", "namespace": namespace}}
    new.write_text(yaml.safe_dump(described))
    answers = {one["cluster"]: one for one in (await scheduler.explain("pod", "--pod-file", str(new)))["answers"]}
    assert answers["small"]["changes"] == [{"node": "vn-small", "tolerate": [PROVIDER]}], "its virtual node refuses it"
    described["spec"]["tolerations"] = [{"operator": "Exists"}]
    new.write_text(yaml.safe_dump(described))
    [answer] = [one for one in (await scheduler.explain("pod", "--pod-file", str(new)))["answers"] if one["fits"]]
    assert answer["cluster"] == "small"
    await scheduler.make(namespace, "third", cpu="2")
    assert await scheduler.node(namespace, "third") == "vn-small"


async def test_the_rights_of_the_manifests_are_enough_and_all_needed(scheduler):
    """For what the tests before it did."""
    await scheduler.stop()
    for account in scheduler.accounts:
        await eventually(account.ended)
        assert (account.refused(), account.unused()) == (set(), set())


def a_pod(name, *, cpu):
    """A pod for ordinary nodes."""
    container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


async def bound(member, namespace, name):
    return (await member.find("pod", name, namespace=namespace))["spec"].get("nodeName")
