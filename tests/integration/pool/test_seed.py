"""The seed's demo, with scheduler and syncer: a quota over two super clusters, and a pod of a Deployment in each."""

import json

import pytest

import programs
from eventually import eventually
from hansa.kube import resources

pytestmark = pytest.mark.timeout(600)  # the first one begins with three clusters, maybe on a busy machine

SLICE, PLACEMENTS = "scheduler.tenancy.x-k8s.io/slice", "scheduler.tenancy.x-k8s.io/placements"
WITHIN = 120.0


@pytest.fixture
async def scheduler(pool, tmp_path):
    """The scheduler of the pool."""
    log = tmp_path / "vc-scheduler.log"
    async with programs.hansa("vc-scheduler", "--kubeconfig", str(pool.meta.cluster.kubeconfig), log=log) as program:
        yield program


async def running(pool, namespace):
    """The names of the pods that run, by super cluster."""
    below, found = pool.tenant.below(namespace), {}
    for name, side in pool.supers.items():
        pods = (await side.client.list(resources.PODS, namespace=below)).items
        found[name] = [pod.name for pod in pods if pod.status.get("phase") == "Running"]
    return found


@pytest.mark.usefixtures("scheduler")
async def test_the_second_replica_goes_to_the_other_super_cluster(pool, namespace):
    limits = {"cpu": "100m", "memory": "100Mi"}
    words = {SLICE: '{"cpu":"100m", "memory":"100Mi"}'}
    quota = {"cpu": "200m", "memory": "200Mi"}
    container = {"name": "test", "image": "docker.io/library/busybox:1.29", "resources": {"limits": limits}}
    labels = {"app": "test-1"}
    template = {"metadata": {"labels": labels}, "spec": {"dnsPolicy": "ClusterFirst", "containers": [container]}}
    await pool.meta.make(resources.NAMESPACES, namespace, metadata={"annotations": words})
    await pool.meta.kubectl(
        "create", "quota", "mem-cpu-demo", "-n", namespace, f"--hard=cpu={quota['cpu']},memory={quota['memory']}"
    )

    async def is_laid_out():
        found = await pool.meta.client.get(resources.NAMESPACES, namespace)
        text = found.annotations.get(PLACEMENTS, "{}")
        assert json.loads(text) == {"r1": 1, "r2": 1}, text
        return True

    await eventually(is_laid_out, within=WITHIN)
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    await pool.meta.make(resources.DEPLOYMENTS, "test-1", namespace, spec=spec)

    async def are_spread(*counts):
        found = await running(pool, namespace)
        assert sorted(map(len, found.values())) == list(counts), found
        return True

    await eventually(lambda: are_spread(0, 1), within=WITHIN)
    await pool.meta.kubectl("scale", "-n", namespace, "deployment/test-1", "--replicas=2")
    await eventually(lambda: are_spread(1, 1), within=WITHIN)
    below = await running(pool, namespace)
    above = (await pool.meta.client.list(resources.PODS, namespace=namespace)).items
    for pod in above:
        cluster = pod.annotations["scheduler.tenancy.x-k8s.io/superCluster"]
        assert below[cluster] == [pod.name]
        await pool.meta.phase(pod.name, namespace)


@pytest.mark.usefixtures("scheduler")
async def test_pods_of_a_super_cluster_that_leaves_are_moved_to_another(pool, namespace):
    words = {SLICE: '{"cpu":"100m"}'}
    await pool.meta.make(resources.NAMESPACES, namespace, metadata={"annotations": words})
    await pool.meta.kubectl("create", "quota", "all", "-n", namespace, "--hard=cpu=200m")
    labels = {"app": "moves"}
    container = {"name": "c", "image": "busybox:1.29", "resources": {"limits": {"cpu": "100m"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    await pool.meta.make(resources.DEPLOYMENTS, "moves", namespace, spec=spec)

    async def are(wanted):
        found = {name: len(pods) for name, pods in (await running(pool, namespace)).items()}
        assert found == wanted, found
        return True

    await eventually(lambda: are({"r1": 1, "r2": 1}), within=WITHIN)
    output = await pool.hansa("leave", "r2", "--timeout", "110")
    assert "r2 has left the pool" in output
    await eventually(lambda: are({"r1": 2, "r2": 0}), within=WITHIN)
    await pool.join("r2")
