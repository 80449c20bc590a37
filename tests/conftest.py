"""Fixtures with real clusters: one that all tests share, started on first use, and fresh ones on request."""

import itertools
import os
import secrets
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

import real_machine
from fixture_types import FreshCluster
from hansa import local
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.local import Cluster, ClusterSpec, Fleet, State
from hansa.programs import process
from leftovers import owned_folder, sweep

pytest_plugins = ["flakiness"]

# The same examples in every run, on any machine; `make soak` searches for new ones.
hypothesis.settings.register_profile("steady", deadline=None, derandomize=True)
hypothesis.settings.register_profile("searching", deadline=None, max_examples=3000)
hypothesis.settings.load_profile("searching" if "SOAK_MINUTES" in os.environ else "steady")

INDEPENDENT = Path("tests/integration/local")  # its files share no cluster
# Some of these list all network namespaces and cgroups of real nodes, so no two of them may run at the same time.
REAL_NODES = ("test_real", "test_machines", "test_streams")
# Each test of these files starts whole systems of its own.
SYSTEMS = ("test_documents.py", "test_demo.py")
LONGEST_FIRST = ("tests/e2e", "tests/integration", "tests/hostile", "tests/property", "tests/unit")


class ByCluster(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Distributes tests to the processes of xdist: those that share clusters run in one process."""

    def _split_scope(self, nodeid: str) -> str:
        path = Path(nodeid.partition("::")[0])
        if path.name.startswith(REAL_NODES):
            return "real nodes"
        if path.name in SYSTEMS:
            return nodeid
        return str(path if path.is_relative_to(INDEPENDENT) else path.parent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByCluster:
    """Use this distribution with `-n`, in the order of the tests."""
    config.option.loadscopereorder = False  # by the number of tests: a few long ones would be last, in one process
    return ByCluster(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with tests that take long, so that the processes of xdist end at about the same time."""
    ranks = {folder: rank for rank, folder in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get("/".join(item.nodeid.split("/", 2)[:2]), len(ranks)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Set `has_failed` of the test, so that its fixtures can print the logs of programs."""
    report = yield
    if report.when == "call":
        item.has_failed = report.failed
    return report


@pytest.fixture(scope="session")
async def fleet() -> AsyncIterator[Fleet]:
    """The clusters of this run, in a state folder of their own. What a killed run left is removed first."""
    await sweep()
    with owned_folder() as folder:
        fleet = Fleet(State(folder / "state"), is_etcd_fast=True)
        yield fleet
        await fleet.down(fleet.names())
        assert process.running(fleet.state.root) == {}, "no process of the run is left"
        assert not fleet.state.root.exists(), "no file of the run is left"


@pytest.fixture(scope="session")
async def cluster(fleet: Fleet) -> Cluster:
    """The cluster that tests share: full control plane, two kwok nodes, no rate limits."""
    [shared] = await fleet.up([ClusterSpec("shared", nodes=2, lift_limits=True)])
    return shared


@pytest.fixture(scope="session")
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    """An administrator's client of the shared cluster."""
    async with cluster.client("hansa-test") as client:
        yield client


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    """A fresh namespace of the shared cluster."""
    name = f"test-{secrets.token_hex(4)}"
    await client.create(
        resources.NAMESPACES, Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    )
    yield name
    await client.delete(resources.NAMESPACES, name)


@pytest.fixture
async def fresh_cluster(fleet: Fleet) -> AsyncIterator[FreshCluster]:
    """Creates clusters for one test (`await fresh_cluster(nodes=1)`), which the test may break."""
    made: list[str] = []
    numbers = itertools.count(1)

    async def make(**wishes: Any) -> Cluster:
        name = wishes.pop("name", f"fresh-{next(numbers)}")
        made.append(name)
        [cluster] = await fleet.up([ClusterSpec(name, **wishes)])
        return cluster

    yield make
    await fleet.down([name for name in made if name in fleet.names()])


@pytest.fixture(scope="session")
async def real_cluster(fleet: Fleet) -> Cluster:
    """A cluster with a real node, which tests share; they are skipped where the machine cannot run one."""
    real_machine.tools(fleet.state.root)
    [shared] = await fleet.up([ClusterSpec("real", real_nodes=1)])
    return shared


@pytest.fixture(scope="session")
async def kubectl(fleet: Fleet) -> Path:
    """The real kubectl."""
    return (await local.binaries.ensure(["kubectl"], sources=fleet.sources))["kubectl"]
