"""`kubectl top` in the upper cluster, by a real metrics-server, for which virtual nodes are nodes as others.

Marked as soak, since metrics-server publishes no programs: it has to be built first, which takes minutes and is of no
use for any other test. `make test` compares the pages that metrics-server reads (test_real_usage.py).
"""

import pytest

from eventually import eventually
from hansa import local
from hansa.kube.language import quantity
from hansa.local.machines import images
from hansa.local.machines.addresses import CONTROL_PLANE, Networks
from hansa.local.machines.host_network import HostNetwork
from kubelet_ways import LOWER, UPPER
from metrics_server import RESOLUTION, MetricsServer
from real_tenants import API_PORT

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]
# Holds some 20 MB, and uses all CPU that it is given.
BUSY = "held=$(head -c 20000000 /dev/zero | tr '\\0' x); while :; do :; done"
LIMITS = {"limits": {"cpu": "200m", "memory": "200Mi"}}


@pytest.fixture
async def binary(fleet):
    """metrics-server, built if it is missing."""
    return (await local.binaries.ensure(["metrics-server"], sources=fleet.sources))["metrics-server"]


@pytest.fixture
async def above(clusters, binary, tmp_path_factory):
    """Run metrics-server in the upper cluster."""
    async with MetricsServer(binary, clusters[UPPER], tmp_path_factory.mktemp("above")).running():
        yield


@pytest.fixture
async def below(clusters, binary, fleet, tmp_path_factory):
    """Run metrics-server in the lower cluster."""
    netns = HostNetwork(fleet.state.root).host(LOWER, CONTROL_PLANE)
    address = Networks(clusters[LOWER].cluster.record.slot).control_plane
    folder, server = tmp_path_factory.mktemp("below"), f"https://{address}:{API_PORT}"
    async with MetricsServer(binary, clusters[LOWER], folder, netns=netns, server=server).running():
        yield


async def test_top_shows_a_virtual_node_and_its_pods_with_the_figures_of_the_lower_kubelet(tensile, above):
    await figures_agree(tensile)


async def test_top_shows_the_virtual_node_of_a_target_that_has_a_metrics_server(federated, above, below):
    await figures_agree(federated)


async def figures_agree(way):
    """Compare a pod that uses CPU and memory, pods that use little, and the sum of all with those of the kubelet."""
    await way.create("busy", images.BUSYBOX, "sh", "-c", BUSY, resources=LIMITS)

    async def agree():
        used = await used_below(way)
        assert used["busy"][0] > 0.05
        assert used["busy"][1] > 20e6
        pods = await top(way, "pod")
        assert pods == {name: near(one) for name, one in used.items()}
        total = tuple(map(sum, zip(*used.values(), strict=True)))
        nodes = await top(way, "node")
        assert nodes[way.node] == near(total)
        return {"box", "web", "busy"} <= used.keys()

    await eventually(agree, within=300, every=1.0)
    await way.above("delete", "pod", "busy", may_fail=False)


async def used_below(way):
    """Cores and bytes of each pod, from two readings of the lower kubelet that are as far apart as metrics-server's."""
    before = await way.readings_below()

    async def later():
        found = await way.readings_below()
        assert all(found[name].time - one.time >= RESOLUTION for name, one in before.items())
        return found

    after = await eventually(later, within=60, every=1.0)
    return {
        name: ((after[name].core_seconds - one.core_seconds) / (after[name].time - one.time), after[name].memory)
        for name, one in before.items()
    }


async def top(way, *what):
    """Cores and bytes by name, as `kubectl top` prints them."""
    code, out, err = await way.above("top", *what)
    assert code == 0, err
    head, *lines = (line.split() for line in out.decode().splitlines())
    where = head.index("CPU(cores)"), head.index("MEMORY(bytes)")
    return {line[0]: tuple(quantity.parse(line[index]).nano / quantity.UNIT for index in where) for line in lines}


def near(used):
    """Within a quarter, or 10m and 2 MiB: the readings are not those of the same moment."""
    cores, memory = used
    return pytest.approx(cores, rel=0.25, abs=0.01), pytest.approx(memory, rel=0.25, abs=2 * 2**20)
