"""The two ways from an upper pod to its container: a virtual node of tensile mode, and the virtual node of a target."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from eventually import eventually
from federation import elected
from hansa.kubelet.usage import readings
from hansa.kubelet.usage.readings import Container, Reading
from hansa.local.machines import images
from hansa.model import keys
from league import Member, container, pod

UPPER, LOWER = "kubelet-upper", "kubelet-lower"
LINES = 'for i in 1 2 3 4 5; do echo "line $i"; done; echo oops >&2; sleep 1000000'
Result = tuple[int, bytes, bytes]


@dataclass
class Way:
    """One namespace whose pods run below; `lower_names` are their names there."""

    upper: Member
    lower: Member
    namespace: str
    node: str
    is_federated: bool = False
    lower_names: dict[str, str] = field(default_factory=dict)

    async def create(
        self, name: str, image: str, *arguments: str, until: str = "Running", resources: Any = None, **spec: Any
    ) -> None:
        """Create a pod with one container `main`, and wait until it has a lower pod and is in a phase."""
        spec = {"terminationGracePeriodSeconds": 0, **spec}
        main = {"image": image, "args": list(arguments), **({"resources": resources} if resources else {})}
        if self.is_federated:
            made = elected(name, cpu="10m", container=main, **spec)
        else:
            made = pod(name, on=LOWER, containers=[container(**main)], **spec)
        await self.above("create", "-f", "-", stdin=json.dumps(made).encode(), may_fail=False)
        await self.reached(name, until)

    async def reached(self, name: str, phase: str) -> None:
        """Wait until a pod is in a phase, and note its lower name."""

        async def look() -> bool:
            found = await self.upper.find("pod", name, namespace=self.namespace)
            assert found["status"].get("phase") == phase, (found["status"], found["metadata"]["annotations"])
            below = await self.lower.all("pods", namespace=self.namespace)
            key = f"{self.namespace}/{name}"
            [copy] = [one for one in below if one["metadata"]["annotations"].get(keys.UPPER_NAME) == key]
            assert found["spec"].get("nodeName") == self.node, found["spec"].get("nodeName")
            self.lower_names[name] = copy["metadata"]["name"]
            return True

        await eventually(look, within=120)

    async def readings_below(self) -> dict[str, Reading]:
        """The present readings of the lower kubelet, by the upper names of the pods that it has."""
        [node] = [one["metadata"]["name"] for one in await self.lower.all("nodes")]
        text = await self.lower.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics/resource")
        found = readings.of_resource_metrics(text)
        keys_below = {name: Container(self.namespace, lower, "main") for name, lower in self.lower_names.items()}
        return {name: found[key] for name, key in keys_below.items() if key in found}

    async def port(self) -> int:
        """The port of the node's kubelet API, on loopback."""
        node = await self.upper.find("node", self.node)
        return int(node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"])

    async def above(self, *arguments: str, stdin: bytes = b"", may_fail: bool = True) -> Result:
        """Run a command of kubectl in the upper cluster."""
        result = await self.upper.kubectl.run("-n", self.namespace, *arguments, stdin=stdin)
        assert may_fail or result[0] == 0, result
        return result

    async def below(self, *arguments: str, stdin: bytes = b"") -> Result:
        """Run the same command in the lower cluster; what it says is said of the upper names."""
        code, out, err = await self.lower.kubectl.run(
            "-n", self.namespace, *(self._lowered(one) for one in arguments), stdin=stdin
        )
        for name, lower in self.lower_names.items():
            out, err = (text.replace(lower.encode(), name.encode()) for text in (out, err))
        return code, out, err

    async def both(self, *arguments: str, stdin: bytes = b"") -> Result:
        """Run a command above and below; the result above, which must be the same."""
        above = await self.above(*arguments, stdin=stdin)
        below = await self.below(*arguments, stdin=stdin)
        assert above == below, arguments
        return above

    @contextlib.asynccontextmanager
    async def started(self, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """A command of kubectl in the upper cluster that runs for as long as the block lasts."""
        process = await self.upper.kubectl.start("-n", self.namespace, *arguments)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.communicate()

    @contextlib.asynccontextmanager
    async def forwarded(self, name: str, *ports: int) -> AsyncIterator[list[int]]:
        """Local ports that are forwarded to ports of a pod."""
        wanted = [f":{port}" for port in ports]
        async with self.started("port-forward", f"pod/{name}", *wanted, "--address=127.0.0.1") as process:
            assert process.stdout is not None
            async with asyncio.timeout(60):
                said = [(await process.stdout.readline()).decode() for _ in ports]
            yield [int(line.split(" -> ")[0].rpartition(":")[2]) for line in said]

    def _lowered(self, argument: str) -> str:
        for name, lower in self.lower_names.items():
            if argument in (name, f"pod/{name}"):
                return argument.replace(name, lower)
        return argument


async def with_pods(way: Way) -> Way:
    """A pod that wrote lines, and a web server."""
    await asyncio.gather(
        way.create("box", images.BUSYBOX, "sh", "-c", LINES),
        way.create("web", images.AGNHOST, "netexec", "--http-port=8080"),
    )
    return way
