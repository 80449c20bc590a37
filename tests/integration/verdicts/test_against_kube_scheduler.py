"""Our verdicts against those of the stock kube-scheduler, on random clusters and pods of a real API server."""

import asyncio
import json
import random
import sys

import pytest

import scheduler_worlds
import soaking
import stock_scheduler
from eventually import eventually
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.scheduling import evaluation, pod_request
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.verdict import Fit

AT_ONCE = 64
WORLDS = 200  # in one cluster: kube-scheduler evaluates each pod on the nodes of all of them
NO_PREEMPTION = [{"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}}]
HOLD = {"metadata": {"finalizers": ["hansa.dev/test"]}}


@pytest.mark.timeout(240)
async def test_the_verdict_is_that_of_the_stock_kube_scheduler(bare_cluster, fleet, tmp_path):
    async with bare_cluster() as cluster:
        assert await differences(cluster, fleet, tmp_path, seed=21) == []


@pytest.mark.soak
async def test_of_2000_verdicts_none_differs(bare_cluster, fleet, tmp_path):
    for seed in soaking.seeds():
        for part in range(2000 // WORLDS):
            async with bare_cluster() as cluster:
                assert await differences(cluster, fleet, tmp_path, seed=seed * 100 + part) == []


async def differences(cluster, fleet, folder, *, seed):
    """The worlds in which the two decide differently, with everything that is needed to see why."""
    chance = random.Random(seed)
    worlds = [scheduler_worlds.a_world(f"w{seed}-{number}", chance) for number in range(WORLDS)]
    async with cluster.client("hansa-test") as client:
        await create(client, worlds)
        views, judged = await read(client, worlds)
        config = stock_scheduler.write_configuration(
            folder / "scheduler.yaml", cluster.kubeconfig, profiles=NO_PREEMPTION
        )
        async with stock_scheduler.running(fleet, config, log=folder / "kube-scheduler.log"):
            answers = await eventually(lambda: decided(client, worlds), within=120, every=1.0)
    found = [compare(world, views[world.name], judged[world.name], answers[world.name]) for world in worlds]
    bound = sum(1 for one in answers.values() if one.spec.get("nodeName"))
    print(f"{WORLDS} worlds of seed {seed}: {bound} pods bound, {sum(map(bool, found))} differ", file=sys.stderr)  # noqa: T201
    assert WORLDS / 4 < bound < WORLDS * 3 / 4, "the worlds are no test if all pods fit, or none"
    return [one for one in found if one]


async def create(client, worlds):
    await client.create(resources.RUNTIME_CLASSES, Object.of(scheduler_worlds.RUNTIME_CLASS))
    slots = asyncio.Semaphore(AT_ONCE)

    async def make(world):
        async with slots:
            for resource, manifests in (
                (resources.NAMESPACES, world.namespaces),
                (resources.NODES, world.nodes),
                (resources.PODS, [*map(held(world), world.placed), world.pod]),
            ):
                for one in manifests:
                    await client.create(resource, Object.of(one))
            for one in world.placed:
                where = {"namespace": one["metadata"]["namespace"]}
                if (name := one["metadata"]["name"]) in world.finished:
                    status = {"status": {"phase": "Succeeded"}}
                    await client.patch(resources.PODS, name, status, subresource="status", **where)
                if name in world.leaving:
                    await client.delete(resources.PODS, name, **where)

    async with asyncio.TaskGroup() as tasks:
        for world in worlds:
            tasks.create_task(make(world))


def held(world):
    """Pods that will be leaving have a finalizer."""

    def made(pod):
        is_leaving = pod["metadata"]["name"] in world.leaving
        return pod | {"metadata": pod["metadata"] | HOLD["metadata"]} if is_leaving else pod

    return made


async def read(client, worlds):
    """What our side knows of each world: views of its nodes and pods, as the API server has them, and the pod."""
    views, judged = {world.name: Views(world.name) for world in worlds}, {}
    for resource in (resources.NODES, resources.PODS):
        async for page in client.pages(resource, labels="world"):
            for one in page.items:
                name = one.labels["world"]
                if one.name == "judged":
                    judged[name] = one
                else:
                    views[name].take(one)
    return views, judged


class Views:
    """One cluster in two views: with nodes in groups by all their labels, and with as few groups as there can be."""

    def __init__(self, name):
        self.grouped, self.coarse = ClusterView(name), ClusterView(name, most_groups=1)

    def take(self, one):
        changed = (one_of(view, one) for view in (self.grouped, self.coarse))
        self.grouped, self.coarse = changed


def one_of(view, one):
    return view.with_node(one) if one.kind == "Node" else view.with_pod(one)


async def decided(client, worlds):
    """The judged pods, once kube-scheduler has decided about all of them."""
    found = {}
    async for page in client.pages(resources.PODS, labels="world"):
        found |= {one.labels["world"]: one for one in page.items if one.name == "judged"}
    waiting = [name for name in (world.name for world in worlds) if not _is_decided(found[name])]
    assert not waiting, f"{len(waiting)} pods wait for kube-scheduler"
    return found


def _is_decided(pod):
    conditions = pod.status.get("conditions") or ()
    return bool(pod.spec.get("nodeName")) or any(one.get("reason") == "Unschedulable" for one in conditions)


def compare(world, views, pod, answer):
    """How the two verdicts differ; empty if they don't."""
    request, node = pod_request.of_pod(pod), answer.spec.get("nodeName", "")
    verdicts = [evaluation.evaluate(request, view) for view in (views.grouped, views.coarse)]
    fitting = fits_on(request, views.grouped)
    found = {one.node if isinstance(one, Fit) else "" for one in verdicts}
    if (node in fitting and found <= fitting) if node else found == {""}:
        return ""
    facts = {
        "kube-scheduler": node or [one.get("message") for one in answer.status.get("conditions") or ()],
        "hansa": [str(one) for one in verdicts],
        "nodes that fit": sorted(fitting),
        "pod": {"metadata": world.pod["metadata"], "spec": pod.to_dict()["spec"]},
        "nodes": world.nodes,
        "placed": [one for one in world.placed if one["metadata"]["name"] not in world.finished],
        "leaving": sorted(world.leaving),
    }
    return f"{world.name}:\n" + "\n".join(f"  {key}: {json.dumps(value)}" for key, value in facts.items())


def fits_on(request, view):
    """The nodes that pass all filters and have room."""
    free = (
        (node.name, all(node.free.get(name, 0) >= nano for name, nano in request.amounts.items() if nano > 0))
        for node in evaluation.passing(request, view)
    )
    return {name for name, has_room in free if has_room}
