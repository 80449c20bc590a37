"""`hansa join` and `hansa leave` on real clusters."""

import asyncio
import base64
import json

import pytest
import yaml

from eventually import eventually
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.kube.errors import Forbidden
from hansa.tenancy.pool import join_manifests
from hansa.tenancy.syncing import service_ranges
from programs import Kubectl, Refused

pytestmark = pytest.mark.timeout(400)  # the first one begins with three clusters, maybe on a busy machine

FILES = {
    *("cluster-cr.yaml", "cluster-id.yaml", "kubeconfig"),
    *("secret-for-scheduler.yaml", "secret-for-vc-syncer.yaml", "vc-syncer.yaml"),
}


async def test_join_writes_the_seeds_six_files_and_kubectl_takes_them(shared_pool, kubectl, tmp_path):
    meta, r1 = shared_pool.meta, shared_pool.supers["r1"]
    folder = tmp_path / "cluster_r1"
    await shared_pool.hansa("join", "r1", "--kubeconfig", str(r1.cluster.kubeconfig), "--output", str(folder))
    assert {path.name for path in folder.iterdir()} == FILES
    more = tmp_path / "with-agent"
    words = ("join", "r1", "--kubeconfig", str(r1.cluster.kubeconfig), "--output", str(more), "--agent")
    output = await shared_pool.hansa(*words)
    assert f"apply {more / 'cluster-id.yaml'} and {more / 'super-agent.yaml'} to the super cluster" in output
    await r1.kubectl("apply", "--dry-run=server", "-f", str(more / "super-agent.yaml"))
    for name in ("kubeconfig", "secret-for-scheduler.yaml", "secret-for-vc-syncer.yaml"):
        assert (folder / name).stat().st_mode & 0o077 == 0, f"others can read {name}"
    ours = Kubectl(kubectl, folder / "kubeconfig")
    await r1.kubectl("apply", "-f", str(folder / "cluster-id.yaml"))
    for name in ("vc-syncer.yaml", "cluster-cr.yaml", "secret-for-scheduler.yaml", "secret-for-vc-syncer.yaml"):
        await meta.kubectl("apply", "-f", str(folder / name))
    assert (await ours.get("configmap", "-n", "kube-system", "supercluster-info"))["data"] == {"id": "r1"}
    assert (await meta.kubectl.get("clusters.cluster.x-k8s.io", "r1"))["status"]["phase"] == "Provisioned"
    deployment = await meta.kubectl.get("deploy", "-n", "vc-manager", "vc-syncer-r1")
    assert "--feature-gates=SuperClusterPooling=true" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    await meta.kubectl("delete", "-n", "vc-manager", "deploy/vc-syncer-r1", "secret/cluster-r1-config")


async def test_the_account_may_do_what_it_needs_and_nothing_else(shared_pool, tmp_path):
    r1 = shared_pool.supers["r1"]
    secret = await shared_pool.meta.kubectl.get("secret", "r1")
    config = tmp_path / "kubeconfig"
    config.write_bytes(base64.b64decode(secret["data"]["admin-kubeconfig"]))
    assert "client-key-data" not in yaml.safe_load(config.read_text())["users"][0]["user"]
    async with Client(kubeconfig.from_files(config), user_agent="hansa-test") as client:
        await client.list(resources.NODES)
        for resource in (resources.CLUSTER_ROLES, resources.DEPLOYMENTS):
            with pytest.raises(Forbidden):
                await client.list(resource)
        fence = {"metadata": {"annotations": {"hansa.dev/fence-grace": "30"}}}
        await client.patch(resources.LEASES, "hansa-fence", fence, namespace="kube-system")
        with pytest.raises(Forbidden):
            await client.patch(resources.LEASES, "kube-scheduler", fence, namespace="kube-system")
        node = (await r1.client.list(resources.NODES)).items[0]
        with pytest.raises(Forbidden):
            await client.patch(resources.NODES, node.name, {"spec": {"unschedulable": True}})


async def test_a_join_or_leave_that_is_not_possible_fails_with_one_sentence(shared_pool, tmp_path):
    r1, r2 = (shared_pool.supers[name].cluster.kubeconfig for name in ("r1", "r2"))
    for words, sentence in (
        (("R1", "--kubeconfig", str(r1)), 'hansa: "R1" cannot be the id of a super cluster'),
        (("r9", "--kubeconfig", str(r1)), "hansa: the cluster has the id r1 already: join it as r1"),
    ):
        with pytest.raises(Refused, match=sentence):
            await shared_pool.hansa("join", *words)
    away = tmp_path / "away"
    config = yaml.safe_load(r2.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    away.write_text(yaml.safe_dump(config))
    with pytest.raises(Refused, match=r"127\.0\.0\.1:1"):
        await shared_pool.hansa("join", "r2", "--kubeconfig", str(away))
    with pytest.raises(Refused, match="super cluster r9 not found"):
        await shared_pool.hansa("leave", "r9")


async def test_an_id_that_another_cluster_has_is_taken(shared_pool):
    meta, config = shared_pool.meta, str(shared_pool.meta.cluster.kubeconfig)
    with pytest.raises(Refused, match="Cluster default/r1 of the meta cluster has the id r1 already"):
        await shared_pool.hansa("join", "r1", "--kubeconfig", config, "--apply", "--without-syncer")
    assert await meta.look(resources.NAMESPACES, "hansa-system") is None, "nothing was made"
    with pytest.raises(Refused, match="the cluster has joined as default/r1 already"):
        await shared_pool.join("r1", "--namespace", "kube-public")


async def test_a_super_cluster_leaves_when_it_is_empty_and_may_join_again(pool, namespace):
    meta, r2, below = pool.meta, pool.supers["r2"], pool.tenant.below(namespace)
    await pool.join("r2", "--agent")
    await r2.there(resources.DEPLOYMENTS, "hansa-agent", "hansa-system")
    await pool.namespace(namespace, "r1", "r2")
    await pool.meta.make(resources.CONFIG_MAPS, "c", namespace)
    await r2.there(resources.CONFIG_MAPS, "c", below)
    config = str(r2.cluster.kubeconfig)
    leaving = asyncio.create_task(pool.hansa("leave", "r2", "--kubeconfig", config, "--timeout", "100"))

    async def is_closed():
        cluster = await meta.kubectl.get("clusters.cluster.x-k8s.io", "r2")
        return cluster["metadata"]["annotations"].get("hansa.dev/leaving") == "true"

    await eventually(is_closed)
    assert not leaving.done()
    await pool.place(namespace, "r1")
    output = await leaving
    assert "r2 has left the pool" in output
    assert await r2.look(resources.NAMESPACES, below) is None
    await r2.gone(service_ranges.SERVICE_CIDRS, f"{pool.key}-kubernetes")
    assert await r2.look(resources.SERVICE_ACCOUNTS, *reversed(join_manifests.ACCOUNT)) is None
    assert await r2.look(resources.DEPLOYMENTS, "hansa-agent", "hansa-system") is None
    assert await r2.look(resources.LEASES, "hansa-fence", "kube-system") is None
    assert await meta.look(resources.SECRETS, "r2", "default") is None
    await pool.join("r2")
    await pool.place(namespace, "r2")
    await r2.there(resources.CONFIG_MAPS, "c", below)


async def test_the_syncer_still_serves_a_super_cluster_whose_objects_were_deleted_by_mistake(pool, namespace):
    meta, r2, below = pool.meta, pool.supers["r2"], pool.tenant.below(namespace)
    await pool.namespace(namespace, "r2")
    await pool.pod(namespace, "before", "r2")
    uid = (await r2.phase("before", below))["metadata"]["uid"]
    for what in ("clusters.cluster.x-k8s.io", "secret"):
        await meta.kubectl("delete", what, "r2")
    await pool.pod(namespace, "after", "r2")
    await meta.phase("after", namespace)
    assert (await r2.look(resources.PODS, "before", below))["metadata"]["uid"] == uid
    await pool.join("r2")


async def test_a_cluster_object_keeps_the_fields_of_cluster_api_and_no_others(shared_pool, namespace):
    spec = {"paused": True, "clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/16"]}}}
    status = {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}
    kind = {"apiVersion": "cluster.x-k8s.io/v1alpha4", "kind": "Cluster"}
    made = {**kind, "metadata": {"name": namespace}, "spec": {**spec, "colour": "blue"}, "status": status}
    await shared_pool.meta.kubectl("create", "--validate=false", "-f", "-", stdin=json.dumps(made))
    found = await shared_pool.meta.kubectl.get("clusters.cluster.x-k8s.io", namespace)
    assert (found["spec"], found["status"]) == (spec, status)
    wrong = {**made, "metadata": {"name": f"{namespace}-2"}, "spec": {"paused": "perhaps"}}
    with pytest.raises(Refused, match=r"spec\.paused"):
        await shared_pool.meta.kubectl("create", "-f", "-", stdin=json.dumps(wrong))
    await shared_pool.meta.kubectl("delete", "clusters.cluster.x-k8s.io", namespace)
