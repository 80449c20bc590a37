"""What `hansa explain` says and `hansa whatif` forecasts for a pool is true; a syncer runs its pods."""

import random

import pytest
import yaml

import programs
import soaking
from eventually import eventually
from hansa.kube import resources
from hansa.model import keys
from league import fresh_name
from pool_league import SUPER_CLUSTER, WITHIN
from questions import ask, by_cluster, fates

pytestmark = pytest.mark.timeout(400)
ONE = '{"cpu":"1"}'


@pytest.fixture(scope="module")
async def syncer(shared_pool, tmp_path_factory):
    """`hansa vc-syncer` for the whole pool."""
    config = str(shared_pool.meta.cluster.kubeconfig)
    flags = ("--meta-cluster-kubeconfig", config, "--pool", "--lost-after", "4", "--node-retention", "2")
    async with programs.hansa("vc-syncer", *flags, log=tmp_path_factory.mktemp("syncer") / "vc-syncer.log") as program:
        yield program
        for side in shared_pool.supers.values():  # tests without a syncer come after
            await eventually(lambda side=side: lacks_copies(side), within=WITHIN)
    for side in shared_pool.supers.values():  # `hansa leave` waits for the end of tenants' namespaces
        await side.kubectl("delete", "namespace", "-l", keys.UPPER, "--ignore-not-found", "--timeout=60s")


async def lacks_copies(side):
    page = await side.client.list(resources.PODS, labels=keys.UPPER)
    assert not page.items, [one.key for one in page.items]
    return True


@pytest.fixture
async def running(pool, syncer):
    """The pool with its schedulers and a syncer, without slices of other tests."""
    await pool.empty()
    return pool


def tenant(pool):
    config = str(pool.meta.cluster.kubeconfig)
    return ("--kubeconfig", config, "--meta-cluster-kubeconfig", config)


async def explain(pool, *words):
    return await ask("explain", *words, *tenant(pool))


async def whatif(pool, *words):
    return await ask("whatif", *words, "--kubeconfig", str(pool.meta.cluster.kubeconfig))


async def deploy(pool, namespace, name, replicas, cpu):
    """A Deployment; its pods are awaited by the caller."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    await pool.meta.make(resources.DEPLOYMENTS, name, namespace, spec=spec)


async def settled(pool, namespace, wanted):
    """Wait until the living pods run in these super clusters; "" is pending."""

    async def look():
        page = await pool.meta.client.list(resources.PODS, namespace=namespace)
        living = [one for one in page.items if not one.is_deleting]
        states = [
            one.annotations.get(SUPER_CLUSTER, "") if one.status.get("phase") == "Running" else "" for one in living
        ]
        assert sorted(states) == sorted(wanted), [
            (one.name, one.annotations, one.status.get("phase")) for one in living
        ]
        return {one.name: one for one in living}

    return await eventually(look, within=WITHIN)


async def test_a_pod_that_fits_no_clusters_slices_is_explained_and_runs_with_the_quota_that_is_named(
    running, namespace
):
    pool = running
    await pool.namespace(namespace, {"cpu": "2"}, slice_=ONE)
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    await pool.pod(namespace, "large", cpu="1500m")
    await pool.meta.event("FailedScheduling", "large", namespace)
    explained = await explain(pool, "pod", f"{namespace}/large")
    assert (explained["mode"], explained["cluster"]) == ("pool of super clusters", "")
    answers = by_cluster(explained)
    for name in ("r1", "r2"):
        assert "Insufficient cpu in the namespace's slices (requested 1.5, left 1)" in answers[name]["reasons"]
        assert answers[name]["changes"][0]["slices"] == 2
    [change] = explained["changes"]
    forecast = await whatif(pool, "--quota", f"{namespace}=cpu={change['quota']['cpu']}")
    assert fates(forecast, namespace) == {"large": ("starts", change["cluster"])}
    await pool.quota(namespace, **change["quota"])
    await settled(pool, namespace, [change["cluster"]])
    explained = await explain(pool, "pod", f"{namespace}/large")
    assert explained["cluster"] == change["cluster"]
    assert "is Running on node" in explained["below"][0]
    assert explained["decision"].startswith(f"vc-scheduler assigned it to {change['cluster']}; slices of its namespace")


async def test_a_pod_runs_in_the_cluster_that_gets_the_slices_that_it_named(running, namespace):
    pool = running
    await pool.namespace(namespace, {"cpu": "2"}, slice_=ONE)
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    await pool.pod(namespace, "large", cpu="1500m")
    await pool.meta.event("FailedScheduling", "large", namespace)
    explained = await explain(pool, "pod", f"{namespace}/large")
    [other] = {"r1", "r2"} - {explained["changes"][0]["cluster"]}
    wanted = by_cluster(explained)[other]["changes"][0]["slices"]
    await pool.edit(namespace, {other: wanted})  # by hand, within the quota
    await pool.placed(namespace, {other: wanted})
    await settled(pool, namespace, [other])


async def test_a_pod_is_explained_before_it_is_created(running, namespace, tmp_path):
    await running.namespace(namespace, {"cpu": "2"}, slice_=ONE)
    await running.placed(namespace, {"r1": 1, "r2": 1})
    file = tmp_path / "new.yaml"
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {"hostNetwork": True, "containers": [container]}
    metadata = {"name": "new", "namespace": namespace}
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
    explained = await explain(running, "pod", "--pod-file", str(file))
    assert explained["placed"] == "does not exist yet"
    assert [one["fits"] for one in explained["answers"]] == [True, True]
    assert any("spec.hostNetwork" in line for line in explained["below"]), explained["below"]


async def test_a_namespaces_slices_are_explained_and_a_node_with_what_is_missing_completes_them(running, namespace):
    pool = running
    await pool.namespace(namespace, {"cpu": "10"}, slice_=ONE)
    await pool.placed(namespace, {"r1": 4, "r2": 4})
    await pool.condition(namespace, "InsufficientCapacity")
    explained = await explain(pool, "namespace", namespace)
    assert (explained["wanted"], explained["placements"]) == (10, {"r1": 4, "r2": 4})
    [r1, r2] = explained["clusters"]
    assert (r1["room"], r1["wouldNeed"], r2["wouldNeed"]) == (0, {"cpu": "2"}, {"cpu": "2"})
    forecast = await whatif(pool, "--add-node", "r2=cpu=2")
    then = {one["namespace"].rpartition("/")[2]: one["then"] for one in forecast["namespaces"]}
    assert then[namespace] == {"r1": 4, "r2": 6}
    await a_node(pool, "r2", cpu="2")
    try:
        await pool.placed(namespace, {"r1": 4, "r2": 6})
    finally:
        await pool.supers["r2"].client.delete(resources.NODES, "more")
        await pool.meta.client.delete(resources.NAMESPACES, namespace)


async def a_node(pool, cluster, *, cpu):
    """One more node like those of a super cluster."""
    side = pool.supers[cluster]
    [like, *_] = (await side.client.list(resources.NODES)).items
    amounts = {**like.status["allocatable"], "cpu": cpu}
    annotations = {key: text for key, text in like.annotations.items() if "kwok" in key}
    metadata = {"labels": {**like.labels, "kubernetes.io/hostname": "more"}, "annotations": annotations}
    status = {"allocatable": amounts, "capacity": amounts}
    await side.make(resources.NODES, "more", metadata=metadata, spec={}, status=status)


async def test_a_lost_super_cluster_moves_what_was_forecast(running, namespace):
    pool = running
    await pool.namespace(namespace, {"cpu": "6"}, slice_=ONE)
    await pool.placed(namespace, {"r1": 3, "r2": 3})
    await deploy(pool, namespace, "web", 6, "1")
    pods = await settled(pool, namespace, ["r1"] * 3 + ["r2"] * 3)
    forecast = await whatif(pool, "--lose", "r2")
    found = fates(forecast, namespace)
    assert set(found) == {name for name, one in pods.items() if one.annotations[SUPER_CLUSTER] == "r2"}
    moves = [then for fate, then in found.values() if fate == "moves"]
    pends = [name for name, (fate, _) in found.items() if fate == "pends"]
    assert (moves, len(pends)) == (["r1"], 2)
    [slices] = forecast["namespaces"]
    with pool.supers["r2"].frozen():
        await pool.placed(namespace, slices["then"])
        await settled(pool, namespace, ["r1"] * 4 + [""] * 2)
        unread = await whatif(pool, "--add-node", "r1=cpu=4")
        assert list(unread["unknown"]) == ["r2"], "it cannot be read, which is not the same as empty"
        with pytest.raises(programs.Refused, match="super cluster r2 cannot be read"):
            await whatif(pool, "--add-node", "r2=cpu=4")


async def test_a_drained_super_node_and_a_smaller_quota_do_what_was_forecast(running, namespace):
    pool = running
    await pool.namespace(namespace, {"cpu": "4"}, slice_=ONE)
    await pool.placed(namespace, {"r1": 2, "r2": 2})
    await deploy(pool, namespace, "web", 4, "1")
    pods = await settled(pool, namespace, ["r1", "r1", "r2", "r2"])
    nodes = sorted(
        one.spec["nodeName"].partition(".")[2] for one in pods.values() if one.spec["nodeName"].startswith("r1.")
    )
    found = fates(await whatif(pool, "--drain", f"r1/{nodes[0]}"), namespace)
    on_node = [name for name, one in pods.items() if one.spec["nodeName"] == f"r1.{nodes[0]}"]
    assert found == dict.fromkeys(on_node, ("moves", "r1"))
    kubectl = pool.supers["r1"].kubectl
    await kubectl("drain", nodes[0], "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
    try:
        now = await settled(pool, namespace, ["r1", "r1", "r2", "r2"])
        assert not set(on_node) & set(now), "they were created again"
        assert all(one.spec["nodeName"] != f"r1.{nodes[0]}" for one in now.values())
    finally:
        await kubectl("uncordon", nodes[0])
    await pool.meta.client.patch(resources.DEPLOYMENTS, "web", {"spec": {"replicas": 2}}, namespace=namespace)

    async def fewer():
        page = await pool.meta.client.list(resources.PODS, namespace=namespace)
        assert len(page.items) == 2, [one.name for one in page.items]
        return True

    await eventually(fewer, within=WITHIN)
    forecast = await whatif(pool, "--quota", f"{namespace}=cpu=1")
    [slices] = forecast["namespaces"]
    assert not fates(forecast, namespace), "slices that running pods use are kept"
    await pool.quota(namespace, cpu="1")
    await pool.placed(namespace, slices["then"])


async def test_mistakes_are_one_sentence(pool, namespace):
    for words, message in (
        (("whatif", "--lose", "r9"), "there is no super cluster r9 in the pool; known: r1, r2"),
        (("whatif", "--drain", "r1/n9"), "cluster r1 has no node n9"),
        (("whatif", "--quota", "nowhere=cpu=1"), "no tenant has a namespace nowhere"),
        (("whatif",), "give at least one of --lose, --add-node, --drain and --quota"),
        (("explain", "pod", f"{namespace}/none"), f"pod {namespace}/none does not exist"),
        (("explain", "namespace", "none"), "namespace none does not exist"),
    ):
        flags = tenant(pool) if words[0] == "explain" else tenant(pool)[:2]
        with pytest.raises(programs.Refused, match=message):
            await ask(*words, *flags)


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_the_quotas_that_explanations_name_make_random_pending_pods_run(running):
    """A random quota and a random pod that has no room in the slices."""
    pool = running
    for seed in soaking.seeds():
        rng = random.Random(seed)
        checked = 0
        while checked < 200:
            checked += await quota_is_enough(pool, fresh_name(), rng)


async def quota_is_enough(pool, namespace, rng):
    """Whether a quota was named; then the pod runs with it."""
    await pool.namespace(namespace, {"cpu": str(rng.randint(2, 4))}, slice_=ONE)
    await pool.placed_somehow(namespace)
    cpu = rng.choice(("1100m", "1500m", "2"))
    await pool.pod(namespace, "large", cpu=cpu)
    await eventually(lambda: pool.meta.look(resources.PODS, "large", namespace), within=WITHIN)
    explained = await explain(pool, "pod", f"{namespace}/large")
    changes = explained.get("changes", ())
    if changes:
        await pool.quota(namespace, **changes[0]["quota"])
        await settled(pool, namespace, [changes[0]["cluster"]])
    await pool.meta.client.delete(resources.PODS, "large", namespace=namespace, grace=0)
    await pool.meta.client.delete(resources.QUOTAS, "all", namespace=namespace)
    await pool.placed(namespace, {})
    await pool.meta.client.delete(resources.NAMESPACES, namespace)
    return bool(changes)
