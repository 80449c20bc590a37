"""Watching a real API server that is killed, stalled, compacted and cut off."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

import backups
from fixture_types import FreshCluster
from hansa.kube import errors, watching
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.kube.http.transport import Stream
from hansa.kube.objects import Object
from hansa.kube.resources import CONFIG_MAPS
from hansa.kube.watching import Added, Bookmark, Deleted, Interrupted, Modified, Patience, Restarted, Synced
from hansa.local import Cluster, ClusterSpec, Fleet
from hansa.local.control_plane.etcd import Etcd
from hansa.runtime.backoff import Backoff
from kube_files import write
from kube_proxy import Proxy, running_proxy

HASTY = Patience(idle=2.0, backoff=Backoff(first=0.05, most=0.5))
APISERVER = "kube-apiserver"
FORGOTTEN = 500  # changes, so that the restored server stays behind them during the test


def config_map(name: str, namespace: str, label: str = "x") -> Object:
    metadata = {"name": name, "namespace": namespace, "labels": {"app": label}}
    return Object.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


class Listener:
    """Keeps what a watch tells, as a cache would, and remembers each step."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.steps: list[tuple[str, str, str]] = []  # what happened, to which, in which version
        self.restarts = 0
        self.interruptions: list[errors.ApiError] = []
        self._listing: dict[str, str] | None = {}
        self._news = asyncio.Condition()

    async def follow(self, changes: AsyncIterator[watching.Change]) -> None:
        async for change in changes:
            self._take(change)
            async with self._news:
                self._news.notify_all()

    async def until(self, condition: Callable[[], bool], *, within: float = 60.0) -> None:
        try:
            async with asyncio.timeout(within), self._news:
                await self._news.wait_for(condition)
        except TimeoutError:
            raise AssertionError(f"not within {within:g} s: {self.known} {self.interruptions}") from None

    def knows(self, *names: str) -> Callable[[], bool]:
        return lambda: self._listing is None and set(self.known) == set(names)

    def _take(self, change: watching.Change) -> None:
        match change:
            case Restarted():
                self.restarts += 1
                self._listing = {}
            case Synced():
                assert self._listing is not None
                for name in self.known.keys() - self._listing.keys():
                    self.steps.append(("gone", name, ""))
                self.known, self._listing = self._listing, None
            case Added(obj) if self._listing is not None:
                self._listing[obj.name] = obj.version
                if self.known.get(obj.name) != obj.version:
                    self.steps.append(("listed", obj.name, obj.version))
            case Added(obj) | Modified(obj):
                self.steps.append((type(change).__name__, obj.name, obj.version))
                self.known[obj.name] = obj.version
            case Deleted(obj):
                self.steps.append(("Deleted", obj.name, obj.version))
                del self.known[obj.name]
            case Interrupted(error):
                self.interruptions.append(error)
            case Bookmark():
                pass


@contextlib.asynccontextmanager
async def listening(
    client: Client, namespace: str, *, patience: Patience = HASTY, labels: str = "app"
) -> AsyncIterator[Listener]:
    """A listener on the labelled config maps of a namespace."""
    listener = Listener()
    changes = watching.watch(client, CONFIG_MAPS, namespace=namespace, labels=labels, patience=patience)
    async with contextlib.aclosing(changes):
        task = asyncio.create_task(listener.follow(changes))
        try:
            yield listener
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@pytest.fixture
async def proxied(cluster: Cluster, tmp_path: Path) -> AsyncIterator[tuple[Client, Proxy]]:
    """A client of the shared cluster, and the proxy that its connections go through."""
    async with running_proxy() as proxy:
        config = proxy.kubeconfig(cluster.kubeconfig, tmp_path)
        async with Client(kubeconfig.from_files(config), user_agent="hansa-test", deadline=5) as client:
            yield client, proxy


async def exercise(client: Client, namespace: str, listener: Listener) -> None:
    """Create, change and delete, and see that exactly this is told."""
    await listener.until(listener.knows("a", "b"))
    made = await client.create(CONFIG_MAPS, config_map("c", namespace))
    changed = await client.patch(CONFIG_MAPS, "c", {"data": {"x": "1"}}, namespace=namespace)
    await client.delete(CONFIG_MAPS, "a", namespace=namespace)
    await listener.until(listener.knows("b", "c"))
    *news, (what, name, _) = listener.steps[-3:]
    assert news == [("Added", "c", made.version), ("Modified", "c", changed.version)]
    assert (what, name) == ("Deleted", "a")
    assert {step[1] for step in listener.steps[:-3]} == {"a", "b"}
    assert (listener.restarts, listener.interruptions) == (1, [])


async def test_a_full_state_comes_first_and_then_every_change(client: Client, namespace: str) -> None:
    for name in ("a", "b"):
        await client.create(CONFIG_MAPS, config_map(name, namespace))
    async with listening(client, namespace) as listener:
        await exercise(client, namespace, listener)


async def test_a_server_without_streamed_lists_is_listed_in_pages(fresh_cluster: FreshCluster) -> None:
    cluster = await fresh_cluster(flags={APISERVER: ("--feature-gates=WatchList=false",)})
    async with cluster.client("hansa-test") as client:
        for name in ("a", "b"):
            await client.create(CONFIG_MAPS, config_map(name, "default"))
        async with listening(client, "default") as listener:
            await listener.until(listener.knows("a", "b"))
            listener.restarts = 1  # the refused attempt began one, too
            await exercise(client, "default", listener)


async def test_an_object_that_stops_to_match_is_deleted_for_the_listener(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("a", namespace, "x"))
    async with listening(client, namespace, labels="app=x") as listener:
        await listener.until(listener.knows("a"))
        await client.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"app": "y"}}}, namespace=namespace)
        await listener.until(listener.knows())
        await client.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"app": "x"}}}, namespace=namespace)
        await listener.until(listener.knows("a"))


async def test_an_object_of_a_megabyte_comes_whole(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", namespace).with_fields(data={"x": "y" * 1_000_000}))
    changes = watching.watch(client, CONFIG_MAPS, namespace=namespace, labels="app")
    async with contextlib.aclosing(changes), asyncio.timeout(60):
        assert [await anext(changes), await anext(changes)] == [Restarted(), Added(made)]


async def test_a_cut_connection_goes_on_where_it_was(
    proxied: tuple[Client, Proxy], client: Client, namespace: str
) -> None:
    cut_off, proxy = proxied
    written: list[str] = []
    async with listening(cut_off, namespace) as listener:
        await listener.until(listener.knows())
        for number in range(100):
            written.append((await client.create(CONFIG_MAPS, config_map(f"a{number}", namespace))).version)
            if number % 10 == 5:
                await proxy.cut()
        await listener.until(lambda: len(listener.known) == 100)
        assert [version for _, _, version in listener.steps] == written  # nothing missed, nothing twice, in order
        assert listener.restarts == 1
        assert listener.interruptions


async def test_a_frozen_connection_is_noticed_within_the_set_time(
    proxied: tuple[Client, Proxy], client: Client, namespace: str
) -> None:
    cut_off, proxy = proxied
    async with listening(cut_off, namespace) as listener:
        await listener.until(listener.knows())
        proxy.freeze()
        await client.create(CONFIG_MAPS, config_map("a", namespace))
        await listener.until(lambda: bool(listener.interruptions), within=HASTY.idle + 1)
        assert "no event and no bookmark was received for 2 s" in str(listener.interruptions[0])
        proxy.thaw()
        await listener.until(listener.knows("a"))
        assert (listener.restarts, len(listener.steps)) == (1, 1)


async def test_a_watch_that_the_server_ends_goes_on_as_if_nothing_had_been(cluster: Cluster, namespace: str) -> None:
    opened = 0

    class CountingClient(Client):
        async def open(self, *args: Any, **options: Any) -> Stream:
            nonlocal opened
            opened += 1
            return await super().open(*args, **options)

    short = Patience(life=2.0)  # the server ends it after a second or two
    async with (
        CountingClient(kubeconfig.from_files(cluster.kubeconfig), user_agent="hansa-test") as client,
        listening(client, namespace, patience=short) as listener,
    ):
        await listener.until(listener.knows())
        written: list[str] = []
        while opened < 4:
            written.append((await client.create(CONFIG_MAPS, config_map(f"a{len(written)}", namespace))).version)
            await listener.until(lambda: len(listener.steps) == len(written))
        assert [version for _, _, version in listener.steps] == written
        assert (listener.restarts, listener.interruptions) == (1, [])


async def test_a_forbidden_watch_tells_why_and_goes_on_trying(cluster: Cluster, client: Client, tmp_path: Path) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = "nobody"
    path = write(tmp_path / "config", config)
    async with (
        Client(kubeconfig.from_files(path), user_agent="hansa-test") as nobody,
        listening(nobody, "default") as listener,
    ):
        await listener.until(lambda: len(listener.interruptions) == 3)
        assert isinstance(listener.interruptions[0], errors.Forbidden)
        assert "cannot watch configmaps in default at https://" in str(listener.interruptions[0])
        assert 'User "nobody" cannot watch resource "configmaps"' in str(listener.interruptions[0])


async def killed(cluster: Cluster) -> None:
    process = cluster.process(APISERVER)
    process.signal(signal.SIGKILL)
    assert await process.ended(10)


async def test_a_killed_server_leaves_nothing_missed_or_doubled(fleet: Fleet, fresh_cluster: FreshCluster) -> None:
    cluster = await fresh_cluster()
    async with cluster.client("hansa-test") as client, listening(client, "default") as listener:
        await client.create(CONFIG_MAPS, config_map("a", "default"))
        await client.create(CONFIG_MAPS, config_map("b", "default"))
        await listener.until(listener.knows("a", "b"))
        await killed(cluster)
        await listener.until(lambda: bool(listener.interruptions))
        assert isinstance(listener.interruptions[0], errors.Unreachable)
        assert set(listener.known) == {"a", "b"}  # unknown is not absent
        await fleet.up([cluster.record.spec])
        await client.delete(CONFIG_MAPS, "a", namespace="default")
        await client.create(CONFIG_MAPS, config_map("c", "default"))
        await listener.until(listener.knows("b", "c"))
        # Whether it went on or listed again depends on how much the new server remembers; the news are the same.
        assert {(name, what in ("Deleted", "gone")) for what, name, _ in listener.steps[2:]} == {
            ("a", True),
            ("c", False),
        }
        assert len({(name, version) for _, name, version in listener.steps}) == len(listener.steps)


async def test_a_server_that_was_put_back_to_a_backup_is_listed_again() -> None:
    async with (
        backups.restorable(ClusterSpec("restored")) as restorable,
        restorable.cluster.client("hansa-test") as client,
    ):
        await client.create(CONFIG_MAPS, config_map("kept", "default"))
        await restorable.back_up()
        async with listening(client, "default", patience=Patience()) as listener:
            forgotten = [f"c-{number}" for number in range(FORGOTTEN)]
            for name in forgotten:
                await client.create(CONFIG_MAPS, config_map(name, "default"))
            await listener.until(listener.knows("kept", *forgotten))
            await restorable.restore()
            await listener.until(listener.knows("kept"))
            now = (await client.list(CONFIG_MAPS, namespace="kube-system")).version
            assert int(now) < max(int(version) for _, _, version in listener.steps if version), "too few changes"


async def test_a_compacted_history_leads_to_exactly_the_differences(
    fleet: Fleet, fresh_cluster: FreshCluster, tmp_path: Path
) -> None:
    cluster = await fresh_cluster()
    async with running_proxy() as proxy, cluster.client("hansa-test") as client:
        config = proxy.kubeconfig(cluster.kubeconfig, tmp_path)
        cut_off = Client(kubeconfig.from_files(config), user_agent="hansa-test", deadline=5)
        async with cut_off, listening(cut_off, "default") as listener:
            for name in ("stays", "changes", "goes"):
                await client.create(CONFIG_MAPS, config_map(name, "default"))
            await listener.until(listener.knows("stays", "changes", "goes"))
            before = len(listener.steps)
            proxy.freeze()
            await listener.until(lambda: bool(listener.interruptions))
            changed = await client.patch(CONFIG_MAPS, "changes", {"data": {"x": "1"}}, namespace="default")
            await client.delete(CONFIG_MAPS, "goes", namespace="default")
            came = await client.create(CONFIG_MAPS, config_map("came", "default"))
            await compact(cluster, int(came.version))
            await killed(cluster)  # its own memory of the history goes with it
            [cluster] = await fleet.up([cluster.record.spec])
            proxy.kubeconfig(cluster.kubeconfig, tmp_path)  # it may have another port now
            proxy.thaw()
            await listener.until(listener.knows("stays", "changes", "came"))
            assert listener.restarts > 1
            assert sorted(listener.steps[before:]) == [
                ("gone", "goes", ""),
                ("listed", "came", came.version),
                ("listed", "changes", changed.version),
            ]


async def test_a_stalled_server_is_noticed_and_then_goes_on(fresh_cluster: FreshCluster) -> None:
    cluster = await fresh_cluster()
    hasty_client = Client(kubeconfig.from_files(cluster.kubeconfig), user_agent="hansa-test", deadline=1)
    async with cluster.client("hansa-test") as client, hasty_client, listening(hasty_client, "default") as listener:
        await client.create(CONFIG_MAPS, config_map("a", "default"))
        await listener.until(listener.knows("a"))
        process = cluster.process(APISERVER)
        process.signal(signal.SIGSTOP)
        try:
            waiting = asyncio.create_task(client.create(CONFIG_MAPS, config_map("b", "default")))
            with pytest.raises(errors.Unreachable, match=r"gave no answer in 1 s|does not answer"):
                await hasty_client.list(CONFIG_MAPS, namespace="default")
            await listener.until(lambda: len(listener.interruptions) > 1, within=HASTY.idle + 5)
            assert all(isinstance(error, errors.Unreachable) for error in listener.interruptions)
            assert set(listener.known) == {"a"}
        finally:
            process.signal(signal.SIGCONT)
        made = await waiting
        await listener.until(listener.knows("a", "b"))
        assert listener.steps[-1] == ("Added", "b", made.version)
        assert (listener.restarts, len(listener.steps)) == (1, 2)


async def compact(cluster: Cluster, version: int) -> None:
    """Have etcd forget what was before a version."""
    connector = aiohttp.UnixConnector(path=str(Etcd(cluster.state).socket))
    body = {"revision": str(version), "physical": True}
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.post("http://etcd/v3/kv/compaction", json=body) as answer,
    ):
        assert answer.status == 200, await answer.text()
