"""The real helm, and the chart of this repository."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "hansa"


class HelmFailed(AssertionError):
    """Helm ended with an error; the message is its output."""


@dataclass(frozen=True)
class Release:
    """A release of the chart in a namespace of a cluster."""

    helm: Path
    kubeconfig: Path
    namespace: str
    name: str = "hansa"

    async def upgrade(self, values: Mapping[str, Any], *flags: str, within: float = 180.0) -> str:
        """Install it, or change it to these values, and wait until all is ready."""
        line = ("upgrade", "--install", self.name, str(CHART), "--values=-", "--wait", f"--timeout={within:.0f}s")
        return await self._run(*line, *flags, stdin=json.dumps(values))

    async def uninstall(self, within: float = 180.0) -> str:
        """Remove it, and wait until its objects are gone."""
        return await self._run("uninstall", self.name, "--wait", f"--timeout={within:.0f}s", "--cascade=foreground")

    async def _run(self, *arguments: str, stdin: str = "") -> str:
        pipe = asyncio.subprocess.PIPE
        where = ("--kubeconfig", str(self.kubeconfig), "--namespace", self.namespace)
        process = await asyncio.create_subprocess_exec(
            str(self.helm), *where, *arguments, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await process.communicate(stdin.encode())
        if process.returncode:
            raise HelmFailed(f"helm {' '.join(arguments)}: {output.decode()[-4000:]}")
        return output.decode()
