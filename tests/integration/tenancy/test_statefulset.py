"""Control planes as StatefulSets on a real cluster whose kwok nodes make pods ready: what the operator's part does."""

import base64
import contextlib

import pytest
import yaml
from cryptography import x509

import virtual_clusters
from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.client import PatchType
from hansa.kube.objects import NamespacedName
from hansa.tenancy import api, installing
from hansa.tenancy.api import CLUSTER_VERSIONS, VIRTUAL_CLUSTERS
from hansa.tenancy.operator import cluster_versions
from hansa.tenancy.operator.etcd_storage import EtcdStorage, Medium
from hansa.tenancy.operator.statefulset import StatefulSets
from operator_loop import operator

COMPONENTS = ("etcd", "apiserver", "controller-manager")


@pytest.fixture
async def manager(meta):
    async with operator(meta, StatefulSets(meta, storage=EtcdStorage(Medium.EMPTY_DIR))) as running:
        yield running


class Tenant:
    """A VirtualCluster as the test sees it."""

    def __init__(self, client, key):
        self.client, self.key = client, key

    async def vc(self):
        return api.virtual_cluster(await self.client.get(VIRTUAL_CLUSTERS, self.key.name, namespace=self.key.namespace))

    async def is_running(self):
        vc = await self.vc()
        assert vc.status.phase == "Running", vc.status
        return vc

    async def get(self, resource, name):
        return await self.client.get(resource, name, namespace=(await self.vc()).root)

    async def revisions(self):
        found = {name: await self.get(resources.STATEFUL_SETS, name) for name in COMPONENTS}
        return {name: obj.status["updateRevision"] for name, obj in found.items()}

    async def patch(self, patch):
        await self.client.patch(VIRTUAL_CLUSTERS, self.key.name, patch, namespace=self.key.namespace)


@pytest.fixture
async def tenant(meta, home, manager):
    """A tenant that runs."""
    await meta.create(VIRTUAL_CLUSTERS, virtual_clusters.virtual_cluster("one", home))
    found = Tenant(meta, NamespacedName(home, "one"))
    await eventually(found.is_running, within=90)
    yield found
    with contextlib.suppress(errors.NotFound):
        await meta.delete(VIRTUAL_CLUSTERS, "one", namespace=home)
    await eventually(lambda: is_gone(meta, VIRTUAL_CLUSTERS, NamespacedName(home, "one")), within=90)


async def is_gone(client, resource, key):
    try:
        await client.get(resource, key.name, namespace=key.namespace)
    except errors.NotFound:
        return True
    return False


async def test_a_control_plane_becomes_three_stateful_sets_in_the_root_namespace(tenant):
    for name in COMPONENTS:
        found = await tenant.get(resources.STATEFUL_SETS, name)
        assert found.status["readyReplicas"] == 1
    services = [await tenant.get(resources.SERVICES, name) for name in ("etcd", "apiserver-svc")]
    assert [one.spec.get("type") for one in services] == ["ClusterIP", "NodePort"]
    vc = await tenant.vc()
    args = (await tenant.get(resources.STATEFUL_SETS, "apiserver")).spec["template"]["spec"]["containers"][0]["args"]
    assert f"--service-cluster-ip-range={vc.service_cidr}" in args


async def test_the_certificate_and_the_kubeconfigs_have_the_cluster_ip(tenant):
    address = (await tenant.get(resources.SERVICES, "apiserver-svc")).spec["clusterIP"]
    root = (await tenant.vc()).root
    data = (await tenant.get(resources.SECRETS, "apiserver-ca")).get("data")
    certificate = x509.load_pem_x509_certificate(base64.b64decode(data["tls.crt"]))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {address, f"apiserver-svc.{root}", "kubernetes"} <= {str(name.value) for name in names}
    for name in ("admin-kubeconfig", "controller-manager-kubeconfig"):
        secret = await tenant.get(resources.SECRETS, name)
        config = yaml.safe_load(base64.b64decode(secret.get("data")[name]))
        assert config["clusters"][0]["cluster"]["server"] == f"https://{address}:6443"


async def test_a_new_certificate_has_only_the_pods_made_anew_that_read_it(tenant, meta, manager):
    before = await tenant.revisions()
    root = (await tenant.vc()).root
    await meta.delete(resources.SECRETS, "apiserver-ca", namespace=root)
    manager.requeue(tenant.key)

    async def is_rolled():
        after = await tenant.revisions()
        assert after["apiserver"] != before["apiserver"]
        pod = await tenant.get(resources.PODS, "apiserver-0")
        return pod.labels["controller-revision-hash"] == after["apiserver"]

    await eventually(is_rolled, within=90)
    after = await tenant.revisions()
    assert {name for name in COMPONENTS if after[name] != before[name]} == {"apiserver"}


async def test_a_deleted_stateful_set_is_created_again(tenant, meta):
    root = (await tenant.vc()).root
    old = await tenant.get(resources.STATEFUL_SETS, "controller-manager")
    await meta.delete(resources.STATEFUL_SETS, "controller-manager", namespace=root, uid=old.uid)

    async def is_back():
        try:
            return (await tenant.get(resources.STATEFUL_SETS, "controller-manager")).uid != old.uid
        except errors.NotFound:
            return False

    await eventually(is_back, within=60)


async def test_an_upgrade_goes_one_component_after_the_other(tenant, meta, home):
    """The next component is not touched before the one before it is ready, which here it never is."""
    spec = cluster_versions.samples()[0].spec
    for bundle in ("etcd", "apiServer", "controllerManager"):
        template = spec[bundle]["statefulset"]["spec"]["template"]
        template["metadata"]["labels"]["example.com/new"] = "true"
    spec["apiServer"]["statefulset"]["spec"]["template"]["spec"]["nodeSelector"] = {"example.com/no": "node"}
    newer = cluster_versions.samples()[0].with_metadata(name=f"cv-{home}").with_fields(spec=spec)
    await meta.create(CLUSTER_VERSIONS, newer)
    before = await tenant.revisions()
    try:
        await tenant.patch({"spec": {"clusterVersionName": newer.name}})

        async def waits():
            vc = await tenant.vc()
            message = vc.status.message
            assert message == "apiserver is not ready: 0 of 1 pods are ready (ready: etcd)", message
            return vc.status.phase == "Updating"

        await eventually(waits, within=60)
        after = await tenant.revisions()
        assert {name for name in COMPONENTS if after[name] != before[name]} == {"etcd", "apiserver"}
        del spec["apiServer"]["statefulset"]["spec"]["template"]["spec"]["nodeSelector"]
        await meta.patch(
            CLUSTER_VERSIONS,
            newer.name,
            {"spec": {"apiServer": {"statefulset": {"spec": {"template": {"spec": {"nodeSelector": None}}}}}}},
        )
        await tenant.patch({"metadata": {"labels": {"tenancy.x-k8s.io/ready-for-upgrade": "true"}}})
        vc = await eventually(tenant.is_running, within=90)
        assert vc.status.reason == "TenantControlPlaneUpgradeCompleted"
        assert (await tenant.revisions())["controller-manager"] != before["controller-manager"]
    finally:
        await meta.delete(CLUSTER_VERSIONS, newer.name)


async def test_nothing_of_a_deleted_tenant_is_left(tenant, meta, home):
    root = (await tenant.vc()).root
    await meta.delete(VIRTUAL_CLUSTERS, "one", namespace=home)
    await eventually(lambda: is_gone(meta, VIRTUAL_CLUSTERS, NamespacedName(home, "one")), within=60)
    await eventually(lambda: is_gone(meta, resources.NAMESPACES, NamespacedName("", root)), within=60)


async def test_a_version_that_the_cluster_refuses_is_reported(meta, home, manager):
    spec = cluster_versions.samples()[0].spec
    spec["etcd"]["statefulset"]["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    bad = cluster_versions.samples()[0].with_metadata(name=f"cv-bad-{home}").with_fields(spec=spec)
    await meta.create(CLUSTER_VERSIONS, bad)
    await meta.create(VIRTUAL_CLUSTERS, virtual_clusters.virtual_cluster("bad", home, clusterVersionName=bad.name))
    tenant = Tenant(meta, NamespacedName(home, "bad"))

    async def is_reported():
        message = (await tenant.vc()).status.message
        assert "containers[0].image: Required value" in message, message
        return True

    try:
        await eventually(is_reported, within=60)
    finally:
        await meta.delete(VIRTUAL_CLUSTERS, "bad", namespace=home)
        await eventually(lambda: is_gone(meta, VIRTUAL_CLUSTERS, tenant.key), within=60)
        await meta.delete(CLUSTER_VERSIONS, bad.name)


FIELD = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/kubeletClient"


async def has_field(meta, home):
    """Whether the API server keeps the field, of a VirtualCluster that no manager has seen."""
    made = await meta.create(VIRTUAL_CLUSTERS, virtual_clusters.virtual_cluster("probe", home))
    status = {"status": {"kubeletClient": {"hashes": [], "ca": ""}}}
    written = await meta.patch(VIRTUAL_CLUSTERS, "probe", status, namespace=home, subresource="status")
    await meta.delete(VIRTUAL_CLUSTERS, "probe", namespace=home, uid=made.uid)
    return "kubeletClient" in written.status


@pytest.fixture
async def old_definition(meta, home):
    """The definition without the field that a former release did not have, while no manager runs yet, or no longer."""

    async def is_old():
        return not await has_field(meta, home)

    name, patch = f"{VIRTUAL_CLUSTERS.plural}.{VIRTUAL_CLUSTERS.group}", [{"op": "remove", "path": FIELD}]
    await meta.patch(resources.CUSTOM_RESOURCE_DEFINITIONS, name, patch, patch_type=PatchType.JSON)
    await eventually(is_old, within=60)
    yield
    await installing.install(meta)
    await eventually(lambda: has_field(meta, home), within=60)


async def test_a_definition_of_a_former_release_keeps_no_tenant_from_running(old_definition, tenant):
    assert (await tenant.vc()).status.kubelet_client.hashes == ()
