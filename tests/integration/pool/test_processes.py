"""Other ways to serve a pool: a syncer for each super cluster, joined networks, and processes that are killed."""

import pytest

from hansa.kube import resources

FENCE = {"name": "hansa-fence", "namespace": "kube-system"}
pytestmark = pytest.mark.timeout(400)  # the first one begins with three clusters, maybe on a busy machine


@pytest.fixture
async def lab(shared_pool):
    """The pool without a syncer; afterwards the one for all runs again."""
    await shared_pool.stop()
    yield shared_pool
    await shared_pool.stop()
    await shared_pool.start()


async def test_a_syncer_for_each_super_cluster_leaves_to_the_others_what_is_theirs(lab, namespace):
    for name in ("r1", "r2"):
        config = str(lab.supers[name].cluster.kubeconfig)
        await lab.start(
            name,
            *("--super-master-kubeconfig", config, "--deployment-on-meta=true"),
            *("--syncer-name", f"vc-syncer-{name}", "--feature-gates", "SuperClusterPooling=true"),
        )
    below = lab.tenant.below(namespace)
    await lab.namespace(namespace, "r1", "r2")
    await lab.meta.make(resources.CONFIG_MAPS, "c", namespace)
    for cluster in ("r1", "r2"):
        await lab.pod(namespace, f"in-{cluster}", cluster)
        pod = await lab.meta.phase(f"in-{cluster}", namespace)
        assert pod["spec"]["nodeName"].startswith(f"{cluster}.")
        await lab.supers[cluster].there(resources.CONFIG_MAPS, "c", below)
    assert await lab.supers["r1"].look(resources.PODS, "in-r2", below) is None
    await lab.meta.client.delete(resources.PODS, "in-r2", namespace=namespace)
    await lab.place(namespace, "r1")
    await lab.supers["r2"].gone(resources.NAMESPACES, below)
    await lab.meta.phase("in-r1", namespace)


async def test_with_joined_networks_every_super_cluster_has_the_endpoints_of_all(lab, namespace):
    await lab.start("pool", "--pool", "--networks-joined")
    await lab.namespace(namespace, "r1", "r2")
    spec = {"selector": {"tier": "web"}, "ports": [{"port": 80}]}
    await lab.meta.make(resources.SERVICES, "web", namespace, spec=spec)
    addresses = set()
    for cluster in ("r1", "r2"):
        labels = {"tier": "web"}
        await lab.pod(namespace, f"in-{cluster}", cluster)
        await lab.meta.client.patch(
            resources.PODS, f"in-{cluster}", {"metadata": {"labels": labels}}, namespace=namespace
        )
        addresses.add((await lab.meta.phase(f"in-{cluster}", namespace))["status"]["podIP"])
    for side in lab.supers.values():
        service = await side.there(resources.SERVICES, "web", lab.tenant.below(namespace))
        assert "selector" not in service["spec"]
        await lab.reached(side, namespace, "web", addresses)


async def test_changes_made_while_the_syncer_was_killed_are_synced(lab, namespace):
    below = lab.tenant.below(namespace)
    await lab.start()
    await lab.namespace(namespace, "r1", "r2")
    await lab.pod(namespace, "leaves", "r2")
    await lab.meta.phase("leaves", namespace)
    lab.syncers["pool"].kill()
    await lab.syncers.pop("pool").ended()
    await lab.place(namespace, "r1")
    await lab.meta.client.delete(resources.PODS, "leaves", namespace=namespace, grace=0)
    await lab.pod(namespace, "comes", "r1")
    await lab.start()
    await lab.meta.phase("comes", namespace)
    await lab.supers["r2"].gone(resources.NAMESPACES, below)


async def test_a_super_cluster_may_join_after_placements_name_it(lab, namespace):
    await lab.meta.kubectl("delete", "clusters.cluster.x-k8s.io", "r2")
    await lab.start()
    await lab.namespace(namespace, "r1", "r2")
    await lab.pod(namespace, "early", "r2")
    await lab.supers["r1"].there(resources.NAMESPACES, lab.tenant.below(namespace))
    assert await lab.supers["r2"].look(resources.NAMESPACES, lab.tenant.below(namespace)) is None
    await lab.join("r2")
    await lab.meta.phase("early", namespace)


async def test_replicas_share_the_tenants_and_renew_all_fences_when_one_of_them_dies(lab, namespace):
    for name in ("a", "b"):
        await lab.start(name, "--pool", "--share-tenants", "--lost-after", "6")
    await lab.namespace(namespace, "r1", "r2")
    for cluster in ("r1", "r2"):
        await lab.pod(namespace, f"in-{cluster}", cluster)
        await lab.meta.phase(f"in-{cluster}", namespace)
    serving = [name for name in ("a", "b") if "tenant added" in lab.log(name).read_text()]
    lab.syncers[serving[-1]].kill()
    await lab.syncers.pop(serving[-1]).ended()
    fences = {name: await side.client.get(resources.LEASES, **FENCE) for name, side in lab.supers.items()}
    for cluster, side in lab.supers.items():
        await lab.pod(namespace, f"then-in-{cluster}", cluster)
        await lab.meta.phase(f"then-in-{cluster}", namespace)
        version = fences[cluster].version
        await side.there(
            resources.LEASES, **FENCE, when=lambda one, old=version: one["metadata"]["resourceVersion"] != old
        )
