"""Placement of slices: by each policy, with headroom, all or nothing, and when their size or the pool changes."""

from hansa.kube import resources
from pool_league import SCHEDULER, SLICE, bound

POLICY = f"{SCHEDULER}/policy"
TO_R2 = "prefer called=r2:1"

ONE_CPU = '{"cpu":"1"}'  # each super cluster has 4


async def test_spread_uses_all_clusters_evenly(pool, namespace):
    await pool.empty()
    await pool.namespace(namespace, {"cpu": "5"}, slice_=ONE_CPU, policy="spread")
    await pool.placed(namespace, {"r1": 3, "r2": 2})


async def test_pack_takes_the_tightest_cluster_that_takes_all_and_then_the_next(pool, namespace, another):
    await pool.empty()
    await pool.namespace(another, {"cpu": "1"}, slice_=ONE_CPU, policy=TO_R2)
    await pool.placed(another, {"r2": 1})
    await pool.namespace(namespace, {"cpu": "3"}, slice_=ONE_CPU, policy="pack")
    await pool.placed(namespace, {"r2": 3})
    await pool.quota(namespace, cpu="4")
    await pool.placed(namespace, {"r1": 1, "r2": 3})


async def test_prefer_fills_clusters_by_the_weight_of_their_labels(pool, namespace):
    await pool.empty()
    await pool.namespace(namespace, {"cpu": "5"}, slice_=ONE_CPU, policy="prefer called=r2:10; called=r1:5")
    await pool.placed(namespace, {"r1": 1, "r2": 4})


async def test_an_invalid_policy_is_reported_in_a_condition(pool, namespace):
    await pool.namespace(namespace, {"cpu": "1"}, slice_=ONE_CPU, policy="anywhere")
    reported = await pool.condition(namespace, "NotUnderstood")
    assert 'invalid placement policy "anywhere"' in reported["message"]


async def test_headroom_is_never_assigned(pool, namespace):
    await pool.again("--headroom", "50%")
    await pool.namespace(namespace, {"cpu": "8"}, slice_=ONE_CPU)
    await pool.placed(namespace, {"r1": 2, "r2": 2})
    reported = await pool.condition(namespace, "InsufficientCapacity")
    assert reported["message"].startswith("4 slices are not placed (4 CPU)")
    await pool.add("r2", **{"hansa.dev/headroom": "cpu=1"})
    await pool.placed(namespace, {"r1": 2, "r2": 3})
    await pool.add("r2")
    await pool.stop()


async def test_where_all_or_nothing_is_asked_nothing_is_placed_until_all_fits(pool, namespace):
    await pool.again("--all-or-nothing")
    await pool.namespace(namespace, {"cpu": "9"}, slice_=ONE_CPU)
    await pool.condition(namespace, "InsufficientCapacity")
    await pool.placed(namespace, {})
    await pool.quota(namespace, cpu="8")
    await pool.placed(namespace, {"r1": 4, "r2": 4})
    await pool.stop()


async def test_a_quota_that_may_evict_takes_slices_from_pods(pool, namespace):
    await pool.again("--evict")
    await pool.namespace(namespace, {"cpu": "2"}, slice_=ONE_CPU)
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    for name in "ab":
        await pool.pod(namespace, name, cpu="1")
        pod = await pool.meta.client.get(resources.PODS, name, namespace=namespace)
        await pool.given(namespace, name)
        await pool.meta.client.call(resources.PODS, name, "binding", body=bound(pod, "n1"), namespace=namespace)
    there = {await pool.given(namespace, name): name for name in "ab"}
    await pool.quota(namespace, cpu="1")
    await pool.placed(namespace, {"r1": 1})
    reported = await pool.meta.event("Evicted", there["r2"], namespace)
    assert reported["message"] == f"namespace {namespace} has no slices in r2"
    assert await pool.given(namespace, there["r1"]) == "r1"
    await pool.meta.kubectl("delete", "pods", "--all", "--force", "-n", namespace)  # no kubelet reports their end
    await pool.stop()


async def test_when_the_size_of_a_slice_changes_what_is_there_stays_there(pool, namespace):
    await pool.namespace(namespace, {"cpu": "2"}, slice_='{"cpu":"500m"}', policy=TO_R2)
    await pool.placed(namespace, {"r2": 4})
    for size, slices in (('{"cpu":"1"}', 2), ('{"cpu":"250m"}', 8)):
        patch = {"metadata": {"annotations": {SLICE: size, POLICY: "spread"}}}
        await pool.meta.client.patch(resources.NAMESPACES, namespace, patch)
        await pool.placed(namespace, {"r2": slices})


async def test_a_cluster_that_placements_name_before_it_joins_has_them_when_it_does(pool, namespace):
    await pool.empty()
    await pool.namespace(namespace, {"cpu": "6"}, slice_=ONE_CPU, policy=TO_R2)
    await pool.placed(namespace, {"r1": 2, "r2": 4})
    await pool.kill()
    await pool.meta.kubectl("delete", "cluster.cluster.x-k8s.io", "r2")
    await pool.start()
    await pool.placed(namespace, {"r1": 4})
    reported = await pool.condition(namespace, "InsufficientCapacity")
    assert reported["message"].startswith("2 slices are not placed (2 CPU): r1 has 0 CPU left, a slice needs 1 CPU")
    await pool.add("r2")
    await pool.placed(namespace, {"r1": 4, "r2": 2})
