"""A super cluster of a pool is lost: how long until its pods run elsewhere, beyond the time that it is waited for."""

import asyncio
import contextlib
import time

import programs
from eventually import eventually
from figures import figure
from hansa.kube import resources, watching
from hansa.kube.objects import Object
from hansa.local import ClusterSpec, NodeShape
from hansa.tenancy import installing
from pool_lab import PLACEMENTS, SUPER_CLUSTER, PoolLab
from tenant_league import clusters_up

PODS, THRESHOLD, MOST = 200, 12, 10.0  # seconds; a cluster that is frozen is noticed after 9 s at most
SLICE = "scheduler.tenancy.x-k8s.io/slice"
NAMESPACE, APP = "shop", "web"


async def test_how_soon_the_pods_of_a_lost_cluster_run_elsewhere(fleet, kubectl, tmp_path):
    shape = NodeShape(cpu="1000", memory="4000Gi", pods="2000")
    wishes = [
        ClusterSpec("meta", scheduler=False, lift_limits=True),
        *(ClusterSpec(name, nodes=2, shape=shape, lift_limits=True) for name in ("r1", "r2")),
    ]
    async with contextlib.AsyncExitStack() as stack:
        sides = await stack.enter_async_context(clusters_up(fleet, kubectl, wishes))
        pool = PoolLab(sides["meta"], {name: sides[name] for name in ("r1", "r2")}, tmp_path)
        await installing.install(pool.meta.client)
        await pool.announce()
        await pool.join("r1")
        config = str(pool.meta.cluster.kubeconfig)
        flags = ("--kubeconfig", config, "--lost-after", str(THRESHOLD))
        await stack.enter_async_context(programs.hansa("vc-scheduler", *flags, log=tmp_path / "vc-scheduler.log"))
        await pool.start("pool", "--pool", "--lost-after", str(THRESHOLD))
        stack.push_async_callback(pool.stop)
        await fill(pool)
        await pool.join("r2")
        await namespace(pool, "probe", 2)
        await placed(pool, "probe", "r2")
        with pool.supers["r1"].frozen():
            began = time.perf_counter()
            await running(pool, "r2")
            beyond = time.perf_counter() - began - THRESHOLD
    print()
    figure(f"{PODS} pods of a lost cluster run elsewhere, s beyond the threshold", beyond, most=MOST)


async def fill(pool):
    """A Deployment whose pods all run in r1, which has all slices."""
    await namespace(pool, NAMESPACE, PODS)
    await placed(pool, NAMESPACE, "r1")
    container = {"name": "c", "image": "busybox:1.29", "resources": {"limits": {"cpu": "1"}}}
    labels = {"app": APP}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": PODS, "selector": {"matchLabels": labels}, "template": template}
    await pool.meta.make(resources.DEPLOYMENTS, APP, NAMESPACE, spec=spec)
    await running(pool, "r1")


async def namespace(pool, name, slices):
    await pool.meta.make(resources.NAMESPACES, name, metadata={"annotations": {SLICE: '{"cpu":"1"}'}})
    await pool.meta.kubectl("create", "quota", "all", "-n", name, f"--hard=cpu={slices}")


async def placed(pool, name, where):
    async def look():
        return where in (await pool.meta.client.get(resources.NAMESPACES, name)).annotations.get(PLACEMENTS, "")

    await eventually(look, within=60)


async def running(pool, cluster):
    """Wait until all pods run in a cluster."""
    there = set()
    changes = watching.watch(pool.meta.client, resources.PODS, namespace=NAMESPACE, labels=f"app={APP}")
    async with asyncio.timeout(90), contextlib.aclosing(changes):
        async for change in changes:
            match change:
                case watching.Added(obj) | watching.Modified(obj):
                    (there.add if runs(obj, cluster) else there.discard)(obj.name)
                case watching.Deleted(obj):
                    there.discard(obj.name)
            if len(there) >= PODS:
                return


def runs(pod: Object, cluster: str) -> bool:
    is_deleting = pod.metadata.deletion_timestamp is not None
    return not is_deleting and pod.status.get("phase") == "Running" and pod.annotations.get(SUPER_CLUSTER) == cluster
