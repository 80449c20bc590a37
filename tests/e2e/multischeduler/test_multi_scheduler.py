"""The seed's promise of the multi-scheduler: no pod is sent where the lower cluster cannot schedule it."""

import json
import os
import signal

import pytest
import yaml

from eventually import eventually
from league import PATIENCE, fresh_name, pod
from storage_things import claim, storage_class, using, volume

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


async def test_taints_below_count_and_so_do_the_tolerations_that_the_webhook_parked(scheduler, namespace):
    small = scheduler.league.lowers["small"]
    first, *_ = await small.all("nodes")
    name = first["metadata"]["name"]
    await small.kubectl("label", "node", name, "disk=ssd")
    await small.kubectl("taint", "node", name, "team=a:NoSchedule")
    try:
        selected = {"nodeSelector": {"disk": "ssd"}}
        await make_parked(scheduler, namespace, "stranger", selected)
        assert "1 node(s) had untolerated taint {team: a}" in await scheduler.refusal(namespace, "stranger")
        await make_parked(scheduler, namespace, "member", selected | {"tolerations": [{"key": "team", "value": "a"}]})
        assert await scheduler.node(namespace, "member") == "vn-small"
        assert (await small.find("pod", "member", namespace=namespace))["spec"]["nodeName"] == name
    finally:
        await small.kubectl("taint", "node", name, "team-")
        await small.kubectl("label", "node", name, "disk-")


async def make_parked(scheduler, namespace, name, parked):
    """A pod for virtual nodes only: on an ordinary node, parked constraints mean nothing."""
    metadata = {"namespace": namespace, "annotations": {"clusterSelector": json.dumps(parked)}}
    made = pod(name, metadata=metadata, nodeSelector={"type": "virtual-kubelet"})
    await scheduler.league.upper.kubectl.apply(made)


async def test_a_port_that_a_pod_below_has_is_taken(scheduler, namespace):
    large = scheduler.league.lowers["large"]
    ports = [{"containerPort": 80, "hostPort": 8080}]
    container = {"name": "main", "image": "example.com/app:1", "ports": ports}
    container["resources"] = {"requests": {"cpu": "1500m"}}  # more than the ordinary node has
    foreign = a_pod("foreign", cpu="1") | {"metadata": {"name": "foreign", "namespace": namespace}}
    foreign["spec"]["containers"] = [container]
    await large.kubectl("create", "namespace", namespace)
    await large.kubectl.apply(foreign)
    await large.kubectl("wait", "-n", namespace, "--for=condition=Ready", "pod/foreign", "--timeout=60s")
    await scheduler.make(namespace, "first", cpu="1500m", containers=[container])
    assert await scheduler.node(namespace, "first") == "vn-small"
    await scheduler.make(namespace, "second", cpu="1500m", containers=[container])
    message = await scheduler.refusal(namespace, "second")
    assert "large: 1 node(s) didn't have free ports for the requested pod ports" in message


async def test_when_both_clusters_are_full_a_pod_runs_where_the_first_room_appears(scheduler, namespace):
    names = [f"p{number}" for number in range(6)]
    await scheduler.make(namespace, *names, cpu="2")  # four in small, two in large
    places = {name: await scheduler.node(namespace, name) for name in names}
    assert sorted(places.values()) == ["vn-large"] * 2 + ["vn-small"] * 4
    await scheduler.make(namespace, "waiting", cpu="2")
    message = await scheduler.refusal(namespace, "waiting")
    assert "Insufficient cpu" in message
    freed = next(name for name, place in places.items() if place == "vn-small")
    await scheduler.league.upper.kubectl("delete", "pod", "-n", namespace, freed)
    assert await scheduler.node(namespace, "waiting") == "vn-small"


async def test_a_pod_whose_claim_is_bound_in_one_cluster_goes_there(scheduler, namespace):
    league, storage, disk = scheduler.league, fresh_name("disks"), fresh_name("disk")
    upper, small = league.upper.kubectl, league.lowers["small"]
    await upper.apply(storage_class(storage, "hansa.dev/below"))
    for lower in league.lowers.values():
        await lower.kubectl.apply(storage_class(storage))
    [node, *_] = await small.all("nodes")
    await small.kubectl.apply(volume(disk, node["metadata"]["name"], storage=storage))
    made = claim("data", storage=storage)
    await upper.apply(made | {"metadata": {"name": "data", "namespace": namespace}})
    await make_using(scheduler, namespace, "first", nodeName="vn-small")

    async def is_bound() -> bool:
        found = await league.upper.find("pvc", "data", namespace=namespace)
        return found["status"].get("phase") == "Bound" and await league.upper.find("pv", disk) is not None

    await eventually(is_bound, within=PATIENCE)
    for name in ("second", "third"):  # large has more room
        await make_using(scheduler, namespace, name, schedulerName="volumes-below")
        assert await scheduler.node(namespace, name) == "vn-small"
    await upper("delete", "pod", "-n", namespace, "--all")
    await upper("delete", "pvc", "-n", namespace, "data")
    await league.gone(small, "pvc", "data", namespace=namespace)
    await small.kubectl("delete", "pv", disk)


async def make_using(scheduler, namespace, name, **spec):
    made = using(name, "data", **spec)
    await scheduler.league.upper.kubectl.apply(made | {"metadata": {"name": name, "namespace": namespace}})
    await scheduler.node(namespace, name)


async def test_a_frozen_cluster_holds_up_no_pod_for_another_one(scheduler, namespace):
    with scheduler.league.lowers["small"].frozen():
        await scheduler.make(namespace, "three", cpu="3")
        assert await scheduler.node(namespace, "three") == "vn-large"
    await scheduler.league.ready()
    await scheduler.make(namespace, "two", cpu="2")
    assert await scheduler.node(namespace, "two") == "vn-small"


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


def a_pod(name, *, cpu):
    """A pod for ordinary nodes."""
    container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


async def bound(member, namespace, name):
    return (await member.find("pod", name, namespace=namespace))["spec"].get("nodeName")
