"""One control plane as processes: brought up, kept as its record says, ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from hansa.kube.client import Client
from hansa.local import component, components, concurrently, files, nodes, ports, probe, process
from hansa.local.components import Components, Site
from hansa.local.machines.door import Place
from hansa.local.pki import Pki
from hansa.local.process import Identity, Process
from hansa.local.spec import ClusterSpec
from hansa.local.state import Record, State

HEALTH_PATH = {
    components.APISERVER: "/readyz",
    components.CONTROLLERS: "/healthz",
    components.SCHEDULER: "/healthz",
}


def wanted(spec: ClusterSpec) -> list[str]:
    """The components that a cluster should have."""
    optional = {components.SCHEDULER: spec.scheduler, components.KWOK: spec.nodes > 0}
    return [c for c in components.ALL if optional.get(c, True)]


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The processes of one cluster's control plane; callers hold the cluster's lock."""

    state: State
    record: Record
    site: Site
    binaries: Mapping[str, Path]

    @property
    def folder(self) -> Path:
        """Where it keeps its files."""
        return self.state.folder(self.record.spec.name)

    async def up(self) -> None:
        """Start or repair all but kwok, the API server first: the others give up when they don't find it."""
        self._write_files()
        for name, running in self._running().items():
            if name not in wanted(self.record.spec):
                await running.stop()
        await self._start(components.APISERVER)
        others = set(wanted(self.record.spec)) - {components.APISERVER, components.KWOK}
        await concurrently.run(self._start(name) for name in others)

    async def kwok_up(self, client: Client) -> None:
        """Start kwok if there are nodes for it. A new one need not wait for the leases of the last one to end."""
        if components.KWOK in wanted(self.record.spec):
            if components.KWOK not in self._running():
                await nodes.release(client, nodes.names(self.record.spec))
            await self._start(components.KWOK)

    def _write_files(self) -> None:
        pki = Pki(self.folder / "pki")
        addresses = (ports.LOOPBACK, self.site.address, str(self.site.networks.api_service))
        pki.ensure(self.site.server, addresses=tuple(dict.fromkeys(addresses)), now=datetime.now(UTC))
        local_server = f"https://{ports.LOOPBACK}:{self.record.ports[components.APISERVER]}"
        pki.write_kubeconfig(self.folder / "kubeconfig", local_server, user="admin", name=self.record.spec.name)
        for path, text in self._components().files().items():
            files.write(path, text)

    async def _start(self, name: str) -> None:
        log = self.folder / "log" / f"{name}.log"
        started = await component.ensure(
            Identity(self.state.root, self.record.spec.name, name),
            self._components().argv(name),
            current=self._running().get(name),
            log=log,
            netns=self.site.netns,
        )
        if path := HEALTH_PATH.get(name):
            place = Place(self.site.netns or "", self.site.address, self.site.ports[name])
            await component.serving(started, partial(probe.is_healthy, place, path), log=log)

    def _components(self) -> Components:
        return Components(
            record=self.record,
            folder=self.folder,
            site=self.site,
            etcd_socket=self.state.etcd / "client.sock",
            binaries=self.binaries,
        )

    def _running(self) -> dict[str, Process]:
        found = process.running(self.state.root)
        return {c: found[self.record.spec.name, c] for c in components.ALL if (self.record.spec.name, c) in found}
