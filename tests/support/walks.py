"""Shell scripts of walkthroughs: clusters in one kubeconfig; helm, kubectl and commands of Hansa on the PATH."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from hansa.local import Cluster
from hansa.local.control_plane import kubeconfig

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Walk:
    """A folder in which scripts run one after the other."""

    folder: Path
    programs: tuple[Path, ...]

    def __post_init__(self) -> None:
        for program in self.programs:
            (self.folder / program.name).symlink_to(program)

    def contexts(self, clusters: Iterable[Cluster]) -> None:
        """Write the kubeconfig with a context for each cluster."""
        texts = [yaml.safe_load(one.kubeconfig.read_text()) for one in clusters]
        (self.folder / "config").write_text(kubeconfig.dump(kubeconfig.merge(texts)))

    async def __call__(self, script: str, *, within: float = 300.0, **variables: str) -> str:
        """Run a script to its end; its output. It fails with the first command that fails."""
        path = f"{self.folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        settings = {
            "PATH": path,
            "KUBECONFIG": str(self.folder / "config"),
            "HOME": str(self.folder),
            "REPO": str(ROOT),
        }
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-c", f"set -xeuo pipefail\n{script}"),
            cwd=self.folder,
            env={**os.environ, **settings, **variables},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        assert shell.stdout is not None
        output = bytearray()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    while chunk := await shell.stdout.read(65536):
                        output += chunk
                    await shell.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            code = await shell.wait()
        text = output.decode()
        assert code == 0, f"the script ended with {code}:\n{text[-8000:]}"
        return text
