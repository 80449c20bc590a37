"""A cluster with an etcd of its own, which can be put back to a backup; used by tests of what follows from that."""

import contextlib
import shutil
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from hansa.local import Cluster, ClusterSpec, Fleet, State
from hansa.programs import process
from leftovers import owned_folder


@dataclass
class Restorable:
    """The cluster, and the backup of its etcd."""

    fleet: Fleet
    spec: ClusterSpec
    cluster: Cluster

    @property
    def backup(self) -> Path:
        return self.fleet.state.etcd.with_name("backup")

    async def back_up(self) -> None:
        """Take the backup. The cluster is down meanwhile."""
        await self._stop()
        shutil.copytree(self.fleet.state.etcd, self.backup, ignore=shutil.ignore_patterns("*.sock"))
        await self.fleet.up([self.spec])

    async def restore(self) -> None:
        """Go back to the backup: all that happened since then is forgotten, and resourceVersions start again there."""
        await self._stop()
        shutil.rmtree(self.fleet.state.etcd)
        self.backup.rename(self.fleet.state.etcd)
        await self.fleet.up([self.spec])

    async def _stop(self) -> None:
        for one in process.running(self.fleet.state.root).values():
            one.signal(signal.SIGKILL)
            await one.ended(10)


@contextlib.asynccontextmanager
async def restorable(spec: ClusterSpec) -> AsyncIterator[Restorable]:
    """Such a cluster, for as long as the block lasts."""
    with owned_folder() as folder:
        fleet = Fleet(State(folder / "state"), is_etcd_fast=True)
        [cluster] = await fleet.up([spec])
        yield Restorable(fleet, spec, cluster)
        await fleet.down([spec.name])
