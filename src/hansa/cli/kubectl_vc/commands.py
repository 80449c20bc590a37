"""The commands of `kubectl vc` for VirtualClusters. Parsing flags is left to `main`."""

import asyncio
import base64
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hansa.cli.kubectl_vc import kubeconfig, waiting
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.runtime.errors import HansaError
from hansa.tenancy import api
from hansa.tenancy.syncing import credentials
from hansa.tenancy.syncing.credentials import EncodedKubeconfig, TenantCredentials

SERVICE_TYPES = ("NodePort", "LoadBalancer", "ClusterIP")


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands; `deadline` is the time limit of waits in seconds. Progress is printed to standard error."""

    client: Client
    deadline: float

    async def create(self, wanted: Object, output: Path) -> None:
        """Create a VirtualCluster unless it exists, wait until it runs, and write its kubeconfig."""
        if not os.access(output.parent, os.W_OK):
            raise HansaError(f"cannot write the kubeconfig to {output}: {output.parent} is not a writable folder")
        await self._check_version(wanted)
        try:
            await self.client.create(api.VIRTUAL_CLUSTERS, wanted)
            report(f"VirtualCluster {wanted.key} created")
        except errors.AlreadyExists:
            await self._check_same(wanted)
            report(f"VirtualCluster {wanted.key} exists already")
        try:
            vc = await self._waiter(wanted.key).running()
        except asyncio.CancelledError:
            report(f"VirtualCluster {wanted.key} is still being created; run the same command again to wait for it")
            raise
        report(f"VirtualCluster {wanted.key} is running")
        await self._write(vc, output)

    async def kubeconfig(self, key: NamespacedName, output: Path | None) -> None:
        """Print a tenant's kubeconfig, or write it to a file."""
        vc = await self._get_running(key)
        if output is None:
            print(_dump(await self._config(vc)), end="")
        else:
            await self._write(vc, output)

    async def list(self, namespace: str) -> list[api.VirtualCluster]:
        """The VirtualClusters of a namespace, or of all namespaces."""
        pages = self.client.pages(api.VIRTUAL_CLUSTERS, namespace=namespace)
        return [api.virtual_cluster(obj) async for page in pages for obj in page.items]

    async def get(self, key: NamespacedName) -> api.VirtualCluster:
        """One VirtualCluster."""
        return api.virtual_cluster(await self.client.get(api.VIRTUAL_CLUSTERS, key.name, namespace=key.namespace))

    async def execute(self, key: NamespacedName, command: Sequence[str], *, folder: Path) -> int:
        """Run a command, or a shell, with a tenant's KUBECONFIG. The file is removed when it ends."""
        vc = await self._get_running(key)
        with _temporary(_dump(await self._config(vc)), folder=folder, key=vc.root) as path:
            env = {**os.environ, "KUBECONFIG": str(path), "PS1": f"[{key}] \\w \\$ "}
            return await _run(command or [os.environ.get("SHELL") or "/bin/sh"], env)

    async def delete(self, key: NamespacedName, *, waits: bool) -> None:
        """Delete a VirtualCluster, and wait until its control plane is removed."""
        vc = await self.get(key)
        await self.client.delete(api.VIRTUAL_CLUSTERS, key.name, namespace=key.namespace, uid=vc.uid)
        if waits:
            await self._waiter(key).deleted(vc.uid)
        report(f"VirtualCluster {key} {'deleted' if waits else 'is being deleted'}")

    async def upgrade(self, key: NamespacedName, version: str) -> None:
        """Upgrade a control plane to another ClusterVersion, or to the current state of its own one."""
        patch: dict[str, Any] = {"metadata": {"labels": {keys.READY_FOR_UPGRADE: "true"}}}
        if version:
            await self._version(version)
            patch["spec"] = {"clusterVersionName": version}
        await self.client.patch(api.VIRTUAL_CLUSTERS, key.name, patch, namespace=key.namespace)
        vc = await self._waiter(key).running()
        report(f"VirtualCluster {key} runs ClusterVersion {vc.spec.cluster_version_name}")

    async def _write(self, vc: api.VirtualCluster, output: Path) -> None:
        config = await self._config(vc)
        _write(output, _dump(config))
        report(f"{output} written, for server {kubeconfig.server_of(config)}")

    async def tenant(self, key: NamespacedName) -> tuple[api.VirtualCluster, Client]:
        """A running VirtualCluster, and a client of its control plane with an administrator's rights."""
        vc = await self._get_running(key)
        encoded = base64.b64encode(_dump(await self._config(vc)).encode()).decode()
        login = TenantCredentials(EncodedKubeconfig(encoded, f"the kubeconfig of VirtualCluster {key}"))
        return vc, Client(login, user_agent="kubectl-vc")

    async def _config(self, vc: api.VirtualCluster) -> dict[str, Any]:
        return await kubeconfig.kubeconfig(self.client, vc, deadline=self.deadline)

    async def _get_running(self, key: NamespacedName) -> api.VirtualCluster:
        vc = await self.get(key)
        if not vc.is_running:
            raise HansaError(f"VirtualCluster {key} is not running: {waiting.pending_reason(vc)}")
        return vc

    async def _check_version(self, wanted: Object) -> None:
        """Refuse an API server's Service that no client can reach, before anything is created."""
        if credentials.secret_of(wanted) != credentials.SECRET:
            return  # the user's own cluster
        version = await self._version(api.virtual_cluster(wanted).spec.cluster_version_name)
        service = version.spec.api_server.service or {}
        kind = service.get("spec", {}).get("type", "ClusterIP")
        if kind not in SERVICE_TYPES:
            raise HansaError(
                f"spec.apiServer.service of ClusterVersion {version.name} has type {kind};"
                f" supported: {', '.join(SERVICE_TYPES)}"
            )

    async def _version(self, name: str) -> api.ClusterVersion:
        if not name:
            raise HansaError("spec.clusterVersionName of the VirtualCluster is empty; set it to a ClusterVersion")
        try:
            return api.cluster_version(await self.client.get(api.CLUSTER_VERSIONS, name))
        except errors.NotFound:
            page = await self.client.list(api.CLUSTER_VERSIONS)
            known = ", ".join(sorted(obj.name for obj in page.items)) or "none"
            raise HansaError(f'ClusterVersion "{name}" not found; existing: {known}') from None

    async def _check_same(self, wanted: Object) -> None:
        """Refuse an existing VirtualCluster with another spec; a dry run adds the server's defaults to the new one."""
        found = await self.client.get(api.VIRTUAL_CLUSTERS, wanted.name, namespace=wanted.namespace)
        if found.is_deleting:
            raise HansaError(
                f"VirtualCluster {wanted.key} is being deleted; wait until it is removed from `kubectl vc list`"
            )
        changed = found.with_fields(spec=wanted.spec)
        try:
            defaulted = await self.client.update(api.VIRTUAL_CLUSTERS, changed, dry_run=True)
        except errors.Invalid:
            defaulted = changed  # an immutable field differs
        if differing := sorted(_differing(found.spec, defaulted.spec)):
            raise HansaError(
                f"VirtualCluster {wanted.key} exists already with another {', '.join(differing)};"
                " choose another name, or change it with `kubectl vc upgrade` or `kubectl edit vc`"
            )

    def _waiter(self, key: NamespacedName) -> waiting.Waiter:
        return waiting.Waiter(self.client, key, deadline=self.deadline, report=report)


def report(line: str) -> None:
    """Print progress to standard error."""
    print(line, file=sys.stderr, flush=True)


def _differing(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def _dump(config: dict[str, Any]) -> str:
    return yaml.safe_dump(config, sort_keys=False)


def _write(path: Path, text: str) -> None:
    """Replace a file atomically, with mode 0600."""
    try:
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as draft:
            try:
                draft.write(text)
                draft.flush()
                Path(draft.name).replace(path)
            except BaseException:
                Path(draft.name).unlink()
                raise
    except OSError as error:
        raise HansaError(f"cannot write {path}: {error.strerror}") from None


@contextlib.contextmanager
def _temporary(text: str, *, folder: Path, key: str) -> Iterator[Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # It has mode 0600, and a name that differs from that of another shell for the same tenant.
        file = tempfile.NamedTemporaryFile("w", dir=folder, prefix=f"{key}.", suffix=".kubeconfig")  # noqa: SIM115
    except OSError as error:
        raise HansaError(f"cannot write a kubeconfig to {folder}: {error.strerror}") from None
    with file:
        file.write(text)
        file.flush()
        yield Path(file.name)


async def _run(command: Sequence[str], env: dict[str, str]) -> int:
    """Run a program in the foreground. Ctrl-C is left to it: both are in one process group."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    try:
        process = await asyncio.create_subprocess_exec(*command, env=env)
    except OSError as error:
        raise HansaError(f"cannot run {command[0]}: {error.strerror}") from None
    loop.add_signal_handler(signal.SIGTERM, process.terminate)
    code = await process.wait()
    return code if code >= 0 else 128 - code
