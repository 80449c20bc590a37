"""A stock kube-scheduler beside a cluster that was created without one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from hansa import local
from hansa.local import Fleet
from hansa.programs import ports

LIFTED = {"qps": 10_000, "burst": 10_000}


@contextlib.asynccontextmanager
async def running(fleet: Fleet, config: Path, *, log: Path) -> AsyncIterator[None]:
    """Run it with this configuration file while the block lasts."""
    binary = (await local.binaries.ensure(["kube-scheduler"], sources=fleet.sources))["kube-scheduler"]
    [secure] = ports.choose(1, taken=(), seed=str(config))
    with log.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            *(str(binary), f"--config={config}", f"--secure-port={secure}", "--bind-address=127.0.0.1"),
            stdout=file,
            stderr=file,
        )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


def write_configuration(path: Path, kubeconfig: Path, **fields: Any) -> Path:
    """A configuration without leader election and without rate limits; its path."""
    described = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), **LIFTED},
        "leaderElection": {"leaderElect": False},
        **fields,
    }
    path.write_text(yaml.safe_dump(described))
    return path
