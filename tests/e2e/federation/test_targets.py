"""Targets of all kinds side by side: broken ones, silent ones, cluster-scoped ones, drained and removed ones."""

import asyncio
import contextlib

import pytest
import yaml

from eventually import eventually
from federation import API, Pods, a_deployment, a_secret, a_target, elected
from hansa.model import keys
from league import PATIENCE, fresh_name


@pytest.fixture
async def silent():
    """The address of a server that accepts connections and never answers."""
    held = []

    async def hold(_reader, writer):
        held.append(writer)

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    for writer in held:
        writer.close()


def pointing_to(config, **cluster):
    changed = yaml.safe_load(config)
    changed["clusters"][0]["cluster"] |= cluster
    return yaml.safe_dump(changed)


async def test_broken_targets_say_why_and_delay_no_other(federation, namespace, nodes, pods, silent):
    config = pods.west.cluster.kubeconfig.read_text()
    broken = {
        "garbage": "{not a kubeconfig",
        "denied": pods.west.with_token("wrong"),
        "silent": pointing_to(config, server=silent),
        "refused": pointing_to(config, server="https://127.0.0.1:1"),
    }
    await pods.apply(*(a_secret(name, text, namespace) for name, text in broken.items()))
    await pods.apply(*(a_target(name, namespace) for name in (*broken, "missing")))
    for name, reason in (
        ("missing", "missing"),
        ("garbage", "is not YAML"),
        ("denied", "401"),
        ("silent", ""),
        ("refused", ""),
    ):
        ready = await federation.ready(pods.east, "target", name, namespace=namespace, status="False")
        assert reason in ready["message"], (name, ready)
    await pods.apply(a_deployment("web", 10))
    await asyncio.wait_for(pods.rolled_out("web"), 30)
    assert sum(await pods.counts()) == 10
    await pods.apply(elected("big", cpu="99"))
    await pods.event("big", *(f"admiralty-namespace-{namespace}-{name}: " for name in ("denied", "silent", "refused")))
    # What was broken is mended while everything runs.
    await pods.apply(a_secret("garbage", config, namespace))
    await federation.joined(pods.east, "garbage", namespace)
    await pods.delete("target", *broken, "missing")
    for name in broken:
        await pods.gone("node", f"admiralty-namespace-{namespace}-{name}")


async def test_a_namespace_that_the_target_does_not_have_is_named_where_users_look(federation, namespace, nodes, pods):
    """A target with rights of its own, such as an administrator's, in a namespace that only the source has."""
    await pods.west.kubectl("delete", "namespace", namespace, "--timeout=60s")
    config = pods.west.cluster.kubeconfig.read_text()
    await pods.apply(a_secret("other", config, namespace), a_target("other", namespace))
    await pods.apply(elected("stuck", nodeSelector={"kubernetes.io/hostname": "west-0"}))
    missing = f'namespace "{namespace}" does not exist in the target'
    await pods.event("stuck", f"{namespace}-other: {missing}")
    ready = await federation.ready(pods.east, "target", "other", namespace=namespace, status="False")
    assert (ready["reason"], missing in ready["message"]) == ("NamespaceNotFound", True), ready
    await pods.west.kubectl("create", "namespace", namespace)
    await pods.running("stuck")
    await federation.joined(pods.east, "other", namespace)


async def test_pods_leave_a_drained_node_and_a_removed_target(federation, namespace, nodes, pods):
    budget = {"minAvailable": 4, "selector": {"matchLabels": {"app": "web"}}}
    await pods.apply(
        a_deployment("web", 6),
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": budget},
    )
    await pods.rolled_out("web")
    await pods.east.kubectl("drain", nodes["west"], "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=90s")
    await pods.rolled_out("web")
    await pods.have_counts(6, 0)
    await pods.east.kubectl("uncordon", nodes["west"])
    await pods.east.kubectl("-n", namespace, "delete", "target", "east", "--timeout=90s")
    await pods.gone("node", nodes["east"])
    await pods.rolled_out("web")
    await pods.have_counts(0, 6)


async def test_a_cluster_target_serves_all_namespaces(federation):
    east, west = federation.members["east"], federation.members["west"]
    name, other = fresh_name(), fresh_name("wide")
    source = {"apiVersion": API, "kind": "ClusterSource", "metadata": {"name": other}}
    await west.kubectl.apply({**source, "spec": {"serviceAccount": {"name": other, "namespace": "kube-public"}}})
    await federation.ready(west, "clustersource", other)
    secret = await federation.export("west", other, name=other, namespace="kube-public")
    await east.kubectl.apply({**secret, "metadata": {**secret["metadata"], "namespace": "default"}})
    await east.kubectl.apply(a_target(other, ""))
    node = f"admiralty-cluster-{other}"
    await federation.ready(east, "clustertarget", other)
    await federation.ready(east, "node", node)
    pods = Pods(federation, name)
    try:
        for one in (east, west):
            await one.kubectl("create", "namespace", name)
        await east.kubectl("label", "namespace", name, f"{keys.ENABLED}=enabled")
        await pods.apply(elected("web"))
        await pods.running("web", node)
    finally:
        await east.kubectl("delete", "clustertarget", other, "--timeout=90s")
        await pods.gone("node", node)
        await west.kubectl("delete", "clustersource", other, "--timeout=90s")
        for one in (east, west):
            with contextlib.suppress(AssertionError):
                await one.kubectl("delete", "namespace", name, "--wait=false")


async def test_a_burst_of_a_job_completes_above(federation, namespace, nodes, pods):
    pod = elected("work", restartPolicy="Never")
    template = {"metadata": {k: v for k, v in pod["metadata"].items() if k != "name"}, "spec": pod["spec"]}
    job = {"completions": 20, "parallelism": 20, "template": template}
    await pods.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": job})

    async def finish():
        """End the containers, as kwok does for pods of Jobs only."""
        for one in (pods.east, pods.west):
            for delegate in await federation.delegates(one, namespace):
                if delegate["status"]["phase"] == "Running":
                    ended = '{"status": {"phase": "Succeeded"}}'
                    await one.kubectl(
                        *("-n", namespace, "patch", "pod", delegate["metadata"]["name"]),
                        *("--subresource", "status", "--type", "merge", "-p", ended),
                    )
        done = await pods.east.find("job", "work", namespace=namespace)
        return done["status"].get("succeeded") == 20

    await eventually(finish, within=PATIENCE)
    await pods.east.kubectl("-n", namespace, "wait", "job/work", "--for=condition=Complete", "--timeout=60s")
    await pods.delete("job", "work")
    await pods.have_counts(0, 0)
