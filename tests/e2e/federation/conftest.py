"""The federation of these tests: east is source and target of itself, west its target. All nodes are simulated."""

from pathlib import Path

import pytest

from federation import Federation, Pods
from hansa.local import ClusterSpec, NodeShape
from league import fresh_name, member

HERE = Path(__file__).parent
NAMES = ("east", "west")
FLUSH = {"kube-apiserver": ("--audit-log-batch-max-wait=200ms",)}


@pytest.fixture(scope="package")
async def shared_federation(fleet, kubectl, tmp_path_factory):
    """The clusters with running agents, for all tests."""
    wishes = [
        ClusterSpec(name, nodes=3, shape=NodeShape(cpu="8"), audit=True, lift_limits=True, flags=FLUSH)
        for name in NAMES
    ]
    members = {made.name: member(made, kubectl) for made in await fleet.up(wishes)}
    made = Federation(members, tmp_path_factory.mktemp("federation"))
    await made.start()
    yield made
    await made.stop()
    await fleet.down(NAMES)


@pytest.fixture
async def federation(shared_federation, request):
    """The running federation; if a test fails, the last lines of the agents' logs are printed."""
    if missing := [name for name in NAMES if name not in shared_federation.agents]:
        await shared_federation.start(*missing)
    offsets = {name: shared_federation.log(name).stat().st_size for name in NAMES}
    yield shared_federation
    if getattr(request.node, "has_failed", False):
        for name, offset in offsets.items():
            print(f"--- {name}\n" + shared_federation.log(name).read_bytes()[offset:].decode()[-8000:])  # noqa: T201


@pytest.fixture
async def namespace(federation):
    """A fresh namespace in both clusters, in which east has the targets east and west."""
    name = fresh_name()
    for one in federation.members.values():
        await one.kubectl("create", "namespace", name)
    await federation.members["east"].kubectl("label", "namespace", name, "multicluster-scheduler=enabled")
    yield name
    for one in federation.members.values():
        await one.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


@pytest.fixture
async def nodes(federation, namespace):
    """The virtual nodes of the targets of that namespace, by the name of the cluster."""
    return {
        "east": await federation.connect_self("east", namespace=namespace),
        "west": await federation.connect("east", "west", namespace=namespace),
    }


@pytest.fixture
def pods(federation, namespace):
    """The pods of that namespace."""
    return Pods(federation, namespace)


def pytest_collection_modifyitems(items):
    """Whole systems take their time on a busy machine."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(400))
