"""Existing clusters as tenants: by a kubeconfig in an annotation or in a Secret; they are never deleted."""

import base64
import contextlib

import pytest
import yaml

import virtual_clusters
from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime import clock
from hansa.tenancy import api
from hansa.tenancy.api import VIRTUAL_CLUSTERS
from hansa.tenancy.operator.etcd_storage import EtcdStorage, Medium
from hansa.tenancy.operator.existing import Existing
from hansa.tenancy.operator.statefulset import StatefulSets
from kubectl_vc import KubectlVc, cluster_of
from operator_loop import operator
from programs import Kubectl


@pytest.fixture
async def manager(meta):
    synced = (resources.STORAGE_CLASSES, resources.CUSTOM_RESOURCE_DEFINITIONS, resources.LEASES)
    more = {"user_agent": "hansa-test", "clock": clock.SystemClock(), "cleanup_seconds": 4.0}
    async with operator(
        meta, StatefulSets(meta, storage=EtcdStorage(Medium.EMPTY_DIR)), Existing(meta, synced=synced, **more)
    ) as running:
        yield running


@pytest.fixture
def brought(cluster):
    """The kubeconfig of an existing cluster, in base64."""
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
        await eventually(lambda name=name: is_gone(meta, NamespacedName(home, name)))


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


async def has_message(client, key, sentence):
    async def is_reported():
        vc = await look(client, key)
        assert sentence in vc.status.message, vc.status
        return vc

    return await eventually(is_reported)


async def secret(client, name, namespace, data):
    metadata = {"name": name, "namespace": namespace}
    await client.create(
        resources.SECRETS, Object.of({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    )


async def test_a_kubeconfig_in_an_annotation_becomes_a_tenant(meta, home, bring, brought, kubectl, cluster, tmp_path):
    await bring("own", **{keys.ADMIN_KUBECONFIG: brought})
    vc = await running(meta, NamespacedName(home, "own"))
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
    await has_message(
        meta, NamespacedName(home, "own"), f"waiting for Secret my-cluster with a kubeconfig in namespace {home} or"
    )
    await secret(meta, "my-cluster", home, {"value": brought})
    manager.requeue(NamespacedName(home, "own"))
    vc = await running(meta, NamespacedName(home, "own"))
    kept = await meta.get(resources.SECRETS, "my-cluster", namespace=vc.root)
    assert kept.get("data") == {"value": brought}


async def test_a_secret_in_the_root_namespace_serves_as_well(meta, home, bring, brought, manager):
    await bring("own", **{keys.ADMIN_KUBECONFIG_SECRET: "my-cluster"})
    vc = await has_message(
        meta, NamespacedName(home, "own"), "waiting for Secret my-cluster with a kubeconfig in namespace"
    )
    await secret(meta, "my-cluster", vc.root, {"value": brought})
    manager.requeue(NamespacedName(home, "own"))
    await running(meta, NamespacedName(home, "own"))


async def test_a_cluster_that_does_not_answer_is_reported_and_retried(meta, home, bring, cluster, manager):
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    good = config["clusters"][0]["cluster"]["server"]
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    await bring("own", **{keys.ADMIN_KUBECONFIG: encoded(config)})
    await has_message(meta, NamespacedName(home, "own"), "127.0.0.1:1")
    config["clusters"][0]["cluster"]["server"] = good
    better = {"metadata": {"annotations": {keys.ADMIN_KUBECONFIG: encoded(config)}}}
    await meta.patch(VIRTUAL_CLUSTERS, "own", better, namespace=home)
    await running(meta, NamespacedName(home, "own"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("bm90aGluZw==", "is not a kubeconfig"), ("%", "is not valid base64")],
)
async def test_an_invalid_kubeconfig_is_reported(meta, home, bring, text, sentence):
    await bring("own", **{keys.ADMIN_KUBECONFIG: text})
    vc = await has_message(meta, NamespacedName(home, "own"), sentence)
    assert vc.status.phase == "Error"


async def test_a_kubeconfig_may_not_name_files_or_programs(meta, home, bring, cluster):
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"tokenFile": "/etc/passwd"}
    await bring("own", **{keys.ADMIN_KUBECONFIG: encoded(config)})
    await has_message(meta, NamespacedName(home, "own"), "refers to files or an exec plugin")


async def test_deleting_the_tenant_leaves_its_cluster_alone(meta, home, bring, brought):
    await bring("own", **{keys.ADMIN_KUBECONFIG: brought})
    vc = await running(meta, NamespacedName(home, "own"))
    before = (await meta.get(resources.NAMESPACES, "kube-system")).uid
    await meta.delete(VIRTUAL_CLUSTERS, "own", namespace=home)
    await eventually(lambda: is_gone(meta, NamespacedName(home, "own")))

    async def is_root_gone():
        try:
            await meta.get(resources.NAMESPACES, vc.root)
        except errors.NotFound:
            return True
        return False

    await eventually(is_root_gone)
    assert (await meta.get(resources.NAMESPACES, "kube-system")).uid == before


async def give(client, resource, name, *, upper, **fields):
    """Make a copy as one that an upper cluster gave, and forget it with the test."""
    marked = {"labels": {keys.UPPER: upper}, "annotations": {keys.UPPER_UID: "u", keys.UPPER_NAME: f"/{name}"}}
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    await client.create(resource, Object.of(kind | {"metadata": {"name": name} | marked} | fields))


async def are_given(client, key, *uppers):
    """Note who gives things to a tenant, as the syncer does."""
    noted = {"status": {"superClusters": list(uppers)}}
    await client.patch(VIRTUAL_CLUSTERS, key.name, noted, namespace=key.namespace, subresource="status")


def definition(plural):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": plural, "kind": plural.capitalize()}
    return {"spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}}


async def test_objects_of_its_super_clusters_are_deleted_with_the_tenant_and_no_others(meta, home, bring, brought):
    key, classes, provisioner = (
        NamespacedName(home, "own"),
        resources.STORAGE_CLASSES,
        {"provisioner": "example.com/none"},
    )
    await bring("own", **{keys.ADMIN_KUBECONFIG: brought})
    await running(meta, key)
    given, others, own = (f"{one}-{home}" for one in ("given", "others", "own"))
    await give(meta, classes, given, upper=f"super-{home}", **provisioner)
    await give(meta, classes, others, upper="another", **provisioner)
    await meta.create(
        classes,
        Object.of({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": own}} | provisioner),
    )
    await are_given(meta, key, f"super-{home}")
    await meta.delete(VIRTUAL_CLUSTERS, "own", namespace=home)
    await eventually(lambda: is_gone(meta, key), within=60)
    there = {one.name async for page in meta.pages(classes) for one in page.items}
    assert there & {given, others, own} == {others, own}
    for name in (others, own):
        await meta.delete(classes, name)


async def test_a_definition_with_objects_of_the_tenant_is_kept_and_reported(meta, home, bring, brought):
    key, definitions = NamespacedName(home, "own"), resources.CUSTOM_RESOURCE_DEFINITIONS
    await bring("own", **{keys.ADMIN_KUBECONFIG: brought})
    await running(meta, key)
    used, unused = (f"{one}{home.partition('-')[2]}" for one in ("used", "unused"))
    for plural in (used, unused):
        await give(meta, definitions, f"{plural}.example.com", upper=f"super-{home}", **definition(plural))
    kind = Resource("example.com", "v1", used, kind=used.capitalize(), namespaced=False)
    thing = Object.of({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "precious"}})

    async def is_served():
        try:
            return await meta.create(kind, thing)
        except errors.NotFound:
            return None

    await eventually(is_served)
    await are_given(meta, key, f"super-{home}")
    await meta.delete(VIRTUAL_CLUSTERS, "own", namespace=home)
    await eventually(lambda: is_gone(meta, key), within=60)
    assert (await meta.get(kind, "precious")).name == "precious"
    assert f"keeping CustomResourceDefinition {used}.example.com" in await event_message(meta, home, "LeftBehind")

    async def is_unused_gone():
        found = [one.name async for page in meta.pages(definitions) for one in page.items]
        return f"{unused}.example.com" not in found

    await eventually(is_unused_gone)
    await meta.delete(definitions, f"{used}.example.com")


async def test_an_unreachable_tenant_is_deleted_all_the_same_and_what_is_left_is_reported(
    meta, home, bring, brought, cluster
):
    key = NamespacedName(home, "own")
    await bring("own", **{keys.ADMIN_KUBECONFIG: brought})
    await running(meta, key)
    await are_given(meta, key, f"super-{home}")
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    worse = {"metadata": {"annotations": {keys.ADMIN_KUBECONFIG: encoded(config)}}}
    await meta.patch(VIRTUAL_CLUSTERS, "own", worse, namespace=home)
    await meta.delete(VIRTUAL_CLUSTERS, "own", namespace=home)
    assert "cannot delete the objects" in await event_message(meta, home, "TenantControlPlaneLeaving")
    await eventually(lambda: is_gone(meta, key), within=60)
    assert "they have the label hansa.dev/upper" in await event_message(meta, home, "LeftBehind")


async def event_message(client, namespace, reason):
    """The message of an event; the test's namespace has no other VirtualCluster."""

    async def is_reported():
        found = (await client.list(resources.EVENTS, namespace=namespace, fields=f"reason={reason}")).items
        return found and found[-1].get("message")

    return await eventually(is_reported, within=60)


def encoded(config):
    return base64.b64encode(yaml.safe_dump(config).encode()).decode()
