"""Objects of a tenant in a pool: each is where it is placed, and statuses of several super clusters are merged."""

import pytest

from hansa.kube import resources
from league import fresh_name
from pool_lab import PLACEMENTS, SUPER_CLUSTER, VN_AGENTS
from tenant_league import pod

pytestmark = pytest.mark.timeout(400)  # the first one begins with three clusters, maybe on a busy machine

ROOM = {"cpu": "10", "memory": "10Gi", "pods": "10"}
A_NODE = {
    "metadata": {"labels": {"twin": "true"}, "annotations": {"kwok.x-k8s.io/node": "fake"}},
    "status": {"capacity": ROOM, "allocatable": ROOM},
}
BALANCER = {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}


async def test_all_of_a_namespace_is_in_every_cluster_where_it_is_placed_and_each_pod_in_one(pool, namespace):
    below = pool.tenant.below(namespace)
    await pool.namespace(namespace, "r1", "r2")
    await pool.meta.make(resources.CONFIG_MAPS, "c", namespace, data={"a": "1"})
    for name, cluster in (("one", "r1"), ("two", "r2")):
        await pool.pod(namespace, name, cluster)
        await pool.meta.phase(name, namespace)
    for cluster, here, elsewhere in (("r1", "one", "two"), ("r2", "two", "one")):
        side = pool.supers[cluster]
        await side.there(resources.CONFIG_MAPS, "c", below)
        await side.phase(here, below)
        assert await side.look(resources.PODS, elsewhere, below) is None


async def test_nodes_of_one_name_in_two_super_clusters_are_two_nodes_of_the_tenant(pool, namespace):
    await pool.namespace(namespace, "r1", "r2")
    twin = fresh_name("twin")
    for cluster in ("r1", "r2"):
        await pool.supers[cluster].make(resources.NODES, twin, **A_NODE)
        await pool.pod(namespace, cluster, cluster, nodeSelector=A_NODE["metadata"]["labels"])
        above = await pool.meta.phase(cluster, namespace)
        assert above["spec"]["nodeName"] == f"{cluster}.{twin}"
        node = await pool.meta.there(resources.NODES, f"{cluster}.{twin}")
        assert node["metadata"]["labels"]["tenancy.x-k8s.io/superclusterid"] == cluster
        host, port = VN_AGENTS[cluster]
        assert node["status"]["addresses"][0] == {"type": "InternalIP", "address": host}
        assert node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] == port
        await pool.meta.there(resources.LEASES, f"{cluster}.{twin}", "kube-node-lease")
    await pool.pod(namespace, "pinned", "r2", nodeName=f"r2.{twin}")
    await pool.supers["r2"].phase("pinned", pool.tenant.below(namespace))
    for cluster in ("r1", "r2"):
        await pool.supers[cluster].client.delete(resources.NODES, twin)


async def test_the_later_annotation_key_of_pods_works_and_annotations_of_namespaces_decide_nothing(pool, namespace):
    below = pool.tenant.below(namespace)
    later = "scheduler.virtualcluster.io"
    await pool.namespace(namespace, "r2", key=f"{later}/placements")
    await pool.pod(namespace, "late", "r2", key=f"{later}/superCluster")
    await pool.meta.phase("late", namespace)
    for text in ("r1, please", '{"r1":1}', "{}"):
        await pool.say(namespace, text)
    await pool.meta.make(resources.CONFIG_MAPS, "c", namespace)
    await pool.supers["r2"].there(resources.CONFIG_MAPS, "c", below)
    await pool.meta.client.delete(resources.PODS, "late", namespace=namespace)
    await pool.meta.gone(resources.PODS, "late", namespace)
    assert await pool.supers["r2"].look(resources.NAMESPACES, below) is not None
    assert await pool.supers["r1"].look(resources.NAMESPACES, below) is None
    await pool.place(namespace, "r1")
    await pool.supers["r1"].there(resources.CONFIG_MAPS, "c", below)
    await pool.supers["r2"].gone(resources.NAMESPACES, below)


async def test_a_namespace_leaves_a_cluster_after_its_pods(pool, namespace):
    below, r1, r2 = pool.tenant.below(namespace), pool.supers["r1"], pool.supers["r2"]
    await pool.namespace(namespace, "r1", "r2")
    await pool.pod(namespace, "stays", "r2")
    await pool.meta.phase("stays", namespace)
    await r1.there(resources.NAMESPACES, below)
    await pool.place(namespace, "r1")
    await pool.meta.make(resources.CONFIG_MAPS, "later", namespace)
    await r1.there(resources.CONFIG_MAPS, "later", below)
    await r2.there(resources.CONFIG_MAPS, "later", below)  # what its pod may need
    assert (await pool.meta.phase("stays", namespace))["metadata"].get("deletionTimestamp") is None
    await pool.meta.client.delete(resources.PODS, "stays", namespace=namespace)
    await r2.gone(resources.NAMESPACES, below)
    assert await r1.look(resources.NAMESPACES, below) is not None


async def test_a_pending_pod_is_moved_and_runs_once(pool, namespace):
    below = pool.tenant.below(namespace)
    await pool.namespace(namespace, "r1", "r2")
    await pool.pod(namespace, "moves", "r1", nodeSelector={"is": "nowhere"})
    await pool.supers["r1"].there(resources.PODS, "moves", below)
    uid = (await pool.meta.there(resources.PODS, "moves", namespace, when=_is_unschedulable))["metadata"]["uid"]
    await pool.give(namespace, "moves", "r2")
    await pool.supers["r2"].there(resources.PODS, "moves", below)
    assert await pool.supers["r1"].look(resources.PODS, "moves", below) is None
    assert (await pool.meta.look(resources.PODS, "moves", namespace))["metadata"]["uid"] == uid


async def test_a_pod_is_not_synced_to_a_cluster_without_its_namespace_however_it_is_forged(pool, namespace):
    await pool.namespace(namespace, "r1")
    bound = {"nodeName": "r2.r2-0"}
    await pool.pod(namespace, "smuggler", "r2")
    await pool.pod(namespace, "bound", "r2", **bound)
    annotations = {SUPER_CLUSTER: "r2", "hansa.dev/lower-uid": "forged"}
    await pool.meta.make(resources.PODS, "seen", namespace, **pod(metadata={"annotations": annotations}, **bound))
    await pool.pod(namespace, "honest", "r1")
    await pool.meta.phase("honest", namespace)
    await pool.meta.make(resources.CONFIG_MAPS, "later", namespace)
    await pool.supers["r1"].there(resources.CONFIG_MAPS, "later", pool.tenant.below(namespace))
    assert await pool.supers["r2"].look(resources.NAMESPACES, pool.tenant.below(namespace)) is None


async def test_a_forged_plan_with_equal_placements_takes_no_slices(pool, namespace):
    forged = '{"placements":{"r2":9},"slice":{"cpu":"1"}}'
    annotations = {PLACEMENTS: '{"r2":9}', "hansa.dev/planned": forged}
    await pool.meta.make(resources.NAMESPACES, namespace, metadata={"annotations": annotations})
    await pool.pod(namespace, "web", "r2")
    other = f"{namespace}-other"
    await pool.namespace(other, "r1", "r2")
    await pool.pod(other, "honest", "r2")
    await pool.meta.phase("honest", other)
    assert await pool.supers["r2"].look(resources.NAMESPACES, pool.tenant.below(namespace)) is None
    await pool.meta.kubectl("delete", "namespace", other, "--wait=false")


async def test_a_service_has_the_addresses_of_all_load_balancers_and_a_condition_of_its_reach(pool, namespace):
    below = pool.tenant.below(namespace)
    await pool.namespace(namespace, "r1", "r2")
    await pool.meta.make(resources.SERVICES, "web", namespace, spec=BALANCER)
    for cluster, address in (("r1", "192.0.2.1"), ("r2", "192.0.2.2")):
        side = pool.supers[cluster]
        await side.there(resources.SERVICES, "web", below)
        status = {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}
        await side.client.patch(resources.SERVICES, "web", status, namespace=below, subresource="status")
    await pool.meta.there(resources.SERVICES, "web", namespace, when=_at("192.0.2.1", "192.0.2.2"))
    await pool.pod(namespace, "web", "r1")
    reported = "(r1: 1 pod, r2: no pods); each load balancer address reaches"
    await pool.meta.there(resources.SERVICES, "web", namespace, when=_reaches("SeveralClusters", reported))
    await pool.place(namespace, "r1")
    await pool.meta.there(
        resources.SERVICES, "web", namespace, when=_reaches("OneCluster", "all endpoints are in super cluster r1")
    )
    await pool.meta.there(resources.SERVICES, "web", namespace, when=_at("192.0.2.1"))


async def test_a_claim_is_where_its_pod_is_and_nowhere_else(pool, namespace):
    below = pool.tenant.below(namespace)
    await pool.namespace(namespace, "r1", "r2")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    await pool.meta.make(resources.PERSISTENT_VOLUME_CLAIMS, "data", namespace, spec=spec)
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    await pool.pod(namespace, "db", "r2", volumes=volumes)
    await pool.supers["r2"].there(resources.PERSISTENT_VOLUME_CLAIMS, "data", below)
    await pool.supers["r1"].there(resources.NAMESPACES, below)
    assert await pool.supers["r1"].look(resources.PERSISTENT_VOLUME_CLAIMS, "data", below) is None
    await pool.meta.client.delete(resources.PODS, "db", namespace=namespace)
    await pool.supers["r2"].gone(resources.PODS, "db", below)
    assert await pool.supers["r2"].look(resources.PERSISTENT_VOLUME_CLAIMS, "data", below) is not None


async def test_a_pod_of_a_lost_cluster_starts_elsewhere_and_its_stale_copy_is_deleted_when_the_cluster_is_back(
    pool, namespace
):
    below, r1, r2 = pool.tenant.below(namespace), pool.supers["r1"], pool.supers["r2"]
    await pool.namespace(namespace, "r1", "r2")
    await pool.pod(namespace, "waits", "r2", nodeSelector={"is": "nowhere"})
    await r2.there(resources.PODS, "waits", below)
    await pool.meta.there(resources.PODS, "waits", namespace, when=_is_unschedulable)
    with pool.supers["r2"].frozen():
        await pool.place(namespace, "r1")
        await pool.give(namespace, "waits", "r1")
        await r1.there(resources.PODS, "waits", below)
    await r2.gone(resources.PODS, "waits", below)
    await r2.gone(resources.NAMESPACES, below)
    await r1.there(resources.PODS, "waits", below)


def _is_unschedulable(pod):
    return any(one.get("reason") == "Unschedulable" for one in pod["status"].get("conditions", ()))


def _at(*addresses):
    return lambda found: [one["ip"] for one in found["status"]["loadBalancer"].get("ingress", ())] == list(addresses)


def _reaches(reason, message):
    def does(found):
        conditions = {one["type"]: one for one in found["status"].get("conditions", ())}
        reported = conditions.get("hansa.dev/ReachesAllEndpoints", {})
        return reported.get("reason") == reason and message in reported["message"]

    return does
