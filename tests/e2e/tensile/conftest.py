"""The league of these tests: hansa above, hamburg and lubeck below, with one `hansa virtual-node` for both."""

from pathlib import Path

import pytest

import programs
from accounts import Account
from eventually import eventually
from hansa.admission import configuration
from hansa.local import ClusterSpec, NodeShape
from hansa.programs import ports
from league import League, fresh_name, member

HERE = Path(__file__).parent
FLUSH = {"kube-apiserver": ("--audit-log-batch-max-wait=200ms",)}


POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: below
  pluginConfig:
  - name: RemovePodsUnschedulableBelow
    args: {minPendingSeconds: 0, freezeSeconds: FREEZE}
  plugins:
    deschedule: {enabled: [RemovePodsUnschedulableBelow]}
"""


@pytest.fixture(scope="package")
async def clusters(fleet, kubectl):
    """Three clusters without a program."""
    shape = NodeShape(cpu="16", memory="64Gi")
    names = ("league", "hamburg", "lubeck")
    wishes = [
        ClusterSpec(name, nodes=0 if name == "league" else 2, shape=shape, audit=True, lift_limits=True, flags=FLUSH)
        for name in names
    ]
    yield {made.name: member(made, kubectl) for made in await fleet.up(wishes)}
    await fleet.down(names)


@pytest.fixture(scope="package")
async def shared_league(clusters, tmp_path_factory):
    """The program over the clusters, for tests that leave it running."""
    made = League(
        clusters["league"],
        {name: clusters[name] for name in ("hamburg", "lubeck")},
        tmp_path_factory.mktemp("league"),
        port=ports.choose(1, taken=(), seed="league")[0],
    )
    await made.start()
    await made.ready()
    yield made
    await made.stop()


@pytest.fixture
async def league(shared_league, request):
    """The running league; if a test fails, the last lines of the program's log are printed."""
    if shared_league.program is None:
        await shared_league.start()
        await shared_league.ready()
    offset = shared_league.log.stat().st_size
    yield shared_league
    if getattr(request.node, "has_failed", False):
        print(shared_league.log.read_bytes()[offset:].decode()[-8000:])  # noqa: T201


@pytest.fixture(scope="module")
async def webhook(shared_league, tmp_path_factory):
    """`hansa webhook` for the tests of one file."""
    upper = shared_league.upper
    flags = ["--kubeconfig", str(upper.cluster.kubeconfig), "--address", "127.0.0.1", "--port", "0"]
    async with programs.hansa("webhook", *flags, log=tmp_path_factory.mktemp("webhook") / "log") as program:
        await eventually(lambda: upper.find(configuration.RESOURCE.plural, configuration.DEFAULT_NAME))
        yield program
        await upper.kubectl("delete", configuration.RESOURCE.plural, configuration.DEFAULT_NAME)


@pytest.fixture
async def descheduler_account(league, tmp_path):
    """The service account of the descheduler, with the rights of its manifest."""
    made = Account(league.upper, "hansa-system", "hansa-descheduler", ("descheduler",), tmp_path / "account.kubeconfig")
    await made.settle()
    yield made
    assert made.refused() == set()
    await made.leave()


@pytest.fixture
def descheduling(webhook, descheduler_account, tmp_path):
    """Runs the descheduler for a block; `name` is that of its log."""

    def running(*flags, freeze="300", name="descheduler"):
        policy = tmp_path / "policy.yaml"
        policy.write_text(POLICY.replace("FREEZE", freeze))
        upper = ["--kubeconfig", str(descheduler_account.kubeconfig), "--policy-config-file", str(policy)]
        return programs.hansa("descheduler", *upper, *flags, log=tmp_path / f"{name}.log")

    return running


def pytest_collection_modifyitems(items):
    """Whole systems take their time on a busy machine."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(400))


@pytest.fixture
async def upper_namespace(league):
    """A fresh namespace above; what came of it below is removed with it."""
    name = fresh_name()
    await league.upper.kubectl("create", "namespace", name)
    yield name
    for one in (league.upper, *league.lowers.values()):
        await one.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")
