"""The schedulers of a pool on real clusters: slices of namespaces, clusters of pods, and failures."""

import random
from collections import Counter

from eventually import eventually
from hansa.kube import resources
from hansa.model import keys
from hansa.tenancy import api
from pool_league import PLACEMENTS, SLICE, bound

TWO = {"cpu": "200m", "memory": "200Mi"}


async def test_the_seeds_quota_is_placed_in_both_clusters_with_one_replica_each(pool, namespace):
    await pool.empty()
    await pool.namespace(namespace, TWO)
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    await pool.pod(namespace, "first")
    first = await pool.given(namespace, "first")
    await pool.pod(namespace, "second")
    second = await pool.given(namespace, "second")
    assert {first, second} == {"r1", "r2"}
    await pool.condition(namespace, "Placed")


async def test_a_pod_without_a_free_slice_waits_with_reasons_until_another_pod_ends(pool, namespace):
    await pool.namespace(namespace, {"memory": "200Mi"})
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    for name in ("a", "b"):
        await pool.pod(namespace, name, cpu="100m", memory="50Mi")
        await pool.given(namespace, name)
    await pool.pod(namespace, "late", cpu="100m", memory="50Mi")
    reported = await pool.meta.event("FailedScheduling", "late", namespace)
    assert "r1: Insufficient cpu in the namespace's slices (requested 0.1, left 0)" in reported["message"]
    freed = await pool.given(namespace, "a")
    await pool.meta.client.delete(resources.PODS, "a", namespace=namespace, grace=0)
    assert await pool.given(namespace, "late") == freed


async def test_a_pod_that_is_unschedulable_in_its_cluster_is_moved_to_another(pool, namespace):
    await pool.namespace(namespace, TWO)
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    await pool.pod(namespace, "stuck")
    first = await pool.given(namespace, "stuck")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    patch = {"status": {"conditions": [condition]}}
    await pool.meta.client.patch(resources.PODS, "stuck", patch, namespace=namespace, subresource="status")
    await pool.given(namespace, "stuck", "r2" if first == "r1" else "r1")


async def test_a_quota_grows_shrinks_and_is_deleted(pool, namespace):
    await pool.namespace(namespace, TWO)
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    await pool.quota(namespace, cpu="400m", memory="400Mi")
    await pool.placed(namespace, {"r1": 2, "r2": 2})
    await pool.pod(namespace, "keeps")
    kept = await pool.given(namespace, "keeps")
    await pool.quota(namespace, cpu="100m", memory="100Mi")
    await pool.placed(namespace, {kept: 1})
    await pool.meta.client.delete(resources.QUOTAS, "all", namespace=namespace)
    await pool.placed(namespace, {})
    await pool.condition(namespace, "NoQuota")


async def test_placements_by_hand_are_followed_or_refused_and_cleared_ones_planned_anew(pool, namespace):
    await pool.namespace(namespace, TWO)
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    await pool.edit(namespace, {"r9": 2})
    reported = await pool.meta.event("PlacementsRefused", namespace)
    assert reported["message"] == f"annotation {keys.PLACEMENTS} is not applied: r9 is not in the pool"
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    await pool.edit(namespace, {"r1": 2})
    await pool.quota(namespace, cpu="300m", memory="300Mi")
    await pool.placed(namespace, {"r1": 2, "r2": 1})
    await pool.edit(namespace, None)
    await pool.placed(namespace, {"r1": 2, "r2": 1})


async def test_slices_that_do_not_fit_wait_until_capacity_is_free(pool, namespace, another):
    await pool.namespace(another, {"cpu": "6"}, slice_='{"cpu":"1"}')
    await pool.placed(another, {"r1": 3, "r2": 3})
    await pool.namespace(namespace, {"cpu": "4"}, slice_='{"cpu":"1"}')
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    await pool.condition(
        namespace, "InsufficientCapacity", message="2 slices are not placed (2 CPU): r1 has 0 CPU left"
    )
    await pool.meta.kubectl("delete", "namespace", another, "--wait=false")
    await pool.placed(namespace, {"r1": 2, "r2": 2})
    await pool.condition(namespace, "Placed")


async def test_a_restarted_scheduler_reconciles_what_changed_meanwhile(pool, namespace):
    await pool.namespace(namespace, TWO)
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    await pool.kill()
    await pool.quota(namespace, cpu="300m", memory="300Mi")
    await pool.pod(namespace, "new")
    await pool.start()
    await pool.placed(namespace, {"r1": 2, "r2": 1})
    await pool.given(namespace, "new")


async def test_a_lost_cluster_gives_up_its_slices_and_pods(pool, namespace):
    await pool.namespace(namespace, {"cpu": "400m", "memory": "400Mi"})
    await pool.placed(namespace, {"r1": 2, "r2": 2})
    for name in "abcd":
        await pool.pod(namespace, name)
    there = [name for name in "abcd" if await pool.given(namespace, name) == "r2"]
    running = await pool.meta.client.get(resources.PODS, there[0], namespace=namespace)
    await pool.meta.client.call(resources.PODS, running.name, "binding", body=bound(running, "n1"), namespace=namespace)
    with pool.supers["r2"].frozen():
        await pool.placed(namespace, {"r1": 4})
        await pool.given(namespace, there[1], "r1")
        await pool.meta.gone(resources.PODS, running.name, namespace)
    reported = await pool.meta.event("Evicted", running.name, namespace)
    assert reported["message"] == f"namespace {namespace} has no slices in r2, which is lost"


async def test_a_short_cut_moves_nothing(pool, namespace):
    await pool.stop()
    await pool.start("--lost-after", "600")
    await pool.namespace(namespace, TWO)
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    offset = pool.log.stat().st_size
    with pool.supers["r2"].frozen():
        await pool.logged("cluster unreachable", after=offset)
        await pool.quota(namespace, cpu="300m", memory="300Mi")
        await pool.placed(namespace, {"r1": 2, "r2": 1})
    await pool.logged("cluster reachable", after=offset)
    await pool.quota(namespace, cpu="400m", memory="400Mi")
    await pool.placed(namespace, {"r1": 2, "r2": 2})
    await pool.stop()


async def test_slices_of_a_cluster_that_leaves_are_placed_in_others(pool, namespace):
    await pool.namespace(namespace, TWO)
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    await pool.add("r2", **{"hansa.dev/leaving": "true"})
    await pool.placed(namespace, {"r1": 2})
    await pool.add("r2", **{"hansa.dev/leaving": "false"})
    await pool.quota(namespace, cpu="300m", memory="300Mi")
    await pool.placed(namespace, {"r1": 2, "r2": 1})


async def test_a_cluster_that_is_named_before_it_joins_is_used_when_it_does(pool, namespace):
    await pool.meta.kubectl("delete", "cluster.cluster.x-k8s.io", "r2")
    await pool.namespace(namespace, {"cpu": "8"}, slice_='{"cpu":"1"}')
    await pool.placed(namespace, {"r1": 4})
    await pool.add("r2")
    await pool.placed(namespace, {"r1": 4, "r2": 4})


async def test_a_scheduler_that_is_killed_again_and_again_gives_nothing_twice(pool, namespace):
    chance, spaces = random.Random(5), [f"{namespace}-{number}" for number in range(5)]
    for space in spaces:
        await pool.kill()
        await pool.start()
        await pool.namespace(space, {"cpu": chance.choice(("1", "1500m"))}, slice_='{"cpu":"500m"}')
        await pool.pod(space, "a", cpu="500m")
        await pool.pod(space, "b", cpu="500m")
        if chance.random() < 0.5:  # else it is killed while it begins
            await pool.placed_somehow(space)
    await pool.kill()
    await pool.start()
    held = Counter()
    for space in spaces:
        placements = await pool.placed_somehow(space)
        held.update(placements)
        given = Counter([await pool.given(space, name) for name in "ab"])
        assert all(number <= placements[cluster] for cluster, number in given.items()), "pods are within their slices"
    assert all(number <= 8 for number in held.values()), f"each cluster has 4 CPU, and {held} is more"
    for space in spaces:
        await pool.meta.kubectl("delete", "namespace", space, "--wait=false")


async def test_a_forged_plan_with_equal_placements_takes_no_slices_and_the_record_is_not_the_tenants(pool, namespace):
    name = namespace
    forged = '{"placements":{"r1":3},"slice":{"cpu":"100k"}}'
    annotations = {PLACEMENTS: '{"r1":3}', "hansa.dev/planned": forged, SLICE: '{"cpu":"100k"}'}
    await pool.meta.make(resources.NAMESPACES, name, metadata={"annotations": annotations})
    await pool.quota(name, cpu="300k")
    await pool.condition(name, "InsufficientCapacity", message="3 slices are not placed")
    found = await pool.meta.client.get(resources.NAMESPACES, name)
    assert annotations.keys() & found.annotations.keys() == {SLICE}
    vc = await pool.meta.client.get(api.VIRTUAL_CLUSTERS, "blue", namespace="default")
    assert name not in vc.status.get("placements", {})


async def test_the_record_of_a_namespace_goes_with_it(pool, namespace):
    async def record():
        vc = await pool.meta.client.get(api.VIRTUAL_CLUSTERS, "blue", namespace="default")
        return vc.status.get("placements", {}).get(namespace, {})

    async def is_gone():
        return not await record()

    await pool.namespace(namespace, TWO)
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    assert (await eventually(record))["slices"] == {"r1": 1, "r2": 1}
    await pool.meta.client.delete(resources.NAMESPACES, namespace)
    await eventually(is_gone, within=60)
