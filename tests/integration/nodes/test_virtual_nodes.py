"""Virtual nodes on real clusters: one upper cluster, one lower cluster with kwok nodes."""

import asyncio
import contextlib
import dataclasses
import itertools
import re
import signal
import time

import pytest
import yaml

import kube_files
from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.client import Client, PatchType
from hansa.kube.credentials import kubeconfig
from hansa.kube.objects import Object
from hansa.local import ClusterSpec, NodeShape, components
from hansa.model import stamp
from hansa.nodes import settings, virtual_node
from hansa.nodes.settings import Settings
from lower_things import container, node, pod
from virtual_nodes import BRISK, Audit, serving

NODES, PODS, LEASES = resources.NODES, resources.PODS, resources.LEASES
PLAIN = {"cpu": "64", "memory": "512Gi", "pods": "220"}
numbers = itertools.count()


@pytest.fixture(scope="module")
async def clusters(fleet):
    """An upper cluster whose API server notes all requests, and a lower one with two nodes."""
    upper = ClusterSpec("vn-upper", audit=True, lift_limits=True)
    lower = ClusterSpec("vn-lower", nodes=2, shape=NodeShape(labels={"topology.kubernetes.io/region": "north"}))
    yield await fleet.up([upper, lower])
    await fleet.down(["vn-upper", "vn-lower"])


@pytest.fixture(scope="module")
async def upper(clusters):
    async with clusters[0].client("test") as client:
        yield client


@pytest.fixture(scope="module")
async def lower(clusters):
    async with clusters[1].client("test") as client:
        yield client


@pytest.fixture
async def vn(upper):
    """The settings of a virtual node that is gone after the test."""
    one = Settings(
        f"vn-{next(numbers)}",
        "vn-lower",
        taint=settings.provider_taint("k8s", {}),
        internal_ip="127.0.0.1",
        port=10250,
    )
    yield one
    with contextlib.suppress(errors.NotFound):
        await virtual_node.remove(upper, one)


@pytest.fixture
async def things(lower):
    """Makes nodes and pods in the lower cluster, which are gone after the test."""
    made = []

    async def make(thing):
        resource = NODES if thing.kind == "Node" else PODS
        created = await lower.create(resource, thing)
        made.append((resource, created))
        return created

    yield make
    for resource, one in reversed(made):
        with contextlib.suppress(errors.NotFound):
            grace = 0 if resource is PODS else None
            await lower.delete(resource, one.name, namespace=one.namespace, grace=grace)
    for resource, one in made:
        await gone(lower, resource, one)


async def gone(client, resource, one):
    async def is_gone():
        with contextlib.suppress(errors.NotFound):
            return (await client.get(resource, one.name, namespace=one.namespace)).uid != one.uid
        return True

    await eventually(is_gone)


async def get(client, name):
    try:
        return await client.get(NODES, name)
    except errors.NotFound:
        return None


def ready(one):
    found = [c for c in one.status.get("conditions", ()) if c["type"] == "Ready"]
    return found[0] if found else {}


async def told(client, name, *, within=15.0, **allocatable):
    """Wait until the node is ready and offers that."""
    wanted = {key.replace("gpu", "example.com/gpu"): value for key, value in allocatable.items()}

    async def tells():
        one = await get(client, name)
        assert one is not None, "there is no node"
        assert ready(one).get("status") == "True", ready(one)
        offered = one.status["allocatable"]
        assert {key: offered.get(key) for key in wanted} == wanted, offered
        return one

    return await eventually(tells, within=within)


def bound(name, on, **requests):
    return pod(name, on=on, phase="Pending", containers=[container(**requests)])


async def cordon(client, name, is_cordoned=True):
    await client.patch(NODES, name, {"spec": {"unschedulable": is_cordoned or None}})


async def test_a_virtual_node_offers_what_the_lower_cluster_has(clusters, upper, vn):
    async with serving(*clusters, vn):
        one = await told(upper, vn.name, **PLAIN)
    assert one.status["capacity"] == PLAIN
    assert one.status["nodeInfo"]["kubeletVersion"] == "v1.35.8"
    assert one.labels["topology.kubernetes.io/region"] == "north"
    assert "topology.kubernetes.io/zone" not in one.labels
    assert one.spec["taints"][0] == {"key": "virtual-kubelet.io/provider", "value": "k8s", "effect": "NoSchedule"}
    lease = await upper.get(LEASES, vn.name, namespace="kube-node-lease")
    assert lease.spec["holderIdentity"] == vn.name
    assert lease.spec["leaseDurationSeconds"] == 40
    assert lease.metadata.owner_references[0].uid == one.uid


async def run(kubectl, cluster, *arguments):
    path = str(cluster.kubeconfig)
    process = await asyncio.create_subprocess_exec(
        kubectl, "--kubeconfig", path, *arguments, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return out.decode()


async def test_kubectl_shows_it_as_a_node(clusters, upper, vn, kubectl):
    async with serving(*clusters, vn):
        await told(upper, vn.name, **PLAIN)
        row = (await run(kubectl, clusters[0], "get", "node", vn.name, "--no-headers", "-o", "wide")).split()
        assert [row[1], row[2], row[4], row[5]] == ["Ready", "agent", "v1.35.8", "127.0.0.1"]
        assert "cluster vn-lower" in " ".join(row)
        described = await run(kubectl, clusters[0], "describe", "node", vn.name)
    assert "virtual-kubelet.io/provider=k8s:NoSchedule" in described
    assert "2 of 2 nodes of cluster vn-lower take pods" in described
    assert "HolderIdentity:  " + vn.name in described


async def test_it_follows_nodes_that_come_change_and_go(clusters, upper, lower, vn, things):
    async with serving(*clusters, vn):
        await told(upper, vn.name, **PLAIN)
        await things(node("extra", cpu="4", memory="8Gi", pods="10", gpu="2"))
        await told(upper, vn.name, cpu="68", memory="520Gi", pods="230", gpu="2")
        await cordon(lower, "vn-lower-0")
        await told(upper, vn.name, cpu="36", memory="264Gi", pods="120", gpu="2")
        await cordon(lower, "vn-lower-0", is_cordoned=False)
        await told(upper, vn.name, cpu="68")
        taint = {"spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}}
        await lower.patch(NODES, "vn-lower-1", taint)
        await told(upper, vn.name, cpu="36")
        await lower.patch(NODES, "vn-lower-1", {"spec": {"taints": None}})
        await told(upper, vn.name, cpu="68")
        sick = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        await lower.patch(NODES, "extra", sick, patch_type=PatchType.STRATEGIC, subresource="status")
        assert "example.com/gpu" not in (await told(upper, vn.name, **PLAIN)).status["capacity"]


async def test_it_follows_the_pods_of_others_and_not_its_own(clusters, upper, lower, vn, things):
    async with serving(*clusters, vn) as served:
        await told(upper, vn.name, **PLAIN)
        await things(bound("theirs", "vn-lower-0", cpu="1500m", memory="1Gi"))
        origin = stamp.Origin(served.upper_id, "1", "default", "ours")
        await things(stamp.put(bound("ours", "vn-lower-0", cpu="10"), origin))
        await things(stamp.put(bound("anothers", "vn-lower-1", cpu="250m"), dataclasses.replace(origin, upper="x")))
        one = await told(upper, vn.name, cpu="62250m", memory="511Gi", pods="218")
        assert one.status["capacity"] == PLAIN
        await lower.delete(PODS, "theirs", namespace="default", grace=0)
        await told(upper, vn.name, cpu="63750m", memory="512Gi", pods="219")


async def counted_by_scheduler(cluster, folder, pods):
    """The requests of all pods as the scheduler itself tells them in its metrics: CPUs, and bytes."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    entry = config["clusters"][0]["cluster"]
    del entry["certificate-authority-data"]  # it signs its own certificate
    entry["server"] = f"https://127.0.0.1:{cluster.record.ports[components.SCHEDULER]}"
    entry["insecure-skip-tls-verify"] = True
    path = kube_files.write(folder / "scheduler", config)
    async with Client(kubeconfig.from_files(path), user_agent="test") as client:

        async def seen():
            answer = await client.request("GET", "/metrics/resources", accept="text/plain")
            lines = re.findall(
                r'kube_pod_resource_request{.*pod="(.+?)".*resource="(.+?)".*} (\S+)', answer.body.decode()
            )
            return lines if {pod for pod, _, _ in lines} >= set(pods) else None

        lines = await eventually(seen)
    return tuple(sum(float(number) for _, kind, number in lines if kind == name) for name in ("cpu", "memory"))


async def test_pods_of_every_shape_are_counted_as_the_scheduler_counts_them(
    clusters, upper, lower, vn, things, tmp_path
):
    heavy = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "heavy"}, "handler": "heavy"}
    overhead = {"overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}}}
    steps = [container("a", cpu="3", memory="1Mi"), container("s", sidecar=True, cpu="2"), container("b", cpu="500m")]
    shapes = [
        {"containers": [container("a", cpu="100m", memory="1Gi"), container("b", memory="3M")]},
        {"containers": [container(cpu="1", memory="1Gi")], "initContainers": steps},
        {"containers": [container(cpu="300m")], "initContainers": steps[1:]},
        {"runtimeClassName": "heavy"},
        {"resources": {"requests": {"cpu": "7", "memory": "2Gi"}}, "containers": [container(cpu="1"), container("b")]},
    ]
    await lower.create(resources.RUNTIME_CLASSES, Object.of(heavy | overhead))
    try:
        for number, shape in enumerate(shapes):
            await things(pod(f"shape-{number}", on="vn-lower-0", phase="Pending", **shape))
        cpus, size = await counted_by_scheduler(clusters[1], tmp_path, [f"shape-{n}" for n in range(len(shapes))])
        assert cpus == 13.85
        left = {"cpu": f"{64_000 - round(cpus * 1000)}m", "memory": str((512 << 30) - int(size))}
        async with serving(*clusters, vn):
            await told(upper, vn.name, **left, pods="215")
    finally:
        await lower.delete(resources.RUNTIME_CLASSES, "heavy")


async def test_our_pods_on_a_cordoned_node_take_no_room_on_the_others(clusters, upper, lower, vn, things):
    async with serving(*clusters, vn) as served:
        await told(upper, vn.name, **PLAIN)
        await things(stamp.put(bound("ours", "vn-lower-0", cpu="10"), stamp.Origin(served.upper_id, "1", "d", "o")))
        await cordon(lower, "vn-lower-0")
        try:
            await told(upper, vn.name, cpu="42", pods="111")
        finally:
            await cordon(lower, "vn-lower-0", is_cordoned=False)


async def test_it_tells_the_same_after_a_restart_and_is_ready_all_the_time(clusters, upper, vn, things):
    await things(bound("theirs", "vn-lower-0", cpu="1"))
    async with serving(*clusters, vn):
        before = await told(upper, vn.name, cpu="63")
    stopped = await get(upper, vn.name)
    assert ready(stopped)["status"] == "True"
    await things(bound("meanwhile", "vn-lower-1", cpu="1"))
    async with serving(*clusters, vn):
        after = await told(upper, vn.name, cpu="62")
    assert after.uid == before.uid
    assert ready(after)["lastTransitionTime"] == ready(before)["lastTransitionTime"]


async def test_a_frozen_lower_cluster_makes_it_not_ready_within_seconds_and_it_heals(clusters, upper, lower, vn):
    apiserver = clusters[1].process(components.APISERVER)

    async def not_ready():
        one = await get(upper, vn.name)
        return one if ready(one)["status"] == "False" else None

    async def renewed():
        lease = await upper.get(LEASES, vn.name, namespace="kube-node-lease")
        return lease.spec["renewTime"]

    async with serving(*clusters, vn):
        before = await told(upper, vn.name, **PLAIN)
        began = time.monotonic()
        apiserver.signal(signal.SIGSTOP)
        try:
            frozen = await eventually(not_ready, within=20)
            seconds = time.monotonic() - began
            former = await renewed()

            async def lives():
                return await renewed() > former

            await eventually(lives, within=5)
        finally:
            apiserver.signal(signal.SIGCONT)
        await told(upper, vn.name, **PLAIN)
    assert seconds < 15
    assert ready(frozen)["reason"] == "LowerClusterUnreachable"
    assert "gave no answer in" in ready(frozen)["message"]
    assert frozen.status["allocatable"] == before.status["allocatable"]
    assert frozen.labels == before.labels


async def test_a_lower_cluster_that_is_away_at_the_start_is_told_and_heals(clusters, upper, lower, vn):
    apiserver = clusters[1].process(components.APISERVER)

    async def not_ready():
        one = await get(upper, vn.name)
        return one and ready(one)["status"] == "False" and one

    apiserver.signal(signal.SIGSTOP)
    try:
        async with serving(*clusters, vn):
            away = await eventually(not_ready, within=20)
            apiserver.signal(signal.SIGCONT)
            await told(upper, vn.name, within=30, **PLAIN)
    finally:
        apiserver.signal(signal.SIGCONT)
    assert away.status["capacity"]["cpu"] == "0"
    assert ready(away)["reason"] == "LowerClusterUnreachable"


async def test_a_deleted_node_is_made_again_with_its_lease(clusters, upper, vn):
    async with serving(*clusters, vn):
        first = await told(upper, vn.name, **PLAIN)
        await upper.delete(NODES, vn.name, uid=first.uid)

        async def again():
            one = await get(upper, vn.name)
            with contextlib.suppress(errors.NotFound):  # the former lease went with the former node
                lease = await upper.get(LEASES, vn.name, namespace="kube-node-lease")
                return one and one.uid != first.uid and lease.metadata.owner_references[0].uid == one.uid

        await eventually(again)
        await told(upper, vn.name, **PLAIN)


async def test_a_node_of_somebody_else_is_left_alone_until_it_is_gone(clusters, upper, vn):
    made = await upper.create(NODES, node(vn.name))
    async with serving(*clusters, vn) as served:

        async def refused():
            return served.nodes.troubles()

        [sentence] = await eventually(refused)
        assert f"node {vn.name} is there and is not a virtual node, so it is left alone" in sentence
        theirs = await get(upper, vn.name)
        assert (theirs.uid, theirs.labels) == (made.uid, made.labels)
        assert theirs.status["allocatable"] == made.status["allocatable"]
        with pytest.raises(errors.NotFound):
            await upper.get(LEASES, vn.name, namespace="kube-node-lease")
        with pytest.raises(virtual_node.NotOurs):
            await served.nodes.remove(vn.name)
        assert (await get(upper, vn.name)).uid == made.uid
        served.nodes.add(vn, served.lower)
        await upper.delete(NODES, vn.name, uid=made.uid)
        await told(upper, vn.name, **PLAIN)
        assert served.nodes.troubles() == []


async def test_a_node_of_another_lower_cluster_is_left_alone(clusters, upper, vn):
    async with serving(*clusters, vn):
        one = await told(upper, vn.name, **PLAIN)
    async with serving(*clusters, dataclasses.replace(vn, lower="elsewhere")) as served:

        async def refused():
            return served.nodes.troubles()

        [sentence] = await eventually(refused)
        assert "stands for cluster vn-lower" in sentence
    assert (await get(upper, vn.name)).labels == one.labels


async def test_what_the_upper_cluster_refuses_is_told(clusters, upper, vn):
    async with serving(*clusters, dataclasses.replace(vn, labels={"team": "not a value"})) as served:

        async def refused():
            return served.nodes.troubles()

        [sentence] = await eventually(refused)
    assert "not a value" in sentence
    assert await get(upper, vn.name) is None


async def test_removing_a_node_takes_its_lease_with_it(clusters, upper, vn):
    async with serving(*clusters, vn) as served:
        await told(upper, vn.name, **PLAIN)
        await served.nodes.remove(vn.name)
        assert await get(upper, vn.name) is None
        with pytest.raises(errors.NotFound):
            await upper.get(LEASES, vn.name, namespace="kube-node-lease")


async def test_what_users_and_controllers_put_on_it_stays_and_what_is_ours_is_put_right(clusters, upper, vn):
    async with serving(*clusters, vn):
        await told(upper, vn.name, **PLAIN)
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
        await told(upper, vn.name, **PLAIN)
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
        {"type": "Hostname", "address": vn.name},
    ]


async def test_the_upper_scheduler_places_pods_by_it(clusters, upper, vn, things):
    toleration = {"key": "virtual-kubelet.io/provider", "operator": "Exists"}

    def wanting(name, cpu):
        selector = {"kubernetes.io/hostname": vn.name}
        return pod(
            name,
            on="",
            phase="Pending",
            containers=[container(cpu=cpu)],
            tolerations=[toleration],
            nodeSelector=selector,
        )

    async def placed(name):
        one = await upper.get(PODS, name, namespace="default")
        return one.spec.get("nodeName") == vn.name

    async def unplaced(name):
        one = await upper.get(PODS, name, namespace="default")
        return any("Insufficient cpu" in c.get("message", "") for c in one.status.get("conditions", ()))

    await things(bound("theirs", "vn-lower-0", cpu="4"))
    async with serving(*clusters, vn):
        await told(upper, vn.name, cpu="60")
        try:
            await upper.create(PODS, wanting("large", "61"))
            await eventually(lambda: unplaced("large"))
            await upper.create(PODS, wanting("fits", "60"))
            await eventually(lambda: placed("fits"))
        finally:
            for name in ("large", "fits"):
                await upper.delete(PODS, name, namespace="default", grace=0)


async def test_an_idle_node_costs_its_lease_and_a_report_now_and_then(clusters, upper, vn):
    async with serving(*clusters, vn):
        await told(upper, vn.name, **PLAIN)
        audit = Audit(clusters[0])

        async def renewals():
            requests = audit.requests()
            return requests if sum(resource == "leases" for _, resource, _ in requests) >= 20 else None

        began = time.monotonic()
        requests = await eventually(renewals)
        reports = (time.monotonic() - began) / (BRISK.report * 0.9) + 2
    assert set(requests) <= {("patch", "leases", vn.name), ("patch", "nodes/status", vn.name)}
    assert 1 <= sum(resource == "nodes/status" for _, resource, _ in requests) <= reports


async def test_many_changes_below_are_few_writes_above(clusters, upper, lower, vn, things):
    async with serving(*clusters, vn):
        await told(upper, vn.name, **PLAIN)
        audit, began = Audit(clusters[0]), time.monotonic()
        for number in range(60):
            await things(bound(f"churn-{number}", f"vn-lower-{number % 2}", cpu="100m"))
        await told(upper, vn.name, cpu="58", pods="160")
        seconds = time.monotonic() - began
        written = [request for request in audit.requests() if request[1].startswith("nodes")]
    assert set(written) == {("patch", "nodes/status", vn.name)}
    assert len(written) <= seconds / BRISK.pause + 1


async def test_many_nodes_share_one_process_without_a_task_for_each(clusters, upper):
    many = [Settings(f"many-{number}", "vn-lower") for number in range(60)]
    async with serving(*clusters) as served:
        await eventually(lambda: known(served.lower))
        before = len(asyncio.all_tasks())
        for one in many:
            served.nodes.add(one, served.lower)
        for one in many:
            await told(upper, one.name, within=30, **PLAIN)
        assert len(asyncio.all_tasks()) <= before + 5
        for one in many:
            await served.nodes.remove(one.name)
    left = await upper.list(NODES, labels="hansa.dev/virtual-node=true")
    assert not [one.name for one in left.items if one.name.startswith("many-")]


async def known(lower_cluster):
    return lower_cluster.pods.knowledge.is_known and lower_cluster.nodes.knowledge.is_known
