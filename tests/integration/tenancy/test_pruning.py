"""Control planes whose meta cluster is gone are found and removed; those of one that may come back are not."""

import signal

import pytest

import virtual_clusters
from command_runs import hansa
from eventually import eventually
from hansa.kube import resources
from hansa.programs import components, ports, process
from hansa.tenancy.api import VIRTUAL_CLUSTERS
from hansa.tenancy.operator.process import folder as folders
from leftovers import owned_folder
from operator_lab import Operator

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def state():
    with owned_folder() as folder:
        yield folder / "state"


async def prune(state, *flags):
    ran = await hansa("tenants", "prune", "--state", str(state), "--timeout", "5", *flags)
    assert ran.code == 0, ran
    return ran.out


def is_running(state):
    return {component for _, component in process.running(state)}


async def test_only_tenants_of_a_meta_cluster_that_is_gone_are_removed(fresh_cluster, fleet, state):
    [port] = ports.choose(1, taken=(), seed="pruning")
    meta = await fresh_cluster(name="gone", port=port, scheduler=False)
    async with meta.client() as client:
        operator = Operator(client, meta.kubeconfig, state.parent)
        await operator.start("--etcd", "shared")
        await eventually(lambda: client.list(VIRTUAL_CLUSTERS), within=90)
        await client.create(VIRTUAL_CLUSTERS, virtual_clusters.virtual_cluster("one", "default"))
        key = next(iter((await client.list(VIRTUAL_CLUSTERS)).items)).key
        await operator.phase(key)
        await operator.kill()
    [tenant] = folders.folders(state)
    assert tenant.record().origin.server == meta.server
    running = is_running(state)
    assert await prune(state, "--unreachable", "--yes") == "", "it answers"

    meta.process(components.APISERVER).signal(signal.SIGKILL)
    kept = await prune(state, "--yes")
    assert kept.startswith(f"kept default/one (2 processes, {tenant.path}): unreachable: "), kept
    assert (await prune(state, "--unreachable")).startswith("would remove default/one"), "only with --yes"
    assert is_running(state) == running

    await fleet.down(["gone"])
    shown = await prune(state)
    assert "would remove default/one" in shown
    assert "nothing listens there, and" in shown
    assert is_running(state) == running

    await fresh_cluster(name="gone", port=port, scheduler=False)
    listed = await hansa("tenants", "list", "--state", str(state))
    assert f": gone: another cluster is at {meta.server}" in listed.out
    assert (await prune(state, "--yes")).startswith("removed default/one")
    assert is_running(state) == set()
    assert not state.exists()


async def test_a_meta_cluster_that_the_user_names_protects_its_tenants(cluster, client, state):
    """A record of an older vc-manager does not say where the meta cluster is."""
    uid = (await client.get(resources.NAMESPACES, "kube-system")).uid
    tenant = folders.Folder(state / "tenants" / "0123456789")
    tenant.save(folders.Record(uid, "default", "two", "u", "root", 1, is_etcd_shared=False))
    kept = await prune(state, "--yes")
    assert "kept default/two (0 processes" in kept
    assert "name it with --context" in kept
    assert await prune(state, "--yes", "--unreachable", "--kubeconfig", str(cluster.kubeconfig)) == ""
    assert (await prune(state, "--yes", "--unreachable")).startswith("removed default/two")
    assert not state.exists()


async def test_a_context_that_does_not_answer_is_an_error_and_removes_nothing(state, tmp_path):
    tenant = folders.Folder(state / "tenants" / "0123456789")
    tenant.save(folders.Record("uid", "default", "three", "u", "root", 1, is_etcd_shared=False))
    ran = await hansa("tenants", "prune", "--state", str(state), "--yes", "--unreachable", "--context", "nowhere")
    assert (ran.code, ran.out) == (1, "")
    assert "--context nowhere: " in ran.err
    assert tenant.path.exists()


async def test_a_folder_without_a_readable_record_is_removed_with_its_processes(state):
    path = state / "tenants" / "0123456789"
    path.mkdir(parents=True)
    (path / "tenant.json").write_text("{")
    process.spawn(process.Identity(state, path.name, "etcd"), ["sleep", "1000"], log=path / "log")
    assert "kept 0123456789 (1 processes" in await prune(state, "--yes")
    assert "removed 0123456789" in await prune(state, "--yes", "--unreachable")
    assert is_running(state) == set()
    assert not state.exists()
