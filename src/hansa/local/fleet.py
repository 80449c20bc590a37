"""The local clusters of one state folder: brought up side by side, repaired, listed, taken down.

Each step finds out what is there and does what is missing, so every command can be repeated after any crash.
"""

import asyncio
import contextlib
import dataclasses
import shutil
import signal
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hansa.local import (
    allotment,
    binaries,
    components,
    concurrently,
    control_plane,
    nodes,
    ports,
    process,
    readiness,
    real_nodes,
    spec,
)
from hansa.local.cluster import Cluster
from hansa.local.component import PortTaken
from hansa.local.control_plane import ControlPlane
from hansa.local.etcd import Etcd
from hansa.local.real_nodes import RealNodes
from hansa.local.spec import ClusterSpec
from hansa.local.state import Record, State, open_state
from hansa.runtime.errors import HansaError

# All that clusters can need; kubectl is for their users.
BINARIES = (components.ETCD, *components.ALL, "kubectl", *real_nodes.BINARIES)
PORT_TRIES = 3
KILL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """All clusters of a state folder."""

    state: State
    sources: binaries.Sources = field(default_factory=binaries.Sources)
    progress: binaries.Listener = field(default=lambda _: None)
    is_etcd_fast: bool = False

    async def up(self, specs: Sequence[ClusterSpec]) -> list[Cluster]:
        """Bring clusters up side by side; one that fails does not stop the others."""
        for wish in specs:
            spec.check(wish)
        found = [await self._binaries(wish) for wish in specs]
        return await concurrently.run(self._up(wish, paths) for wish, paths in zip(specs, found, strict=True))

    async def down(self, names: Iterable[str]) -> None:
        """End clusters and remove all that is left of them."""
        await concurrently.run(self._down(name) for name in names)

    def names(self) -> list[str]:
        """The names of all clusters of which anything is left, also of those whose record can't be read."""
        folders = {path.name for path in self.state.root.glob("clusters/*")}
        return sorted(folders | {cluster for cluster, _ in process.running(self.state.root) if cluster})

    def clusters(self) -> list[Cluster]:
        """The clusters that should be there."""
        return [Cluster(self.state, record) for record in self.state.records()]

    def cluster(self, name: str) -> Cluster:
        """The cluster of that name."""
        return Cluster(self.state, self.state.get(name))

    async def _binaries(self, wish: ClusterSpec) -> dict[str, Path]:
        needed = [components.ETCD, "kubectl", *control_plane.wanted(wish)]
        if wish.is_networked:
            needed += real_nodes.BINARIES
        sources = dataclasses.replace(self.sources, folder=Path(wish.binaries)) if wish.binaries else self.sources
        return await binaries.ensure(needed, sources=sources, progress=self.progress)

    async def _up(self, wish: ClusterSpec, found: Mapping[str, Path]) -> Cluster:
        async with self.state.cluster_lock(wish.name):
            try:
                return await self._ensure(wish, found)
            finally:
                if not self.state.folder(wish.name).exists():  # refused before anything was made
                    async with self.state.lock():
                        self.state.vanish(wish.name)

    async def _ensure(self, wish: ClusterSpec, found: Mapping[str, Path]) -> Cluster:
        former = self.state.find(wish.name)
        if former is not None and former.is_leaving:
            await self._remove(wish.name)
        for tries_left in reversed(range(PORT_TRIES)):
            record = await self._allot(wish, found[components.ETCD])
            try:
                await self._raise(record, found)
                break
            except PortTaken:
                # Somebody took the port between our look and the server's start; the next try chooses another.
                if not tries_left or wish.port is not None:
                    raise
        return Cluster(self.state, record)

    async def _raise(self, record: Record, found: Mapping[str, Path]) -> None:
        """Make a cluster that has its numbers, from whatever is there of it."""
        wish = record.spec
        site = real_nodes.site(self.state, record) if wish.is_networked else allotment.loopback_site(record)
        plane = ControlPlane(self.state, record, site, found)
        real = RealNodes(self.state, record, found, image_cache=self.sources.cache.parent / "images")
        if wish.is_networked:
            await real.ensure_network()
        await plane.up()
        if wish.is_networked:
            await real.open_door()
        async with Cluster(self.state, record).client() as client:
            if wish.is_networked:
                await real.ensure(client)
            await nodes.ensure(client, wish)
            await plane.kwok_up(client)
            await readiness.nodes_are_ready(client, nodes.names(wish))
            await readiness.pods_can_be_created(client)

    async def _allot(self, wish: ClusterSpec, etcd: Path) -> Record:
        async with self.state.lock():
            former = self.state.find(wish.name)
            listening = {component for cluster, component in process.running(self.state.root) if cluster == wish.name}
            for component, port in (former.ports if former else {}).items():
                if component not in listening:
                    await ports.released(port)
            record = allotment.allot(
                wish,
                others=[record for record in self.state.records() if record.spec.name != wish.name],
                former=former,
                listening=listening,
                seed=str(self.state.root),
            )
            self.state.save(record)
            await Etcd(self.state).ensure(etcd, is_fast=self.is_etcd_fast)
            return record

    async def _down(self, name: str) -> None:
        if name not in self.names():
            self.state.get(name)  # says which clusters there are
        async with self.state.cluster_lock(name):
            await self._remove(name)
            async with self.state.lock():
                self.state.vanish(name)

    async def _remove(self, name: str) -> None:
        """Remove a cluster, or what a crash left of it. Its folder goes last: until then it can be removed again."""
        self._mark_leaving(name)
        await real_nodes.remove(self.state, name)
        await _kill(p for (cluster, _), p in process.running(self.state.root).items() if cluster == name)
        async with self.state.lock():
            if self.names() == [name]:
                await Etcd(self.state).remove()
            else:
                await Etcd(self.state).forget(name)
            shutil.rmtree(self.state.folder(name), ignore_errors=True)

    def _mark_leaving(self, name: str) -> None:
        # A record that can't be read, or a disk that is full, must not keep anything from being removed.
        with contextlib.suppress(HansaError):
            if (record := self.state.find(name)) is not None:
                self.state.save(allotment.leaving(record))


async def _kill(processes: Iterable[process.Process]) -> None:
    """End processes whose state is being removed anyway: there is nothing that they could save."""
    doomed = list(processes)
    for one in doomed:
        one.signal(signal.SIGKILL)
    await asyncio.gather(*(one.ended(KILL_SECONDS) for one in doomed))


@contextlib.asynccontextmanager
async def cluster(name: str, *, fleet: Fleet | None = None, **wishes: Any) -> AsyncIterator[Cluster]:
    """A cluster for as long as the block lasts; the wishes are the fields of ClusterSpec."""
    fleet = fleet or Fleet(open_state())
    try:
        [made] = await fleet.up([ClusterSpec(name, **wishes)])
        yield made
    finally:
        if name in fleet.names():
            await fleet.down([name])
