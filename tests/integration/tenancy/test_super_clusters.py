"""Reasons why a tenant gets no routes."""

import pytest

from hansa.app.program import Program
from hansa.engine.registry import ClusterRegistry, Route
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.kube.objects import Object
from hansa.tenancy.syncing.members import Tenancy
from hansa.tenancy.syncing.owners import Owner
from hansa.tenancy.syncing.super_clusters import NEVER, SuperClusters


async def test_a_tenant_that_does_not_answer_is_no_fault_of_a_super_cluster(cluster, tmp_path):
    dead = tmp_path / "kubeconfig"
    dead.write_text(cluster.kubeconfig.read_text().replace(cluster.server, "https://127.0.0.1:1"))
    program, registry = Program(), ClusterRegistry()
    tenancy = Tenancy(Object.of({}), Owner("key", "default", "vc", "uid", "meta"), "https://127.0.0.1:1")
    async with cluster.client() as client, Client(kubeconfig.from_files(dead), user_agent="hansa-test") as tenant:
        supers = SuperClusters(
            registry, lambda _, lower, ranges: Route("key", lower, ranges), lost_after=NEVER, clock=program.clock
        )
        registry.join(supers.add(there := program.cluster("super", client)))
        await there.health.probe()
        with pytest.raises(errors.Unreachable, match="127.0.0.1:1"):
            await supers.routes(tenancy, tenant)
        await there.close()
