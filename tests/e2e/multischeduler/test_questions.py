"""What `hansa whatif` forecasts for virtual nodes is what happens; what explanations name makes pods fit."""

import contextlib
import json
import random

import pytest

import soaking
from eventually import eventually
from league import PATIENCE, TOLERATION, deployment, fresh_name
from questions import ask, by_cluster, changed, explained, fates

pytestmark = pytest.mark.timeout(500)
SOON = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
UNREACHABLE = {**SOON, "key": "node.kubernetes.io/unreachable"}
MOST_PENDING = 200


def where(scheduler):
    """The flags for the clusters, as an administrator."""
    league = scheduler.league
    return ("--config", str(league.config()), "--kubeconfig", str(league.upper.cluster.kubeconfig))


async def whatif(scheduler, namespace, *words):
    return fates(await ask("whatif", *words, *where(scheduler)), namespace)


async def deploy(scheduler, namespace, name, replicas, cpu, *tolerations):
    """A Deployment on virtual nodes; wait until it is as ready as it gets."""
    made = deployment(name, replicas)
    spec = made["spec"]["template"]["spec"]
    spec["tolerations"] = [TOLERATION, *tolerations]
    spec["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    kubectl = scheduler.league.upper.kubectl
    await kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(made))


async def settled(scheduler, namespace, wanted):
    """Wait until the living pods are on these nodes; None is pending."""

    async def look():
        pods = await scheduler.league.upper.all("pods", namespace=namespace)
        living = [one for one in pods if "deletionTimestamp" not in one["metadata"]]
        running = [one["spec"].get("nodeName") for one in living]
        assert all(one["status"]["phase"] == "Running" for one in living if one["spec"].get("nodeName")), running
        assert sorted(map(str, running)) == sorted(map(str, wanted)), running
        return {one["metadata"]["name"]: one for one in living}

    return await eventually(look, within=PATIENCE)


async def test_a_lost_cluster_moves_what_was_forecast(scheduler, namespace):
    league = scheduler.league
    await deploy(scheduler, namespace, "web", 3, "1500m", SOON, UNREACHABLE)
    await eventually(lambda: all_bound(league, namespace, 3), within=PATIENCE)
    pods = await league.upper.all("pods", namespace=namespace)
    on_small = [one for one in pods if one["spec"]["nodeName"] == "vn-small"]
    on_large = len(pods) - len(on_small)
    found = await whatif(scheduler, namespace, "--lose", "small")
    moving = [name for name, fate in found.items() if fate == ("moves", "large")]
    pending = [name for name, fate in found.items() if fate == ("pends", "")]
    assert set(found) == {one["metadata"]["name"] for one in on_small}
    with league.lowers["small"].frozen():
        await settled(scheduler, namespace, ["vn-large"] * (on_large + len(moving)) + [None] * len(pending))
    await league.ready()


async def all_bound(league, namespace, number):
    pods = await league.upper.all("pods", namespace=namespace)
    bound = [one for one in pods if one["spec"].get("nodeName") and one["status"]["phase"] == "Running"]
    assert len(bound) == number, [one["status"] for one in pods]
    return True


async def test_a_drained_node_and_a_new_one_do_what_was_forecast(scheduler, namespace):
    league = scheduler.league
    await deploy(scheduler, namespace, "web", 1, "3")
    await scheduler.make(namespace, "bare", cpu="500m")
    await settled(scheduler, namespace, ["vn-large", (await placed(league, namespace, "bare"))])
    large = league.lowers["large"]
    [node] = [one["metadata"]["name"] for one in await large.all("nodes")]
    found = await whatif(scheduler, namespace, "--drain", f"large/{node}")
    [web] = [name for name in found if name.startswith("web")]
    assert found[web] == ("pends", "")
    both = ("--drain", f"large/{node}", "--add-node", "small=cpu=4,memory=8Gi")
    assert (await whatif(scheduler, namespace, *both))[web] == ("moves", "small")
    await large.kubectl("drain", node, "--force", "--ignore-daemonsets", "--timeout=60s")
    try:
        rest = ["vn-small"] if "bare" not in found else []
        await settled(scheduler, namespace, [None, *rest])
        [pending] = [
            one for one in await league.upper.all("pods", namespace=namespace) if "nodeName" not in one["spec"]
        ]
        name = pending["metadata"]["name"]
        assert await whatif(scheduler, namespace, "--add-node", "small=cpu=4,memory=8Gi") == {name: ("starts", "small")}
        answers = by_cluster(await ask("explain", "pod", f"{namespace}/{name}", *where(scheduler)))
        assert answers["small"]["changes"][-1]["moreFree"] == {"cpu": "1"}
        async with one_more_node(league.lowers["small"], "multi-small-0", cpu="4") as node_name:
            assert await scheduler.node(namespace, name) == "vn-small"
            copy = await league.lowers["small"].find("pod", name, namespace=namespace)
            assert copy["spec"]["nodeName"] == node_name
            await league.upper.kubectl("-n", namespace, "delete", "deployment", "web", "--wait=false")
    finally:
        await large.kubectl("uncordon", node)


async def placed(league, namespace, name):
    async def look():
        return (await league.upper.find("pod", name, namespace=namespace))["spec"].get("nodeName")

    return await eventually(look, within=PATIENCE)


@contextlib.asynccontextmanager
async def one_more_node(member, like, *, cpu):
    """One more node like another one, for as long as the block lasts; its name."""
    node, name = await member.find("node", like), f"{like}-more"
    labels = {**node["metadata"]["labels"], "kubernetes.io/hostname": name}
    annotations = {key: text for key, text in node["metadata"]["annotations"].items() if "kwok" in key}
    amounts = {**node["status"]["allocatable"], "cpu": cpu}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    made = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}}
    await member.kubectl.apply({**made, "status": {"allocatable": amounts, "capacity": amounts}}, verb="create")
    yield name
    await member.kubectl("delete", "node", name, "--wait=false")


async def check_remedies(scheduler, namespace, seed, number):
    """Random pods that are Pending: each with the changes that one cluster named runs."""
    league, rng = scheduler.league, random.Random(seed)
    small = league.lowers["small"]
    await small.kubectl("label", "node", "multi-small-0", "disk=ssd", "--overwrite")
    await small.kubectl("taint", "node", "multi-small-1", "gpu=a100:NoSchedule", "--overwrite")
    try:
        for count in range(number):
            await check_remedy(scheduler, namespace, f"p{count}", rng)
    finally:
        await small.kubectl("taint", "node", "multi-small-1", "gpu-")
        await small.kubectl("label", "node", "multi-small-0", "disk-")


async def check_remedy(scheduler, namespace, name, rng):
    upper = scheduler.league.upper
    described = a_random_pod(name, namespace, rng)
    await upper.kubectl.apply(described, verb="create")
    await scheduler.refusal(namespace, name)
    said = await explained(f"{namespace}/{name}", *where(scheduler))
    helped = [one for one in said["answers"] if one.get("changes")]
    assert helped, said
    assert not any(one["fits"] for one in said["answers"]), said
    chosen = rng.choice(helped)
    await upper.kubectl("-n", namespace, "delete", "pod", name, "--grace-period=0", "--force")
    await upper.kubectl.apply(changed(described, chosen["changes"]), verb="create")
    await scheduler.node(namespace, name)
    await upper.kubectl("-n", namespace, "delete", "pod", name, "--wait=true", "--timeout=60s")
    await scheduler.league.gone(scheduler.league.lowers["small"], "pod", name, namespace=namespace)
    await scheduler.league.gone(scheduler.league.lowers["large"], "pod", name, namespace=namespace)


def a_random_pod(name, namespace, rng):
    """A pod that fits nowhere for one or more reasons."""
    kinds = rng.sample(("large", "selector", "taint"), k=rng.randint(1, 3))
    requests = {"cpu": rng.choice(("4500m", "5", "7")) if "large" in kinds else "100m", "memory": "64Mi"}
    parked = {"nodeSelector": {"disk": "tape"}} if "selector" in kinds or "large" not in kinds else {}
    container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": requests}}
    tolerations = [] if "taint" in kinds else [TOLERATION]
    annotations = {"clusterSelector": json.dumps(parked)} if parked else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"containers": [container], "tolerations": tolerations, "nodeSelector": {"type": "virtual-kubelet"}},
    }


async def test_what_explanations_name_makes_pending_pods_run(scheduler, namespace):
    await check_remedies(scheduler, namespace, seed=1, number=4)


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_what_explanations_name_makes_hundreds_of_random_pending_pods_run(scheduler):
    for seed in soaking.seeds():
        name = fresh_name()
        await scheduler.league.upper.kubectl("create", "namespace", name)
        await check_remedies(scheduler, name, seed, MOST_PENDING)
        await scheduler.league.upper.kubectl("delete", "namespace", name, "--wait=false")
