"""Two lower clusters with the same free CPUs, on many small nodes and on one large node, and a stock kube-scheduler.

The upper cluster has an ordinary node, too. `hansa multi-scheduler` wrote the configuration of its scheduler.
"""

import contextlib

import pytest

import multi_scheduling
import programs
import stock_scheduler
from accounts import Account
from hansa.local import ClusterSpec, NodeShape
from hansa.programs import ports
from league import League, fresh_name, member
from multi_scheduling import MultiScheduler

SHAPES = {"upper": (1, "1"), "small": (4, "2"), "large": (1, "4")}  # nodes, and the CPUs of each
FLUSH = {"kube-apiserver": ("--audit-log-batch-max-wait=200ms",)}
HERE = "multi-"  # begins the names of clusters: other folders have some of the same names


@pytest.fixture(scope="package")
async def clusters(fleet, kubectl):
    """Three clusters without a program; the upper one has no scheduler yet."""
    wishes = [
        ClusterSpec(
            f"{HERE}{name}",
            nodes=nodes,
            shape=NodeShape(cpu=cpu, memory="64Gi"),
            scheduler=name != "upper",
            audit=True,
            flags=FLUSH,
            lift_limits=True,
        )
        for name, (nodes, cpu) in SHAPES.items()
    ]
    made = await fleet.up(wishes)
    yield {one.name.removeprefix(HERE): member(one, kubectl) for one in made}
    await fleet.down([one.name for one in made])


@pytest.fixture(scope="package")
async def shared_league(clusters, tmp_path_factory):
    """The virtual nodes of the two lower clusters."""
    lowers = {name: clusters[name] for name in ("small", "large")}
    made = League(clusters["upper"], lowers, tmp_path_factory.mktemp("multi"))
    await made.start()
    await made.ready()
    yield made
    await made.stop()


@pytest.fixture(scope="package")
async def shared_scheduler(shared_league, fleet):
    """The extender, and the stock kube-scheduler that uses it."""
    folder = shared_league.folder
    upper = await account(shared_league.upper, "upper", folder)
    lowers = {name: await account(one, "lower", folder) for name, one in shared_league.lowers.items()}
    config = multi_scheduling.write_configuration(
        folder / "multi-scheduler-config.json",
        shared_league.upper.cluster.kubeconfig,
        {name: one.kubeconfig for name, one in lowers.items()},
    )
    [port] = ports.choose(1, taken=(), seed="multi-scheduler")
    flags = ("multi-scheduler", "--config", str(config), "--port", str(port))
    written = folder / "scheduler.yaml"
    async with contextlib.AsyncExitStack() as stack:
        async with programs.hansa(*flags, "--write-scheduler-config", str(written), log=folder / "write.log") as write:
            assert await write.ended() == 0
        flags = (*flags, "--kubeconfig", str(upper.kubeconfig))
        made = MultiScheduler(shared_league, flags, folder, [upper, *lowers.values()])
        await made.start()
        stack.push_async_callback(made.stop)
        await stack.enter_async_context(stock_scheduler.running(fleet, written, log=folder / "kube-scheduler.log"))
        yield made


async def account(one, side, folder):
    """The service account of the extender in a cluster."""
    file = f"multi-scheduler-{side}"
    made = Account(one, "hansa-system", "hansa-multi-scheduler", (file,), folder / f"{one.name}.kubeconfig")
    await made.settle()
    return made


@pytest.fixture
async def scheduler(shared_scheduler, request):
    """The running extender; if a test fails, the last lines of the logs are printed."""
    if shared_scheduler.program is None:
        await shared_scheduler.start()
    yield shared_scheduler
    if getattr(request.node, "has_failed", False):
        for name in ("multi-scheduler.log", "kube-scheduler.log"):
            print(f"--- {name}\n" + (shared_scheduler.folder / name).read_text()[-6000:])  # noqa: T201


@pytest.fixture
async def namespace(scheduler):
    """A fresh namespace above; what is in it below is removed with it, before the next test begins."""
    name = fresh_name()
    league = scheduler.league
    await league.upper.kubectl("create", "namespace", name)
    yield name
    await league.upper.kubectl("delete", "namespace", name, "--wait=true", "--timeout=90s")
    for lower in league.lowers.values():
        await lower.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=true", "--timeout=90s")
