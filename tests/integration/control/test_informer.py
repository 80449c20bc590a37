"""Informers on a real API server: one watch for many users, and a cache that is correct after any failure."""

import asyncio
import collections
import contextlib
import itertools
import random

import pytest
import yaml

from eventually import eventually
from hansa.control import informer
from hansa.kube import objects, resources, watching
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.runtime import errors as runtime_errors
from kube_proxy import running_proxy
from machinery import QUICK, Machine, Witness

CONFIG_MAPS = resources.CONFIG_MAPS
OPERATIONS = 10_000
PAUSES = 5
WRITERS = 8
NAMES = [f"m{number}" for number in range(150)]


def config_map(name, namespace, value):
    metadata = {"name": name, "namespace": namespace}
    return objects.Object.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": str(value)}})


def versions(objs):
    return {obj.key: obj.version for obj in objs}


async def fresh(client, namespace):
    return versions([obj async for page in client.pages(CONFIG_MAPS, namespace=namespace) for obj in page.items])


async def equals_a_fresh_list(cache, client, namespace):
    wanted = await fresh(client, namespace)

    async def same():
        return versions(cache.values()) == wanted

    await eventually(same)


@pytest.fixture
async def through_proxy(cluster, tmp_path):
    """A proxy before the shared cluster, and a client that goes through it."""
    async with (
        running_proxy() as carrier,
        Client(
            kubeconfig.from_files(carrier.kubeconfig(cluster.kubeconfig, tmp_path)), user_agent="hansa-test"
        ) as client,
    ):
        yield carrier, client


async def test_many_readers_share_one_watch_which_ends_with_the_last(client, namespace, through_proxy):
    carrier, proxied = through_proxy
    scope = informer.Scope(CONFIG_MAPS, namespace=namespace)

    async with Machine() as machine:
        informers = machine.informers("shared", proxied)
        first = informers.acquire(scope)
        stores = [informers.acquire(informer.Scope(CONFIG_MAPS, namespace=namespace)) for _ in range(5)]
        await first.freshness.wait_synced(60)
        assert all(one is first for one in stores)
        assert carrier.connections == 1
        for _ in stores:
            await informers.release(scope)
        made = await client.create(CONFIG_MAPS, config_map("a", namespace, 1))

        async def seen():
            return first.get(made.key)

        await eventually(seen)
        await informers.release(scope)

        async def unconnected():
            return carrier.connections == 0

        await eventually(unconnected)
        async with informers.share(scope) as again:
            assert again is not first
            await again.freshness.wait_synced(60)
            assert again.get(made.key) == made.with_metadata(managed_fields=again.get(made.key).metadata.managed_fields)
        await informers.close()
        with pytest.raises(runtime_errors.HansaError, match="cluster shared was removed"):
            informers.acquire(scope)


async def test_a_selector_is_a_scope_of_its_own_and_what_stops_matching_leaves(client, namespace):
    async with Machine() as machine:
        informers = machine.informers("shared", client)
        scope = informer.Scope(CONFIG_MAPS, namespace=namespace, labels="colour=red")
        async with informers.share(scope) as red:
            await red.freshness.wait_synced(60)
            made = await client.create(
                CONFIG_MAPS, config_map("a", namespace, 1).with_metadata(labels={"colour": "red"})
            )

            async def there():
                return red.get(made.key)

            await eventually(there)
            blue = await client.patch(
                CONFIG_MAPS, "a", {"metadata": {"labels": {"colour": "blue"}}}, namespace=namespace
            )
            red.observe(blue)
            assert red.get(made.key) is None


class Writers:
    """Several clients that change random objects, and the true history of each object."""

    def __init__(self, clients, namespace, seed):
        self.clients, self.namespace, self.random = clients, namespace, random.Random(seed)
        self.history = collections.defaultdict(list)
        self.numbers = itertools.count()
        self.locks = collections.defaultdict(asyncio.Lock)

    async def write(self, count):
        async def one(client):
            for _ in range(count // len(self.clients)):
                await self.change(client, self.random.choice(NAMES))

        async with asyncio.TaskGroup() as group:
            for client in self.clients:
                group.create_task(one(client))

    async def change(self, client, name):
        # One writer at a time on one object, so that the order of its history is known.
        async with self.locks[name]:
            history, value = self.history[name], next(self.numbers)
            if not history or history[-1][0] == "deleted":
                made = await client.create(CONFIG_MAPS, config_map(name, self.namespace, value))
                history.append(("added", made.version))
            elif self.random.random() < 0.3:
                await client.delete(CONFIG_MAPS, name, namespace=self.namespace)
                history.append(("deleted", ""))
            else:
                patched = await client.patch(CONFIG_MAPS, name, {"data": {"v": str(value)}}, namespace=self.namespace)
                history.append(("modified", patched.version))


class Recorder:
    """Records all events of a watch, by object."""

    def __init__(self):
        self.seen, self.lists = collections.defaultdict(list), 0

    async def run(self, client, namespace):
        async for change in watching.watch(client, CONFIG_MAPS, namespace=namespace, patience=QUICK):
            match change:
                case watching.Added(obj) | watching.Modified(obj) | watching.Deleted(obj):
                    kind = type(change).__name__.lower()
                    self.seen[obj.name].append((kind, "" if kind == "deleted" else obj.version))
                case watching.Synced():
                    self.lists += 1

    async def has_listed(self):
        return self.lists

    async def has_seen_all(self, history):
        return all(self.seen[name][-1:] == changes[-1:] for name, changes in history.items())


async def cut_now_and_then(carrier, randomness):
    while True:
        await asyncio.sleep(randomness.uniform(0.02, 0.4))
        await carrier.cut(randomness.choice([0.3, 1.0]), randomness)


@pytest.mark.timeout(600)
async def test_ten_thousand_changes_over_watches_that_are_cut_leave_no_gap_and_no_step_back(
    cluster, client, namespace, through_proxy
):
    carrier, proxied = through_proxy
    recorder = Recorder()
    async with contextlib.AsyncExitStack() as stack, Machine() as machine:
        clients = [await stack.enter_async_context(cluster.client(f"writer-{n}")) for n in range(WRITERS)]
        writers = Writers(clients, namespace, seed=1)
        informers = machine.informers("shared", proxied, watch_patience=QUICK)
        cache = informers.acquire(informer.Scope(CONFIG_MAPS, namespace=namespace))
        witness = Witness(cache)
        await cache.freshness.wait_synced(60)
        machine.supervisor.start("recorder", lambda: recorder.run(proxied, namespace))
        await eventually(recorder.has_listed)
        cutting = machine.supervisor.start("cutter", lambda: cut_now_and_then(carrier, machine.random))
        for _ in range(PAUSES):
            await writers.write(OPERATIONS // PAUSES)
            await equals_a_fresh_list(cache, client, namespace)
        cutting.cancel()
        await eventually(lambda: recorder.has_seen_all(writers.history))
    assert carrier.cuts > 20
    assert not witness.wrong
    assert recorder.lists == 1
    assert {name: recorder.seen[name] for name in writers.history} == writers.history
    assert len(witness.dead) == sum(history.count(("deleted", "")) for history in writers.history.values())


async def test_a_cluster_that_refuses_the_token_is_unknown_with_a_reason(cluster, client, namespace):
    token = "no-such-token"
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = cluster.folder / "refused"
    path.write_text(yaml.safe_dump(config))
    async with Client(kubeconfig.from_files(path), user_agent="hansa-test") as refused, Machine() as machine:
        cache = machine.informers("refused", refused).acquire(informer.Scope(CONFIG_MAPS))
        sentence = r"refused configmaps not listed within 1 s: .*401"
        with pytest.raises(runtime_errors.HansaError, match=sentence) as caught:
            await cache.freshness.wait_synced(1)
        assert token not in str(caught.value)
        assert not cache.freshness.is_known


async def test_a_store_is_known_again_when_its_watch_is_restored_even_without_events(namespace, through_proxy):
    carrier, proxied = through_proxy
    async with Machine() as machine:
        informers = machine.informers("shared", proxied, patience=0.5, watch_patience=QUICK)
        cache = informers.acquire(informer.Scope(resources.PODS, namespace=namespace))
        await cache.freshness.wait_synced(60)
        seen = []
        cache.freshness.listen(seen.append)

        async def is_seen(*wanted):
            return seen == [*wanted]

        carrier.is_away = True
        await carrier.cut()
        await eventually(lambda: is_seen(False))
        carrier.is_away = False
        await eventually(lambda: is_seen(False, True))
