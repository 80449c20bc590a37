"""Tenants on a real node with the defaults: StatefulSets with volumes, DNS, the API server and logs from their pods.

All tests share one super cluster and one tenant. Manager and syncer run outside of it, where its nodes are reached.
"""

import pytest

import real_machine
import real_tenants
import virtual_clusters
from eventually import eventually
from hansa.kube import resources
from hansa.local import ClusterSpec
from hansa.local.machines import images
from hansa.tenancy.api import VIRTUAL_CLUSTERS
from kubectl_vc import KubectlVc, cluster_of
from leftovers import owned_folder
from programs import Refused

WITHIN = real_tenants.WITHIN
NAME = "vc-sample-1"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"

pytestmark = pytest.mark.timeout(400)  # a cluster with a real node, and images of 200 MB, on a machine that may be busy


@pytest.fixture(scope="module")
async def lab(fleet, kubectl, tmp_path_factory):
    """The super cluster, which is the meta cluster, too, and the programs."""
    folder = tmp_path_factory.mktemp("tenants")
    real_machine.tools(folder)
    archive = await real_tenants.archive(fleet, folder / "control-plane.tar")
    [cluster] = await fleet.up([ClusterSpec("pods", real_nodes=1, images=(str(archive),))])
    try:
        async with real_tenants.opened(cluster, fleet, kubectl, folder) as lab:
            await lab.volumes(1)
            where = ("--kubeconfig", str(lab.kubeconfig), "--vn-agent-ca", str(cluster.folder / "pki" / "ca.crt"))
            await lab.start("vc-manager", *where, "--provisioner=statefulset", "--kubeconfig-address=nodePort")
            await lab.start("vc-syncer", *syncing(lab))
            await lab.start("vn-agent", "--super-master-kubeconfig", str(lab.kubeconfig), "--address", lab.address)
            yield lab
    finally:
        await fleet.down(["pods"])


def syncing(lab):
    """The flags of vc-syncer."""
    where = ("--super-master-kubeconfig", str(lab.kubeconfig), "--vn-agent-address", lab.address)
    return (*where, f"--tenant-dns-image={images.COREDNS}")


@pytest.fixture(scope="module")
async def tenant(lab):
    return await lab.create(NAME)


@pytest.fixture(scope="module")
async def caller(lab, tenant):
    """A pod that calls its API server with its token every second."""
    await lab.run(tenant, "caller", images.AGNHOST, "inclusterclient", "--poll-interval=1")
    return "caller"


async def said_by(lab, tenant, pod, *command):
    """The output of a command in a pod, which succeeds at some time."""

    async def run():
        try:
            return await lab.inside(tenant, pod, *command) or " "
        except Refused as error:
            raise AssertionError(str(error)) from None

    return await eventually(run, within=WITHIN, every=1.0)


async def test_a_control_plane_of_pods_serves_its_tenant_at_a_node(lab, tenant, tmp_path):
    [node] = (await lab.client.list(resources.NODES)).items
    [address] = [one["address"] for one in node.status["addresses"] if one["type"] == "InternalIP"]
    service = await lab.client.get(resources.SERVICES, "apiserver-svc", namespace=tenant.vc.root)
    server = f"https://{address}:{service.spec['ports'][0]['nodePort']}"
    assert cluster_of(lab.folder / f"{NAME}.kubeconfig")["server"] == server
    written = tmp_path / "vc.kubeconfig"
    manifest = virtual_clusters.virtual_cluster(NAME, "default").to_json().decode()
    vc = KubectlVc(lab.kubectl.argv[0], lab.cluster.kubeconfig, folder=tmp_path)
    await vc("create", "-f", "-", "-o", str(written), stdin=manifest)
    assert cluster_of(written)["server"] == server
    assert "kube-system" in await tenant.kubectl("get", "namespaces", "-o", "name")


async def test_cluster_info_shows_the_dns(tenant):
    shown = await tenant.kubectl("cluster-info")
    assert "CoreDNS" in shown
    assert "/api/v1/namespaces/kube-system/services/kube-dns:dns/proxy" in shown


async def test_names_resolve_to_the_tenants_addresses(lab, tenant, caller):
    await lab.run(tenant, "box", images.BUSYBOX, "sleep", "1000000")
    for namespace, name in (("default", "kubernetes"), ("kube-system", "kube-dns")):
        service = await tenant.kubectl.get("-n", namespace, "service", name)
        said = await said_by(lab, tenant, "box", "nslookup", f"{name}.{namespace}.svc.cluster.local")
        assert service["spec"]["clusterIP"] in said
    for short in ("kubernetes:443", "kubernetes.default:443", "kube-dns.kube-system:53"):
        await said_by(lab, tenant, caller, "/agnhost", "connect", short, "--timeout=5s")


async def calls(lab, tenant, caller):
    """Wait until a pod has called its API server; its logs are read as the tenant."""

    async def has_called():
        try:
            said = await tenant.kubectl("logs", caller)
        except Refused as error:
            raise AssertionError(str(error)) from None
        assert "calling /healthz" in said, said
        assert "err" not in said.splitlines()[-1], said
        return True

    await eventually(has_called, within=60, every=1.0)


async def test_a_pod_calls_its_tenants_api_server_with_its_token_and_its_tenant_reads_its_logs(lab, tenant, caller):
    await calls(lab, tenant, caller)
    assert (await tenant.kubectl("exec", caller, "--", "/agnhost", "--help")).startswith("Usage")


async def test_a_restarted_etcd_has_all_data(lab, tenant):
    await tenant.kubectl("create", "configmap", "kept", "--from-literal=a=1")
    before = await lab.client.get(resources.PODS, "etcd-0", namespace=tenant.vc.root)
    await lab.client.delete(resources.PODS, "etcd-0", namespace=tenant.vc.root, uid=before.uid)

    async def is_kept():
        pod = await lab.client.get(resources.PODS, "etcd-0", namespace=tenant.vc.root)
        assert pod.uid != before.uid
        try:
            return (await tenant.kubectl.get("configmap", "kept", "--request-timeout=5s"))["data"] == {"a": "1"}
        except Refused as error:
            raise AssertionError(str(error)) from None

    await eventually(is_kept, within=WITHIN, every=0.5)


async def test_pods_reach_a_restarted_api_server_at_its_new_address(lab, tenant, caller):
    root = tenant.vc.root
    before = await lab.client.get(resources.PODS, "apiserver-0", namespace=root)
    await lab.client.delete(resources.PODS, "apiserver-0", namespace=root, uid=before.uid)

    async def has_moved():
        pod = await lab.client.get(resources.PODS, "apiserver-0", namespace=root)
        assert pod.status.get("podIP") not in (None, before.status["podIP"]), pod.status
        said = await lab.kubectl(
            *("-n", tenant.below(), "get", "endpointslice", "kubernetes", "-o", "jsonpath={.endpoints[*].addresses[0]}")
        )
        assert said == pod.status["podIP"], said
        return True

    await eventually(has_moved, within=60, every=0.5)
    await said_by(lab, tenant, caller, "/agnhost", "connect", "kubernetes.default:443", "--timeout=5s")


async def test_pods_reach_an_api_server_on_loopback_through_the_relay(lab, tenant):
    """A control plane of processes with the default address, which no pod reaches; pods of the other tenant go on."""
    await lab.stop("vc-manager", "vc-syncer")
    with owned_folder() as folder:  # with a path that is short enough for Unix sockets
        await lab.start("vc-manager", "--kubeconfig", str(lab.kubeconfig), "--state", f"{folder}/state", "--etcd-fast")
        await lab.start("vc-syncer", *syncing(lab), "--api-relay-address", lab.address)
        other = await lab.create("processes")
        try:
            assert cluster_of(lab.folder / "processes.kubeconfig")["server"].startswith("https://127.0.0.1:")
            await lab.run(other, "caller", images.AGNHOST, "inclusterclient", "--poll-interval=1")
            await calls(lab, other, "caller")
            await said_by(lab, other, "caller", "/agnhost", "connect", "kube-dns.kube-system:53", "--timeout=5s")
            await calls(lab, tenant, "caller")
        finally:
            await lab.client.delete(VIRTUAL_CLUSTERS, "processes", namespace="default")
            await lab.kubectl("wait", "vc/processes", "--for=delete", "--timeout=120s")
            await lab.stop("vc-manager")
