"""Targets that are frozen, or come back from a backup: no pod is lost or doubled, and no other target waits."""

import pytest

import backups
from eventually import eventually
from federation import Federation, a_deployment, a_secret, elected
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.local import ClusterSpec
from hansa.model import keys
from league import PATIENCE, member, named

FORGOTTEN = 500


async def one_delegate_each(federation, pods, members):
    """All proxy pods run, each with exactly one delegate, and there are no other delegates."""

    async def look():
        proxies = await pods.east.all("pods", namespace=pods.namespace, labels=keys.HAS_FINALIZER)
        assert {one["status"].get("phase") for one in proxies} == {"Running"}
        found = [one for each in members for one in await federation.delegates(each, pods.namespace)]
        parents = [one["metadata"]["labels"][keys.PARENT_UID] for one in found]
        assert sorted(parents) == sorted(one["metadata"]["uid"] for one in proxies), (named(found), named(proxies))
        return True

    assert await eventually(look, within=PATIENCE, every=0.5)


async def test_a_frozen_target_keeps_its_pods_and_delays_no_others(federation, namespace, nodes, pods):
    await pods.apply(a_deployment("web", 6))
    await pods.rolled_out("web")
    assert 0 not in await pods.counts()
    before = named(await pods.east.all("pods", namespace=namespace))
    with pods.west.frozen():
        # Placed before anybody noticed: what waits for the frozen target moves to the other one.
        await pods.apply(a_deployment("late", 6))
        await pods.rolled_out("late")
        frozen = await federation.ready(pods.east, "node", nodes["west"], status="False")
        assert frozen["message"]
        await federation.ready(pods.east, "target", "west", namespace=namespace, status="False")
        assert before <= named(await pods.east.all("pods", namespace=namespace))
    await federation.ready(pods.east, "node", nodes["west"])
    await pods.rolled_out("web")
    assert before <= named(await pods.east.all("pods", namespace=namespace))
    await one_delegate_each(federation, pods, (pods.east, pods.west))
    await pods.delete("deployment", "web", "late")
    await pods.have_counts(0, 0)


@pytest.fixture
async def third():
    """A cluster of its own that can be put back to a backup."""
    async with backups.restorable(ClusterSpec("third", nodes=3, lift_limits=True)) as made:
        yield made


async def test_a_target_that_comes_back_from_a_backup_has_one_delegate_for_each_proxy(
    federation, namespace, pods, third, kubectl, tmp_path
):
    there = member(third.cluster, kubectl)
    both = Federation({"east": pods.east, "third": there}, tmp_path, agents=dict(federation.agents))
    await there.kubectl("create", "namespace", namespace)
    await both.start("third")
    try:
        node = await both.connect("east", "third", namespace=namespace)
        await pods.apply(a_deployment("web", 3), elected("doomed"))
        await pods.rolled_out("web")
        await pods.running("doomed", node)
        await third.back_up()
        await both.ready(pods.east, "node", node)
        await forgotten_changes(there, namespace)
        await pods.delete("pod", "doomed")
        await pods.gone("pod", "doomed", namespace=namespace)
        await pods.apply(a_deployment("web", 6))
        await pods.rolled_out("web")
        await third.restore()
        await both.ready(pods.east, "node", node)
        await one_delegate_each(both, pods, (there,))
        await pods.delete("deployment", "web")
        await eventually(lambda: none(both, there, namespace), within=PATIENCE)
        await pods.east.kubectl("-n", namespace, "delete", "target", "third", "--timeout=90s")
    finally:
        await both.agents.pop("third").stop()


async def forgotten_changes(there, namespace):
    """Changes after the backup, so that the restored server stays behind them: as one that is older than seconds."""
    async with there.cluster.client("test") as client:
        for number in range(FORGOTTEN):
            made = {"metadata": {"name": f"c-{number}"}}
            await client.create(resources.CONFIG_MAPS, Object.of(made), namespace=namespace)


async def none(federation, where, namespace):
    return not await federation.delegates(where, namespace)


async def test_a_namespace_is_deleted_although_its_target_cannot_be_reached(federation, namespace, nodes, pods):
    await pods.apply(a_deployment("web", 2, nodeSelector={"kubernetes.io/hostname": "west-0"}))
    await pods.have_counts(0, 2)
    await pods.rolled_out("web")
    config = pods.west.cluster.kubeconfig.read_text().replace("https://127.0.0.1:", "https://127.0.0.2:")
    await pods.apply(a_secret("west", config, namespace))
    await federation.ready(pods.east, "target", "west", namespace=namespace, status="False")
    await pods.east.kubectl("delete", "namespace", namespace, "--wait=false")
    await pods.gone("node", nodes["west"])
    await pods.gone("namespace", namespace)
