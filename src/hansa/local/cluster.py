"""A local cluster for its users: kubeconfig, client, processes and logs. `fleet` creates and deletes clusters."""

from dataclasses import dataclass
from pathlib import Path

from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.local.control_plane import control_plane
from hansa.local.machines import real_nodes
from hansa.local.state import Record, State
from hansa.programs import components, ports, process
from hansa.programs.process import Process
from hansa.runtime.errors import HansaError


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster of a state folder."""

    state: State
    record: Record

    @property
    def name(self) -> str:
        """The name of the cluster and of its context."""
        return self.record.spec.name

    @property
    def folder(self) -> Path:
        """The folder of the cluster's files."""
        return self.state.folder(self.name)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def server(self) -> str:
        """The API server's URL on this machine's loopback."""
        return f"https://{ports.LOOPBACK}:{self.record.ports[components.APISERVER]}"

    def client(self, user_agent: str = "hansa-local") -> Client:
        """A client with the administrator's permissions; use it with `async with`."""
        return Client(kubeconfig.from_files(self.kubeconfig), user_agent=user_agent)

    def process(self, component: str) -> Process:
        """The running process of a component, or of the shared etcd."""
        owner = "" if component == components.ETCD else self.name
        found = process.running(self.state.root).get((owner, component))
        if found is None:
            raise HansaError(f"{component} of cluster {self.name} is not running")
        return found

    def log(self, component: str) -> Path:
        """The log file of a component."""
        logs = {path.stem: path for path in self.folder.glob("log/*.log")}
        logs |= {f"{path.stem}-{path.parts[-3]}": path for path in self.folder.glob("nodes/*/logs/*.log")}
        logs |= {components.ETCD: self.state.etcd / "etcd.log"}
        if component not in logs:
            raise HansaError(f'cluster {self.name} has no log of "{component}" (known: {", ".join(sorted(logs))})')
        return logs[component]

    def processes(self) -> dict[str, int]:
        """The process ids of the running components."""
        running = process.running(self.state.root)
        return {component: p.pid for (owner, component), p in sorted(running.items()) if owner in ("", self.name)}

    def missing(self) -> list[str]:
        """The components that should run and do not."""
        running = process.running(self.state.root)
        spec = self.record.spec
        needed = [*control_plane.wanted(spec), *real_nodes.components_of(spec)]
        absent = [component for component in needed if (self.name, component) not in running]
        return absent if ("", components.ETCD) in running else [components.ETCD, *absent]
