"""An upper cluster, lower ones behind virtual nodes, kubectl for each, and `hansa virtual-node`; used by e2e tests."""

import asyncio
import contextlib
import json
import secrets
import signal
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import programs
from eventually import eventually
from hansa.local import Cluster
from programs import Hansa, Kubectl, Refused

AGENT = "hansa-virtual-node"
PATIENCE = 90.0  # seconds: a busy machine takes long for everything


@dataclass
class Member:
    """One cluster of the league."""

    cluster: Cluster
    kubectl: Kubectl

    @property
    def name(self) -> str:
        return self.cluster.name

    async def find(self, *what: str, namespace: str = "") -> Any:
        """An object, or None."""
        try:
            return await self.kubectl.get(*(["-n", namespace] if namespace else []), *what)
        except Refused as error:
            if "(NotFound)" in str(error):
                return None
            raise

    async def all(self, kind: str, *, namespace: str = "", labels: str = "") -> list[Any]:
        """Objects of a kind, in one namespace or in all."""
        where = ["-n", namespace] if namespace else ["-A"]
        found = await self.kubectl.get(*where, kind, *(["-l", labels] if labels else []))
        return list(found["items"])

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze its API server for as long as the block lasts."""
        server = self.cluster.process("kube-apiserver")
        server.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            server.signal(signal.SIGCONT)

    def requests(self, *, agent: str = AGENT) -> list[dict[str, Any]]:
        """The entries of the audit log for one user agent."""
        return self.audit(f'"userAgent":"{agent}')

    def audit(self, word: str = "") -> list[dict[str, Any]]:
        """The entries of the audit log, or those that contain a string."""
        *lines, _ = (self.cluster.folder / "log" / "audit.log").read_text().split("\n")  # the last may be half there
        events = [json.loads(line) for line in lines if word in line]
        return [event for event in events if event["stage"] == "ResponseComplete"]

    def with_token(self, token: str) -> str:
        """A kubeconfig with this token as the only credential."""
        config = yaml.safe_load(self.cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token.strip()}
        return yaml.safe_dump(config)


@dataclass
class League:
    """The clusters, and the program that joins them."""

    upper: Member
    lowers: dict[str, Member]
    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)
    port: int = 0
    program: Hansa | None = None

    @property
    def log(self) -> Path:
        return self.folder / "virtual-node.log"

    def config(self) -> Path:
        """The program's configuration file: for each lower cluster a node `vn-<name>`."""
        lowers = [
            {
                "name": name,
                "node": f"vn-{name}",
                "kubeconfig": str(member.cluster.kubeconfig),
                "labels": {"clusterID": name},
            }
            for name, member in self.lowers.items()
        ]
        described = {"upper": {"kubeconfig": str(self.upper.cluster.kubeconfig)}, "lowers": lowers, **self.settings}
        path = self.folder / "league.yaml"
        path.write_text(yaml.safe_dump(described))
        return path

    async def start(self, *flags: str) -> None:
        """Start or restart the program."""
        where = ["--metrics-addr", f"127.0.0.1:{self.port}"] if self.port else []
        self.program = await programs.start(
            "virtual-node", "--config", str(self.config()), *where, *flags, log=self.log
        )

    async def page(self, path: str) -> str:
        """A page of the program's HTTP server; an AssertionError while it does not respond."""
        try:
            answer = await asyncio.to_thread(urllib.request.urlopen, f"http://127.0.0.1:{self.port}{path}", timeout=5)
        except OSError as error:
            raise AssertionError(f"{path}: {error}") from None
        return str(answer.read().decode())

    async def ready(self) -> None:
        """Wait until the program is ready, and all virtual nodes are."""
        await eventually(self._nodes_are_ready, within=PATIENCE)

    async def _nodes_are_ready(self) -> bool:
        if self.program is None or self.program.has_ended:
            raise Refused(f"virtual-node does not run: {self.log.read_text()[-4000:]}")
        if self.port:
            assert await self.page("/readyz") == "ok"
        for name in self.lowers:
            node = await self.upper.find("node", f"vn-{name}")
            assert node is not None, f"there is no node vn-{name}"
            assert condition(node, "Ready")["status"] == "True", condition(node, "Ready")
        return True

    async def stop(self) -> None:
        """End the program with SIGTERM."""
        program, self.program = self.program, None
        if program is not None:
            code = await program.stop()
            assert code == 0, f"virtual-node ended with {code}: {self.log.read_text()[-4000:]}"

    async def kill(self) -> None:
        """End the program with SIGKILL."""
        if self.program is not None:
            self.program.kill()
            await self.program.ended()
            self.program = None

    async def phase(self, namespace: str, pod: str, phase: str = "Running", *, within: float = PATIENCE) -> Any:
        """Wait until a pod above is in a phase; the pod."""

        async def look() -> Any:
            found = await self.upper.find("pod", pod, namespace=namespace)
            assert found is not None, f"there is no pod {pod} above"
            assert found["status"].get("phase") == phase, found["status"]
            return found

        return await eventually(look, within=within)

    async def gone(self, member: Member, *what: str, namespace: str = "", within: float = PATIENCE) -> None:
        """Wait until an object is deleted."""

        async def look() -> bool:
            assert await member.find(*what, namespace=namespace) is None, f"{' '.join(what)} is still in {member.name}"
            return True

        await eventually(look, within=within)

    async def there(self, member: Member, *what: str, namespace: str = "", within: float = PATIENCE) -> Any:
        """Wait until an object exists."""

        async def look() -> Any:
            found = await member.find(*what, namespace=namespace)
            assert found is not None, f"{' '.join(what)} is not in {member.name}"
            return found

        return await eventually(look, within=within)


def member(cluster: Cluster, kubectl: Path) -> Member:
    """A cluster with its kubectl."""
    return Member(cluster, Kubectl(kubectl, cluster.kubeconfig))


def condition(obj: Any, kind: str) -> Any:
    """One condition of a status; empty if there is none."""
    found = [one for one in obj["status"].get("conditions") or [] if one["type"] == kind]
    return found[0] if found else {"status": ""}


def pod(name: str, *, on: str = "", metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod that runs on virtual nodes; `on` is the lower cluster where it must run."""
    where = {"nodeSelector": {"clusterID": on}} if on else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"containers": [container()], "tolerations": [TOLERATION], **where, **spec},
    }


def container(name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "example.com/app:1", **more}


def deployment(name: str, replicas: int, *, on: str = "", **spec: Any) -> dict[str, Any]:
    """A Deployment of such pods."""
    labels = {"app": name}
    template = pod(name, on=on, **spec)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def fresh_name(prefix: str = "t") -> str:
    return f"{prefix}-{secrets.token_hex(4)}"


def named(objects: Iterable[Any]) -> set[str]:
    return {one["metadata"]["name"] for one in objects}


TOLERATION = {"key": "virtual-kubelet.io/provider", "operator": "Exists"}
