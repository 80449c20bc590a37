"""Clusters with an agent each, and the objects that make them sources and targets; used by tests of the federation."""

import asyncio
import base64
import functools
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import programs
from eventually import eventually
from hansa.model import keys
from league import PATIENCE, Member, condition
from programs import Hansa, Refused

API = f"{keys.FEDERATION}/v1alpha1"
AGENT = "hansa-agent"


@dataclass
class Federation:
    """The clusters by name, and the agents that run for them."""

    members: dict[str, Member]
    folder: Path
    flags: tuple[str, ...] = ()
    agents: dict[str, Hansa] = field(default_factory=dict)

    def log(self, name: str) -> Path:
        """The log of a cluster's agent."""
        return self.folder / f"agent-{name}.log"

    async def start(self, *names: str, flags: tuple[str, ...] = ()) -> None:
        """Start the agents of these clusters, by default of all, and wait until they have installed everything."""
        for name in names or tuple(self.members):
            config = str(self.members[name].cluster.kubeconfig)
            self.agents[name] = await programs.start(
                "agent", "--kubeconfig", config, *self.flags, *flags, log=self.log(name)
            )
        for name in names or tuple(self.members):
            await eventually(functools.partial(self._is_installed, name), within=PATIENCE)

    async def kill(self, name: str) -> None:
        """End an agent with SIGKILL."""
        agent = self.agents.pop(name)
        agent.kill()
        await agent.ended()

    async def stop(self) -> None:
        """End all agents with SIGTERM."""
        agents, self.agents = self.agents, {}
        for name, agent in agents.items():
            code = await agent.stop()
            assert code == 0, f"the agent of {name} ended with {code}: {self.log(name).read_text()[-4000:]}"

    async def connect(self, source: str, target: str, *, namespace: str = "default") -> str:
        """Make a cluster a namespaced target of another; the name of the virtual node."""
        there, here = self.members[target], self.members[source]
        await there.kubectl.apply(a_source(source, namespace))
        await self.ready(there, "source", source, namespace=namespace)
        secret = await self.export(target, source, name=target, namespace=namespace)
        await here.kubectl.apply({**secret, "metadata": {**secret["metadata"], "namespace": namespace}})
        await here.kubectl.apply(a_target(target, namespace))
        return await self.joined(here, target, namespace)

    async def connect_self(self, name: str, *, namespace: str = "default") -> str:
        """Make a cluster a target of itself; the name of the virtual node."""
        here = self.members[name]
        await here.kubectl.apply(a_target(name, namespace, self=True))
        return await self.joined(here, name, namespace)

    async def joined(self, here: Member, target: str, namespace: str = "default") -> str:
        """Wait until a Target and its virtual node are ready; the name of that."""
        node = f"admiralty-namespace-{namespace}-{target}"
        await self.ready(here, "target", target, namespace=namespace)
        await self.ready(here, "node", node)
        return node

    async def ready(self, member: Member, *what: str, namespace: str = "", status: str = "True") -> Any:
        """Wait for a condition Ready; it."""

        async def look() -> Any:
            found = await member.find(*what, namespace=namespace)
            assert found is not None, f"there is no {' '.join(what)} in {member.name}"
            ready = condition({"status": found.get("status") or {}}, "Ready")
            assert ready["status"] == status, ready
            return ready

        return await eventually(look, within=PATIENCE)

    async def export(
        self, target: str, account: str, *, name: str, namespace: str = "default", flags: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """The Secret that `kubemcsa export` prints for a service account of a target."""
        config = str(self.members[target].cluster.kubeconfig)
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).parent / "kubemcsa"),
            *("export", "--kubeconfig", config, "-n", namespace, account, "--as", name, *flags),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        if process.returncode:
            raise Refused(f"kubemcsa export: {err.decode()}")
        secret: dict[str, Any] = yaml.safe_load(out)
        return secret

    async def delegates(self, member: Member, namespace: str = "") -> list[Any]:
        """The delegate pods in a cluster."""
        return await member.all("pods", namespace=namespace, labels=keys.PARENT_UID)

    async def _is_installed(self, name: str) -> bool:
        agent = self.agents[name]
        if agent.has_ended:
            raise RuntimeError(f"the agent of {name} does not run: {self.log(name).read_text()[-4000:]}")
        return await self.members[name].find("clustersummaries.multicluster.admiralty.io", "singleton") is not None


@dataclass
class Pods:
    """The pods of one namespace: the proxies in east, and the delegates in east and west."""

    federation: Federation
    namespace: str

    @property
    def east(self) -> Member:
        return self.federation.members["east"]

    @property
    def west(self) -> Member:
        return self.federation.members["west"]

    async def apply(self, *objects: dict[str, Any]) -> None:
        """Create or change objects of the namespace in the source."""
        await self.east.kubectl("-n", self.namespace, "apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    async def delete(self, *what: str) -> None:
        """Delete objects of the namespace in the source."""
        await self.east.kubectl("-n", self.namespace, "delete", *what, "--wait=false")

    async def rolled_out(self, name: str) -> None:
        """Wait until all pods of a Deployment are ready and its former ones are gone."""
        await self.east.kubectl("-n", self.namespace, "rollout", "status", f"deployment/{name}", "--timeout", "120s")

    async def counts(self) -> list[int]:
        """The number of delegates in east, and in west."""
        return [len(await self.federation.delegates(one, self.namespace)) for one in (self.east, self.west)]

    async def have_counts(self, *wanted: int) -> None:
        """Wait until there are as many delegates in each."""

        async def look() -> bool:
            assert await self.counts() == list(wanted), await self.counts()
            return True

        await eventually(look, within=PATIENCE)

    async def running(self, name: str, on: str = "") -> Any:
        """Wait until a pod runs, on a virtual node; the pod."""

        async def look() -> Any:
            pod = await self.east.find("pod", name, namespace=self.namespace)
            assert pod["status"].get("phase") == "Running", (pod["status"], pod["metadata"]["annotations"])
            assert not on or pod["spec"].get("nodeName") == on, pod["spec"].get("nodeName")
            return pod

        return await eventually(look, within=PATIENCE)

    async def event(self, name: str, *texts: str) -> list[Any]:
        """Wait until an event FailedScheduling of a pod has all these texts; all such events."""

        async def look() -> list[Any]:
            fields = f"involvedObject.name={name},reason=FailedScheduling"
            found = await self.east.kubectl.get("-n", self.namespace, "events", "--field-selector", fields)
            messages = [one["message"] for one in found["items"]]
            assert [one for one in messages if all(text in one for text in texts)], messages
            return list(found["items"])

        return await eventually(look, within=PATIENCE)

    async def gone(self, *what: str, namespace: str = "") -> None:
        """Wait until an object of the source is deleted."""

        async def look() -> bool:
            assert await self.east.find(*what, namespace=namespace) is None, f"{what} is still there"
            return True

        await eventually(look, within=PATIENCE)


def a_source(name: str, namespace: str) -> dict[str, Any]:
    """A Source with a service account of its name."""
    spec = {"serviceAccountName": name}
    return {"apiVersion": API, "kind": "Source", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def a_target(name: str, namespace: str, *, self: bool = False) -> dict[str, Any]:
    """A Target with a secret of its name, or of the cluster itself; without a namespace a ClusterTarget."""
    secret = {"name": name} | ({} if namespace else {"namespace": "default"})
    spec: dict[str, Any] = {"self": True} if self else {"kubeconfigSecret": secret}
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    kind = "Target" if namespace else "ClusterTarget"
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def a_secret(name: str, config: str, namespace: str = "default") -> dict[str, Any]:
    """A Secret with a kubeconfig."""
    data = {"config": base64.b64encode(config.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}


def elected(name: str, *, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    """An elected pod."""
    resources = {"requests": {"cpu": cpu, "memory": "32Mi"}}
    containers = [{"name": "main", "image": "example.com/app:1", "resources": resources, **spec.pop("container", {})}]
    metadata = {"name": name, "labels": {"app": name}, "annotations": {keys.ELECT: "", **spec.pop("annotations", {})}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def a_deployment(name: str, replicas: int, **spec: Any) -> dict[str, Any]:
    """A Deployment of elected pods."""
    pod = elected(name, **spec)
    template = {"metadata": {k: v for k, v in pod["metadata"].items() if k != "name"}, "spec": pod["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }
