"""A second vc-syncer, for another super cluster, would run every pod of a tenant twice: it refuses."""

import contextlib

import pytest

import programs
from hansa.kube import errors, resources
from hansa.tenancy import api
from hansa.tenancy.pool import cluster_id
from tenant_league import pod

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def second(tenants, mallory):
    """The flags of a syncer for the same tenants and another super cluster, which is a tenant as well."""
    meta, other = (str(side.cluster.kubeconfig) for side in (tenants.super, mallory))
    return ("vc-syncer", "--meta-cluster-kubeconfig", meta, "--super-master-kubeconfig", other)


async def test_a_syncer_for_another_super_cluster_refuses_and_changes_nothing(
    tenants, second, mallory, alice, below, namespace, tmp_path
):
    async with programs.hansa(*second, log=tmp_path / "second.log"):
        event = await tenants.super.event("OtherSuperCluster", "alice")
        assert "serves the tenant without a pool, so its pods would run twice: stop this vc-syncer" in event["message"]
        await alice.make(resources.PODS, "web", namespace, **pod())
        await alice.phase("web", namespace)
    assert await mallory.look(resources.NAMESPACES, alice.below(namespace)) is None
    vc = api.virtual_cluster(await below.client.get(api.VIRTUAL_CLUSTERS, "alice", namespace="default"))
    assert vc.condition(api.ConditionType.SYNCED).status == "True"


async def test_a_syncer_for_a_super_cluster_of_a_pool_does_not_start_without_the_pool(second, mallory, tmp_path):
    key = cluster_id.CONFIG_MAP
    await mallory.client.create(resources.CONFIG_MAPS, cluster_id.config_map("r7"))
    try:
        program = await programs.start(*second, log=tmp_path / "second.log")
        assert await program.ended() == 1
        text = program.log.read_text()
        assert "hansa: the super cluster is r7 of a pool, by ConfigMap kube-system/supercluster-info" in text
        assert "start vc-syncer with --pool" in text
    finally:
        with contextlib.suppress(errors.NotFound):
            await mallory.client.delete(resources.CONFIG_MAPS, key.name, namespace=key.namespace)


async def test_a_successor_of_a_killed_syncer_serves_at_once(tenants, alice, namespace):
    await tenants.kill()
    await tenants.start()
    await alice.make(resources.PODS, "web", namespace, **pod())
    await alice.phase("web", namespace)
