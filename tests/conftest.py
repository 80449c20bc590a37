"""Real clusters for tests: one that all share, started when the first test asks for it, and fresh ones on request."""

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

# The same examples in every run, however slow the machine; `make soak` looks for new ones.
hypothesis.settings.register_profile("steady", deadline=None, derandomize=True)
hypothesis.settings.register_profile("searching", deadline=None, max_examples=3000)
hypothesis.settings.load_profile("searching" if "SOAK_MINUTES" in os.environ else "steady")

APART = Path("tests/integration/local")  # its files share no cluster
REAL = ("test_real", "test_machines", "test_streams")  # some of these look at all that the kernel has of machines


class Together(LoadScopeScheduling):
    """Where several processes share the tests, those that share clusters stay in one."""

    def _split_scope(self, nodeid: str) -> str:
        path = Path(nodeid.partition("::")[0])
        if path.name.startswith(REAL):
            return "real machines"
        return str(path if path.is_relative_to(APART) else path.parent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together:
    """Deal out the tests so."""
    return Together(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let fixtures know whether their test has failed, so that they can show what a program said."""
    report = yield
    if report.when == "call":
        item.has_failed = report.failed
    return report


@pytest.fixture(scope="session")
async def fleet() -> AsyncIterator[Fleet]:
    """The clusters of this test run, in a state folder of their own; a run that was killed is cleaned up first."""
    await sweep()
    with owned_folder() as folder:
        fleet = Fleet(State(folder / "state"), is_etcd_fast=True)
        yield fleet
        await fleet.down(fleet.names())
        assert process.running(fleet.state.root) == {}, "no process of the run is left"
        assert not fleet.state.root.exists(), "no file of the run is left"


@pytest.fixture(scope="session")
async def cluster(fleet: Fleet) -> Cluster:
    """The cluster that tests share: full control plane, two kwok nodes, no rate limits. It outlives the test."""
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
    """Makes clusters of the test's own (`await fresh_cluster(nodes=1)`), which may be broken at will."""
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
    """A cluster with a real node, which tests share. Where the machine can't have one, the test says why."""
    real_machine.tools(fleet.state.root)
    [shared] = await fleet.up([ClusterSpec("real", real_nodes=1)])
    return shared


@pytest.fixture(scope="session")
async def kubectl(fleet: Fleet) -> Path:
    """The real kubectl."""
    return (await local.binaries.ensure(["kubectl"], sources=fleet.sources))["kubectl"]
