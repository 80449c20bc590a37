"""Creates, repairs, lists and deletes the local clusters of one state folder, several at a time.

Each step compares the actual state with the wanted one, so every command can be repeated after a crash.
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

from hansa.kube.readiness import pods_can_be_created
from hansa.local import allocation, spec
from hansa.local.cluster import Cluster
from hansa.local.control_plane import command_lines, control_plane, readiness
from hansa.local.control_plane.control_plane import ControlPlane
from hansa.local.control_plane.etcd import Etcd
from hansa.local.machines import kwok_nodes, real_nodes
from hansa.local.machines.real_nodes import RealNodes
from hansa.local.spec import ClusterSpec
from hansa.local.state import Record, State, open_state
from hansa.programs import binaries, components, files, parallel, ports, process
from hansa.programs.starting import PortTaken
from hansa.runtime.errors import HansaError

# Every binary that a cluster may need; kubectl is for its users.
BINARIES = (components.ETCD, *command_lines.COMPONENTS, "kubectl", *real_nodes.BINARIES)
PORT_ATTEMPTS = 3
KILL_SECONDS = 10.0
SWEEP_SECONDS = 0.5  # to find out whether a lock is held


@dataclass(frozen=True, slots=True)
class Fleet:
    """All clusters of a state folder."""

    state: State
    sources: binaries.Sources = field(default_factory=binaries.Sources)
    progress: binaries.Listener = field(default=lambda _: None)
    is_etcd_fast: bool = False

    async def up(self, specs: Sequence[ClusterSpec]) -> list[Cluster]:
        """Bring clusters up concurrently; a failure of one does not stop the others."""
        for wanted in specs:
            spec.check(wanted)
        found = [await self._binaries(wanted) for wanted in specs]
        return await parallel.run(self._up(wanted, paths) for wanted, paths in zip(specs, found, strict=True))

    async def down(self, names: Iterable[str]) -> None:
        """Stop clusters and remove everything of them."""
        await parallel.run(self._down(name) for name in names)

    async def sweep(self) -> None:
        """Without any cluster, remove what a killed command left: etcd, locks, and the state folder."""
        if self.names() or not self.state.root.exists():
            return
        async with self.state.lock():
            if self.names():  # another command has begun to create one
                return
            await Etcd(self.state).remove()
            self.state.remove_locks()
        for lock in (self.state.root / "locks").glob("*"):
            # A held one is that of a command that is creating a cluster.
            with contextlib.suppress(files.Locked):
                async with files.lock(lock, deadline=SWEEP_SECONDS), self.state.lock():
                    self.state.remove_locks(lock.name)

    def names(self) -> list[str]:
        """The names of all clusters with a folder or a process, even if their record cannot be read."""
        folders = {path.name for path in self.state.root.glob("clusters/*")}
        return sorted(folders | {cluster for cluster, _ in process.running(self.state.root) if cluster})

    def clusters(self) -> list[Cluster]:
        """All clusters that have a record."""
        return [Cluster(self.state, record) for record in self.state.records()]

    def cluster(self, name: str) -> Cluster:
        """The cluster of that name."""
        return Cluster(self.state, self.state.get(name))

    async def _binaries(self, wanted: ClusterSpec) -> dict[str, Path]:
        needed = [components.ETCD, "kubectl", *control_plane.wanted(wanted)]
        if wanted.is_networked:
            needed += real_nodes.BINARIES
        sources = dataclasses.replace(self.sources, folder=Path(wanted.binaries)) if wanted.binaries else self.sources
        return await binaries.ensure(needed, sources=sources, progress=self.progress)

    async def _up(self, wanted: ClusterSpec, found: Mapping[str, Path]) -> Cluster:
        async with self.state.cluster_lock(wanted.name):
            try:
                return await self._ensure(wanted, found)
            finally:
                if not self.state.folder(wanted.name).exists():  # refused before anything was created
                    async with self.state.lock():
                        self.state.remove_locks(wanted.name)

    async def _ensure(self, wanted: ClusterSpec, found: Mapping[str, Path]) -> Cluster:
        former = self.state.find(wanted.name)
        if former is not None and former.is_deleting:
            await self._remove(wanted.name)
        for attempts_left in reversed(range(PORT_ATTEMPTS)):
            record = await self._allocate(wanted, found[components.ETCD])
            try:
                await self._bring_up(record, found)
                break
            except PortTaken:
                # Another program took the port after its allocation; the next attempt allocates another.
                if not attempts_left or wanted.port is not None:
                    raise
        return Cluster(self.state, record)

    async def _bring_up(self, record: Record, found: Mapping[str, Path]) -> None:
        """Start whatever is missing of a cluster that has its slot and ports."""
        wanted = record.spec
        site = real_nodes.site(self.state, record) if wanted.is_networked else allocation.loopback_site(record)
        plane = ControlPlane(self.state, record, site, found)
        real = RealNodes(self.state, record, found, image_cache=self.sources.cache.parent / "images")
        if wanted.is_networked:
            await real.ensure_network()
        await plane.up()
        if wanted.is_networked:
            await real.start_relay()
        async with Cluster(self.state, record).client() as client:
            if wanted.is_networked:
                await real.ensure(client)
            await kwok_nodes.ensure(client, wanted)
            await plane.start_kwok(client)
            await readiness.nodes_are_ready(client, kwok_nodes.names(wanted))
            await pods_can_be_created(client)

    async def _allocate(self, wanted: ClusterSpec, etcd: Path) -> Record:
        async with self.state.lock():
            former = self.state.find(wanted.name)
            listening = {component for cluster, component in process.running(self.state.root) if cluster == wanted.name}
            for component, port in (former.ports if former else {}).items():
                if component not in listening:
                    await ports.wait_released(port)
            record = allocation.allocate(
                wanted,
                others=[record for record in self.state.records() if record.spec.name != wanted.name],
                former=former,
                listening=listening,
                seed=str(self.state.root),
            )
            self.state.save(record)
            await Etcd(self.state).ensure(etcd, is_fast=self.is_etcd_fast)
            return record

    async def _down(self, name: str) -> None:
        if name not in self.names():
            self.state.get(name)  # raises UnknownCluster with the known names
        async with self.state.cluster_lock(name):
            await self._remove(name)
            async with self.state.lock():
                self.state.remove_locks(name)

    async def _remove(self, name: str) -> None:
        """Delete a cluster, or what a crash left of it. Its folder goes last, so that the deletion can be repeated."""
        self._mark_deleting(name)
        await real_nodes.remove(self.state, name)
        await _kill(p for (cluster, _), p in process.running(self.state.root).items() if cluster == name)
        async with self.state.lock():
            if self.names() == [name]:
                await Etcd(self.state).remove()
            else:
                await Etcd(self.state).delete_prefix(name)
            shutil.rmtree(self.state.folder(name), ignore_errors=True)

    def _mark_deleting(self, name: str) -> None:
        # An unreadable record or a full disk must not prevent the deletion.
        with contextlib.suppress(HansaError):
            if (record := self.state.find(name)) is not None:
                self.state.save(allocation.mark_deleting(record))


async def _kill(processes: Iterable[process.Process]) -> None:
    """Kill processes at once: their data is deleted next, so a graceful end has no use."""
    killed = list(processes)
    for one in killed:
        one.signal(signal.SIGKILL)
    await asyncio.gather(*(one.ended(KILL_SECONDS) for one in killed))


@contextlib.asynccontextmanager
async def cluster(name: str, *, fleet: Fleet | None = None, **fields: Any) -> AsyncIterator[Cluster]:
    """A cluster that is deleted when the block ends; keyword arguments are fields of ClusterSpec."""
    fleet = fleet or Fleet(open_state())
    try:
        [created] = await fleet.up([ClusterSpec(name, **fields)])
        yield created
    finally:
        if name in fleet.names():
            await fleet.down([name])
