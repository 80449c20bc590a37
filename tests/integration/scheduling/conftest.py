"""A meta cluster that is a tenant, too, and two super clusters with kwok nodes; one `hansa vc-scheduler`."""

import contextlib

import pytest

from hansa.local import ClusterSpec, NodeShape
from hansa.scheduling.pooling import pool_members
from hansa.tenancy import installing
from league import fresh_name
from pool_league import Pool, announce
from tenant_league import clusters_up

SUPERS = ("r1", "r2")
HERE = "scheduled-"  # begins the names of clusters: other folders have some of the same names


@pytest.fixture(scope="package")
async def shared_pool(fleet, kubectl, tmp_path_factory):
    """The clusters and the scheduler, for tests that leave it running."""
    shape = NodeShape(cpu="2", memory="4Gi", pods="100")
    wishes = [
        ClusterSpec(f"{HERE}meta", scheduler=False, lift_limits=True),
        *(ClusterSpec(f"{HERE}{name}", nodes=2, shape=shape, lift_limits=True) for name in SUPERS),
    ]
    async with clusters_up(fleet, kubectl, wishes) as made:
        sides = {name.removeprefix(HERE): side for name, side in made.items()}
        meta = sides["meta"]
        await installing.install(meta.client)
        await pool_members.resource(meta.client)
        pool = Pool(meta, {name: sides[name] for name in SUPERS}, tmp_path_factory.mktemp("pool"))
        await announce(meta)
        for name in SUPERS:
            await pool.add(name)
        await pool.start()
        yield pool
        await pool.stop()


@pytest.fixture
async def pool(shared_pool, request):
    """The running scheduler; if a test fails, the last lines of its log are printed."""
    if shared_pool.program is None:
        await shared_pool.start()
    offset = shared_pool.log.stat().st_size
    yield shared_pool
    if getattr(request.node, "has_failed", False):
        print(shared_pool.log.read_bytes()[offset:].decode()[-8000:])  # noqa: T201


@pytest.fixture
async def namespace(pool):
    """The name of a namespace that a test may make; it is deleted afterwards."""
    async with _deleted(pool) as name:
        yield name


@pytest.fixture
async def another(pool):
    """The name of another one."""
    async with _deleted(pool) as name:
        yield name


@contextlib.asynccontextmanager
async def _deleted(pool):
    name = fresh_name()
    yield name
    await pool.meta.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")
