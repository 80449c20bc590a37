"""The chart grants what an agent needs as a source and as a target."""

import pytest

import programs
from accounts import Account
from eventually import eventually
from federation import a_deployment, a_source, elected
from league import PATIENCE

NAMESPACE = "admiralty"
MANAGED = "endpointslice.kubernetes.io/managed-by=hansa"
BY_SETTING = ("agent-endpoints", "agent-multicluster-services", "agent-claims", "agent-service-accounts")
SETTINGS = ("--pod-networks=10.0.0.0/8", "--multicluster-services", "--follow-claims", "--follow-service-accounts")


@pytest.fixture
def more():
    """Further rights of the account."""
    return ()


@pytest.fixture
async def account(federation, more, tmp_path):
    """The service account of the agent of east, whose own agent rests meanwhile."""
    await federation.kill("east")
    one = Account(federation.members["east"], NAMESPACE, "hansa-agent", ("agent", *more), tmp_path / "config")
    await one.settle()
    yield one
    await one.leave()


@pytest.mark.timeout(600)
async def test_an_agent_works_with_the_rights_of_the_manifest(federation, namespace, account, pods, tmp_path):
    east = pods.east
    # What is there already would not be created.
    for kind, name in (("mutatingwebhookconfiguration", "multicluster-scheduler"), ("clustersummary", "singleton")):
        await east.kubectl("delete", kind, name, "--ignore-not-found")
    flags = ("--kubeconfig", str(account.kubeconfig), "--leader-elect", "--leader-elect-namespace", NAMESPACE)
    async with programs.hansa("agent", *flags, log=tmp_path / "log"):
        await eventually(lambda: east.find("clustersummary", "singleton"), within=PATIENCE)
        await as_a_target(federation, east, namespace)
        await as_a_source(federation, pods, namespace)
    assert account.refused() == set()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("more", [BY_SETTING])
async def test_an_agent_works_with_the_rights_of_its_settings(federation, namespace, account, pods, tmp_path):
    east = pods.east
    flags = ("--kubeconfig", str(account.kubeconfig), *SETTINGS)
    metadata = {"name": "web", "namespace": namespace}
    export = {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport", "metadata": metadata}
    async with programs.hansa("agent", *flags, log=tmp_path / "log"):
        await federation.connect("east", "west", namespace=namespace)
        await pods.apply(a_deployment("web", 2))
        await east.kubectl("-n", namespace, "expose", "deployment", "web", "--port=80")
        await pods.rolled_out("web")
        await east.kubectl.apply(export)

        async def has_addresses():
            imported = await east.find("serviceimport", "web", namespace=namespace)
            assert imported["spec"]["ips"], imported
            slices = await east.all("endpointslices", namespace=namespace, labels=MANAGED)
            assert slices
            return True

        await eventually(has_addresses, within=PATIENCE)
        for what in ("serviceexport", "deployment", "service"):
            await east.kubectl("-n", namespace, "delete", what, "web")
        await pods.gone("serviceimport", "web", namespace=namespace)
        await pods.have_counts(0, 0)
        await east.kubectl("-n", namespace, "delete", "target", "west", "--timeout=90s")
    assert account.refused() == set()


async def as_a_target(federation, east, namespace):
    """A source comes and goes."""
    await east.kubectl.apply(a_source("other", namespace))
    await federation.ready(east, "source", "other", namespace=namespace)
    await east.kubectl("-n", namespace, "delete", "source", "other", "--timeout=60s")


async def as_a_source(federation, pods, namespace):
    """Pods run in both targets, with a Service and an Ingress, and all is deleted again."""
    nodes = {
        "east": await federation.connect_self("east", namespace=namespace),
        "west": await federation.connect("east", "west", namespace=namespace),
    }
    assert nodes
    await pods.east.kubectl("-n", namespace, "create", "service", "clusterip", "web", "--tcp=80")
    await pods.east.kubectl("-n", namespace, "create", "ingress", "web", "--rule=example.com/=web:80")
    await pods.apply(a_deployment("web", 4), elected("big", cpu="99"))
    await pods.rolled_out("web")
    await pods.event("big", "Insufficient cpu")
    await eventually(lambda: pods.west.find("ingress", "web", namespace=namespace), within=PATIENCE)
    await pods.delete("deployment/web", "pod/big", "service/web", "ingress/web")
    await pods.have_counts(0, 0)
    await pods.east.kubectl("-n", namespace, "delete", "target", "east", "west", "--timeout=90s")
    for node in nodes.values():
        await pods.gone("node", node)
