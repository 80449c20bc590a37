"""Starts, repairs and stops the processes of one control plane as its record requires. Nodes are left to `machines`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from hansa.kube.client import Client
from hansa.local.control_plane import command_lines
from hansa.local.control_plane.command_lines import CommandLines, Site
from hansa.local.control_plane.pki import Pki
from hansa.local.machines import kwok_nodes
from hansa.local.spec import ClusterSpec
from hansa.local.state import Record, State
from hansa.programs import components, files, parallel, ports, probe, process, starting
from hansa.programs.process import Identity, Process
from hansa.programs.relay import NetnsAddress

HEALTH_PATH = {
    components.APISERVER: "/readyz",
    components.CONTROLLERS: "/healthz",
    components.SCHEDULER: "/healthz",
}


def wanted(spec: ClusterSpec) -> list[str]:
    """The components that a cluster should run."""
    optional = {components.SCHEDULER: spec.scheduler, components.KWOK: spec.nodes > 0}
    return [c for c in command_lines.COMPONENTS if optional.get(c, True)]


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The control plane of one cluster; callers hold the cluster's lock."""

    state: State
    record: Record
    site: Site
    binaries: Mapping[str, Path]

    @property
    def folder(self) -> Path:
        """The folder of the cluster's files."""
        return self.state.folder(self.record.spec.name)

    async def up(self) -> None:
        """Start or repair all components but kwok. The API server comes first: the others exit if it is unreachable."""
        self._write_files()
        for name, running in self._running().items():
            if name not in wanted(self.record.spec):
                await running.stop()
        await self._start(components.APISERVER)
        others = set(wanted(self.record.spec)) - {components.APISERVER, components.KWOK}
        await parallel.run(self._start(name) for name in others)

    async def start_kwok(self, client: Client) -> None:
        """Start kwok if the cluster has kwok nodes. Old leases are deleted, so that it does not wait for them."""
        if components.KWOK in wanted(self.record.spec):
            if components.KWOK not in self._running():
                await kwok_nodes.delete_leases(client, kwok_nodes.names(self.record.spec))
            await self._start(components.KWOK)

    def _write_files(self) -> None:
        pki = Pki(self.folder / "pki")
        addresses = (ports.LOOPBACK, self.site.address, str(self.site.networks.api_service))
        pki.ensure(self.site.server, addresses=tuple(dict.fromkeys(addresses)), now=datetime.now(UTC))
        local_server = f"https://{ports.LOOPBACK}:{self.record.ports[components.APISERVER]}"
        pki.write_kubeconfig(self.folder / "kubeconfig", local_server, user="admin", name=self.record.spec.name)
        for path, text in self._command_lines().files().items():
            files.write(path, text)

    async def _start(self, name: str) -> None:
        log = self.folder / "log" / f"{name}.log"
        started = await starting.ensure(
            Identity(self.state.root, self.record.spec.name, name),
            self._command_lines().argv(name),
            current=self._running().get(name),
            log=log,
            netns=self.site.netns,
        )
        if path := HEALTH_PATH.get(name):
            address = NetnsAddress(self.site.netns or "", self.site.address, self.site.ports[name])
            await starting.wait_until_serving(started, partial(probe.is_healthy, address, path), log=log)

    def _command_lines(self) -> CommandLines:
        return CommandLines(
            record=self.record,
            folder=self.folder,
            site=self.site,
            etcd_socket=self.state.etcd / "client.sock",
            binaries=self.binaries,
        )

    def _running(self) -> dict[str, Process]:
        found = process.running(self.state.root)
        return {
            c: found[self.record.spec.name, c] for c in command_lines.COMPONENTS if (self.record.spec.name, c) in found
        }
