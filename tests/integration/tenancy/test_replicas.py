"""Two replicas of vc-manager: the leader is killed, and the other one reconciles its tenants."""

import pytest

import programs
from eventually import eventually

pytestmark = pytest.mark.timeout(400)
FLAGS = ("--leader-elect",)


async def test_another_manager_takes_over_when_the_leader_is_killed(manager, cluster, home, tmp_path):
    await eventually(lambda: leads(manager.log), within=60)
    where = ("--kubeconfig", str(cluster.kubeconfig), "--state", str(manager.state))
    log = tmp_path / "other.log"
    async with programs.hansa("vc-manager", *where, "--etcd-fast", *FLAGS, log=log):
        tenant = await manager.create("taken", home)
        await manager.phase(tenant.key, "Pending")
        await manager.kill()
        await manager.phase(tenant.key)
        assert await leads(log)
        await manager.delete(tenant)
    await manager.start()
    await eventually(lambda: leads(manager.log, times=2), within=60)


async def leads(log, *, times=1):
    return log.read_text().count("became leader") >= times
