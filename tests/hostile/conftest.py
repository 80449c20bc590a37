"""One super cluster, its own meta cluster, and two tenants, of which one attacks; one `hansa vc-syncer`.

All tests of this folder share them. A test gets a namespace of its own name in both tenants. What it makes in the super
cluster, and annotations of a VirtualCluster, it removes at its end.
"""

import contextlib

import pytest

from hansa.kube import errors, resources
from hansa.local import ClusterSpec, NodeShape
from hansa.tenancy import installing
from league import fresh_name
from tenant_league import Tenants, clusters_up

MALLORY, ALICE = "mallory", "alice"  # the attacker, and the tenant that should not feel it
# As in control planes of the manager: whether a node lives is decided in the super cluster.
NO_NODE_CONTROLLER = {"kube-controller-manager": ("--controllers=*,-node-lifecycle-controller",)}


@pytest.fixture(scope="package")
async def clusters(fleet, kubectl):
    """Three clusters without a program."""
    shape = NodeShape(cpu="1000", memory="1000Gi", pods="1000")
    wishes = [
        ClusterSpec("castle", nodes=2, shape=shape, lift_limits=True),
        *(ClusterSpec(one, scheduler=False, lift_limits=True, flags=NO_NODE_CONTROLLER) for one in (MALLORY, ALICE)),
    ]
    async with clusters_up(fleet, kubectl, wishes) as made:
        await installing.install(made["castle"].client)
        yield made


@pytest.fixture(scope="package")
async def shared_tenants(clusters, tmp_path_factory):
    """The syncer over the clusters, for tests that leave it running."""
    made = Tenants(clusters["castle"], tmp_path_factory.mktemp("hostile"), flags=("--node-retention", "2"))
    for name in (MALLORY, ALICE):
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
def below(tenants):
    """The super cluster."""
    return tenants.super


@pytest.fixture
def mallory(tenants):
    return tenants.tenants[MALLORY]


@pytest.fixture
def alice(tenants):
    return tenants.tenants[ALICE]


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


@pytest.fixture
def annotated(below):
    """Annotate the VirtualCluster of a tenant with `name=value` for as long as a block lasts."""

    @contextlib.asynccontextmanager
    async def annotate(tenant, *words):
        name = tenant.key.rpartition("-")[2]
        await below.kubectl("annotate", "--overwrite", "vc", name, *(f"tenancy.x-k8s.io/{word}" for word in words))
        yield
        await below.kubectl("annotate", "vc", name, *(f"tenancy.x-k8s.io/{word.partition('=')[0]}-" for word in words))

    return annotate
