"""Several stock kube-schedulers that share one extender, and one that goes on without it."""

import contextlib

import pytest

import stock_scheduler
from eventually import eventually
from league import PATIENCE

pytestmark = pytest.mark.timeout(400)
NAMES = ("default-scheduler", "second", "third")


@pytest.fixture
async def three(scheduler, fleet):
    """Two more schedulers beside the first one."""
    async with contextlib.AsyncExitStack() as stack:
        for name in NAMES[1:]:
            log = scheduler.folder / "kube-scheduler.log"
            config = await scheduler.configuration(name)
            await stack.enter_async_context(stock_scheduler.running(fleet, config, log=log))
        yield scheduler


async def test_schedulers_that_decide_at_once_never_bind_more_pods_than_fit(three, namespace):
    upper = three.league.upper
    for name in NAMES:  # created while the others are decided
        pods = [f"{name.partition('-')[0]}-{number}" for number in range(8)]
        await three.make(namespace, *pods, cpu="1500m", schedulerName=name)  # four fit in small, two in large

    async def decided() -> bool:
        found = await upper.all("pods", namespace=namespace)
        running = [one for one in found if one["status"]["phase"] == "Running"]
        assert len(running) == 6, [(one["metadata"]["name"], one["status"]) for one in found]
        refused = [one for one in found if "nodeName" not in one["spec"] and one["status"].get("conditions")]
        assert len(refused) == 3 * 8 - 6, "each pod was decided, and none was bound beyond the room"
        return True

    await eventually(decided, within=PATIENCE)
    for lower in three.league.lowers.values():
        for copy in await lower.all("pods", namespace=namespace):
            assert copy["spec"].get("nodeName"), f"{copy['metadata']['name']} has no node in {lower.name}"


async def test_a_scheduler_whose_extender_is_ignorable_goes_on_without_it(scheduler, namespace, fleet):
    config = await scheduler.configuration("ignoring", "--ignorable")
    async with stock_scheduler.running(fleet, config, log=scheduler.folder / "kube-scheduler.log"):
        await scheduler.make(namespace, "judged", cpu="3", schedulerName="ignoring")
        assert await scheduler.node(namespace, "judged") == "vn-large"
        await scheduler.kill()
        await scheduler.make(namespace, "unjudged", cpu="2", schedulerName="ignoring")
        assert (await scheduler.node(namespace, "unjudged")).startswith("vn-")
        await scheduler.start()
