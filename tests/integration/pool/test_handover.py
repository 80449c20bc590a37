"""A pod that is moved to another super cluster never runs twice, also with a syncer for each super cluster."""

import asyncio
import contextlib

import pytest

from hansa.kube import resources

pytestmark = pytest.mark.timeout(400)  # the first one begins with three clusters, maybe on a busy machine
NOWHERE = {"nodeSelector": {"is": "nowhere"}}
MOVES = 4


@pytest.fixture
async def lab(shared_pool):
    """The pool with a syncer for each super cluster; afterwards the one for all runs again."""
    await shared_pool.stop()
    for name in shared_pool.supers:
        await start(shared_pool, name)
    yield shared_pool
    await shared_pool.stop()
    await shared_pool.start()


async def start(lab, name):
    """Start the syncer of one super cluster."""
    config = str(lab.supers[name].cluster.kubeconfig)
    flags = ("--super-master-kubeconfig", config, "--deployment-on-meta=true")
    await lab.start(name, *flags, "--syncer-name", name, "--feature-gates", "SuperClusterPooling=true")


async def kill(lab, name):
    """End the syncer of one super cluster as a crash does."""
    lab.syncers[name].kill()
    await lab.syncers.pop(name).ended()


async def move(lab, namespace, name, *, away, to):
    """Give a pod another super cluster, as the scheduler does."""
    marks = {f"tenancy.x-k8s.io/moved-from.{away}": "", f"tenancy.x-k8s.io/moved-from.{to}": None}
    words = {"scheduler.tenancy.x-k8s.io/superCluster": to, **marks}
    await lab.meta.client.patch(resources.PODS, name, {"metadata": {"annotations": words}}, namespace=namespace)


def marks(found):
    return [key for key in found["metadata"]["annotations"] if key.startswith("tenancy.x-k8s.io/moved-from.")]


async def test_a_pod_starts_elsewhere_when_the_syncer_of_the_former_cluster_confirms_it_has_none(lab, namespace):
    below, r1, r2 = lab.tenant.below(namespace), lab.supers["r1"], lab.supers["r2"]
    await lab.namespace(namespace, "r1", "r2")
    await lab.pod(namespace, "moves", "r1", **NOWHERE)
    await r1.there(resources.PODS, "moves", below)
    for name in ("r1", "r2"):
        await lab.meta.there(resources.LEASES, f"hansa-reaches-{name}", "kube-system")
    await kill(lab, "r1")
    await move(lab, namespace, "moves", away="r1", to="r2")
    await lab.pod(namespace, "later", "r2")
    await lab.meta.phase("later", namespace)
    assert await r2.look(resources.PODS, "moves", below) is None, "its first copy is there while nobody removes it"
    await start(lab, "r1")
    await r2.there(resources.PODS, "moves", below)
    assert await r1.look(resources.PODS, "moves", below) is None
    above = await lab.meta.there(resources.PODS, "moves", namespace, when=lambda found: not marks(found))
    assert above["metadata"]["annotations"]["scheduler.tenancy.x-k8s.io/superCluster"] == "r2"


async def test_a_pod_that_moves_to_and_fro_under_crashes_is_never_in_two_clusters(lab, namespace):
    below = lab.tenant.below(namespace)
    await lab.namespace(namespace, "r1", "r2")
    await lab.pod(namespace, "moves", "r1", **NOWHERE)
    home, other = "r1", "r2"
    await lab.supers[home].there(resources.PODS, "moves", below)
    for _ in range(MOVES):
        async with watching(lab, below, new=other, former=home):
            await move(lab, namespace, "moves", away=home, to=other)
            await kill(lab, home)
            await start(lab, home)
            await lab.supers[other].there(resources.PODS, "moves", below)
            await lab.supers[home].gone(resources.PODS, "moves", below)
        home, other = other, home


@contextlib.asynccontextmanager
async def watching(lab, below, *, new, former):
    """See that the pod is never in both. The new one is asked first: what it has then, the former one has no more."""

    async def look():
        while True:
            if await lab.supers[new].look(resources.PODS, "moves", below):
                assert await lab.supers[former].look(resources.PODS, "moves", below) is None, f"it is in {former}, too"
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(look())
        yield
        task.cancel()


async def test_a_pod_that_is_moved_while_one_process_serves_all_keeps_no_mark(pool, namespace):
    below = pool.tenant.below(namespace)
    await pool.namespace(namespace, "r1", "r2")
    await pool.pod(namespace, "moves", "r1", **NOWHERE)
    await pool.supers["r1"].there(resources.PODS, "moves", below)
    await move(pool, namespace, "moves", away="r1", to="r2")
    await pool.supers["r2"].there(resources.PODS, "moves", below)
    assert await pool.supers["r1"].look(resources.PODS, "moves", below) is None
    await pool.meta.there(resources.PODS, "moves", namespace, when=lambda found: not marks(found))
