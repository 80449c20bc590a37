"""A meta cluster that is its own tenant, and two super clusters with kwok nodes; one `hansa vc-syncer --pool`."""

import pytest

from hansa.local import ClusterSpec, NodeShape
from hansa.tenancy import installing
from league import fresh_name
from pool_lab import PoolLab
from tenant_league import clusters_up

SUPERS = ("r1", "r2")


@pytest.fixture(scope="package")
async def clusters(fleet, kubectl):
    """The clusters without a program; no super cluster has joined."""
    shape = NodeShape(cpu="1000", memory="1000Gi", pods="1000")
    wishes = [
        ClusterSpec("meta", scheduler=False, lift_limits=True),
        *(ClusterSpec(name, nodes=1, shape=shape, lift_limits=True) for name in SUPERS),
    ]
    async with clusters_up(fleet, kubectl, wishes) as made:
        await installing.install(made["meta"].client)
        yield made


@pytest.fixture(scope="package")
async def shared_pool(clusters, tmp_path_factory):
    """The pool with its syncer, for tests that leave it running."""
    lab = PoolLab(clusters["meta"], {name: clusters[name] for name in SUPERS}, tmp_path_factory.mktemp("pool"))
    lab.key = (await lab.announce()).key
    for name in SUPERS:
        await lab.join(name)
    await lab.start()
    yield lab
    await lab.stop()


@pytest.fixture
async def pool(shared_pool, request):
    """The pool with its syncer; if a test fails, the last lines of its log are printed."""
    if "pool" not in shared_pool.syncers:
        await shared_pool.start()
    offset = shared_pool.log().stat().st_size
    yield shared_pool
    if getattr(request.node, "has_failed", False):
        print(shared_pool.log().read_bytes()[offset:].decode()[-8000:])  # noqa: T201


@pytest.fixture
async def namespace(shared_pool):
    """The name of a namespace that a test may make; it is deleted afterwards."""
    name = fresh_name()
    yield name
    await shared_pool.meta.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")
