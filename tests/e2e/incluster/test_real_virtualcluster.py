"""Mode virtualcluster in pods: a tenant is served, through an upgrade, and nothing is left after uninstallation."""

import asyncio
import contextlib

import pytest

import virtual_clusters
from cluster_contents import contents, is_as_before
from eventually import eventually
from hansa.local.machines import images
from hansa.model import tenant_names
from kubectl_vc import KubectlVc
from programs import Kubectl

pytestmark = pytest.mark.timeout(600)
NAMESPACE = "vc-manager"
NEXT = "next"  # a second tag of the same image
VALUES = {
    "vnAgent": {"kind": "DaemonSet"},
    "crds": {"keep": False},
    "tenants": {"etcd": {"storage": "emptyDir"}, "dns": {"image": images.COREDNS}},  # what the nodes have
}
WITHIN = 150.0  # seconds; images are unpacked when they are first needed, on a machine that may be busy
URL = "http://web.default.svc.cluster.local:8080/"
ASK = f"while :; do timeout 5 wget -q -O /dev/null {URL} && echo answered || echo missed; sleep 0.3; done"


@pytest.fixture(scope="module")
async def before(lubeck):
    """What the cluster has before anything is installed."""
    return await contents(lubeck.kubectl)


@pytest.fixture(scope="module")
async def installed(lubeck, before):
    async with lubeck.namespace(NAMESPACE):
        release = lubeck.release(NAMESPACE)
        await release.upgrade(VALUES)
        yield release
        with contextlib.suppress(AssertionError):  # a test uninstalled it
            await release.uninstall()


@pytest.fixture(scope="module")
async def tenant(lubeck, installed):
    """kubectl of a tenant that `kubectl vc` made, in the network of the node."""
    vc = KubectlVc(lubeck.kubectl.argv[0], lubeck.cluster.kubeconfig, folder=lubeck.folder)
    kubeconfig = lubeck.folder / "vc-1.kubeconfig"
    manifest = virtual_clusters.virtual_cluster("vc-1", "default").to_json().decode()
    await vc("create", "-f", "-", "-o", str(kubeconfig), f"--timeout={WITHIN:g}s", stdin=manifest)
    return Kubectl(lubeck.kubectl.argv[0], kubeconfig, netns=lubeck.netns)


@pytest.fixture(scope="module")
async def below(lubeck, tenant):
    """The namespace of the tenant's default namespace in the super cluster."""
    status = (await lubeck.kubectl.get("vc", "vc-1"))["status"]
    return tenant_names.super_namespace(status["clusterNamespace"], "default")


@pytest.fixture(scope="module")
async def traffic(lubeck, tenant, below):
    """A Service of the tenant, and a pod that calls it all the time."""
    await tenant(
        "create", "deployment", "web", "--image", images.AGNHOST, "--", "/agnhost", "netexec", "--http-port=8080"
    )
    await tenant("expose", "deployment", "web", "--port=8080")
    main = {"name": "main", "image": images.BUSYBOX, "args": ["sh", "-c", ASK]}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [main]}
    await tenant.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "client"}, "spec": spec}, verb="create")
    await tenant("rollout", "status", "deployment/web", f"--timeout={WITHIN:g}s")
    await tenant("wait", "pod/client", "--for=condition=Ready", f"--timeout={WITHIN:g}s")


async def test_all_programs_run_in_pods_without_privileges_on_a_read_only_root(lubeck, installed):
    found = await lubeck.pods(NAMESPACE)
    running = [one["metadata"]["labels"]["app.kubernetes.io/component"] for one in found.values()]
    assert {one["status"]["phase"] for one in found.values()} == {"Running"}
    assert sorted(running) == ["vc-manager"] * 2 + ["vc-syncer"] * 2 + ["vn-agent"]
    [manager, *_] = found
    said = await lubeck.kubectl("-n", NAMESPACE, "exec", manager, "--", "hansa", "--version")
    assert said.startswith("hansa ")
    python = "import os, pathlib; print(os.getuid()); pathlib.Path('/opt/x').write_text('')"
    code, out, err = await lubeck.kubectl.run(
        "-n", NAMESPACE, "exec", manager, "--", "/opt/python/bin/python3.11", "-c", python
    )
    assert (code, out, b"Read-only file system" in err) == (1, b"65532\n", True)


async def test_a_pod_of_a_tenant_resolves_a_service_and_shows_its_logs(tenant, traffic):
    async def is_answered():
        assert "answered" in await tenant("logs", "client")
        return True

    await eventually(is_answered, within=WITHIN)
    assert "root" in await tenant("exec", "client", "--", "cat", "/etc/passwd")


async def test_a_pod_of_a_tenant_calls_its_api_server(tenant, traffic):
    call = ("/agnhost", "inclusterclient", "--poll-interval=1")
    await tenant("create", "deployment", "caller", "--image", images.AGNHOST, "--", *call)

    async def has_called():
        said = await tenant("logs", "deployment/caller")
        assert "calling /healthz" in said, said
        assert "err" not in said.splitlines()[-1], said
        return True

    await eventually(has_called, within=WITHIN, every=0.5)


async def lives(lubeck, *namespaces):
    """Pods with their restarts."""
    return {
        (one["metadata"]["uid"], name, sum(each["restartCount"] for each in one["status"]["containerStatuses"]))
        for namespace in namespaces
        for name, one in (await lubeck.pods(namespace)).items()
    }


async def test_an_upgrade_restarts_no_pod_of_a_tenant_and_loses_no_object(lubeck, installed, tenant, traffic, below):
    root = (await lubeck.kubectl.get("vc", "vc-1"))["status"]["clusterNamespace"]
    alive, made, upgraded = await lives(lubeck, root, below), [], asyncio.Event()

    async def create_all_the_time():
        while not upgraded.is_set():
            name = f"made-{len(made)}"
            await tenant("create", "configmap", name, "--from-literal=a=1")
            made.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(create_all_the_time())
        await installed.upgrade(VALUES | {"image": {"tag": NEXT}, "log": {"level": "debug"}})
        upgraded.set()

    async def are_all_replaced():
        found = {one["spec"]["containers"][0]["image"] for one in (await lubeck.pods(NAMESPACE)).values()}
        assert found == {f"hansa:{NEXT}"}
        return True

    await eventually(are_all_replaced, within=60)
    assert len(made) > 3

    async def are_all_below():
        there = {one["metadata"]["name"] for one in (await lubeck.kubectl.get("-n", below, "configmaps"))["items"]}
        assert set(made) <= there, set(made) - there
        return True

    await eventually(are_all_below, within=60)
    assert await lives(lubeck, root, below) == alive
    said = await tenant("logs", "client")
    assert "missed" not in said.split("answered", 1)[1]


async def test_uninstallation_leaves_the_cluster_as_it_was(lubeck, before, installed, tenant):
    await lubeck.kubectl("delete", "vc", "vc-1", "--timeout=120s")

    async def has_no_namespace_of_tenants():
        found = [one["metadata"]["name"] for one in (await lubeck.kubectl.get("namespaces"))["items"]]
        assert not [name for name in found if "vc-1" in name], found
        return True

    await eventually(has_no_namespace_of_tenants, within=WITHIN)
    await installed.uninstall()
    await lubeck.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")

    await is_as_before(lubeck.kubectl, before)
