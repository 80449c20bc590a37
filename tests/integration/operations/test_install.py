"""`hansa install` and `hansa uninstall` on real clusters, beside the real helm."""

import asyncio
from pathlib import Path

import pytest
import yaml

import programs
from command_runs import hansa
from hansa import local
from hansa.app.installation import rendering
from hansa.app.installation.rendering import Installation, Mode
from hansa.federation import installing as federation
from hansa.federation.api import TARGETS
from hansa.kube import discovery, resources
from hansa.local.machines.command import run
from hansa.model import keys
from hansa.runtime.errors import HansaError
from hansa.tenancy.api import VIRTUAL_CLUSTERS

pytestmark = pytest.mark.timeout(300)
ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy" / "helm" / "hansa"
# What changes by itself, and is no part of an installation.
MOVING = {"events", "leases", "endpointslices", "endpoints", "pods", "replicasets", "controllerrevisions", "nodes"}


@pytest.fixture(scope="module")
async def helm(fleet):
    return str((await local.binaries.ensure(["helm"], sources=fleet.sources))["helm"])


@pytest.fixture(scope="module")
async def side(clusters):
    """A cluster whose kwok node has room for everything."""
    one = clusters["r1"]
    [node] = (await one.client.list(resources.NODES)).items
    more = {"ephemeral-storage": "100Gi"}
    patch = {"status": {"capacity": more, "allocatable": more}}
    await one.client.patch(resources.NODES, node.name, patch, subresource="status")
    return one


HACK = ("webhook.yaml", "descheduler.yaml", "virtualcluster/experiment/config/setup/all_in_one.yaml")
MANAGED = {"app.kubernetes.io/managed-by", "helm.sh/chart", keys.INSTALLED, keys.INSTALLATION}


async def install(side, mode, *flags, command="install"):
    kubeconfig = str(side.cluster.kubeconfig)
    return await hansa(command, "--kubeconfig", kubeconfig, "--mode", mode, "--timeout", "100", *flags)


async def remove_namespace(side, name):
    await side.client.delete(resources.NAMESPACES, name)
    await side.gone(resources.NAMESPACES, name)


async def uninstall(side, mode, *flags):
    return await install(side, mode, *flags, command="uninstall")


async def everything(side):
    """All objects of a cluster, by kind, name and uid."""
    catalog = await discovery.discover(side.client)
    listed = [one.resource for one in catalog.offers if "list" in one.verbs and one.resource.plural not in MOVING]
    pages = await asyncio.gather(*(side.client.list(resource) for resource in listed))
    return {
        (resource.plural, one.key, one.uid)
        for resource, page in zip(listed, pages, strict=True)
        for one in page.items
        if "tenancy.x-k8s.io" not in one.name and one.name != "v1alpha1.tenancy.x-k8s.io"
    }


async def test_the_manifests_are_those_of_the_chart(helm, tmp_path):
    await run(str(ROOT / "tools" / "render-manifests"), str(tmp_path))
    for mode in Mode:
        fresh = (tmp_path / "package" / f"{mode}.yaml").read_text()
        assert fresh == (rendering.FOLDER / f"{mode}.yaml").read_text(), "run `make manifests`"
    for name in HACK:
        assert (tmp_path / "hack" / name).read_text() == (ROOT / "hack" / name).read_text(), "run `make manifests`"


@pytest.mark.parametrize("mode", Mode)
async def test_namespace_and_image_are_replaced_as_the_chart_does(helm, mode):
    values = f"namespace.create=true,crds.keep=false,mode={mode},image.repository=example.com/x,image.tag=v9"
    where = ("--namespace", "elsewhere", "--kube-version", "1.35.0", "--no-hooks")
    text = await run(helm, "template", "hansa", str(CHART), *where, "--set", values)

    wanted = [plain(one) for one in yaml.safe_load_all(text) if one]
    made = [plain(one.to_dict()) for one in Installation(mode, "elsewhere").objects("example.com/x:v9")]
    assert made == wanted


def plain(part):
    """A part of an object without what says who manages it."""
    if isinstance(part, list):
        return [plain(one) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {name: plain(value) for name, value in part.items() if name not in MANAGED}
    return {name: value for name, value in kept.items() if value or name != "annotations"}


async def test_a_mode_is_installed_repeated_and_removed_without_a_trace(side):
    before = await everything(side)
    shown = await install(side, "virtualcluster", "--dry-run")
    assert (shown.code, "Deployment vc-manager/vc-manager would be created" in shown.err) == (0, True), shown
    assert await everything(side) == before
    ran = await install(side, "virtualcluster")
    assert (ran.code, ran.err.splitlines()[-1]) == (0, "mode virtualcluster runs in namespace vc-manager"), ran
    again = await install(side, "virtualcluster")
    assert {line.split()[-1] for line in again.err.splitlines()[:-1]} == {"unchanged"}, again.err
    shown = await uninstall(side, "virtualcluster", "--dry-run")
    assert "Deployment vc-manager/vc-manager would be deleted" in shown.err
    gone = await uninstall(side, "virtualcluster")
    assert gone.code == 0, gone
    assert "CustomResourceDefinition virtualclusters.tenancy.x-k8s.io is kept" in gone.err
    assert await everything(side) == before
    assert "nothing" not in (await uninstall(side, "virtualcluster", "--purge")).err
    assert "nothing to do" in (await uninstall(side, "virtualcluster", "--purge")).err
    definitions = (await side.client.list(resources.CUSTOM_RESOURCE_DEFINITIONS)).items
    assert not [one.name for one in definitions if "tenancy" in one.name]


async def test_an_object_of_others_is_refused_before_anything_is_created(side):
    before = await everything(side)
    await side.make(resources.CLUSTER_ROLES, "vc-scheduler", rules=[])
    ran = await install(side, "pool")
    await side.client.delete(resources.CLUSTER_ROLES, "vc-scheduler")
    assert ran.code == 1
    assert ran.err == (
        "hansa: ClusterRole vc-scheduler exists and was not created by hansa install: delete or rename it, if it is not"
        " needed\n"
    )
    assert await everything(side) == before


async def test_a_namespace_that_exists_and_what_others_put_there_stay(side):
    await side.make(resources.NAMESPACES, "mine")
    ran = await install(side, "admiralty", "-n", "mine", "--no-wait")
    assert "Namespace mine exists, and is used as it is" in ran.err
    lease = {"holderIdentity": ""}
    await side.make(resources.LEASES, "hansa-agent", "mine", spec=lease)
    await side.make(resources.LEASES, "others", "mine", spec=lease)
    ran = await uninstall(side, "admiralty", "-n", "mine")
    assert ran.code == 0, ran
    assert [one.name for one in (await side.client.list(resources.LEASES, namespace="mine")).items] == ["others"]
    assert (await side.client.get(resources.NAMESPACES, "mine")).name == "mine"
    assert not (await side.client.list(resources.SERVICE_ACCOUNTS, namespace="mine", labels=keys.INSTALLED)).items
    await remove_namespace(side, "mine")
    await install(side, "tensile-lower", "--no-wait")
    await side.make(resources.CONFIG_MAPS, "precious", "hansa-system")
    ran = await uninstall(side, "tensile-lower")
    assert "Namespace hansa-system is kept, since others have objects there: ConfigMap precious" in ran.err
    await remove_namespace(side, "hansa-system")


async def test_fields_that_others_set_are_kept_unless_they_are_taken(side):
    await install(side, "tensile", "-n", "scaled")
    await side.kubectl("scale", "-n", "scaled", "deployment/hansa-webhook", "--replicas=3")
    ran = await install(side, "tensile", "-n", "scaled")
    assert (ran.code, "give --force-conflicts to overwrite them" in ran.err) == (1, True), ran
    ran = await install(side, "tensile", "-n", "scaled", "--force-conflicts")
    assert (ran.code, "Deployment scaled/hansa-webhook changed" in ran.err) == (0, True), ran
    found = await side.client.get(resources.DEPLOYMENTS, "hansa-webhook", namespace="scaled")
    assert found.spec["replicas"] == 2
    assert (await uninstall(side, "tensile", "-n", "scaled")).code == 0


async def test_a_release_of_the_chart_is_left_alone(meta, helm):
    kubeconfig = ("--kubeconfig", str(meta.cluster.kubeconfig))
    chart = (
        "install",
        "hansa",
        str(CHART),
        *kubeconfig,
        "-n",
        "released",
        "--create-namespace",
        "--set",
        "mode=tensile",
    )
    await run(helm, *chart)
    ran = await install(meta, "tensile")
    await run(helm, "uninstall", "hansa", *kubeconfig, "-n", "released", "--no-hooks")
    await remove_namespace(meta, "released")
    assert ran.code == 1
    assert "belongs to the Helm release hansa in namespace released" in ran.err


async def test_what_does_not_start_is_an_error_with_its_reason(meta):
    """Nothing schedules pods in this cluster."""
    ran = await install(meta, "tensile", "--timeout", "3")
    assert ran.code == 1
    assert "not ready after 3 s: Deployment hansa-system/hansa-webhook: 0 of 2 pods are ready" in ran.err
    assert "kubectl -n hansa-system describe pods" in ran.err
    assert (await uninstall(meta, "tensile")).code == 0


async def test_an_installation_that_was_killed_is_completed_or_removed(side, tmp_path):
    before = await everything(side)
    flags = ("--kubeconfig", str(side.cluster.kubeconfig), "--mode", "admiralty", "--no-wait")
    program = await programs.start("install", *flags, log=tmp_path / "log")
    while "ClusterRole " not in (tmp_path / "log").read_text() and not program.has_ended:
        await asyncio.sleep(0.01)
    program.kill()
    await program.ended()
    ran = await uninstall(side, "admiralty")
    assert (ran.code, "Namespace admiralty deleted" in ran.err) == (0, True), ran
    assert await everything(side) == before


async def test_tenants_are_kept_and_named_and_purged_only_where_a_manager_ends_them(side):
    await install(side, "pool", "--no-wait")
    finalizer = {"metadata": {"finalizers": ["tenancy.x-k8s.io/test"]}}
    await side.make(VIRTUAL_CLUSTERS, "blue", "default", spec={"clusterVersionName": "any"}, **finalizer)
    ran = await uninstall(side, "pool", "--purge", "--timeout", "2")
    assert (ran.code, "VirtualClusters are still being deleted after 2 s: default/blue" in ran.err) == (1, True), ran
    ran = await uninstall(side, "pool")
    assert (ran.code, "1 virtualclusters.tenancy.x-k8s.io are kept: default/blue" in ran.err) == (0, True), ran
    ran = await uninstall(side, "pool", "--purge")
    assert (ran.code, "1 VirtualClusters are kept: default/blue; only vc-manager ends" in ran.err) == (1, True), ran
    await side.client.patch(VIRTUAL_CLUSTERS, "blue", {"metadata": {"finalizers": None}}, namespace="default")
    assert (await uninstall(side, "pool", "--purge")).code == 0


async def test_the_namespace_of_the_programs_stays_while_a_tenant_is_there(side):
    await install(side, "pool", "--no-wait")
    await side.make(VIRTUAL_CLUSTERS, "blue", "vc-manager", spec={"clusterVersionName": "any"})
    ran = await uninstall(side, "pool")
    kept = "Namespace vc-manager is kept, since others have objects there: VirtualCluster blue"
    assert (ran.code, kept in ran.err) == (0, True), ran
    assert not (await side.client.get(VIRTUAL_CLUSTERS, "blue", namespace="vc-manager")).is_deleting
    await side.client.delete(VIRTUAL_CLUSTERS, "blue", namespace="vc-manager")
    assert (await uninstall(side, "pool", "--purge")).code == 0


async def test_a_mode_without_tenants_purges_none(side):
    """A cluster may have several modes."""
    await install(side, "pool", "--no-wait")
    await install(side, "tensile", "--no-wait")
    await side.make(VIRTUAL_CLUSTERS, "green", "default", spec={"clusterVersionName": "any"})
    assert (await uninstall(side, "tensile", "--purge")).code == 0
    assert not (await side.client.get(VIRTUAL_CLUSTERS, "green", namespace="default")).is_deleting
    assert (await uninstall(side, "pool", "--purge")).code == 0


async def test_a_federation_that_others_installed_is_not_purged(side):
    await federation.install(side.client)
    ran = await uninstall(side, "admiralty", "--purge")
    assert (ran.code, ran.err) == (0, "nothing to do: mode admiralty is not installed in admiralty\n"), ran
    assert not (await side.client.list(TARGETS)).items  # its definition is there
    await install(side, "admiralty", "--no-wait")
    shown = await uninstall(side, "admiralty", "--purge", "--dry-run")
    assert "definitions of the federation would be removed" in shown.err
    ran = await uninstall(side, "admiralty", "--purge")
    assert ran.code == 0, ran
    definitions = (await side.client.list(resources.CUSTOM_RESOURCE_DEFINITIONS)).items
    assert not [one.name for one in definitions if "admiralty" in one.name]


async def test_a_release_that_failed_is_named(meta, helm):
    where = ("--kubeconfig", str(meta.cluster.kubeconfig), "-n", "released")
    chart = (str(CHART), "--create-namespace", "--set", "mode=tensile", "--wait", "--timeout", "1s")
    with pytest.raises(HansaError):
        await run(helm, "install", "hansa", *where, *chart)
    ran = await install(meta, "tensile")
    await run(helm, "uninstall", "hansa", *where, "--no-hooks")
    await remove_namespace(meta, "released")
    assert "belongs to the Helm release hansa in namespace released" in ran.err, ran
