"""Two tenants at once over one etcd, failures at their start, and a manager that is killed meanwhile."""

import asyncio
import base64
import contextlib
import signal
import ssl

import pytest

import virtual_clusters
from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.objects import NamespacedName, Object
from hansa.programs import ports, probe, process
from hansa.programs.process import Identity
from hansa.programs.relay import NetnsAddress
from hansa.tenancy import api
from hansa.tenancy.api import CLUSTER_VERSIONS, VIRTUAL_CLUSTERS, ConditionType
from hansa.tenancy.operator.process.etcd_api import EtcdApi, EtcdRefused
from operator_lab import WITHIN

FLAGS = ("--etcd", "shared", "--leader-elect", "--metrics-addr", "127.0.0.1:0")
NAME = "same-name"
MINE = {"kube-apiserver", "kube-controller-manager"}  # etcd belongs to all


@pytest.fixture(scope="module")
async def pair(manager, town):
    """Two tenants that were asked for at once, and whose manager was killed while it made them."""
    made = await asyncio.gather(*(manager.create(name, town) for name in ("left", "right")))

    async def begun():
        return [vc for vc in made if "kube-apiserver" in manager.processes(vc)]

    await eventually(begun, within=WITHIN)
    await manager.kill()
    await manager.start("--etcd", "own")  # which is for new tenants: these two have begun in the shared one
    return [await manager.phase(vc.key) for vc in made]


async def test_tenants_of_a_killed_manager_come_up_whole_and_once(manager, pair):
    for vc in pair:
        assert set(await manager.whole(vc, MINE)) == MINE
    assert not pair[0].service_cidr.overlaps(pair[1].service_cidr)
    assert len({manager.tenant_folder(vc).record().port for vc in pair}) == 2


async def test_two_tenants_with_the_same_names_never_meet(manager, pair):
    for vc in pair:
        async with manager.client(vc) as client:
            data = {"data": {"whose": vc.name}}
            metadata = {"name": NAME, "namespace": "default"}
            await client.create(
                resources.CONFIG_MAPS,
                Object.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **data}),
            )
    for vc in pair:
        async with manager.client(vc) as client:
            assert (await client.get(resources.CONFIG_MAPS, NAME, namespace="default")).get("data") == {
                "whose": vc.name
            }


async def test_an_api_server_with_its_own_key_to_the_shared_etcd_reads_nothing_of_another_tenant(
    manager, pair, tmp_path
):
    left, right = pair
    argv = list((await manager.whole(left, MINE))["kube-apiserver"].argv)
    [port] = ports.choose(1, taken=(), seed=str(tmp_path))
    thief = [
        *(word for word in argv if not word.startswith(("--etcd-prefix", "--secure-port"))),
        f"--etcd-prefix=/{manager.tenant_folder(right).id}",
        f"--secure-port={port}",
    ]
    log = tmp_path / "thief.log"
    started = process.spawn(Identity(manager.state, "thief", "kube-apiserver"), thief, log=log)
    try:

        async def refused():
            assert not await probe.is_healthy(NetnsAddress("", ports.LOOPBACK, port), "/readyz"), (
                "it serves another's objects"
            )
            return "permission denied" in log.read_text()

        await eventually(refused, within=WITHIN)
    finally:
        started.signal(signal.SIGKILL)
        await started.ended(10)


async def test_etcds_other_door_is_closed_as_well(manager, pair):
    folder = manager.tenant_folder(pair[0])
    tls = ssl.create_default_context(cafile=manager.state / "etcd" / "pki" / "ca.crt")
    tls.load_cert_chain(folder.path / "pki" / "etcd-client.crt", folder.path / "pki" / "etcd-client.key")
    etcd = EtcdApi(url=f"https://127.0.0.1:{(manager.state / 'etcd' / 'port').read_text()}", tls=tls)
    everything = {"key": base64.b64encode(b"\0").decode(), "range_end": base64.b64encode(b"\0").decode()}
    with pytest.raises(EtcdRefused):
        await etcd.post("kv/range", everything)


async def test_a_shared_etcd_that_dies_is_restarted_for_all_tenants(manager, pair):
    [before] = [one for (whose, _), one in process.running(manager.state).items() if not whose]
    before.signal(signal.SIGKILL)

    async def back():
        found = process.running(manager.state).get(("", "etcd"))
        return found is not None and found.pid != before.pid

    await eventually(back, within=WITHIN)
    for vc in pair:
        async with manager.client(vc) as client:

            async def serves(client=client):
                with contextlib.suppress(errors.ApiError):
                    return await client.get(resources.CONFIG_MAPS, NAME, namespace="default")

            await eventually(serves, within=WITHIN)
        await manager.whole(vc, MINE)


async def test_one_tenants_end_is_not_felt_by_the_other_even_if_the_manager_is_killed_meanwhile(manager, pair):
    left, right = pair
    before = manager.processes(right)
    await manager.meta.delete(VIRTUAL_CLUSTERS, left.name, namespace=left.namespace)

    async def begun():
        return set(manager.processes(left)) != MINE

    await eventually(begun, within=WITHIN, every=0.005)
    await manager.kill()
    await manager.start()
    await manager.gone(left)
    assert manager.processes(right) == before
    async with manager.client(right) as client:
        assert (await client.get(resources.CONFIG_MAPS, NAME, namespace="default")).get("data") == {"whose": "right"}


async def test_a_missing_version_is_reported_and_the_tenant_runs_when_it_is_created(manager, home):
    made = await manager.create("early", home, clusterVersionName="not-yet", serviceCidr="10.99.0.0/24")
    vc = await manager.phase(made.key, "Error", reason="ClusterVersionNotFound")
    assert 'ClusterVersion "not-yet" not found' in vc.status.message
    assert vc.condition(ConditionType.CLUSTER_VERSION_FOUND).status == "False"
    assert "ClusterVersionNotFound" in await eventually(lambda: manager.events(vc))
    await manager.meta.create(CLUSTER_VERSIONS, virtual_clusters.cluster_version("not-yet"))
    vc = await manager.phase(made.key)
    assert vc.condition(ConditionType.CLUSTER_VERSION_FOUND).status == "True"
    async with manager.client(vc) as client:
        service = await client.get(resources.SERVICES, "kubernetes", namespace="default")
    assert service.spec["clusterIP"] == "10.99.0.1"
    await manager.meta.delete(CLUSTER_VERSIONS, "not-yet")
    await manager.delete(vc)


async def test_a_version_that_does_not_start_is_reported_and_its_tenants_recover_or_can_be_deleted(manager, home):
    broken = virtual_clusters.cluster_version("broken", apiserver=["--max-requests-inflight=many"])
    broken = await manager.meta.create(CLUSTER_VERSIONS, broken)
    doomed, healed = [await manager.create(name, home, clusterVersionName="broken") for name in ("doomed", "healed")]
    for vc in (doomed, healed):
        reported = await manager.phase(vc.key, "Pending", reason="TenantControlPlaneError")
        assert "max-requests-inflight" in reported.condition(ConditionType.READY).message
    await manager.delete(doomed)
    mended = virtual_clusters.cluster_version("broken").with_metadata(resource_version=broken.version)
    await manager.meta.update(CLUSTER_VERSIONS, mended)
    await manager.delete(await manager.phase(healed.key))
    await manager.meta.delete(CLUSTER_VERSIONS, "broken")


async def test_a_foreign_namespace_is_never_modified(manager, home):
    await manager.stop()
    made = await manager.create("squatted", home)
    root = api.root_namespace(NamespacedName(home, "squatted"), made.uid)
    foreign = Object.of(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": root, "labels": {"mine": "yes"}}}
    )
    foreign = await manager.meta.create(resources.NAMESPACES, foreign)
    await manager.start()
    vc = await manager.phase(made.key, "Error", reason="RootNamespaceTaken")
    assert "delete the namespace" in vc.condition(ConditionType.ROOT_NAMESPACE_READY).message
    await manager.meta.delete(VIRTUAL_CLUSTERS, made.name, namespace=home)

    async def gone():
        return not (await manager.meta.list(VIRTUAL_CLUSTERS, namespace=home)).items

    await eventually(gone, within=WITHIN)
    left = await manager.meta.get(resources.NAMESPACES, root)
    assert (left.uid, left.is_deleting) == (foreign.uid, False)
    assert not (await manager.meta.list(resources.SECRETS, namespace=root)).items
    await manager.meta.delete(resources.NAMESPACES, root)


async def test_a_tenant_whose_virtual_cluster_is_gone_is_removed_at_the_next_start(manager, pair):
    right = pair[1]
    await manager.stop()
    at = {"namespace": right.namespace}
    await manager.meta.patch(VIRTUAL_CLUSTERS, right.name, {"metadata": {"finalizers": None}}, **at)
    await manager.meta.delete(VIRTUAL_CLUSTERS, right.name, **at)
    assert manager.processes(right)
    await manager.start()
    await eventually(lambda: _nothing_of(manager, right), within=WITHIN)
    await manager.gone(right)


async def _nothing_of(manager, vc):
    return not manager.processes(vc) and not manager.tenant_folder(vc).path.exists()
