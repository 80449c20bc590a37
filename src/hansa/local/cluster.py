"""A local cluster as its users see it: where its kubeconfig is, what of it runs, how to talk to it."""

from dataclasses import dataclass
from pathlib import Path

from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.local import components, control_plane, ports, process, real_nodes
from hansa.local.process import Process
from hansa.local.state import Record, State
from hansa.runtime.errors import HansaError


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster of a state folder."""

    state: State
    record: Record

    @property
    def name(self) -> str:
        """The cluster's name, which is also its context's."""
        return self.record.spec.name

    @property
    def folder(self) -> Path:
        """Where everything about it lies."""
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
        """A client with the administrator's rights; `async with` opens it."""
        return Client(kubeconfig.from_files(self.kubeconfig), user_agent=user_agent)

    def process(self, component: str) -> Process:
        """The running process of a component; the shared etcd counts as one."""
        owner = "" if component == components.ETCD else self.name
        found = process.running(self.state.root).get((owner, component))
        if found is None:
            raise HansaError(f"{component} of cluster {self.name} does not run")
        return found

    def log(self, component: str) -> Path:
        """The log file of a component."""
        logs = {path.stem: path for path in self.folder.glob("log/*.log")}
        logs |= {f"{path.stem}-{path.parts[-3]}": path for path in self.folder.glob("nodes/*/logs/*.log")}
        logs |= {components.ETCD: self.state.etcd / "etcd.log"}
        if component not in logs:
            raise HansaError(f'cluster {self.name} has no log of "{component}" (there are: {", ".join(sorted(logs))})')
        return logs[component]

    def processes(self) -> dict[str, int]:
        """The process ids of the components that run."""
        running = process.running(self.state.root)
        return {component: p.pid for (owner, component), p in sorted(running.items()) if owner in ("", self.name)}

    def missing(self) -> list[str]:
        """The components that should run and don't."""
        running = process.running(self.state.root)
        spec = self.record.spec
        needed = [*control_plane.wanted(spec), *real_nodes.components_of(spec)]
        absent = [component for component in needed if (self.name, component) not in running]
        return absent if ("", components.ETCD) in running else [components.ETCD, *absent]
