"""Clusters that are added, fail and recover while others work, in one program with one queue."""

import contextlib
import signal
import time

import pytest

from eventually import eventually
from hansa.control import controller, informer, manager, queue
from hansa.kube import objects, resources
from hansa.programs import components
from machinery import QUICK, Machine

CONFIG_MAPS = resources.CONFIG_MAPS
QUICK_ENOUGH = 2.0  # seconds from a write to its copy; it takes some hundredths on an idle machine


class Copier:
    """A program that copies `data.value` of each ConfigMap to `data.copy`, in all clusters that joined."""

    def __init__(self, machine):
        self.machine, self.stores, self.clients = machine, {}, {}
        self.queue = queue.Queue("copies", group=lambda key: key[0], width=4, **machine.injected())
        self.controller = controller.Controller(
            "copies", self.copy, queue=self.queue, metrics=machine.metrics, workers=8, deadline=20
        )
        self.manager = manager.Manager(grace=5, **machine.injected())
        self.manager.work(manager.Component("copies", self.controller.run, drain=self.controller.drain))

    @contextlib.asynccontextmanager
    async def joined(self, name, client, namespace):
        informers = self.machine.informers(name, client, patience=1.0, watch_patience=QUICK)
        scope = informer.Scope(CONFIG_MAPS, namespace=namespace)
        async with informers.share(scope) as store:
            self.stores[name], self.clients[name] = store, client
            store.listen(self.queue.add, lambda obj: [(name, obj.key)])
            yield store
        await informers.close()

    async def copy(self, key):
        cluster, name = key
        obj = self.stores[cluster].get(name)
        data = (obj and obj.get("data")) or {}
        if data.get("value") != data.get("copy"):
            patch = {"data": {"copy": data["value"]}}
            client = self.clients[cluster]
            answer = await client.patch(CONFIG_MAPS, name.name, patch, namespace=name.namespace)
            self.stores[cluster].observe(answer)
        return controller.Done()


def config_map(name, namespace):
    metadata = {"name": name, "namespace": namespace}
    return objects.Object.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": name}})


async def copied(client, name, namespace):
    """Make a ConfigMap; how many seconds later it is copied."""
    began = time.monotonic()
    await client.create(CONFIG_MAPS, config_map(name, namespace))

    async def done():
        return (await client.get(CONFIG_MAPS, name, namespace=namespace)).get("data").get("copy") == name

    await eventually(done, every=0.01)
    return time.monotonic() - began


async def known(store, wanted):
    async def same():
        return store.freshness.is_known is wanted

    await eventually(same)


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_cluster_joins_dies_and_recovers_and_the_other_never_waits(
    fleet, fresh_cluster, client, namespace, death
):
    shaky = await fresh_cluster(name=f"shaky-{death}", scheduler=False)
    async with Machine() as machine, shaky.client("hansa-test") as shaky_client:
        copier = Copier(machine)
        running = machine.supervisor.start("copier", copier.manager.run)
        async with copier.joined("steady", client, namespace):
            await copied(client, "first", namespace)
            async with copier.joined("shaky", shaky_client, "default") as store:
                await copied(shaky_client, "first", "default")

                apiserver = shaky.process(components.APISERVER)
                apiserver.signal(death)
                for number in range(100):  # work that cannot be done now, and holds the workers that it gets
                    obj = config_map(f"lost-{number}", "default")
                    store.observe(obj.with_metadata(resource_version=str(10**9 + number), uid=f"{number}"))
                waits = [await copied(client, f"meanwhile-{number}", namespace) for number in range(20)]
                assert max(waits) < QUICK_ENOUGH
                if death == signal.SIGKILL:
                    await known(store, False)
                    assert store.get(objects.NamespacedName("default", "first")), "unknown is not absent"
                    assert "configmaps in default" in store.freshness.error, "whether it is watched or listed"
                    await fleet.up([shaky.record.spec])
                else:
                    apiserver.signal(signal.SIGCONT)

                await known(store, True)
                await copied(shaky_client, "second", "default")
            assert await copied(client, "last", namespace) < QUICK_ENOUGH
            copier.manager.stop()
            await running
