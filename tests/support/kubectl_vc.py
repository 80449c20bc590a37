"""`kubectl vc` through the real kubectl, and a stand-in for the manager whose progress the test controls."""

import asyncio
import base64
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.tenancy import api
from programs import Refused, as_in_the_foreground


class KubectlVc:
    """The real kubectl with `kubectl-vc` on its PATH."""

    def __init__(self, kubectl: Path, kubeconfig: Path, *, folder: Path) -> None:
        self._kubectl = str(kubectl)
        plugin = folder / "kubectl-vc"
        code = "import sys; from hansa.cli.kubectl_vc.main import main; sys.exit(main())"
        plugin.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
        plugin.chmod(0o755)
        path = f"{folder}:{os.environ['PATH']}"
        self.env = {**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig), "HOME": str(folder)}

    async def start(self, *arguments: str, **pipes: Any) -> asyncio.subprocess.Process:
        """Run it in a process group of its own, as a shell does."""
        return await asyncio.create_subprocess_exec(
            self._kubectl,
            "vc",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.env,
            start_new_session=True,
            preexec_fn=as_in_the_foreground,
            **pipes,
        )

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run it to its end; its stdout and stderr."""
        process = await self.start(*arguments)
        out, err = await process.communicate(stdin.encode())
        if process.returncode:
            raise Refused(f"kubectl vc {' '.join(arguments)}: {out.decode()}{err.decode()}")
        return out.decode() + err.decode()


class Manager:
    """Makes the writes of `hansa vc-manager` when the test calls for them."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._roots: list[str] = []

    async def clean(self) -> None:
        """Delete the root namespaces."""
        for root in self._roots:
            await self._client.delete(resources.NAMESPACES, root)

    async def get(self, name: str) -> api.VirtualCluster:
        """The VirtualCluster."""
        return api.virtual_cluster(await self._client.get(api.VIRTUAL_CLUSTERS, name, namespace=self._namespace))

    async def report(self, name: str, phase: str, message: str = "") -> api.VirtualCluster:
        """Write a status."""
        vc = await self.get(name)
        if phase == "Running" and keys.READY_FOR_UPGRADE in vc.object.labels:
            done = {"metadata": {"labels": {keys.READY_FOR_UPGRADE: None}}}
            await self._client.patch(api.VIRTUAL_CLUSTERS, name, done, namespace=self._namespace)
        ready = {"type": "Ready", "status": "True" if phase == "Running" else "False", "reason": "Reported"}
        condition = {**ready, "message": message, "observedGeneration": vc.object.metadata.generation}
        status = {"phase": phase, "message": message, "clusterNamespace": vc.root, "conditions": [condition]}
        patched = await self._client.patch(
            api.VIRTUAL_CLUSTERS, name, {"status": status}, namespace=self._namespace, subresource="status"
        )
        return api.virtual_cluster(patched)

    async def root(self, name: str, kubeconfig: bytes) -> str:
        """Make the root namespace with the administrator's kubeconfig; its name."""
        root = (await self.get(name)).root
        await self.make(resources.NAMESPACES, "v1", {"name": root})
        self._roots.append(root)
        data = {"admin-kubeconfig": base64.b64encode(kubeconfig).decode()}
        await self.make(resources.SECRETS, "v1", {"name": "admin-kubeconfig", "namespace": root}, data=data)
        return root

    async def make(self, resource: Any, version: str, metadata: dict[str, Any], **fields: Any) -> Object:
        """Create an object."""
        manifest = {"apiVersion": version, "kind": resource.kind, "metadata": metadata, **fields}
        return await self._client.create(resource, Object.of(manifest))


def cluster_of(path: Path) -> dict[str, Any]:
    """The cluster entry of a written kubeconfig, which must be readable by its owner only."""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["current-context"] in [context["name"] for context in config["contexts"]]
    found: dict[str, Any] = config["clusters"][0]["cluster"]
    assert "insecure-skip-tls-verify" not in found
    return found


async def line(process: asyncio.subprocess.Process, matches: Callable[[str], bool], *, within: float = 60.0) -> str:
    """Wait for a line on stderr of a process that matches; the line."""
    assert process.stderr is not None
    async with asyncio.timeout(within):
        while text := (await process.stderr.readline()).decode():
            if matches(text):
                return text
    raise AssertionError("the process ended without a line that matches")
