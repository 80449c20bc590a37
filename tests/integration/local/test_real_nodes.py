"""Real kubelets on this machine: features and connectivity of their pods, and complete removal."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import real_machine
from eventually import eventually
from hansa import local
from hansa.local import Cluster, ClusterSpec, Fleet
from hansa.local.machines import images, oci
from hansa.local.machines.command import Failed, run
from hansa.local.machines.node import PULLS
from hansa.local.machines.oci import Image
from hansa.local.machines.requirements import Tools
from hansa.programs import process

PATIENCE = "60s"
MINE, LATER = "example.com/mine:1", "example.com/later:1"


@dataclass(frozen=True)
class Kubectl:
    """The real kubectl, as a user of one cluster."""

    program: Path
    cluster: Cluster

    async def __call__(self, *arguments: str, text: str = "") -> str:
        return await run(str(self.program), f"--kubeconfig={self.cluster.kubeconfig}", *arguments, text=text)

    async def apply(self, *manifests: dict[str, Any]) -> None:
        """Create objects, and wait for pods to be Ready."""
        await self("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
        for pod in (m["metadata"]["name"] for m in manifests if m["kind"] == "Pod"):
            await self("wait", f"pod/{pod}", "--for=condition=Ready", f"--timeout={PATIENCE}")

    async def gets(self, url: str, answer: str, *, pod: str = "box") -> bool:
        """Whether a pod gets that answer from there: a Service reaches all nodes a moment after it is created."""
        try:
            return await self("exec", pod, "--", "wget", "-qO-", url) == answer
        except Failed:
            return False

    async def answers(self) -> bool:
        """Whether the kubelet runs commands in a pod that is there."""
        try:
            return await self("exec", "box", "--", "echo", "here") == "here\n"
        except Failed:
            return False

    async def address(self, pod: str) -> str:
        return await self("get", "pod", pod, "-o", "jsonpath={.status.podIP}")


def pod(name: str, image: str, *arguments: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image, "args": list(arguments)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }


def service(name: str) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


WEB = pod("web", images.AGNHOST, "netexec", "--http-port=8080")
BOX = pod("box", images.BUSYBOX, "sh", "-c", "echo ready to work; sleep 1000000")


@pytest.fixture(scope="module", autouse=True)
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return real_machine.tools(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="module")
def archive(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image archive of the user's own."""
    path = tmp_path_factory.mktemp("images") / "mine.tar"
    oci.build([Image(MINE, {"/mine/busybox": tools.busybox}, ("/mine/busybox", "sleep", "1000000"))], path)
    return path


@pytest.fixture(scope="module")
async def clusters(fleet: Fleet, kubectl: Path, archive: Path) -> AsyncIterator[dict[str, Kubectl]]:
    """Three clusters: two with joined pods, of which one has two nodes, and one that stays apart."""
    specs = [
        ClusterSpec("left", real_nodes=2, join_pods=True),
        ClusterSpec("right", real_nodes=1, join_pods=True),
        ClusterSpec("apart", real_nodes=1, images=(str(archive),)),
    ]
    try:
        made = await fleet.up(specs)
        users = {cluster.name: Kubectl(kubectl, cluster) for cluster in made}
        await asyncio.gather(*(user.apply(WEB, BOX, service("web")) for user in users.values()))
        yield users
    finally:
        await fleet.down([spec.name for spec in specs])


@pytest.fixture
def left(clusters: dict[str, Kubectl]) -> Kubectl:
    return clusters["left"]


async def test_a_pod_on_a_real_node_logs_and_runs_commands(left: Kubectl) -> None:
    assert await left("logs", "box") == "ready to work\n"
    assert await left("exec", "box", "--", "hostname") == "box\n"
    assert await left("exec", "-i", "box", "--", "tr", "a-z", "A-Z", text="loud") == "LOUD"


async def test_a_command_that_fails_in_a_pod_fails_here(left: Kubectl) -> None:
    with pytest.raises(Failed, match="exit code 3"):
        await left("exec", "box", "--", "sh", "-c", "exit 3")


async def test_a_service_is_reached_by_its_name_from_another_pod(left: Kubectl) -> None:
    await eventually(lambda: left.gets("http://web/hostname", "web"))
    await eventually(lambda: left.gets("http://web.default.svc.cluster.local/hostname", "web"))


async def test_a_service_is_reached_from_every_node_whichever_its_pod_is_on(left: Kubectl) -> None:
    address = await left("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
    nodes = ["left-real-1", "left-real-2"]
    await left.apply(*(pod(f"on-{node}", images.BUSYBOX, "sleep", "1000000", nodeName=node) for node in nodes))
    for node in nodes:
        await eventually(lambda pod=f"on-{node}": left.gets(f"http://{address}/hostname", "web", pod=pod))


async def test_a_name_outside_the_cluster_does_not_exist(left: Kubectl) -> None:
    with pytest.raises(Failed, match="bad address"):
        await left("exec", "box", "--", "wget", "-qO-", "http://example.com/")


async def test_pods_of_two_joined_clusters_reach_each_other_by_their_own_addresses(
    clusters: dict[str, Kubectl],
) -> None:
    for here, there in (("left", "right"), ("right", "left")):
        target = await clusters[there].address("web")
        seen = await clusters[here]("exec", "box", "--", "wget", "-qO-", f"http://{target}:8080/clientip")
        assert seen.partition(":")[0] == await clusters[here].address("box")


async def test_pods_of_a_cluster_that_is_not_joined_are_not_reached(clusters: dict[str, Kubectl]) -> None:
    target = await clusters["apart"].address("web")
    with pytest.raises(Failed, match="No route to host"):
        await clusters["left"]("exec", "box", "--", "wget", "-qO-", f"http://{target}:8080/hostname")


async def test_pods_reach_their_own_api_server_and_those_of_other_clusters(clusters: dict[str, Kubectl]) -> None:
    for here in clusters.values():
        for there in clusters.values():
            slices = "jsonpath={.items[0].endpoints[0].addresses[0]}:{.items[0].ports[0].port}"
            server = await there("get", "endpointslices", "-l", "kubernetes.io/service-name=kubernetes", "-o", slices)
            await here("exec", "web", "--", "/agnhost", "connect", "--timeout=5s", server)
        await here("exec", "web", "--", "/agnhost", "connect", "--timeout=5s", "kubernetes.default:443")


async def test_a_port_of_a_pod_is_forwarded_to_this_machine(left: Kubectl) -> None:
    child = await asyncio.create_subprocess_exec(
        str(left.program),
        f"--kubeconfig={left.cluster.kubeconfig}",
        "port-forward",
        "pod/web",
        ":8080",
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(60):
            line = (await child.stdout.readline()).decode()
            port = int(line.split(" -> ")[0].rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /hostname HTTP/1.0\r\n\r\n")
            assert (await reader.read()).endswith(b"\r\n\r\nweb")
            writer.close()
    finally:
        child.kill()
        await child.wait()


async def test_what_a_pod_writes_on_its_host_stays_in_the_node(left: Kubectl) -> None:
    where = "/var/lib/hansa-test-of-host-path"
    volume = {"name": "host", "hostPath": {"path": where, "type": "DirectoryOrCreate"}}
    writer = pod("writer", images.BUSYBOX, "sh", "-c", "echo written > /host/file; sleep 1000000", volumes=[volume])
    writer["spec"]["containers"][0]["volumeMounts"] = [{"name": "host", "mountPath": "/host"}]
    await left.apply(writer)
    assert await left("exec", "writer", "--", "cat", "/host/file") == "written\n"
    assert not Path(where).exists()


async def test_a_pod_that_takes_too_much_memory_is_ended(left: Kubectl) -> None:
    greedy = pod("greedy", images.BUSYBOX, "tail", "/dev/zero", restartPolicy="Never")
    greedy["spec"]["containers"][0]["resources"] = {"limits": {"memory": "20Mi"}}
    await left("apply", "-f", "-", text=json.dumps(greedy))
    reason = "jsonpath={.status.containerStatuses[0].state.terminated.reason}=OOMKilled"
    await left("wait", "pod/greedy", f"--for={reason}", f"--timeout={PATIENCE}")


@pytest.mark.parametrize("service", ["kubelet", "kube-proxy", "containerd"])
async def test_a_killed_service_of_a_node_is_started_again_and_its_pods_stay(left: Kubectl, service: str) -> None:
    node = left.cluster.process("node-1")
    before = await left("get", "pods", "-o", "jsonpath={..restartCount}")
    former = services(node.pid)[service]
    os.kill(former, signal.SIGKILL)

    async def again() -> bool:
        return services(node.pid).get(service, former) != former

    await eventually(again)
    await eventually(left.answers)
    assert await left("get", "pods", "-o", "jsonpath={..restartCount}") == before


def services(outer: int) -> dict[str, int]:
    """The services of a node by name: the children of its first process."""
    [first] = children(outer)
    return {Path(f"/proc/{pid}/comm").read_text().strip(): pid for pid in children(first)}


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_a_killed_node_is_repaired_by_the_next_up(clusters: dict[str, Kubectl], fleet: Fleet) -> None:
    apart = clusters["apart"]
    killed = apart.cluster.process("node-1")
    killed.signal(signal.SIGKILL)
    assert await killed.ended(10)
    await fleet.up([apart.cluster.record.spec])
    await eventually(apart.answers)


async def test_an_archive_of_the_users_own_is_an_image_of_every_node(clusters: dict[str, Kubectl]) -> None:
    await clusters["apart"].apply(pod("mine", MINE))
    assert await clusters["apart"]("exec", "mine", "--", "/mine/busybox", "pwd") == "/\n"


async def test_an_archive_that_was_made_again_is_imported_even_if_its_image_was_being_pulled(
    clusters: dict[str, Kubectl], fleet: Fleet, archive: Path, tools: Tools
) -> None:
    apart = clusters["apart"]
    await apart("apply", "-f", "-", text=json.dumps(pod("later", LATER)))

    async def is_being_pulled() -> bool:
        pulls = fleet.state.folder("apart") / "nodes" / "1" / "root" / PULLS.lstrip("/")
        return any(LATER in one.read_text() for one in pulls.glob("*"))

    await eventually(is_being_pulled)
    program = {"/mine/busybox": tools.busybox}
    oci.build([Image(LATER, program, ("/mine/busybox", "sleep", "1000000"))], archive)
    await fleet.up([apart.cluster.record.spec])
    await apart("wait", "pod/later", "--for=condition=Ready", f"--timeout={PATIENCE}")


async def test_after_down_nothing_of_real_nodes_is_left(tmp_path: Path, kubectl: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    fleet = Fleet(local.State(state), is_etcd_fast=True)
    before = await real_machine.traces(state)
    async with local.cluster("gone", fleet=fleet, real_nodes=1) as made:
        user = Kubectl(kubectl, made)
        await user.apply(WEB)
        assert (await real_machine.traces(state))["control groups"] != before["control groups"]
    assert await real_machine.traces(state) == before
    assert not list(state.rglob("*"))


async def test_kill_9_of_everything_leaves_nothing_that_down_cannot_remove(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    fleet = Fleet(local.State(state), is_etcd_fast=True)
    before = await real_machine.traces(state)
    await fleet.up([ClusterSpec("killed", real_nodes=1)])
    for one in process.running(state).values():
        one.signal(signal.SIGKILL)
    await fleet.down(fleet.names())
    assert await real_machine.traces(state) == before
