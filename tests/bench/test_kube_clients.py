"""Hansa's client beside two others on one real kube-apiserver: work per CPU-second, memory, first sync."""

import asyncio
import json
import statistics
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from figures import figure
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resources import NAMESPACES, PODS, SERVICE_ACCOUNTS
from hansa.local import Cluster, ClusterSpec, Fleet

PODS_COUNT = 10_000
ROUNDS = 4
WORKER = Path(__file__).with_name("kube_worker.py")
OTHERS = ("kubernetes_asyncio", "lightkube")
pytestmark = pytest.mark.timeout(900)


def pod(number: int) -> Object:
    """A pod of about 7 KB as the server sends it."""
    env = [{"name": f"VARIABLE_{n}", "value": f"value-{n}-{'x' * 20}"} for n in range(8)]
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
    containers = [
        {
            "name": f"container-{n}",
            "image": f"registry.example.com/team/service-{n}:v1.2.{number}",
            "env": env,
            "resources": resources,
            "livenessProbe": probe,
            "readinessProbe": probe,
        }
        for n in range(2)
    ]
    metadata = {
        "name": f"pod-{number:05}",
        "namespace": "bench",
        "labels": {f"label-{n}": f"value-{number}-{n}" for n in range(6)},
        "annotations": {f"example.com/annotation-{n}": f"{number}-{'y' * 60}" for n in range(4)},
    }
    spec = {"containers": containers, "tolerations": [{"key": f"key-{n}", "operator": "Exists"} for n in range(4)]}
    return Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


@pytest.fixture(scope="module")
async def crowded(fleet: Fleet) -> AsyncIterator[Cluster]:
    """A cluster with 10,000 pods that nobody schedules."""
    [cluster] = await fleet.up([ClusterSpec("bench", scheduler=False, lift_limits=True)])
    async with cluster.client("bench-setup") as client:
        await client.create(
            NAMESPACES, Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}})
        )
        await _create_pods(client)
        first = (await client.request("GET", PODS.path(pod(0).name, namespace="bench"))).body
        _say(f"\n{PODS_COUNT} pods of {len(first)} bytes ({len(Object.parse(first).to_json())} without managedFields)")
    yield cluster
    await fleet.down(["bench"])


async def _create_pods(client: Client) -> None:
    stream = await client.open(SERVICE_ACCOUNTS.collection("bench"), query={"watch": "1", "timeoutSeconds": "30"})
    while b'"name":"default"' not in await stream.read():
        pass
    stream.close()
    numbers = iter(range(PODS_COUNT))

    async def worker() -> None:
        for number in numbers:
            await client.create(PODS, pod(number))

    await asyncio.gather(*(worker() for _ in range(50)))


async def measured(cluster: Cluster, library: str, task: str, count: int) -> dict[str, Any]:
    """What the worker printed."""
    argv = [sys.executable, str(WORKER), library, task, str(cluster.kubeconfig), str(count)]
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0, f"{library} {task} failed"
    result: dict[str, Any] = json.loads(out)
    return result


async def rates(cluster: Cluster, task: str, counts: dict[str, int]) -> dict[str, float]:
    """Work per CPU-second, the median of some rounds in which the libraries take turns."""
    found: dict[str, list[float]] = {library: [] for library in counts}
    for _ in range(ROUNDS):
        for library, count in counts.items():
            result = await measured(cluster, library, task, count)
            found[library].append(result["count"] / result["cpu"])
    return {library: statistics.median(values) for library, values in found.items()}


def report(what: str, found: dict[str, float]) -> dict[str, float]:
    """Print the rates side by side, and give the ratios to ours."""
    for library, rate in found.items():
        _say(f"{what:28} {library:20} {rate:10,.0f} per CPU-second   ours is {found['hansa'] / rate:6.1f} times that")
    return {library: found["hansa"] / rate for library, rate in found.items()}


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def test_watch_events_cost_a_fraction_of_what_typed_clients_spend(crowded: Cluster) -> None:
    counts = {"hansa": PODS_COUNT - 1, "kubernetes_asyncio": 1000, "lightkube": 4000}
    ratio = report("watch events", await rates(crowded, "watch", counts))
    figure("watch events per CPU-second, times kubernetes_asyncio's", ratio["kubernetes_asyncio"], least=20)
    figure("watch events per CPU-second, times lightkube's", ratio["lightkube"], least=8)


async def test_patches_cost_a_fraction_of_what_typed_clients_spend(crowded: Cluster) -> None:
    counts = {"hansa": 2000, "kubernetes_asyncio": 1000, "lightkube": 1000}
    ratio = report("PATCH, 50 in flight", await rates(crowded, "patch", counts))
    figure("PATCH per CPU-second, times kubernetes_asyncio's", ratio["kubernetes_asyncio"], least=5)


async def test_ten_thousand_pods_are_synced_quickly_and_stay_small(crowded: Cluster) -> None:
    results = [await measured(crowded, "hansa", "sync", PODS_COUNT) for _ in range(ROUNDS)]
    wall = statistics.median(result["wall"] for result in results)
    kib = statistics.median(result["bytes"] for result in results) / PODS_COUNT / 1024
    cpu = statistics.median(result["cpu"] for result in results)
    _say(f"first sync of {PODS_COUNT} pods: {wall:.2f} s ({cpu:.2f} s of CPU), {kib:.2f} KiB of RSS a pod")
    figure("first sync of 10,000 pods, s", wall, most=3)
    figure("RSS of a cached pod, KiB", kib, most=8)
    assert not any(result["tracked"] for result in results)
