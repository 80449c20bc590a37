"""The storage of etcd of StatefulSets on a real cluster with kwok nodes: claims, and what exists already."""

import pytest

import virtual_clusters
from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.objects import NamespacedName, Object
from hansa.tenancy import api
from hansa.tenancy.api import VIRTUAL_CLUSTERS
from hansa.tenancy.operator.etcd_storage import EtcdStorage, Medium
from hansa.tenancy.operator.statefulset import StatefulSets
from operator_loop import operator

WITHIN = 90.0
FORMER = EtcdStorage(Medium.EMPTY_DIR)


@pytest.fixture
async def key(meta, home):
    """A tenant, which is deleted at the end by a manager."""
    await meta.create(VIRTUAL_CLUSTERS, virtual_clusters.virtual_cluster("one", home))
    yield NamespacedName(home, "one")
    async with operator(meta, StatefulSets(meta)):
        vc = await find(meta, NamespacedName(home, "one"))
        await meta.delete(VIRTUAL_CLUSTERS, "one", namespace=home)
        await eventually(lambda: is_gone(meta, resources.NAMESPACES, vc.root), within=WITHIN)


@pytest.fixture
async def volume(meta):
    """A volume that an administrator made; it is released when the claim is gone."""
    spec = {
        "capacity": {"storage": "8Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/var/local-volumes"},
    }
    made = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "of-etcd"}, "spec": spec}

    async def make():
        await meta.create(resources.PERSISTENT_VOLUMES, Object.of(made))

    yield make
    await meta.delete(resources.PERSISTENT_VOLUMES, "of-etcd")


async def find(meta, key):
    return api.virtual_cluster(await meta.get(VIRTUAL_CLUSTERS, key.name, namespace=key.namespace))


async def is_running(meta, key):
    vc = await find(meta, key)
    assert vc.status.phase == "Running", vc.status
    return vc


async def is_gone(meta, resource, name):
    try:
        await meta.get(resource, name)
    except errors.NotFound:
        return True
    return False


async def test_etcd_waits_for_a_volume_and_the_status_says_so(meta, key, volume):
    async with operator(meta, StatefulSets(meta)) as manager:

        async def says_so():
            message = (await find(meta, key)).status.message
            assert "PersistentVolumeClaim data-etcd-0 is Pending (no StorageClass" in message, message
            return True

        await eventually(says_so, within=WITHIN)
        await volume()

        async def runs():
            manager.requeue(key)
            return await is_running(meta, key)

        vc = await eventually(runs, within=WITHIN, every=1.0)
        claim = await meta.get(resources.PERSISTENT_VOLUME_CLAIMS, "data-etcd-0", namespace=vc.root)
        assert claim.spec["volumeName"] == "of-etcd"


async def test_another_setting_leaves_an_existing_etcd_as_it_is(meta, key):
    async with operator(meta, StatefulSets(meta, storage=FORMER)):
        vc = await eventually(lambda: is_running(meta, key), within=WITHIN)
    before = await meta.get(resources.STATEFUL_SETS, "etcd", namespace=vc.root)
    assert before.spec["updateStrategy"] == {"type": "OnDelete"}
    await meta.delete(resources.STATEFUL_SETS, "controller-manager", namespace=vc.root)
    async with operator(meta, StatefulSets(meta)):

        async def is_applied():
            found = await meta.get(resources.STATEFUL_SETS, "controller-manager", namespace=vc.root)
            return found.status.get("readyReplicas") == 1

        await eventually(is_applied, within=WITHIN)
        await eventually(lambda: is_running(meta, key), within=WITHIN)
    after = await meta.get(resources.STATEFUL_SETS, "etcd", namespace=vc.root)
    assert (after.uid, after.spec) == (before.uid, before.spec)
