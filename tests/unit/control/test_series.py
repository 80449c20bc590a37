"""Which series there are: none of a cluster, tenant or lane that left, and none named by an object."""

import asyncio

import simulation
from hansa.control import informer, queue
from hansa.kube import errors, resources, watching
from hansa.runtime import tasks


async def quiet_watch(*_, **__):
    """A watch of an empty cluster that was interrupted once."""
    yield watching.Restarted()
    yield watching.Synced("1")
    yield watching.Interrupted(errors.Unreachable("no answer"), retry_in=0.1)
    yield watching.Bookmark("2")
    await asyncio.get_running_loop().create_future()


def lines(world, *words):
    return [
        line for line in world.metrics.text().splitlines() if line[0] != "#" and all(word in line for word in words)
    ]


def test_a_cluster_that_left_has_no_series(monkeypatch):
    monkeypatch.setattr(watching, "watch", quiet_watch)

    async def main(world):
        given = {"clock": world.clock, "random": world.random, "metrics": world.metrics}
        writes = world.metrics.counter("hansa_writes_total", "Writes.", labels=["cluster", "verb"])
        async with tasks.Supervisor(**given) as supervisor:
            clusters = {name: informer.Informers(name, None, supervisor=supervisor, **given) for name in ("r1", "r2")}
            for name, informers in clusters.items():
                informers.acquire(informer.Scope(resources.PODS))
                writes.labels(name, "create").inc()
            await asyncio.sleep(1)
            before = lines(world, 'cluster="r1"')
            await clusters["r1"].close()
            return before, lines(world, 'cluster="r1"'), lines(world, 'cluster="r2"')

    before, after, other = simulation.run(main)
    assert sorted(line.split("{")[0] for line in before) == [
        "hansa_store_fresh",
        "hansa_store_objects",
        "hansa_watch_interruptions_total",
        "hansa_watch_lists_total",
        "hansa_writes_total",
    ]
    assert after == []
    assert len(other) == len(before)


def test_scopes_of_one_resource_share_their_series(monkeypatch):
    monkeypatch.setattr(watching, "watch", quiet_watch)

    async def main(world):
        given = {"clock": world.clock, "random": world.random, "metrics": world.metrics}
        async with tasks.Supervisor(**given) as supervisor:
            informers = informer.Informers("r1", None, supervisor=supervisor, **given)
            for namespace in ("secret-name", "other-name"):
                informers.acquire(informer.Scope(resources.PODS, namespace=namespace))
            await asyncio.sleep(1)
            found = lines(world, "hansa_store_fresh"), lines(world, "-name")
            await informers.close()
            return found

    fresh, named = simulation.run(main)
    assert fresh == ['hansa_store_fresh{cluster="r1",resource="pods"} 1.0']
    assert named == []


def test_a_tenant_without_keys_has_no_lane_series():
    async def main(world):
        keys = queue.Queue(
            "test", clock=world.clock, random=world.random, metrics=world.metrics, group=lambda key: key[0]
        )
        keys.add(("tenant-1", "pod"))
        before = lines(world, "tenant-1")
        keys.done(await keys.get())
        return before, lines(world, "tenant-1")

    before, after = simulation.run(main)
    assert before == ['hansa_queue_depth{group="tenant-1",queue="test"} 1.0']
    assert after == []


def test_queues_of_one_name_share_their_series():
    async def main(world):
        for _ in range(2):
            keys = queue.Queue("tokens", clock=world.clock, random=world.random, metrics=world.metrics)
            keys.add("a")
        return lines(world, "hansa_queue_depth"), lines(world, "hansa_queue_adds_total")

    depth, adds = simulation.run(main)
    assert depth == ['hansa_queue_depth{group="",queue="tokens"} 2.0']
    assert adds == ['hansa_queue_adds_total{queue="tokens"} 2.0']


def test_a_failed_task_is_counted_by_its_name_and_not_by_what_it_serves():
    async def failing():
        raise errors.Unreachable("no answer")

    async def main(world):
        async with tasks.Supervisor(clock=world.clock, random=world.random, metrics=world.metrics) as supervisor:
            for cluster in ("r1", "r2"):
                assert supervisor.start("watch", failing, cluster=cluster).get_name() == f"watch {cluster}"
            await asyncio.sleep(0.01)
            return lines(world, "hansa_task_failures_total")

    assert simulation.run(main) == ['hansa_task_failures_total{task="watch"} 2.0']
