"""Idle terminals of a tenant through a vn-agent that calls the API server; a real kubelet."""

import pytest

import vn_agent_lab
from figures import figure
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.tenancy import installing
from hansa.tenancy.operator import cluster_versions
from idle_sessions import idle_sessions, resident_mb

SESSIONS, MOST_MEMORY_MB = 500, 100.0


@pytest.fixture(scope="module")
async def lab(real_cluster, kubectl, tmp_path_factory):
    async with real_cluster.client("hansa-bench") as client:
        await installing.install(client, cluster_versions.samples())
        folder = tmp_path_factory.mktemp("vn-agent")
        async with vn_agent_lab.opened(real_cluster, kubectl, client, folder) as made:
            yield made


async def test_memory_of_idle_sessions(lab):
    await lab.start("--tenant-connections", str(SESSIONS + 10))
    before = resident_mb(lab.agent.pid)
    config = kubeconfig.from_files(lab.folder / "blue.kubeconfig")
    async with Client(config, user_agent="bench") as client, idle_sessions(client, "shop/pods/box", SESSIONS):
        more = resident_mb(lab.agent.pid) - before
        figure(f"memory of {SESSIONS} idle exec sessions of a tenant, MB", more, most=MOST_MEMORY_MB)
        assert "line 5 of green" in await lab.tenants["green"].kubectl("-n", "shop", "logs", "box")
