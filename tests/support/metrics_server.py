"""A real metrics-server, as a process beside a cluster whose API server it extends; used by e2e tests.

It has the rights of its own manifests and no others, and verifies the kubelets by the cluster's CA.
"""

import asyncio
import base64
import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from eventually import eventually
from hansa.kube import certificates
from hansa.kube.certificates import Subject
from hansa.programs import ports
from league import Member, condition
from programs import inside

# The API server dials the name of a service of type ExternalName, if it does not choose among endpoints, which may not
# be on loopback.
FLAGS: Final[dict[str, tuple[str, ...]]] = {"kube-apiserver": ("--enable-aggregator-routing=false",)}
NAME, NAMESPACE, API = "metrics-server", "kube-system", "v1beta1.metrics.k8s.io"
RESOLUTION = 10  # seconds between two reads of a kubelet; the shortest that it accepts
RBAC = "rbac.authorization.k8s.io"
READER = "extension-apiserver-authentication-reader"  # a Role of every cluster


@dataclass(frozen=True)
class MetricsServer:
    """A metrics-server of one cluster, in the network of its control plane, and the folder of its files."""

    binary: Path
    cluster: Member
    folder: Path
    netns: str = ""  # of the control plane, if it has one of its own
    server: str = ""  # the API server's URL there

    @property
    def log(self) -> Path:
        return self.folder / f"{NAME}.log"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run it, as a part of the cluster's API, for as long as the block lasts; its log is printed if that fails."""
        [port] = ports.choose(1, taken=(), seed=str(self.folder))
        await self.cluster.kubectl.apply(*_rights(), *_api(port, self._certify()))
        process = await self._start(port)
        try:
            await eventually(self._is_available, within=90)
            yield
        except BaseException:
            print(f"--- {NAME}\n{self.log.read_text()[-20000:]}", file=sys.stderr)  # noqa: T201
            raise
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            await self.cluster.kubectl("delete", "apiservice", API)

    def _certify(self) -> bytes:
        """Create a CA and the serving certificate; the CA's certificate."""
        now = datetime.now(UTC)
        ca = certificates.authority(NAME, now)
        pair = certificates.issue(ca, Subject(NAME, names=(f"{NAME}.{NAMESPACE}.svc",)), now)
        (self.folder / "tls.crt").write_bytes(pair.certificate)
        (self.folder / "tls.key").write_bytes(pair.key)
        return ca.certificate

    async def _start(self, port: int) -> asyncio.subprocess.Process:
        config = await self._kubeconfig()
        flags = (
            *(f"--{use}kubeconfig={config}" for use in ("", "authentication-", "authorization-")),
            f"--bind-address={ports.LOOPBACK}",
            f"--secure-port={port}",
            f"--tls-cert-file={self.folder / 'tls.crt'}",
            f"--tls-private-key-file={self.folder / 'tls.key'}",
            "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
            "--kubelet-use-node-status-port",
            f"--metric-resolution={RESOLUTION}s",
            f"--kubelet-request-timeout={RESOLUTION // 2}s",
        )
        argv = (*inside(self.netns), str(self.binary), *flags)
        with self.log.open("ab") as out:
            return await asyncio.create_subprocess_exec(*argv, stdout=out, stderr=out)

    async def _kubeconfig(self) -> Path:
        """With a token of its service account."""
        token = await self.cluster.kubectl("create", "token", NAME, "-n", NAMESPACE)
        config = yaml.safe_load(self.cluster.with_token(token))
        if self.server:
            config["clusters"][0]["cluster"]["server"] = self.server
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    async def _is_available(self) -> bool:
        found = condition(await self.cluster.kubectl.get("apiservice", API), "Available")
        assert found["status"] == "True", found
        return True


def _rights() -> list[dict[str, Any]]:
    """Those that its manifests have."""
    rules = [
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]},
    ]
    return [
        _object("v1", "ServiceAccount", NAME, namespace=NAMESPACE),
        _object(f"{RBAC}/v1", "ClusterRole", f"system:{NAME}", rules=rules),
        _binding(f"system:{NAME}", "ClusterRole", f"system:{NAME}"),
        _binding(f"{NAME}:system:auth-delegator", "ClusterRole", "system:auth-delegator"),
        _binding(f"{NAME}-auth-reader", "Role", READER, namespace=NAMESPACE),
    ]


def _binding(name: str, kind: str, role: str, *, namespace: str = "") -> dict[str, Any]:
    return _object(
        f"{RBAC}/v1",
        "RoleBinding" if namespace else "ClusterRoleBinding",
        name,
        namespace=namespace,
        roleRef={"apiGroup": RBAC, "kind": kind, "name": role},
        subjects=[{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    )


def _api(port: int, ca: bytes) -> list[dict[str, Any]]:
    """The API, and the service that leads to the process on loopback."""
    spec = {
        "group": "metrics.k8s.io",
        "version": "v1beta1",
        "service": {"name": NAME, "namespace": NAMESPACE, "port": port},
        "caBundle": base64.b64encode(ca).decode(),
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    service = {"type": "ExternalName", "externalName": ports.LOOPBACK}
    return [
        _object("v1", "Service", NAME, namespace=NAMESPACE, spec=service),
        _object("apiregistration.k8s.io/v1", "APIService", API, spec=spec),
    ]


def _object(version: str, kind: str, name: str, *, namespace: str = "", **fields: Any) -> dict[str, Any]:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **where}, **fields}
