"""Several agents of one cluster: one leads, and another one takes over, with its own webhook."""

import programs
from eventually import eventually
from federation import elected
from league import PATIENCE
from programs import Refused


async def test_another_agent_takes_over_when_the_leader_is_killed(federation, namespace, nodes, pods, tmp_path):
    await federation.agents.pop("east").stop()
    await federation.start("east", flags=("--leader-elect",))
    config = str(pods.east.cluster.kubeconfig)
    async with programs.hansa("agent", "--kubeconfig", config, "--leader-elect", log=tmp_path / "log") as second:
        await eventually(lambda: admitted(pods, "before"), within=PATIENCE)
        before = await pods.running("before")
        await federation.kill("east")
        await eventually(lambda: admitted(pods, "after"), within=PATIENCE)
        await pods.running("after")
        assert (await pods.running("before"))["metadata"]["uid"] == before["metadata"]["uid"]
        assert sum(await pods.counts()) == 2
        assert await second.stop() == 0


async def admitted(pods, name):
    """A pod is created, as soon as the webhook of the leader answers."""
    try:
        await pods.apply(elected(name))
    except Refused as error:
        raise AssertionError(str(error)) from None
    return True
