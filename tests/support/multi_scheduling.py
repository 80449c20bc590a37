"""`hansa multi-scheduler` beside a kube-scheduler, for tests; the clusters are those of a League."""

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import programs
from accounts import Account
from eventually import eventually
from league import PATIENCE, League, pod
from programs import Hansa


def write_configuration(path: Path, upper: Path, lowers: Mapping[str, Path]) -> Path:
    """The seed's configuration file, of kubeconfigs; its path."""
    arguments = {"cluster_configuration": {name: {"kube_config": str(file)} for name, file in lowers.items()}}
    described = {
        "kind": "KubeSchedulerConfiguration",
        "apiVersion": "kubescheduler.config.k8s.io/v1alpha1",
        "clientConnection": {"kubeconfig": str(upper)},
        "plugins": {"filter": {"enabled": [{"name": "multi-scheduler"}]}},
        "pluginConfig": [{"name": "multi-scheduler", "args": arguments}],
    }
    path.write_text(json.dumps(described))
    return path


@dataclass
class MultiScheduler:
    """The program, and waits for what it decides."""

    league: League
    flags: tuple[str, ...]
    folder: Path
    accounts: list[Account]
    program: Hansa | None = None

    async def start(self) -> None:
        """Start or restart it."""
        self.program = await programs.start(*self.flags, log=self.folder / "multi-scheduler.log")

    async def stop(self) -> None:
        """End it with SIGTERM."""
        program, self.program = self.program, None
        if program is not None:
            assert await program.stop() == 0

    async def kill(self) -> None:
        """End it with SIGKILL."""
        assert self.program is not None
        self.program.kill()
        await self.program.ended()
        self.program = None

    async def make(self, namespace: str, *names: str, cpu: str, **spec: Any) -> None:
        """Create pods that request this much CPU."""
        container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": cpu}}}
        fields = {"containers": [container], **spec}
        made = [pod(name, metadata={"namespace": namespace}, **fields) for name in names]
        await self.league.upper.kubectl.apply(*made, verb="create")

    async def configuration(self, name: str, *flags: str) -> Path:
        """A configuration that the program writes for a kube-scheduler of this name; its path."""
        path = self.folder / f"{name}.yaml"
        own = self.flags.index("--kubeconfig")  # of the extender's account; kube-scheduler has that of the file
        words = (*self.flags[:own], "--write-scheduler-config", str(path), *flags)
        async with programs.hansa(*words, log=self.folder / "write.log") as write:
            assert await write.ended() == 0
        described = yaml.safe_load(path.read_text())
        [profile, *_] = described["profiles"]
        # Without leader election: the schedulers decide at the same time.
        changed = {"profiles": [profile | {"schedulerName": name}], "leaderElection": {"leaderElect": False}}
        path.write_text(yaml.safe_dump(described | changed))
        return path

    async def explain(self, *words: str) -> Any:
        """The output of `hansa explain`, parsed."""
        flags = [*self.flags[1:3], "-o", "json"]  # --config and its file
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hansa.cli.main", "explain", *words, *flags), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0, words
        return json.loads(out)

    async def node(self, namespace: str, name: str) -> str:
        """Wait until a pod runs; its node."""
        found = await self.league.phase(namespace, name)
        return str(found["spec"]["nodeName"])

    async def refusal(self, namespace: str, name: str) -> str:
        """Wait until kube-scheduler has refused a pod; the message of its condition."""

        async def look() -> str:
            found = await self.league.upper.find("pod", name, namespace=namespace)
            conditions = found["status"].get("conditions") or []
            said = [one["message"] for one in conditions if one.get("reason") == "Unschedulable"]
            assert said, found["status"]
            return str(said[0])

        return await eventually(look, within=PATIENCE)
