"""One real node below one upper cluster, by both ways: a virtual node of tensile mode, and a target of a federation."""

from pathlib import Path

import msgspec
import pytest

import metrics_server
import real_machine
from federation import Federation
from hansa.local import ClusterSpec
from hansa.programs import ports
from kube_proxy import running_proxy
from kubelet_ways import LOWER, UPPER, Way, with_pods
from league import League, member
from terminals import Terminal

HERE = Path(__file__).parent


@pytest.fixture(scope="package")
async def clusters(fleet, kubectl, tmp_path_factory):
    """A cluster without nodes, and one with a real node."""
    real_machine.tools(tmp_path_factory.mktemp("tools"))
    try:
        specs = ClusterSpec(UPPER), ClusterSpec(LOWER, real_nodes=1)
        made = await fleet.up([msgspec.structs.replace(one, flags=metrics_server.FLAGS) for one in specs])
        yield {one.name: member(one, kubectl) for one in made}
    finally:
        await fleet.down([UPPER, LOWER])


@pytest.fixture(scope="package")
async def proxy():
    """The way from the virtual node to its lower cluster, which tests can cut."""
    async with running_proxy() as made:
        yield made


@pytest.fixture(scope="package")
async def league(clusters, proxy, tmp_path_factory):
    """A running `hansa virtual-node`."""
    folder, port = tmp_path_factory.mktemp("league"), ports.choose(1, taken=(), seed="kubelet")[0]
    config = proxy.kubeconfig(clusters[LOWER].cluster.kubeconfig, folder)
    lower = {"name": LOWER, "node": f"vn-{LOWER}", "kubeconfig": str(config), "labels": {"clusterID": LOWER}}
    made = League(clusters[UPPER], {LOWER: clusters[LOWER]}, folder, {"lowers": [lower]}, port=port)
    await made.start()
    await made.ready()
    yield made
    await made.stop()


@pytest.fixture(scope="package")
async def federation(clusters, tmp_path_factory):
    """Running agents of both clusters; the upper one is the source of the lower one."""
    made = Federation(clusters, tmp_path_factory.mktemp("federation"))
    await made.start()
    yield made
    await made.stop()


@pytest.fixture(scope="package")
async def tensile(league, clusters):
    """Pods on the virtual node of tensile mode."""
    await clusters[UPPER].kubectl("create", "namespace", "overlay")
    return await with_pods(Way(clusters[UPPER], clusters[LOWER], "overlay", f"vn-{LOWER}"))


@pytest.fixture(scope="package")
async def federated(federation, clusters):
    """Pods on the virtual node of a target."""
    for one in clusters.values():
        await one.kubectl("create", "namespace", "joint")
    await clusters[UPPER].kubectl("label", "namespace", "joint", "multicluster-scheduler=enabled")
    node = await federation.connect(UPPER, LOWER, namespace="joint")
    return await with_pods(Way(clusters[UPPER], clusters[LOWER], "joint", node, is_federated=True))


@pytest.fixture(scope="package")
async def administrator(clusters):
    """A token of a service account that may do everything in the upper cluster."""
    kube = clusters[UPPER].kubectl
    await kube("create", "serviceaccount", "root")
    await kube("create", "clusterrolebinding", "root", "--clusterrole=cluster-admin", "--serviceaccount=default:root")
    return (await kube("create", "token", "root")).strip()


@pytest.fixture(params=["tensile", "federated"])
def way(request):
    """Both ways, one after the other."""
    return request.getfixturevalue(request.param)


@pytest.fixture
async def terminal(way):
    """Starts a command of kubectl in a terminal."""
    made = []

    async def start(*arguments, rows, columns):
        argv = (*way.upper.kubectl.argv, "-n", way.namespace, *arguments)
        made.append(await Terminal.start(argv, rows=rows, columns=columns))
        return made[-1]

    yield start
    for one in made:
        await one.close()


def pytest_collection_modifyitems(items):
    """Whole systems take their time on a busy machine."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(400))
