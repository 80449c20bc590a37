"""Clusters that are there as tenants: by a kubeconfig in an annotation or in a Secret; they stay their owners'."""

import base64
import contextlib

import pytest
import yaml

import virtual_clusters
from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.objects import Key, Object
from hansa.model import keys
from hansa.tenancy import api
from hansa.tenancy.api import VIRTUAL_CLUSTERS
from hansa.tenancy.existing import Existing
from hansa.tenancy.statefulset import StatefulSets
from kubectl_vc import KubectlVc, cluster_of
from operator_loop import operator
from programs import Kubectl


@pytest.fixture
async def manager(meta):
    async with operator(meta, StatefulSets(meta), Existing(meta, user_agent="hansa-test")) as running:
        yield running


@pytest.fixture
def brought(cluster):
    """The kubeconfig of a cluster of somebody's own, in base64."""
    return base64.b64encode(cluster.kubeconfig.read_bytes()).decode()


@pytest.fixture
async def bring(meta, home, manager):
    """Makes a VirtualCluster with annotations, and takes it away after the test."""
    made = []

    async def make(name, **annotations):
        await meta.create(VIRTUAL_CLUSTERS, virtual_clusters.virtual_cluster(name, home, annotations=annotations))
        made.append(name)

    yield make
    for name in made:
        with contextlib.suppress(errors.NotFound):
            await meta.delete(VIRTUAL_CLUSTERS, name, namespace=home)
        await eventually(lambda name=name: is_gone(meta, Key(home, name)))


async def is_gone(client, key):
    try:
        await client.get(VIRTUAL_CLUSTERS, key.name, namespace=key.namespace)
    except errors.NotFound:
        return True
    return False


async def look(client, key):
    return api.virtual_cluster(await client.get(VIRTUAL_CLUSTERS, key.name, namespace=key.namespace))


async def running(client, key):
    async def is_running():
        vc = await look(client, key)
        assert vc.status.phase == "Running", vc.status
        return vc

    return await eventually(is_running)


async def says(client, key, sentence):
    async def is_said():
        vc = await look(client, key)
        assert sentence in vc.status.message, vc.status
        return vc

    return await eventually(is_said)


async def secret(client, name, namespace, data):
    metadata = {"name": name, "namespace": namespace}
    await client.create(
        resources.SECRETS, Object.of({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    )


async def test_a_kubeconfig_in_an_annotation_becomes_a_tenant(meta, home, bring, brought, kubectl, cluster, tmp_path):
    await bring("own", **{keys.ADMIN_KUBECONFIG: brought})
    vc = await running(meta, Key(home, "own"))
    kept = await meta.get(resources.SECRETS, "admin-kubeconfig", namespace=vc.root)
    assert kept.get("data") == {"admin-kubeconfig": brought}
    assert not (await meta.list(resources.STATEFUL_SETS, namespace=vc.root)).items
    out = tmp_path / "own.kubeconfig"
    await KubectlVc(kubectl, cluster.kubeconfig, folder=tmp_path)("kubeconfig", f"{home}/own", "-o", str(out))
    assert cluster_of(out)["server"] == cluster.server
    assert "namespace/default" in await Kubectl(kubectl, out)("get", "ns", "-o", "name")


async def test_a_kubeconfig_in_a_secret_is_waited_for_and_kept_where_all_look_for_it(
    meta, home, bring, brought, manager
):
    await bring("own", **{keys.ADMIN_KUBECONFIG_SECRET: "my-cluster"})
    await says(meta, Key(home, "own"), f"secret my-cluster with a kubeconfig is neither in namespace {home} nor in")
    await secret(meta, "my-cluster", home, {"value": brought})
    manager.wake(Key(home, "own"))
    vc = await running(meta, Key(home, "own"))
    kept = await meta.get(resources.SECRETS, "my-cluster", namespace=vc.root)
    assert kept.get("data") == {"value": brought}


async def test_a_secret_in_the_root_namespace_serves_as_well(meta, home, bring, brought, manager):
    await bring("own", **{keys.ADMIN_KUBECONFIG_SECRET: "my-cluster"})
    vc = await says(meta, Key(home, "own"), "secret my-cluster with a kubeconfig is neither in namespace")
    await secret(meta, "my-cluster", vc.root, {"value": brought})
    manager.wake(Key(home, "own"))
    await running(meta, Key(home, "own"))


async def test_a_cluster_that_does_not_answer_is_told_and_tried_again(meta, home, bring, cluster, manager):
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    good = config["clusters"][0]["cluster"]["server"]
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    await bring("own", **{keys.ADMIN_KUBECONFIG: encoded(config)})
    await says(meta, Key(home, "own"), "127.0.0.1:1")
    config["clusters"][0]["cluster"]["server"] = good
    better = {"metadata": {"annotations": {keys.ADMIN_KUBECONFIG: encoded(config)}}}
    await meta.patch(VIRTUAL_CLUSTERS, "own", better, namespace=home)
    await running(meta, Key(home, "own"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("bm90aGluZw==", "is not a kubeconfig"), ("%", "is not valid base64")],
)
async def test_what_is_no_kubeconfig_is_told(meta, home, bring, text, sentence):
    await bring("own", **{keys.ADMIN_KUBECONFIG: text})
    vc = await says(meta, Key(home, "own"), sentence)
    assert vc.status.phase == "Error"


async def test_a_kubeconfig_may_not_name_files_or_programs(meta, home, bring, cluster):
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"tokenFile": "/etc/passwd"}
    await bring("own", **{keys.ADMIN_KUBECONFIG: encoded(config)})
    await says(meta, Key(home, "own"), "a tenant's kubeconfig must hold all data")


async def test_deleting_the_tenant_leaves_its_cluster_alone(meta, home, bring, brought):
    await bring("own", **{keys.ADMIN_KUBECONFIG: brought})
    vc = await running(meta, Key(home, "own"))
    before = (await meta.get(resources.NAMESPACES, "kube-system")).uid
    await meta.delete(VIRTUAL_CLUSTERS, "own", namespace=home)
    await eventually(lambda: is_gone(meta, Key(home, "own")))

    async def is_root_gone():
        try:
            await meta.get(resources.NAMESPACES, vc.root)
        except errors.NotFound:
            return True
        return False

    await eventually(is_root_gone)
    assert (await meta.get(resources.NAMESPACES, "kube-system")).uid == before


def encoded(config):
    return base64.b64encode(yaml.safe_dump(config).encode()).decode()
