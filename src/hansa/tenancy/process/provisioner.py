"""Runs tenants' control planes as processes of this machine. They outlive the manager, which finds them again.

Whose a process is stands in its environment; what it was given stands in its folder. Both survive every crash.
"""

import asyncio
import contextlib
import logging
import random as randomness
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hansa.kube.client import Client
from hansa.kube.credentials import Credentials, kubeconfig
from hansa.kube.objects import Key
from hansa.local import binaries, component, components, files, ports, probe, process, readiness
from hansa.local.machines.door import Place
from hansa.local.process import Identity, Process
from hansa.model import keys
from hansa.runtime import backoff
from hansa.runtime.errors import HansaError
from hansa.tenancy.api import BadVirtualCluster, VirtualCluster
from hansa.tenancy.pki import ADMIN, Pki
from hansa.tenancy.process import flags
from hansa.tenancy.process import folder as folders
from hansa.tenancy.process.commands import Commands
from hansa.tenancy.process.deaths import Deaths
from hansa.tenancy.process.etcd import Etcd, OwnEtcd, SharedEtcd
from hansa.tenancy.process.folder import Folder, Record
from hansa.tenancy.process.weights import Weights
from hansa.tenancy.provisioning import Endpoint, Gone, Order, Progress, Ready, Wake

log = logging.getLogger(__name__)
PROGRAMS = (components.ETCD, components.APISERVER, components.CONTROLLERS)
LOCK_SECONDS = 600.0
KILL_SECONDS = 10.0
HELP_SECONDS = 30.0
# A program that ends as soon as it started is tried again more and more rarely.
RESTARTS = backoff.Backoff(first=0.1, factor=3.0, most=60.0, jitter=0.2)
STEADY_SECONDS = 60.0  # after which a start counts as a success


@dataclass(frozen=True, slots=True)
class Settings:
    """Where and how control planes run."""

    state: Path
    address: str = ports.LOOPBACK
    is_etcd_shared: bool = False
    is_etcd_fast: bool = False
    versions: Path | None = None  # folder of folders with programs, which ClusterVersions name
    sources: binaries.Sources = field(default_factory=binaries.Sources)


class ProcessProvisioner:
    """The provisioner; `meta` is the id of the cluster whose VirtualClusters it serves."""

    name = "process"

    def __init__(self, settings: Settings, *, meta: str) -> None:
        folders.check_state(settings.state)
        self._settings, self._state, self._meta = settings, settings.state, meta
        self._own = OwnEtcd(settings.state, is_fast=settings.is_etcd_fast)
        self._shared = SharedEtcd(settings.state, is_fast=settings.is_etcd_fast)
        self._deaths, self._weights = Deaths(), Weights()
        self._wake: Wake = lambda *_: None
        self._known: dict[Path, frozenset[str]] = {}
        self._programs_here: Mapping[str, Path] = {}
        self._ends: dict[tuple[str, str], list[float]] = {}
        self._random = randomness.Random()  # noqa: S311 - spreads load, guards nothing

    async def run(self, wake: Wake) -> None:
        """Tell when a program ends."""
        self._wake = wake
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._deaths.close()

    async def locate(self, order: Order) -> Endpoint:
        """The address of this machine, and a port that stays the tenant's."""
        server = self._server(await self._allot(order.vc))
        return Endpoint(server, server, names=(self._settings.address,))

    async def ensure(self, order: Order, pki: Pki) -> Ready:
        """Start or adopt etcd, API server and controller-manager, each when the one before it serves."""
        tenant = folders.folder(self._state, order.vc)
        async with self._locked(tenant.id):
            record = tenant.record()
            if record is None:
                raise HansaError(f"{tenant.path} was removed while its control plane was made; it is made again")
            tenant.write_keys(pki, self._server(record))
            programs = await self._programs(order)
            running = process.running(self._state)
            etcd = await self._etcd(record).ensure(tenant, programs[components.ETCD], running)
            commands = Commands(
                order=order,
                folder=tenant,
                store=etcd.store,
                address=self._settings.address,
                port=record.port,
                binaries=programs,
                known={name: await self._flags(programs[name]) for name in PROGRAMS[1:]},
            )
            serving = self._serve(tenant, commands, running, pki)
            # An API server that waits for an etcd that is gone would wait for ever.
            started = [etcd.process, *await component.outlives(etcd.process, serving, log=etcd.log)]
        self._weights.serve(tenant.id, [one for one in started if one.identity.cluster == tenant.id])
        for one in started:
            self._deaths.watch(one, partial(self._died, order.vc.key, one), whom=order.vc.key)
        return Ready()

    async def remove(self, vc: VirtualCluster) -> Gone | Progress:
        """End the processes and remove all that they kept. The folder goes last: until then it can be done again."""
        tenant = folders.folder(self._state, vc)
        async with self._locked(tenant.id):
            running = process.running(self._state)
            doomed = [one for (owner, _), one in running.items() if owner == tenant.id]
            for one in doomed:
                one.signal(signal.SIGKILL)
            for one in doomed:
                if not await one.ended(KILL_SECONDS):
                    return Progress(f"{one.identity.component} (process {one.pid}) does not end", after=KILL_SECONDS)
            if (record := tenant.record()) is not None:
                await self._etcd(record).forget(tenant, running)
            shutil.rmtree(tenant.path, ignore_errors=True)
            await self._leave_nothing(tenant.id)
            self._weights.leave(tenant.id)
        return Gone()

    def remembered(self) -> list[VirtualCluster]:
        """The VirtualClusters of this meta cluster that something is left of."""
        records = [record for one in folders.folders(self._state) if (record := one.record())]
        return [folders.owner(record) for record in records if record.meta == self._meta]

    async def _serve(
        self, tenant: Folder, commands: Commands, running: Mapping[tuple[str, str], Process], pki: Pki
    ) -> list[Process]:
        apiserver = await self._start(tenant, components.APISERVER, commands, running)
        place = Place("", self._settings.address, commands.port)
        log_of = tenant.log(components.APISERVER)
        try:
            await component.serving(apiserver, partial(probe.is_healthy, place, "/readyz"), log=log_of)
        except component.FailedToStart:
            if running.get((tenant.id, components.APISERVER)) == apiserver:
                await apiserver.stop()  # it had its time before: the next try begins with a new one
            raise
        controllers = await self._start(tenant, components.CONTROLLERS, commands, running)
        if not commands.order.vc.is_running or running.get((tenant.id, components.CONTROLLERS)) != controllers:
            credentials = Credentials(
                lambda: kubeconfig.parse(pki.kubeconfigs[ADMIN], origin="the tenant's kubeconfig")
            )
            async with Client(credentials, user_agent="hansa-vc-manager") as client:
                waiting = readiness.pods_can_be_created(client)
                await component.outlives(controllers, waiting, log=tenant.log(components.CONTROLLERS))
        return [apiserver, controllers]

    async def _start(
        self, tenant: Folder, name: str, commands: Commands, running: Mapping[tuple[str, str], Process]
    ) -> Process:
        current = running.get((tenant.id, name))
        started = await component.ensure(
            Identity(self._state, tenant.id, name),
            commands.argv(name),
            current=current,
            log=tenant.log(name),
            manner=commands.manner(name),
        )
        if started != current:
            log.info("a program was started", extra={"tenant": tenant.id, "program": name})
        return started

    def _died(self, key: Key, ended: Process) -> None:
        """A program ended: have it started again, more and more rarely if it ends at once."""
        now, which = time.monotonic(), (ended.identity.cluster, ended.identity.component)
        recent = [moment for moment in self._ends.get(which, ()) if now - moment < STEADY_SECONDS] + [now]
        self._ends[which] = recent
        self._wake(key, RESTARTS.delay(len(recent), self._random))

    async def _allot(self, vc: VirtualCluster) -> Record:
        tenant = folders.folder(self._state, vc)
        async with files.lock(self._state / "lock", deadline=LOCK_SECONDS):
            found = tenant.record()
            if found is not None:
                is_listening = (tenant.id, components.APISERVER) in process.running(self._state)
                if is_listening or ports.is_free(found.port):
                    return found
                await ports.released(found.port)
                if ports.is_free(found.port):
                    return found
            others = [record.port for one in folders.folders(self._state) if (record := one.record())]
            [port] = ports.choose(1, taken=others, seed=str(self._state))
            is_shared = found.is_etcd_shared if found else self._settings.is_etcd_shared
            record = Record(self._meta, vc.namespace, vc.name, vc.uid, vc.root, port, is_shared)
            tenant.save(record)
            return record

    async def _programs(self, order: Order) -> Mapping[str, Path]:
        named = order.version.object.annotations.get(keys.VERSION_BINARIES, "")
        if not named:
            if not self._programs_here:
                self._programs_here = await binaries.ensure(PROGRAMS, sources=self._settings.sources)
            return self._programs_here
        if self._settings.versions is None or named in (".", "..") or "/" in named:
            raise BadVirtualCluster(
                f'ClusterVersion {order.version.name} asks for the programs in "{named}", which is not the name of a'
                " folder below the manager's --binaries"
            )
        found = {name: self._settings.versions / named / name for name in PROGRAMS}
        if missing := [str(path) for path in found.values() if not path.is_file()]:
            raise BadVirtualCluster(
                f"ClusterVersion {order.version.name} asks for programs that are not there: {missing[0]}"
            )
        return found

    async def _flags(self, program: Path) -> frozenset[str]:
        if program not in self._known:
            asked = await asyncio.create_subprocess_exec(
                str(program), "--help", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
            )
            async with asyncio.timeout(HELP_SECONDS):
                text, _ = await asked.communicate()
            self._known[program] = flags.known(text.decode(errors="replace"))
        return self._known[program]

    def _etcd(self, record: Record) -> Etcd:
        """The etcd that a tenant began with: another setting is for new tenants, whose objects are nowhere yet."""
        return self._shared if record.is_etcd_shared else self._own

    def _server(self, record: Record) -> str:
        host = f"[{self._settings.address}]" if ":" in self._settings.address else self._settings.address
        return f"https://{host}:{record.port}"

    def _locked(self, tenant: str) -> AbstractAsyncContextManager[None]:
        return files.lock(self._state / "locks" / tenant, deadline=LOCK_SECONDS)

    async def _leave_nothing(self, tenant: str) -> None:
        """Remove the lock that we hold, and the state folder with its shared etcd after the last tenant."""
        (self._state / "locks" / tenant).unlink(missing_ok=True)
        async with files.lock(self._state / "lock", deadline=LOCK_SECONDS):
            if folders.folders(self._state):
                return
            await self._shared.end(process.running(self._state))
            (self._state / "locks" / "etcd").unlink(missing_ok=True)
            for path in (self._state / "tenants", self._state / "locks"):
                with contextlib.suppress(OSError):  # it was gone, or somebody is about to use it
                    path.rmdir()
            with contextlib.suppress(OSError):
                (self._state / "lock").unlink()
                self._state.rmdir()
