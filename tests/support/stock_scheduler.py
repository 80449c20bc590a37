"""A stock kube-scheduler beside clusters that were created without one, and without controllers.

In such a cluster, nodes and pods are as a test makes them.
"""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import yaml

from hansa import local
from hansa.local import Cluster, ClusterSpec, Fleet
from hansa.programs import components, ports

LIFTED = {"qps": 10_000, "burst": 10_000}
# Without controllers there are no service accounts, and no one removes the taint that new nodes get.
FLAGS: Final[dict[str, tuple[str, ...]]] = {
    "kube-apiserver": ("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",)
}


@contextlib.asynccontextmanager
async def bare_clusters(fleet: Fleet, *names: str) -> AsyncIterator[list[Cluster]]:
    """API servers without rate limits and nothing beside them."""
    made = await fleet.up([ClusterSpec(name, scheduler=False, lift_limits=True, flags=FLAGS) for name in names])
    for one in made:
        one.process(components.CONTROLLERS).signal(signal.SIGKILL)
    yield made
    await fleet.down(names)


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
