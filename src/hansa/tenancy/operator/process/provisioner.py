"""The provisioner `process`: runs tenants' control planes as processes of this machine.

They outlive the manager, which adopts them after a restart: a process's identity is in its environment
(docs/decisions/0001), its port and etcd are in the tenant's folder. Command lines are left to `commands`.
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

import msgspec

from hansa.kube import readiness
from hansa.kube.objects import NamespacedName
from hansa.model import keys
from hansa.programs import binaries, components, files, ports, probe, process, relay, starting
from hansa.programs.process import Identity, Process
from hansa.runtime import backoff
from hansa.runtime.errors import HansaError
from hansa.tenancy.api import BadVirtualCluster, VirtualCluster
from hansa.tenancy.operator import tenant_client
from hansa.tenancy.operator.pki import Pki
from hansa.tenancy.operator.process import flags
from hansa.tenancy.operator.process import folder as folders
from hansa.tenancy.operator.process.commands import Commands
from hansa.tenancy.operator.process.etcd import Etcd, OwnEtcd, SharedEtcd
from hansa.tenancy.operator.process.exits import ProcessExits
from hansa.tenancy.operator.process.folder import Folder, Origin, Record
from hansa.tenancy.operator.provisioning import DesiredControlPlane, Endpoint, Progress, Ready, Removed, Requeue

log = logging.getLogger(__name__)
PROGRAMS = (components.ETCD, components.APISERVER, components.CONTROLLERS)
LOCK_SECONDS = 600.0
KILL_SECONDS = 10.0
HELP_SECONDS = 30.0
# Restarts of a program that keeps exiting.
RESTARTS = backoff.Backoff(first=0.1, factor=3.0, most=60.0, jitter=0.2)
STABLE_SECONDS = 60.0  # exits that are older do not count for the backoff


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """The settings of the process provisioner; each is a flag of `hansa vc-manager`."""

    state: Path
    address: str = ports.LOOPBACK
    is_etcd_shared: bool = False
    is_etcd_fast: bool = False
    nice: int = 0  # niceness of new processes, 0 to 19
    vn_agent_ca: Path | None = None  # the CA of vn-agents, which API servers verify
    versions: Path | None = None  # --binaries: a folder with a folder of binaries for each version
    sources: binaries.Sources = field(default_factory=binaries.Sources)


class ProcessProvisioner:
    """The provisioner; `meta` is the uid of the meta cluster's namespace kube-system."""

    name = "process"

    def __init__(self, settings: ProcessSettings, *, meta: str, origin: Origin | None = None) -> None:
        folders.check_state(settings.state)
        self._settings, self._state, self._meta = settings, settings.state, meta
        self._origin = origin or Origin()
        self._own = OwnEtcd(settings.state, is_fast=settings.is_etcd_fast, nice=settings.nice)
        self._shared = SharedEtcd(settings.state, is_fast=settings.is_etcd_fast, nice=settings.nice)
        self._exits = ProcessExits()
        self._requeue: Requeue = lambda *_: None
        self._known: dict[Path, frozenset[str]] = {}
        self._default_binaries: Mapping[str, Path] = {}
        self._ends: dict[tuple[str, str], list[float]] = {}
        self._random = randomness.Random()  # noqa: S311 - spreads load, guards nothing

    async def run(self, requeue: Requeue) -> None:
        """Requeue a VirtualCluster when one of its processes exits."""
        self._requeue = requeue
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._exits.close()

    async def locate(self, desired: DesiredControlPlane) -> Endpoint:
        """Allocate a port of this machine, which the tenant keeps."""
        server = self._server(await self._allot(desired.vc))
        return Endpoint(server, server, names=(self._settings.address,))

    async def ensure(self, desired: DesiredControlPlane, pki: Pki) -> Ready:
        """Start or adopt etcd, kube-apiserver and kube-controller-manager, each when the one before it serves."""
        tenant = folders.folder(self._state, desired.vc)
        async with self._locked(tenant.id):
            record = tenant.record()
            if record is None:
                raise HansaError(f"{tenant.path} was removed while its control plane was started; retrying")
            tenant.write_keys(pki, self._server(record))
            programs = await self._programs(desired)
            running = process.running(self._state)
            etcd = await self._etcd(record).ensure(tenant, programs[components.ETCD], running)
            commands = Commands(
                desired=desired,
                folder=tenant,
                store=etcd.store,
                address=self._settings.address,
                port=record.port,
                binaries=programs,
                known={name: await self._flags(programs[name]) for name in PROGRAMS[1:]},
                nice=self._settings.nice,
                vn_agent_ca=self._settings.vn_agent_ca,
            )
            serving = self._serve(tenant, commands, running, pki)
            # An API server waits forever for an etcd that exited.
            started = [etcd.process, *await starting.while_running(etcd.process, serving, log=etcd.log)]
        for one in started:
            self._exits.watch(one, partial(self._restart, desired.vc.key, one), key=desired.vc.key)
        return Ready()

    async def remove(self, vc: VirtualCluster) -> Removed | Progress:
        """Kill the processes and remove their data. The folder is removed last, so that a retry finds everything."""
        return await self.remove_folder(folders.folder(self._state, vc))

    async def remove_folder(self, tenant: Folder) -> Removed | Progress:
        """The same for a folder, also if its record cannot be read."""
        async with self._locked(tenant.id):
            running = process.running(self._state)
            processes = [one for (owner, _), one in running.items() if owner == tenant.id]
            for one in processes:
                one.signal(signal.SIGKILL)
            for one in processes:
                if not await one.ended(KILL_SECONDS):
                    return Progress(
                        f"waiting for {one.identity.component} (pid {one.pid}) to exit after SIGKILL",
                        after=KILL_SECONDS,
                    )
            if (record := tenant.record()) is not None:
                await self._etcd(record).remove(tenant, running)
            shutil.rmtree(tenant.path, ignore_errors=True)
            await self._remove_state(tenant.id)
        return Removed()

    def recorded(self) -> list[VirtualCluster]:
        """The VirtualClusters of this meta cluster that have a folder."""
        records = [record for one in folders.folders(self._state) if (record := one.record())]
        return [folders.owner(record) for record in records if record.meta == self._meta]

    async def _serve(
        self, tenant: Folder, commands: Commands, running: Mapping[tuple[str, str], Process], pki: Pki
    ) -> list[Process]:
        apiserver = await self._start(tenant, components.APISERVER, commands, running)
        place = relay.NetnsAddress("", self._settings.address, commands.port)
        log_of = tenant.log(components.APISERVER)
        try:
            await starting.wait_until_serving(apiserver, partial(probe.is_healthy, place, "/readyz"), log=log_of)
        except starting.FailedToStart:
            if running.get((tenant.id, components.APISERVER)) == apiserver:
                await apiserver.stop()  # an adopted one that never became ready: the retry starts a new one
            raise
        controllers = await self._start(tenant, components.CONTROLLERS, commands, running)
        if not commands.desired.vc.is_running or running.get((tenant.id, components.CONTROLLERS)) != controllers:
            async with tenant_client.connect(pki) as client:
                waiting = readiness.pods_can_be_created(client)
                await starting.while_running(controllers, waiting, log=tenant.log(components.CONTROLLERS))
        return [apiserver, controllers]

    async def _start(
        self, tenant: Folder, name: str, commands: Commands, running: Mapping[tuple[str, str], Process]
    ) -> Process:
        current = running.get((tenant.id, name))
        started = await starting.ensure(
            Identity(self._state, tenant.id, name),
            commands.argv(name),
            current=current,
            log=tenant.log(name),
            options=commands.options(name),
        )
        if started != current:
            log.info("component started", extra={"tenant": tenant.id, "component": name, "pid": started.pid})
        return started

    def _restart(self, key: NamespacedName, ended: Process) -> None:
        """Requeue the VirtualCluster of a process that exited, with backoff if it exits repeatedly."""
        now, which = time.monotonic(), (ended.identity.cluster, ended.identity.component)
        recent = [moment for moment in self._ends.get(which, ()) if now - moment < STABLE_SECONDS] + [now]
        self._ends[which] = recent
        self._requeue(key, RESTARTS.delay(len(recent), self._random))

    async def _allot(self, vc: VirtualCluster) -> Record:
        tenant = folders.folder(self._state, vc)
        async with files.lock(self._state / "lock", deadline=LOCK_SECONDS):
            found = tenant.record()
            if found is not None:
                is_listening = (tenant.id, components.APISERVER) in process.running(self._state)
                if is_listening or ports.is_free(found.port):
                    return self._found_again(tenant, found)
                await ports.wait_released(found.port)
                if ports.is_free(found.port):
                    return self._found_again(tenant, found)
            others = [record.port for one in folders.folders(self._state) if (record := one.record())]
            [port] = ports.choose(1, taken=others, seed=str(self._state))
            is_shared = found.is_etcd_shared if found else self._settings.is_etcd_shared
            record = Record(self._meta, vc.namespace, vc.name, vc.uid, vc.root, port, is_shared, self._origin)
            tenant.save(record)
            return record

    def _found_again(self, tenant: Folder, record: Record) -> Record:
        """The record with the present place of the meta cluster."""
        if record.origin == self._origin or not self._origin.server:
            return record
        moved = msgspec.structs.replace(record, origin=self._origin)
        tenant.save(moved)
        return moved

    async def _programs(self, desired: DesiredControlPlane) -> Mapping[str, Path]:
        named = desired.version.object.annotations.get(keys.VERSION_BINARIES, "")
        if not named:
            if not self._default_binaries:
                self._default_binaries = await binaries.ensure(PROGRAMS, sources=self._settings.sources)
            return self._default_binaries
        origin = f'annotation {keys.VERSION_BINARIES}: "{named}" of ClusterVersion {desired.version.name}'
        if self._settings.versions is None or named in (".", "..") or "/" in named:
            raise BadVirtualCluster(
                f"{origin} is not a folder below --binaries of vc-manager; correct the annotation or the flag"
            )
        found = {name: self._settings.versions / named / name for name in PROGRAMS}
        if missing := [str(path) for path in found.values() if not path.is_file()]:
            raise BadVirtualCluster(f"{origin}: {missing[0]} not found; add the binary or correct the annotation")
        return found

    async def _flags(self, program: Path) -> frozenset[str]:
        if program not in self._known:
            running = await asyncio.create_subprocess_exec(
                str(program), "--help", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
            )
            async with asyncio.timeout(HELP_SECONDS):
                text, _ = await running.communicate()
            self._known[program] = flags.known(text.decode(errors="replace"))
        return self._known[program]

    def _etcd(self, record: Record) -> Etcd:
        """The kind of etcd that the tenant was created with; --etcd applies to new tenants only."""
        return self._shared if record.is_etcd_shared else self._own

    def _server(self, record: Record) -> str:
        host = f"[{self._settings.address}]" if ":" in self._settings.address else self._settings.address
        return f"https://{host}:{record.port}"

    def _locked(self, tenant: str) -> AbstractAsyncContextManager[None]:
        return files.lock(self._state / "locks" / tenant, deadline=LOCK_SECONDS)

    async def _remove_state(self, tenant: str) -> None:
        """Remove the tenant's lock and, after the last tenant, the shared etcd and the state folder."""
        (self._state / "locks" / tenant).unlink(missing_ok=True)
        async with files.lock(self._state / "lock", deadline=LOCK_SECONDS):
            if folders.folders(self._state):
                return
            await self._shared.stop(process.running(self._state))
            (self._state / "locks" / "etcd").unlink(missing_ok=True)
            for path in (self._state / "tenants", self._state / "locks"):
                with contextlib.suppress(OSError):  # removed already, or in use by a new tenant
                    path.rmdir()
            with contextlib.suppress(OSError):
                (self._state / "lock").unlink()
                self._state.rmdir()
