"""Allocatable resources of a virtual node on real clusters: those of the lower cluster, less those used by others."""

import asyncio
import dataclasses
import re
import time

import yaml

import kube_files
from eventually import eventually
from hansa.kube import resources
from hansa.kube.client import Client, PatchType
from hansa.kube.credentials import kubeconfig
from hansa.kube.objects import Object
from hansa.model import stamp
from hansa.programs import components
from lower_things import container, node, pod
from virtual_nodes import BRISK, LEASES, NODES, PLAIN, PODS, Audit, bound, cordon, get, node_offers, ready, serving


async def test_a_virtual_node_offers_what_the_lower_cluster_has(clusters, upper, vn):
    async with serving(*clusters, vn):
        one = await node_offers(upper, vn.name, **PLAIN)
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
        await node_offers(upper, vn.name, **PLAIN)
        row = (await run(kubectl, clusters[0], "get", "node", vn.name, "--no-headers", "-o", "wide")).split()
        assert [row[1], row[2], row[4], row[5]] == ["Ready", "agent", "v1.35.8", "127.0.0.1"]
        assert "cluster vn-lower" in " ".join(row)
        described = await run(kubectl, clusters[0], "describe", "node", vn.name)
    assert "virtual-kubelet.io/provider=k8s:NoSchedule" in described
    assert "2 of 2 nodes of cluster vn-lower are schedulable" in described
    assert "HolderIdentity:  " + vn.name in described


async def test_it_follows_nodes_that_come_change_and_go(clusters, upper, lower, vn, things):
    async with serving(*clusters, vn):
        await node_offers(upper, vn.name, **PLAIN)
        await things(node("extra", cpu="4", memory="8Gi", pods="10", gpu="2"))
        await node_offers(upper, vn.name, cpu="68", memory="520Gi", pods="230", gpu="2")
        await cordon(lower, "vn-lower-0")
        await node_offers(upper, vn.name, cpu="36", memory="264Gi", pods="120", gpu="2")
        await cordon(lower, "vn-lower-0", is_cordoned=False)
        await node_offers(upper, vn.name, cpu="68")
        taint = {"spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}}
        await lower.patch(NODES, "vn-lower-1", taint)
        await node_offers(upper, vn.name, cpu="36")
        await lower.patch(NODES, "vn-lower-1", {"spec": {"taints": None}})
        await node_offers(upper, vn.name, cpu="68")
        sick = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        await lower.patch(NODES, "extra", sick, patch_type=PatchType.STRATEGIC, subresource="status")
        assert "example.com/gpu" not in (await node_offers(upper, vn.name, **PLAIN)).status["capacity"]


async def test_it_follows_the_pods_of_others_and_not_its_own(clusters, upper, lower, vn, things):
    async with serving(*clusters, vn) as served:
        await node_offers(upper, vn.name, **PLAIN)
        await things(bound("theirs", "vn-lower-0", cpu="1500m", memory="1Gi"))
        origin = stamp.Origin(served.upper_id, "1", "default", "ours")
        await things(stamp.put(bound("ours", "vn-lower-0", cpu="10"), origin))
        await things(stamp.put(bound("anothers", "vn-lower-1", cpu="250m"), dataclasses.replace(origin, upper="x")))
        one = await node_offers(upper, vn.name, cpu="62250m", memory="511Gi", pods="218")
        assert one.status["capacity"] == PLAIN
        await lower.delete(PODS, "theirs", namespace="default", grace=0)
        await node_offers(upper, vn.name, cpu="63750m", memory="512Gi", pods="219")


async def counted_by_scheduler(cluster, folder, pods):
    """The requests of all pods as in the metrics of kube-scheduler: CPUs, and bytes."""
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
            await node_offers(upper, vn.name, **left, pods="215")
    finally:
        await lower.delete(resources.RUNTIME_CLASSES, "heavy")


async def test_our_pods_on_a_cordoned_node_use_no_capacity_of_the_others(clusters, upper, lower, vn, things):
    async with serving(*clusters, vn) as served:
        await node_offers(upper, vn.name, **PLAIN)
        await things(stamp.put(bound("ours", "vn-lower-0", cpu="10"), stamp.Origin(served.upper_id, "1", "d", "o")))
        await cordon(lower, "vn-lower-0")
        try:
            await node_offers(upper, vn.name, cpu="42", pods="111")
        finally:
            await cordon(lower, "vn-lower-0", is_cordoned=False)


async def test_a_node_stays_ready_over_a_restart_and_is_the_same_node_after_it(clusters, upper, vn, things):
    await things(bound("theirs", "vn-lower-0", cpu="1"))
    async with serving(*clusters, vn):
        before = await node_offers(upper, vn.name, cpu="63")
    stopped = await get(upper, vn.name)
    assert ready(stopped)["status"] == "True"
    await things(bound("meanwhile", "vn-lower-1", cpu="1"))
    async with serving(*clusters, vn):
        after = await node_offers(upper, vn.name, cpu="62")
    assert after.uid == before.uid
    assert ready(after)["lastTransitionTime"] == ready(before)["lastTransitionTime"]


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
        await node_offers(upper, vn.name, cpu="60")
        try:
            await upper.create(PODS, wanting("large", "61"))
            await eventually(lambda: unplaced("large"))
            await upper.create(PODS, wanting("fits", "60"))
            await eventually(lambda: placed("fits"))
        finally:
            for name in ("large", "fits"):
                await upper.delete(PODS, name, namespace="default", grace=0)


async def test_many_changes_in_the_lower_cluster_are_few_writes_to_the_upper_one(clusters, upper, lower, vn, things):
    async with serving(*clusters, vn):
        await node_offers(upper, vn.name, **PLAIN)
        audit, began = Audit(clusters[0]), time.monotonic()
        for number in range(60):
            await things(bound(f"churn-{number}", f"vn-lower-{number % 2}", cpu="100m"))
        await node_offers(upper, vn.name, cpu="58", pods="160")
        seconds = time.monotonic() - began
        written = [request for request in audit.requests() if request[1].startswith("nodes")]
    assert set(written) == {("patch", "nodes/status", vn.name)}
    assert len(written) <= seconds / BRISK.pause + 1
