"""A Secret or Cluster that is deleted by mistake: a super cluster keeps its slices until the clock says it is lost."""

import json

import pytest

import programs
from hansa.kube import resources

pytestmark = pytest.mark.timeout(400)  # the first one begins with three clusters, maybe on a busy machine
TWO = {"cpu": "200m", "memory": "200Mi"}
CLUSTERS = "clusters.cluster.x-k8s.io"


@pytest.fixture
async def careless(pool, namespace):
    """A namespace with a slice in each super cluster; afterwards r2 is as it was."""
    await pool.empty()
    await pool.namespace(namespace, TWO)
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    yield pool
    await pool.add("r2", **{"hansa.dev/leaving": "false"})
    await pool.stop()
    await pool.start()


async def _is_closed(pool, name):
    """New slices are placed in r1 only, so that the scheduler has planned since."""
    await pool.namespace(name, TWO)
    await pool.placed(name, {"r1": 2})


async def test_without_its_secret_a_cluster_is_closed_until_the_clock_says_it_is_lost(careless, namespace, another):
    await careless.meta.client.delete(resources.SECRETS, "r2", namespace="default")
    await careless.stop()
    await careless.start("--lost-after", "600")
    await _is_closed(careless, another)
    await careless.placed(namespace, {"r1": 1, "r2": 1})
    await careless.stop()
    await careless.start()
    await careless.placed(namespace, {"r1": 2})


async def test_a_deleted_cluster_is_closed_and_leaves_by_command(careless, namespace, another, tmp_path):
    await careless.meta.kubectl("delete", CLUSTERS, "r2")
    await _is_closed(careless, another)
    await careless.placed(namespace, {"r1": 1, "r2": 1})
    config = str(careless.meta.cluster.kubeconfig)
    leaving = await programs.start("leave", "r2", "--meta-kubeconfig", config, log=tmp_path / "leave.log")
    assert await leaving.ended() == 0, leaving.log.read_text()
    assert "Cluster default/r2 was deleted before; it is created again to drain it" in leaving.log.read_text()
    await careless.placed(namespace, {"r1": 2})


async def test_a_failed_cluster_is_closed_also_after_a_restart(careless, namespace, another):
    status = json.dumps({"status": {"phase": "Failed"}})
    await careless.meta.kubectl("patch", CLUSTERS, "r2", "--type=merge", "-p", status)
    await _is_closed(careless, another)
    await careless.placed(namespace, {"r1": 1, "r2": 1})
    await careless.stop()
    await careless.start("--lost-after", "600")
    await careless.quota(another, cpu="300m", memory="300Mi")
    await careless.placed(another, {"r1": 3})
    await careless.placed(namespace, {"r1": 1, "r2": 1})
