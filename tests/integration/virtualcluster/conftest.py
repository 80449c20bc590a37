"""One super cluster with kwok nodes, its own meta cluster; two tenants without nodes; one `hansa vc-syncer`.

Each test has a namespace of its own name in both tenants, so that all its objects exist twice.
"""

import contextlib

import pytest

from hansa.kube import errors, resources
from hansa.local import ClusterSpec, NodeShape
from hansa.tenancy import installing
from league import fresh_name
from tenant_league import Tenants, clusters_up

NAMES = ("blue", "green")
SPARE = "spare"  # a cluster for a VirtualCluster of a test's own
# As in control planes of the manager: whether a node lives is decided in the super cluster.
NO_NODE_CONTROLLER = {"kube-controller-manager": ("--controllers=*,-node-lifecycle-controller",)}


@pytest.fixture(scope="package")
async def clusters(fleet, kubectl):
    """Three clusters without a program."""
    shape = NodeShape(cpu="1000", memory="1000Gi", pods="1000")
    wishes = [
        ClusterSpec("super", nodes=2, shape=shape, lift_limits=True),
        *(ClusterSpec(name, scheduler=False, lift_limits=True, flags=NO_NODE_CONTROLLER) for name in (*NAMES, SPARE)),
    ]
    async with clusters_up(fleet, kubectl, wishes) as made:
        await installing.install(made["super"].client)
        offered = {"labels": {"tenancy.x-k8s.io/super.public": "true"}}
        await made["super"].make(
            resources.INGRESS_CLASSES, "edge", metadata=offered, spec={"controller": "example.com/edge"}
        )
        yield made


@pytest.fixture(scope="package")
async def shared_tenants(clusters, tmp_path_factory):
    """The syncer over the clusters, for tests that leave it running."""
    flags = ("--node-retention", "2", "--endpoint-addresses", "192.0.2.9", "--ingress-hosts", "*")
    made = Tenants(clusters["super"], tmp_path_factory.mktemp("tenants"), flags=flags)
    for name in NAMES:
        await made.add(name, clusters[name])
    await made.start()
    await made.ready()
    yield made
    await made.stop()


@pytest.fixture
async def tenants(shared_tenants, request):
    """The running syncer; if a test fails, the last lines of its log are printed."""
    if shared_tenants.program is None:
        await shared_tenants.start()
    offset = shared_tenants.log.stat().st_size
    yield shared_tenants
    if getattr(request.node, "has_failed", False):
        print(shared_tenants.log.read_bytes()[offset:].decode()[-8000:])  # noqa: T201


@pytest.fixture
def blue(tenants):
    return tenants.tenants["blue"]


@pytest.fixture
def green(tenants):
    return tenants.tenants["green"]


@pytest.fixture
async def namespace(tenants):
    """A namespace of the same name in each tenant."""
    name = fresh_name()
    for tenant in tenants.tenants.values():
        await tenant.make(resources.NAMESPACES, name)
    yield name
    for tenant in tenants.tenants.values():
        with contextlib.suppress(errors.NotFound):
            await tenant.client.delete(resources.NAMESPACES, name)
